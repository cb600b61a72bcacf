"""Every golden journey: what stands on the draft after each step is what is expected, and the next pass is silent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.scenarios.golden_world import PACKAGE, Journey, JourneyWorld, find_journeys
from tests.support.golden import read_folder, rewrite_folder


@pytest.fixture(params=find_journeys(), ids=lambda journey: journey.folder.name)
def journey(request: pytest.FixtureRequest) -> Journey:
    param: Journey = request.param
    return param


def test_what_comes_of_every_step(journey: Journey, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    rewrite = request.config.getoption("--rewrite-expected")
    world = JourneyWorld(journey, tmp_path)
    for step in journey.steps:
        world.take(step)
        result = world.result()
        if rewrite:
            rewrite_folder(step.expected, result)
        expected = read_folder(step.expected)

        assert sorted(result) == sorted(expected), step.folder.name
        for path, content in expected.items():
            assert result[path].decode() == content.decode(), f"{step.folder.name}: {path}"


def test_passes_in_between_change_nothing_and_the_draft_is_published(journey: Journey, tmp_path: Path) -> None:
    world = JourneyWorld(journey, tmp_path)
    for step in journey.steps:
        world.take(step, patiently=True)
    drafted, expected = world.result(), read_folder(journey.steps[-1].expected)

    assert _without_status(drafted) == _without_status(expected)
    if world.has_draft:
        world.publish()
        assert (world.published(), world.has_draft) == (drafted, False)


def _without_status(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {path: content for path, content in files.items() if path.startswith(f"{PACKAGE}/")}


def test_there_are_journeys() -> None:
    assert find_journeys()
