"""The words of a proposal to the config: its commit message, and what a plan shows of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from reconciler.krm.findings import Where
from reconciler.krm.identity import ObjectKey
from reconciler.planning.proposal import Edit, Proposal
from reconciler.reporting.plan import plan_json, plan_markdown, plan_text
from reconciler.reporting.proposal import proposal_message
from reconciler.rules.variant import Pin
from reconciler.snapshot.files import File, FileTree
from tests.unit.reporting.world import fleet

BEFORE, AFTER = File(b"spec: {upstream: {revision: v1}}\n"), File(b"spec: {upstream: {revision: v2}}\n")


def edit(name: str = "gw", package: str = "catalog/gateway", written: str | None = "v1", **more: object) -> Edit:
    key = ObjectKey("config.porch.kpt.dev", "PackageVariant", "default", name)
    where = Where(f"{name}.yaml", 7)
    whole = Pin(key, f"{name}.yaml", 1, ("spec", "upstream"), package, "stable", written, "v2", where)
    return Edit(replace(whole, **more), "v2")  # type: ignore[arg-type]


def proposal(*edits: Edit, layout: str = "write") -> Proposal:
    trees = FileTree({"gw.yaml": BEFORE}), FileTree({"gw.yaml": AFTER})
    return Proposal("drafts/config", layout, edits, *trees)  # type: ignore[arg-type]


def test_the_message_names_every_object_with_its_line() -> None:
    message = proposal_message(proposal(edit(), edit("other", "catalog/metrics")), "c0ffee")

    assert message == (
        "rewrite(config): 2 revisions of 2 packages that tags have moved on from\n\n"
        "Tags have moved, and these revisions keep up with them:\n"
        "- PackageVariant default/gw (gw.yaml:7): catalog/gateway v1 → v2, which tag stable names\n"
        "- PackageVariant default/other (other.yaml:7): catalog/metrics v1 → v2, which tag stable names\n\n"
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
            [edit(written="v3", backwards=True)], "rewrite(config): catalog/gateway downgrade v3 → v2 (tag stable)",
            id="downgrade",
        ),
    ],
)  # fmt: skip
def test_the_subject(edits: list[Edit], subject: str) -> None:
    assert proposal_message(proposal(*edits), "c").splitlines()[0] == subject


def test_a_subject_is_short_and_a_body_too() -> None:
    many = [edit(f"gw{number}", "catalog/" + "long/" * 30) for number in range(150)]
    lines = proposal_message(proposal(*many), "c").splitlines()

    assert len(lines[0]) <= 72
    assert lines[103] == "- and 50 more"


@pytest.mark.parametrize("show", [plan_text, plan_markdown])
def test_a_plan_shows_what_is_proposed_anew(show: Callable[..., str]) -> None:
    text = show(replace(fleet(), proposal=proposal(edit())))

    assert "propose to the config on drafts/config: catalog/gateway v1 → v2 (tag stable)" in text
    assert "PackageVariant default/gw (gw.yaml:7): catalog/gateway v1 → v2, which tag stable names" in text
    assert "+spec: {upstream: {revision: v2}}" in text


@pytest.mark.parametrize("show", [plan_text, plan_markdown])
def test_a_plan_says_nothing_of_what_stands(show: Callable[..., str]) -> None:
    standing = replace(fleet(), proposal=proposal(edit(), layout="keep"))

    assert show(standing) == show(fleet())


def test_a_plan_says_that_a_branch_ends() -> None:
    assert "delete drafts/config: the config says what its tags name" in plan_text(
        replace(fleet(), proposal=replace(proposal(layout="end"), before=FileTree(), after=FileTree()))
    )


def test_a_plan_of_a_folder_says_that_people_write_it() -> None:
    text = plan_text(replace(fleet(), proposal=replace(proposal(edit()), branch="")))

    assert "propose to the config by hand, for it is a plain folder: catalog/gateway v1 → v2" in text


def test_a_plan_as_data() -> None:
    data = plan_json(replace(fleet(), proposal=proposal(edit())))["proposal"]

    assert (data["branch"], data["change"]) == ("drafts/config", "write")
    assert data["edits"] == [
        {
            "object": "PackageVariant/default/gw", "file": "gw.yaml", "line": 7, "package": "catalog/gateway",
            "tag": "stable", "before": "v1", "after": "v2", "backwards": False,
        }
    ]  # fmt: skip
    assert [one["path"] for one in data["diffs"]] == ["gw.yaml"]
    assert plan_json(fleet())["proposal"] is None
