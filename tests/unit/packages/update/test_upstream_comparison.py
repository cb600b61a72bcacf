"""Tests of comparisons with the upstream: text that tools write is no difference, and local changes are."""

from __future__ import annotations

import pytest

from reconciler.api.kpt import GitUpstream
from reconciler.catalog.files import FileTree
from reconciler.packages.update.fetching import get_package
from reconciler.packages.update.upstream_comparison import UpstreamComparison, compare_with_upstream
from tests.unit.packages.builders import build_tree, read_texts
from tests.unit.packages.update.builders import SAFE, FakeRepositories, format_kptfile, format_resource

A, B = format_resource("a", "1"), format_resource("b", "1")
OLD, NEW = ("r", "v1"), ("r", "v2")
FILES = {
    "p/Kptfile": format_kptfile("p"),
    "p/a.yaml": A,
    "p/README": "read me\n",
    "p/in/Kptfile": format_kptfile("in"),
    "p/in/b.yaml": B,
}
UPSTREAMS = FakeRepositories(
    {OLD: FILES, NEW: {**FILES, "p/a.yaml": format_resource("a", "2")}, ("other", "main"): {"o.yaml": B}}
)


def get_upstream_copy() -> FileTree:
    return get_package(UPSTREAMS, GitUpstream(repo="r", directory="/p", ref="v1"), "mine", SAFE).files


def compare(files: FileTree, ref: str = "") -> UpstreamComparison:
    result = compare_with_upstream(files, UPSTREAMS, ref)
    assert isinstance(result, UpstreamComparison)
    return result


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        pytest.param({}, [], id="as-it-came"),
        pytest.param({"a.yaml": A.encode()}, [], id="a-merge-comment-less"),
        pytest.param({"a.yaml": format_resource("a", "7").encode()}, ["a.yaml"], id="an-edit"),
        pytest.param({"README": b"mine\n"}, ["README"], id="an-opaque-file"),
        pytest.param({"in/new.yaml": b"x: 1\n"}, ["in/new.yaml"], id="a-new-file-in-a-subpackage"),
        pytest.param({"Kptfile": format_kptfile("other", "r /p main", "v1").encode()}, [], id="name-and-ref"),
        pytest.param(
            {"Kptfile": format_kptfile("mine", "r /p v1", "v1").encode() + b"info:\n  description: ours\n"},
            ["Kptfile"],
            id="what-people-wrote-into-the-kptfile",
        ),
    ],
)
def test_comparison_with_the_locked_upstream(changes: dict[str, bytes], paths: list[str]) -> None:
    upstream_comparison = compare(get_upstream_copy().with_files(changes))

    assert sorted({*upstream_comparison.upstream, *upstream_comparison.local}) == paths
    assert upstream_comparison.upstream_package.commit == "v1"


def test_compared_files_differ_only_by_the_local_change() -> None:
    kptfile = format_kptfile("mine", "r /p v1", "v1") + "info:\n  description: ours\n"
    local = (
        get_upstream_copy()
        .with_files({"a.yaml": format_resource("a", "7").encode(), "Kptfile": kptfile.encode()})
        .without_files("README")
    )
    upstream_comparison = compare(local)

    commented = A.replace("metadata:", "metadata: # kpt-merge: /a")
    assert read_texts(upstream_comparison.upstream) == {
        "a.yaml": commented,
        "Kptfile": format_kptfile("mine", "r /p v1", "v1"),
        "README": "read me\n",
    }
    assert read_texts(upstream_comparison.local) == {"a.yaml": commented.replace(": 1", ": 7"), "Kptfile": kptfile}


@pytest.mark.parametrize(
    ("followed", "ref", "against", "paths"),
    [
        pytest.param("v1", "", "v1", [], id="merged-last"),
        pytest.param("v1", "v2", "v2", ["a.yaml"], id="another-ref"),
        pytest.param("v2", "latest", "v2", ["a.yaml"], id="where-it-stands-now"),
        pytest.param("v2", "", "v1", [], id="what-is-followed-does-not-matter-by-itself"),
    ],
)
def test_comparison_with_a_ref(followed: str, ref: str, against: str, paths: list[str]) -> None:
    local = get_upstream_copy()
    kptfile = local["Kptfile"].data.replace(b"    ref: v1\n", f"    ref: {followed}\n".encode(), 1)
    upstream_comparison = compare(local.with_files({"Kptfile": kptfile}), ref)

    assert (list(upstream_comparison.upstream), upstream_comparison.upstream_package.ref) == (paths, against)


def test_remote_subpackages_are_compared_with_their_own_upstream() -> None:
    remote = {"far/Kptfile": format_kptfile("far", "other / main", "main").encode(), "far/o.yaml": B.encode()}
    along = {"near/Kptfile": format_kptfile("near", "r /p/in v1", "v1").encode(), "near/b.yaml": B.encode()}
    local = get_upstream_copy().with_files(remote | along)

    assert not compare(local).local
    assert list(compare(local, "v2").local) == ["a.yaml"]
    assert list(compare(local.with_files({"far/o.yaml": A.encode()})).local) == ["far/o.yaml"]


@pytest.mark.parametrize(
    ("kptfile", "ref", "text"),
    [
        pytest.param(format_kptfile("mine"), "", "upstreamLock.git", id="no-lock"),
        pytest.param(format_kptfile("mine"), "v2", "upstream.git", id="no-upstream"),
        pytest.param("kind: Kptfile\n", "", "kpt.dev/v1", id="no-kptfile"),
    ],
)
def test_impossible_comparison_has_a_finding(kptfile: str, ref: str, text: str) -> None:
    result = compare_with_upstream(build_tree({"Kptfile": kptfile}), UPSTREAMS, ref)

    assert isinstance(result, tuple)
    assert text in result[0].message
