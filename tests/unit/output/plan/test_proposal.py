"""Tests of the text of a config proposal: its commit message and its part of the plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.controllers.results import RevisionPin
from reconciler.krm.findings import SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.output.plan.formats import format_plan_markdown, format_plan_text
from reconciler.output.plan.models import PlanResult
from reconciler.output.plan.overview import build_plan_result
from reconciler.output.plan.proposals import format_proposal_message
from reconciler.planning.layout.config_proposal import ConfigProposal, RevisionEdit
from tests.unit.output.builders import build_fleet_plan, read_json

BEFORE, AFTER = File(b"spec: {upstream: {revision: v1}}\n"), File(b"spec: {upstream: {revision: v2}}\n")


def build_edit(
    name: str = "gw", package: str = "catalog/gateway", written: str | None = "v1", **more: object
) -> RevisionEdit:
    key = ObjectKey("config.porch.kpt.dev", "PackageVariant", "default", name)
    where = SourceLocation(f"{name}.yaml", 7)
    whole = RevisionPin(key, f"{name}.yaml", 1, ("spec", "upstream"), package, "stable", written, "v2", where)
    return RevisionEdit(replace(whole, **more), "v2")  # type: ignore[arg-type]


def build_proposal(*edits: RevisionEdit, layout: str = "write") -> ConfigProposal:
    trees = FileTree({"gw.yaml": BEFORE}), FileTree({"gw.yaml": AFTER})
    return ConfigProposal("drafts/config", layout, edits, *trees)  # type: ignore[arg-type]


def build_result(proposal: ConfigProposal) -> PlanResult:
    return build_plan_result(replace(build_fleet_plan(), proposal=proposal), 20)


def test_message_lists_every_object_with_its_line() -> None:
    message = format_proposal_message(build_proposal(build_edit(), build_edit("other", "catalog/metrics")), "c0ffee")

    assert message == (
        "rewrite(config): 2 revisions of 2 packages with moved tags\n\n"
        "Tags moved to other revisions. This commit updates:\n"
        "- gw.yaml:7: PackageVariant default/gw: catalog/gateway v1 → v2 (tag stable)\n"
        "- other.yaml:7: PackageVariant default/other: catalog/metrics v1 → v2 (tag stable)\n\n"
        "Reconciler-Task: rewrite\nReconciler-Config-Commit: c0ffee\n"
    )


@pytest.mark.parametrize(
    ("edits", "subject"),
    [
        pytest.param([build_edit()], "rewrite(config): catalog/gateway v1 → v2 (tag stable)", id="one"),
        pytest.param(
            [build_edit(), build_edit("b")], "rewrite(config): catalog/gateway v1 → v2 (tag stable, 2 objects)", id="the-same-twice"
        ),
        pytest.param([build_edit(written=None)], "rewrite(config): catalog/gateway at v2 (tag stable)", id="the-first"),
        pytest.param(
            [build_edit(written="v3", is_downgrade=True)], "rewrite(config): catalog/gateway downgrade v3 → v2 (tag stable)",
            id="downgrade",
        ),
        pytest.param(
            [build_edit(package="charts/web", written="~1.0", tag="", range="~1.0")],
            "rewrite(config): charts/web ~1.0 → v2 (range ~1.0)", id="version-range",
        ),
        pytest.param(
            [build_edit(), build_edit("b", "charts/web", tag="", range="~1.0")],
            "rewrite(config): 2 revisions of 2 packages with new versions", id="tag-and-version-range",
        ),
        pytest.param(
            [build_edit(written=f"sha256:{'a' * 64}")], "rewrite(config): catalog/gateway sha256:aaaaaaaaaaaa → v2 (tag stable)",
            id="digest",
        ),
    ],
)  # fmt: skip
def test_subject(edits: list[RevisionEdit], subject: str) -> None:
    assert format_proposal_message(build_proposal(*edits), "c").splitlines()[0] == subject


def test_subject_and_body_are_limited() -> None:
    many = [build_edit(f"gw{number}", "catalog/" + "long/" * 30) for number in range(150)]
    lines = format_proposal_message(build_proposal(*many), "c").splitlines()

    assert len(lines[0]) <= 72
    assert lines[103] == "- and 50 more"


@pytest.mark.parametrize("show", [format_plan_text, format_plan_markdown])
def test_plan_shows_a_new_proposal(show: Callable[..., str]) -> None:
    text = show(build_result(build_proposal(build_edit())))

    assert "propose a config change on drafts/config: catalog/gateway v1 → v2 (tag stable)" in text
    assert "gw.yaml:7: PackageVariant default/gw: catalog/gateway v1 → v2 (tag stable)" in text
    assert "+spec: {upstream: {revision: v2}}" in text


@pytest.mark.parametrize("show", [format_plan_text, format_plan_markdown])
def test_plan_omits_an_unchanged_proposal(show: Callable[..., str]) -> None:
    unchanged = build_result(build_proposal(build_edit(), layout="keep"))

    assert show(unchanged) == show(build_plan_result(build_fleet_plan(), 20))


def test_plan_shows_the_deletion_of_the_proposal_branch() -> None:
    assert "delete drafts/config: the config already contains the selected revisions" in format_plan_text(
        build_result(replace(build_proposal(layout="end"), files_before=FileTree(), files_after=FileTree()))
    )


def test_plan_of_a_plain_folder_requires_a_manual_edit() -> None:
    text = format_plan_text(build_result(replace(build_proposal(build_edit()), branch="")))

    assert (
        "propose a config change (apply it manually, because the config is a plain folder): catalog/gateway v1 → v2"
        in text
    )


def test_proposal_as_data() -> None:
    (data,) = read_json(build_result(build_proposal(build_edit())))["items"]

    assert (data["type"], data["action"], data["branch"]) == ("configProposal", "propose", "drafts/config")
    assert data["edits"] == [
        {
            "object": "PackageVariant/default/gw", "file": "gw.yaml", "line": 7, "package": "catalog/gateway",
            "tag": "stable", "before": "v1", "after": "v2", "isDowngrade": False,
        }
    ]  # fmt: skip
    assert [diff["path"] for diff in data["diffs"]] == ["gw.yaml"]
    assert build_plan_result(build_fleet_plan(), 20).items == ()
