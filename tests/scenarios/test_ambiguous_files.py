"""Tests of ambiguous JSON and YAML files in upstream packages: an error finding with the file name, and no draft."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.krm.findings import Severity
from tests.support.world import World, package, small_world, variant


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = small_world(tmp_path)
    world.sync()
    world.merge("berlin")
    world.sync()
    return world


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        pytest.param("one.json", '{"a": 1,\n "a": 2}\n', 'the key "a" is repeated', id="json-duplicate-key"),
        pytest.param("one.json", '{"a":\n 1e400}\n', "1e400 is outside of the range", id="json-overflow"),
        pytest.param("one.yaml", "a: 1\na: 2\n", 'the key "a" occurs twice', id="yaml-duplicate-key"),
    ],
)
def test_ambiguous_file_is_an_error_and_no_draft_is_pushed(world: World, name: str, text: str, message: str) -> None:
    world.release("metrics", "v2", {**package("metrics", image="2.0"), name: text})
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    before = world.head("clusters/berlin")
    result = world.sync()

    errors = [finding.message for finding in result.findings if finding.severity is Severity.ERROR]
    assert errors
    assert all(name in error and message in error for error in errors)
    assert (result.changed_branches, world.head("clusters/berlin")) == (set(), before)
    assert world.sync_until_unchanged().is_unchanged
