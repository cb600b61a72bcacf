"""Strategies, and which packages an update leaves there (kpt.md 5.2, 5.3)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconciler.krm.findings import select_errors
from reconciler.packages.clone import ResolvedUpstream, clone_package
from reconciler.packages.kptfile import Strategy
from reconciler.packages.update import MergeOptions, create_compat_options, update_package
from tests.unit.packages.builders import texts
from tests.unit.packages.update.builders import SAFE, package, sub, thing

A, B, C = thing("a", "1"), thing("b", "1"), thing("c", "1")
LOCK = ResolvedUpstream("https://example.com/blueprints.git", "app", "v2", "c0ffee")
OLD = {"s/Kptfile": sub("s"), "s/r.yaml": A}
NEW = {"s/Kptfile": sub("s"), "s/r.yaml": B}
MINE = {**OLD, "s/mine.yaml": C}
REMOTE_OLD = {"s/Kptfile": sub("s", "r d v1", "c1"), "s/r.yaml": A}
REMOTE_NEW = {"s/Kptfile": sub("s", "r d v2", "c2"), "s/r.yaml": B}
REMOTE_MINE = {**REMOTE_OLD, "s/mine.yaml": C}
POINTED = {**REMOTE_OLD, "s/Kptfile": sub("s", "r d mine", "c9")}
UNFETCHED = {"s/Kptfile": sub("s", "r d v1")}
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
    result = update_package(package(origin), package(updated), package(local), "resource-merge", SAFE)

    assert texts(result.files.without_files("Kptfile")) == expected
    assert [conflict.rule for conflict in result.conflicts] == rules
    assert not select_errors(result.findings)


def test_a_package_that_is_kept_is_told_by_its_trees() -> None:
    result = update_package(package(OLD), package({}), package(MINE), "resource-merge", SAFE)
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
def test_what_cannot_be_merged(origin: Files, updated: Files, local: Files, code: str) -> None:
    result = update_package(package(origin), package(updated), package(local), "resource-merge", SAFE)

    assert result.files == package(local)
    assert [(finding.code, finding.location.file) for finding in result.findings] == [(code, "s/Kptfile")]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        pytest.param("resource-merge", {"r.yaml": B, "mine.yaml": C, "edited.txt": "mine"}, id="merged"),
        pytest.param("force-delete-replace", {"r.yaml": B, "edited.txt": "new"}, id="replaced"),
        pytest.param("copy-merge", {"r.yaml": B, "mine.yaml": C, "edited.txt": "new"}, id="copied-over"),
    ],
)
def test_a_strategy(strategy: Strategy, expected: Files) -> None:
    origin = package({"r.yaml": A, "old.yaml": A, "edited.txt": "old"})
    updated = package({"r.yaml": B, "edited.txt": "new"})
    local = package({"r.yaml": A, "old.yaml": A, "mine.yaml": C, "edited.txt": "mine"})
    result = update_package(origin, updated, local, strategy, SAFE)

    assert texts(result.files.without_files("Kptfile")) == expected


def test_fast_forward_takes_upstream_where_only_tools_wrote() -> None:
    origin = package({"r.yaml": A, **OLD})
    local, _ = clone_package(origin, "site", LOCK, origin)
    result = update_package(origin, package({"r.yaml": B, **NEW}), local, "fast-forward", SAFE, LOCK)

    assert texts(result.files)["r.yaml"] == B.replace("metadata:", "metadata: # kpt-merge: /b")
    assert result.findings == ()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        pytest.param({"r.yaml": B}, "r.yaml", id="a-file"),
        pytest.param({"s/mine.txt": "x"}, "s/mine.txt", id="a-file-of-a-subpackage"),
        pytest.param({"new/Kptfile": sub("new")}, "new (package)", id="a-package"),
        pytest.param({"Kptfile": sub("app") + "info:\n  site: x\n"}, "Kptfile", id="the-kptfile"),
    ],
)
@pytest.mark.parametrize("options", [SAFE, create_compat_options()], ids=["safe", "compat"])
def test_fast_forward_names_what_was_changed(change: Files, named: str, options: MergeOptions) -> None:
    origin = package({"r.yaml": A, **OLD})
    local = package({"r.yaml": A, **OLD, **change})
    result = update_package(origin, package({"r.yaml": B}), local, "fast-forward", options)

    assert result.files == local
    assert [finding.code for finding in result.findings] == ["FastForwardLocalChanges"]
    assert f"modified: {named};" in result.findings[0].message


def test_fast_forward_clears_the_render_status() -> None:
    kptfile = sub("app") + "status:\n  conditions:\n  - type: Mine\n    status: 'True'\n"
    origin = package({"Kptfile": kptfile})
    local = package({"Kptfile": kptfile + "  renderStatus: {errorSummary: x}\n"})
    result = update_package(origin, origin, local, "fast-forward", SAFE)

    assert texts(result.files) == {"Kptfile": kptfile}


def test_the_roots_upstream_is_what_the_caller_says_whatever_the_strategy() -> None:
    followed = sub("app", "r d v1", "c1", "fast-forward")
    updated = package({"Kptfile": followed, "r.yaml": B})
    result = update_package(package({}), updated, package({}), "copy-merge", SAFE, LOCK)

    assert "updateStrategy" not in texts(result.files)["Kptfile"]
    assert "commit: c0ffee" in texts(result.files)["Kptfile"]


def test_a_remote_subpackage_is_updated_by_its_own_strategy() -> None:
    kptfiles = [sub("s", "r d v1", f"c{n}", "copy-merge") for n in (1, 2)]
    origin = package({"s/Kptfile": kptfiles[0], "s/n.txt": "1"})
    updated = package({"s/Kptfile": kptfiles[1], "s/n.txt": "2", "s/in/Kptfile": REMOTE_NEW["s/Kptfile"]})
    result = update_package(origin, updated, origin.with_files({"s/n.txt": b"mine"}), "resource-merge", SAFE)

    assert texts(result.files.without_files("Kptfile")) == texts(updated.without_files("Kptfile"))
