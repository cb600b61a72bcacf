"""Tests of the golden scenarios: each step produces the expected draft, and extra passes change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.scenarios.golden_world import PACKAGE, GoldenScenario, GoldenWorld, find_scenarios
from tests.support.golden import read_folder, rewrite_folder


@pytest.fixture(params=find_scenarios(), ids=lambda scenario: scenario.folder.name)
def scenario(request: pytest.FixtureRequest) -> GoldenScenario:
    param: GoldenScenario = request.param
    return param


@pytest.mark.quick_cases(every=4)
def test_each_step_produces_the_expected_files(
    scenario: GoldenScenario, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rewrite = request.config.getoption("--rewrite-expected")
    world = GoldenWorld(scenario, tmp_path)
    for step in scenario.steps:
        world.run_step(step)
        result = world.read_result()
        if rewrite:
            rewrite_folder(step.expected, result)
        expected = read_folder(step.expected)

        assert sorted(result) == sorted(expected), step.folder.name
        for path, content in expected.items():
            assert result[path].decode() == content.decode(), f"{step.folder.name}: {path}"


@pytest.mark.slow
def test_extra_passes_change_nothing_and_the_draft_is_published(scenario: GoldenScenario, tmp_path: Path) -> None:
    world = GoldenWorld(scenario, tmp_path)
    for step in scenario.steps:
        world.run_step(step, should_sync_between_changes=True)
    drafted, expected = world.read_result(), read_folder(scenario.steps[-1].expected)

    assert _without_status(drafted) == _without_status(expected)
    if world.has_draft:
        world.publish()
        assert (world.read_published(), world.has_draft) == (drafted, False)


def _without_status(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {path: content for path, content in files.items() if path.startswith(f"{PACKAGE}/")}


def test_golden_scenarios_exist() -> None:
    assert find_scenarios()
