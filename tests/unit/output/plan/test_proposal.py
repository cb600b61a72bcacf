"""The words of a proposal to the config: its commit message, and what a plan shows of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.controllers.results import RevisionPin
from reconciler.krm.findings import SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.output.plan.formats import (
    build_plan_data,
    format_plan_markdown,
    format_plan_text,
    format_proposal_message,
)
from reconciler.planning.layout.config_proposal import ConfigProposal, RevisionEdit
from tests.unit.output.world import fleet

BEFORE, AFTER = File(b"spec: {upstream: {revision: v1}}\n"), File(b"spec: {upstream: {revision: v2}}\n")


def edit(
    name: str = "gw", package: str = "catalog/gateway", written: str | None = "v1", **more: object
) -> RevisionEdit:
    key = ObjectKey("config.porch.kpt.dev", "PackageVariant", "default", name)
    where = SourceLocation(f"{name}.yaml", 7)
    whole = RevisionPin(key, f"{name}.yaml", 1, ("spec", "upstream"), package, "stable", written, "v2", where)
    return RevisionEdit(replace(whole, **more), "v2")  # type: ignore[arg-type]


def proposal(*edits: RevisionEdit, layout: str = "write") -> ConfigProposal:
    trees = FileTree({"gw.yaml": BEFORE}), FileTree({"gw.yaml": AFTER})
    return ConfigProposal("drafts/config", layout, edits, *trees)  # type: ignore[arg-type]


def test_the_message_names_every_object_with_its_line() -> None:
    message = format_proposal_message(proposal(edit(), edit("other", "catalog/metrics")), "c0ffee")

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
        pytest.param([edit()], "rewrite(config): catalog/gateway v1 → v2 (tag stable)", id="one"),
        pytest.param(
            [edit(), edit("b")], "rewrite(config): catalog/gateway v1 → v2 (tag stable, 2 objects)", id="the-same-twice"
        ),
        pytest.param([edit(written=None)], "rewrite(config): catalog/gateway at v2 (tag stable)", id="the-first"),
        pytest.param(
            [edit(written="v3", is_downgrade=True)], "rewrite(config): catalog/gateway downgrade v3 → v2 (tag stable)",
            id="downgrade",
        ),
    ],
)  # fmt: skip
def test_the_subject(edits: list[RevisionEdit], subject: str) -> None:
    assert format_proposal_message(proposal(*edits), "c").splitlines()[0] == subject


def test_a_subject_is_short_and_a_body_too() -> None:
    many = [edit(f"gw{number}", "catalog/" + "long/" * 30) for number in range(150)]
    lines = format_proposal_message(proposal(*many), "c").splitlines()

    assert len(lines[0]) <= 72
    assert lines[103] == "- and 50 more"


@pytest.mark.parametrize("show", [format_plan_text, format_plan_markdown])
def test_a_plan_shows_what_is_proposed_anew(show: Callable[..., str]) -> None:
    text = show(replace(fleet(), proposal=proposal(edit())))

    assert "propose a config change on drafts/config: catalog/gateway v1 → v2 (tag stable)" in text
    assert "gw.yaml:7: PackageVariant default/gw: catalog/gateway v1 → v2 (tag stable)" in text
    assert "+spec: {upstream: {revision: v2}}" in text


@pytest.mark.parametrize("show", [format_plan_text, format_plan_markdown])
def test_a_plan_says_nothing_of_what_stands(show: Callable[..., str]) -> None:
    standing = replace(fleet(), proposal=proposal(edit(), layout="keep"))

    assert show(standing) == show(fleet())


def test_a_plan_says_that_a_branch_ends() -> None:
    assert "delete drafts/config: the config already has the revisions of its tags" in format_plan_text(
        replace(fleet(), proposal=replace(proposal(layout="end"), files_before=FileTree(), files_after=FileTree()))
    )


def test_a_plan_of_a_folder_says_that_people_write_it() -> None:
    text = format_plan_text(replace(fleet(), proposal=replace(proposal(edit()), branch="")))

    assert (
        "propose a config change (apply it manually, because the config is a plain folder): catalog/gateway v1 → v2"
        in text
    )


def test_a_plan_as_data() -> None:
    data = build_plan_data(replace(fleet(), proposal=proposal(edit())))["proposal"]

    assert (data["branch"], data["change"]) == ("drafts/config", "write")
    assert data["edits"] == [
        {
            "object": "PackageVariant/default/gw", "file": "gw.yaml", "line": 7, "package": "catalog/gateway",
            "tag": "stable", "before": "v1", "after": "v2", "backwards": False,
        }
    ]  # fmt: skip
    assert [diff["path"] for diff in data["diffs"]] == ["gw.yaml"]
    assert build_plan_data(fleet())["proposal"] is None
