"""Validating: everything that is wrong or odd about a config is told, once, whether or not packages come of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from reconciler.daemon.validate import validate
from reconciler.krm.findings import Finding
from reconciler.settings import Settings
from reconciler.wiring import build_parts
from tests.cases.case_world import Case, CaseWorld, find_cases
from tests.support.presets import option, preset, preset_world
from tests.support.world import World

MADE = [one for one in find_cases() if one.name.startswith(("composition/", "presets/")) and "before" not in one.data]


def validated(folder: Path, **settings: object) -> tuple[Finding, ...]:
    """Return the findings of a config folder."""
    places = {"fleet": {"url": str(folder / "fleet.git")}, "cache": str(folder / "cache")}
    parts = build_parts(Settings.model_validate({**places, **settings}), str(folder / "config"))
    with parts.remotes as remotes:
        return validate(parts.source, remotes, parts.tools).findings


def told(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    """Return what is told of the config, in an order of its own; what packages hold is not."""
    return sorted((one.code, one.message) for one in findings if not one.where.package)


def odd_options(folder: Path) -> World:
    """Return a preset for three clusters with an option that its definition does not have."""
    world = preset_world(folder)
    world.write({"presets/logs.yaml": preset(options=[option("colour", "red")])})
    return world


def test_what_is_odd_about_packages_that_can_be_made_is_told(tmp_path: Path) -> None:
    odd_options(tmp_path)

    assert {one.code for one in validated(tmp_path)} == {"UndeclaredOption"}


def test_each_finding_is_told_once(tmp_path: Path) -> None:
    odd_options(tmp_path)

    assert set(Counter(validated(tmp_path)).values()) == {1}


@pytest.mark.parametrize("case", MADE, ids=lambda case: case.name)
def test_validating_tells_what_a_pass_tells(case: Case, tmp_path: Path) -> None:
    world = CaseWorld(case, tmp_path)
    report, _ = world.sync()

    assert told(validated(tmp_path, **case.data.get("settings", {}))) == told(report.plan.all_findings())
