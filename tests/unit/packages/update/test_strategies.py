"""Tests of update strategies, and of the subpackages that an update keeps or deletes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconciler.api.kpt import UpdateStrategy
from reconciler.krm.findings import select_errors
from reconciler.packages.clone import ResolvedUpstream, clone_package
from reconciler.packages.update.options import MergeOptions, create_compat_options
from reconciler.packages.update.three_way import update_package
from tests.unit.packages.builders import read_texts
from tests.unit.packages.update.builders import SAFE, build_package, format_kptfile, format_resource

A, B, C = format_resource("a", "1"), format_resource("b", "1"), format_resource("c", "1")
LOCK = ResolvedUpstream("https://example.com/blueprints.git", "app", "v2", "c0ffee")
OLD = {"s/Kptfile": format_kptfile("s"), "s/r.yaml": A}
NEW = {"s/Kptfile": format_kptfile("s"), "s/r.yaml": B}
MINE = {**OLD, "s/mine.yaml": C}
REMOTE_OLD = {"s/Kptfile": format_kptfile("s", "r d v1", "c1"), "s/r.yaml": A}
REMOTE_NEW = {"s/Kptfile": format_kptfile("s", "r d v2", "c2"), "s/r.yaml": B}
REMOTE_MINE = {**REMOTE_OLD, "s/mine.yaml": C}
POINTED = {**REMOTE_OLD, "s/Kptfile": format_kptfile("s", "r d mine", "c9")}
UNFETCHED = {"s/Kptfile": format_kptfile("s", "r d v1")}
Files = Mapping[str, str]


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected", "rules"),
    [
        pytest.param({}, {}, OLD, OLD, [], id="added-here"),
        pytest.param({}, NEW, {}, NEW, [], id="added-upstream"),
        pytest.param({}, NEW, NEW, NEW, [], id="added-alike"),
        pytest.param(OLD, {}, {}, {}, [], id="gone-everywhere"),
        pytest.param(OLD, OLD, {}, {}, [], id="deleted-here"),
        pytest.param(OLD, NEW, {}, {}, ["deleted-locally"], id="deleted-here-and-changed-upstream"),
        pytest.param(OLD, {}, OLD, {}, [], id="deleted-upstream"),
        pytest.param(OLD, {}, MINE, MINE, ["deleted-upstream"], id="deleted-upstream-and-changed-here"),
        pytest.param(OLD, NEW, MINE, {**NEW, "s/mine.yaml": C}, [], id="changed-on-both-sides"),
        pytest.param(REMOTE_OLD, REMOTE_NEW, REMOTE_MINE, {**REMOTE_NEW, "s/mine.yaml": C}, [], id="remote"),
        pytest.param(REMOTE_OLD, REMOTE_NEW, POINTED, POINTED, [], id="remote-that-follows-something-else-here"),
        pytest.param({}, REMOTE_NEW, {}, REMOTE_NEW, [], id="remote-added-upstream"),
        pytest.param(REMOTE_OLD, {}, REMOTE_OLD, {}, [], id="remote-deleted-upstream"),
        pytest.param(REMOTE_OLD, {}, REMOTE_MINE, REMOTE_MINE, ["deleted-upstream"], id="remote-kept"),
        pytest.param(UNFETCHED, UNFETCHED, REMOTE_MINE, REMOTE_MINE, [], id="unfetched-upstream"),
        pytest.param(UNFETCHED, REMOTE_NEW, UNFETCHED, REMOTE_NEW, [], id="fetched-upstream-meanwhile"),
        pytest.param(
            {"s/r.yaml": A}, {"s/r.yaml": A, "s/n.yaml": B}, OLD, {**OLD, "s/n.yaml": B}, [], id="made-a-package-here"
        ),
        pytest.param(OLD, {"s/r.yaml": A}, OLD, {"s/r.yaml": A}, [], id="no-package-upstream-any-more"),
    ],
)
def test_subpackages(origin: Files, updated: Files, local: Files, expected: Files, rules: list[str]) -> None:
    result = update_package(build_package(origin), build_package(updated), build_package(local), "resource-merge", SAFE)

    assert read_texts(result.files.without_files("Kptfile")) == expected
    assert [conflict.rule for conflict in result.conflicts] == rules
    assert not select_errors(result.findings)


def test_conflict_of_a_kept_package_contains_its_trees() -> None:
    result = update_package(build_package(OLD), build_package({}), build_package(MINE), "resource-merge", SAFE)
    conflict = result.conflicts[0]

    assert (conflict.kind, conflict.file, conflict.chosen) == ("package", "s", "local")
    assert conflict.base != conflict.local


@pytest.mark.parametrize(
    ("origin", "updated", "local", "code"),
    [
        pytest.param({}, NEW, MINE, "SubpackageAddedTwice", id="local-subpackage-added-twice"),
        pytest.param({}, REMOTE_NEW, REMOTE_MINE, "SubpackageAddedTwice", id="remote-subpackage-added-twice"),
        pytest.param(UNFETCHED, REMOTE_NEW, REMOTE_MINE, "NoOrigin", id="fetched-on-both-sides"),
    ],
)
def test_update_that_cannot_be_merged_leaves_the_package_unchanged(
    origin: Files, updated: Files, local: Files, code: str
) -> None:
    result = update_package(build_package(origin), build_package(updated), build_package(local), "resource-merge", SAFE)

    assert result.files == build_package(local)
    assert [(finding.code, finding.location.file) for finding in result.findings] == [(code, "s/Kptfile")]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        pytest.param("resource-merge", {"r.yaml": B, "mine.yaml": C, "edited.txt": "mine"}, id="merged"),
        pytest.param("force-delete-replace", {"r.yaml": B, "edited.txt": "new"}, id="replaced"),
        pytest.param("copy-merge", {"r.yaml": B, "mine.yaml": C, "edited.txt": "new"}, id="copied-over"),
    ],
)
def test_update_strategy(strategy: UpdateStrategy, expected: Files) -> None:
    origin = build_package({"r.yaml": A, "old.yaml": A, "edited.txt": "old"})
    updated = build_package({"r.yaml": B, "edited.txt": "new"})
    local = build_package({"r.yaml": A, "old.yaml": A, "mine.yaml": C, "edited.txt": "mine"})
    result = update_package(origin, updated, local, strategy, SAFE)

    assert read_texts(result.files.without_files("Kptfile")) == expected


def test_fast_forward_ignores_merge_comments_and_lock_changes() -> None:
    origin = build_package({"r.yaml": A, **OLD})
    local, _ = clone_package(origin, "site", LOCK, origin)
    result = update_package(origin, build_package({"r.yaml": B, **NEW}), local, "fast-forward", SAFE, LOCK)

    assert read_texts(result.files)["r.yaml"] == B.replace("metadata:", "metadata: # kpt-merge: /b")
    assert result.findings == ()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        pytest.param({"r.yaml": B}, "r.yaml", id="a-file"),
        pytest.param({"s/mine.txt": "x"}, "s/mine.txt", id="a-file-of-a-subpackage"),
        pytest.param({"new/Kptfile": format_kptfile("new")}, "new (package)", id="a-package"),
        pytest.param({"Kptfile": format_kptfile("app") + "info:\n  site: x\n"}, "Kptfile", id="the-kptfile"),
    ],
)
@pytest.mark.parametrize("options", [SAFE, create_compat_options()], ids=["safe", "compat"])
def test_fast_forward_lists_local_changes(change: Files, named: str, options: MergeOptions) -> None:
    origin = build_package({"r.yaml": A, **OLD})
    local = build_package({"r.yaml": A, **OLD, **change})
    result = update_package(origin, build_package({"r.yaml": B}), local, "fast-forward", options)

    assert result.files == local
    assert [finding.code for finding in result.findings] == ["FastForwardLocalChanges"]
    assert f"modified: {named};" in result.findings[0].message


def test_fast_forward_removes_the_render_status() -> None:
    kptfile = format_kptfile("app") + "status:\n  conditions:\n  - type: Mine\n    status: 'True'\n"
    origin = build_package({"Kptfile": kptfile})
    local = build_package({"Kptfile": kptfile + "  renderStatus: {errorSummary: x}\n"})
    result = update_package(origin, origin, local, "fast-forward", SAFE)

    assert read_texts(result.files) == {"Kptfile": kptfile}


def test_upstream_of_the_root_comes_from_the_caller_in_every_strategy() -> None:
    followed = format_kptfile("app", "r d v1", "c1", "fast-forward")
    updated = build_package({"Kptfile": followed, "r.yaml": B})
    result = update_package(build_package({}), updated, build_package({}), "copy-merge", SAFE, LOCK)

    assert "updateStrategy" not in read_texts(result.files)["Kptfile"]
    assert "commit: c0ffee" in read_texts(result.files)["Kptfile"]


def test_remote_subpackage_is_updated_with_its_own_strategy() -> None:
    kptfiles = [format_kptfile("s", "r d v1", f"c{n}", "copy-merge") for n in (1, 2)]
    origin = build_package({"s/Kptfile": kptfiles[0], "s/n.txt": "1"})
    updated = build_package({"s/Kptfile": kptfiles[1], "s/n.txt": "2", "s/in/Kptfile": REMOTE_NEW["s/Kptfile"]})
    result = update_package(origin, updated, origin.with_files({"s/n.txt": b"mine"}), "resource-merge", SAFE)

    assert read_texts(result.files.without_files("Kptfile")) == read_texts(updated.without_files("Kptfile"))
