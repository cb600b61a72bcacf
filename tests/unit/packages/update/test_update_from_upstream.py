"""Tests of updates from upstream: each remote package is updated from its own upstream."""

from __future__ import annotations

import pytest

from reconciler.packages.update.fetching import update_from_upstream
from reconciler.packages.update.options import create_compat_options
from tests.unit.packages.builders import build_tree, read_texts
from tests.unit.packages.update.builders import SAFE, FakeRepositories, build_package, format_kptfile, format_resource

A, B, C = format_resource("a", "1"), format_resource("b", "1"), format_resource("c", "1")
OLD, NEW = ("r", "v1"), ("r", "v2")


def add_merge_comment(text: str) -> str:
    name = text.partition("name: ")[2].partition("\n")[0]
    return text.replace("metadata:", f"metadata: # kpt-merge: /{name}")


def test_root_is_updated_to_another_ref() -> None:
    repositories = FakeRepositories({OLD: {"p/r.yaml": A}, NEW: {"p/r.yaml": A, "p/new.yaml": B}})
    local = build_tree({"Kptfile": format_kptfile("app", "r /p v1", "v1"), "r.yaml": A, "mine.yaml": C})
    result = update_from_upstream(local, repositories, SAFE, ref="v2", strategy="copy-merge")

    assert read_texts(result.files) == {
        "Kptfile": format_kptfile("app", "r /p v2", "v2", "copy-merge"),
        "r.yaml": A,
        "mine.yaml": C,
        "new.yaml": add_merge_comment(B),
    }
    assert repositories.asked == [("r", "/p", "v2"), ("r", "/p", "v1")]


def test_subpackages_are_updated_with_the_root_or_from_their_own_upstream() -> None:
    files = {"p/r.yaml": A, "p/in/r.yaml": A, "q/r.yaml": A}
    newer = {"p/r.yaml": B, "p/in/r.yaml": format_resource("a", "2"), "q/r.yaml": B}
    repositories = FakeRepositories({OLD: files, NEW: newer})
    local = build_tree(
        {
            "Kptfile": format_kptfile("app", "r /p v1", "v1"),
            "r.yaml": A,
            "inside/Kptfile": format_kptfile("inside", "r /p/in v1", "v1"),
            "inside/r.yaml": A,
            "beside/Kptfile": format_kptfile("beside", "r /q v1", "v1"),
            "beside/r.yaml": A,
            "beside/in/Kptfile": format_kptfile("in", "r /p/in v1", "v1"),
            "beside/in/r.yaml": A,
        }
    )
    result = update_from_upstream(local, repositories, SAFE, ref="v2")

    assert read_texts(result.files) == {
        "Kptfile": format_kptfile("app", "r /p v2", "v2"),
        "r.yaml": add_merge_comment(B),
        "inside/Kptfile": format_kptfile("inside", "r /p/in v2", "v2"),
        "inside/r.yaml": add_merge_comment(format_resource("a", "2")),
        "beside/Kptfile": format_kptfile("beside", "r /q v1", "v1"),
        "beside/r.yaml": A,
        "beside/in/Kptfile": format_kptfile("in", "r /p/in v2", "v2"),
        "beside/in/r.yaml": add_merge_comment(format_resource("a", "2")),
    }


def test_remote_package_in_a_local_subpackage_is_updated() -> None:
    repositories = FakeRepositories({OLD: {}, NEW: {}, ("s", "v1"): {"r.yaml": A}})
    local = {
        "Kptfile": format_kptfile("app", "r / v1", "v1"),
        "l/Kptfile": format_kptfile("l"),
        "l/s/Kptfile": format_kptfile("s", "s / v1"),
    }
    result = update_from_upstream(build_tree(local), repositories, SAFE)

    assert read_texts(result.files)["l/s/r.yaml"] == add_merge_comment(A)
    assert read_texts(result.files)["l/s/Kptfile"] == format_kptfile("s", "s / v1", "v1")


def test_conflicts_and_findings_contain_the_path_from_the_root() -> None:
    repositories = FakeRepositories({OLD: {}, ("s", "v1"): {"n.txt": "1", "r.yaml": "a: ["}})
    repositories.contents["s", "v2"] = build_tree({"n.txt": "2", "r.yaml": "a: [1"})
    local = {"Kptfile": format_kptfile("app", "r / v1", "v1"), "s/Kptfile": format_kptfile("s", "s / v2", "v1")}
    result = update_from_upstream(build_tree({**local, "s/n.txt": "3", "s/r.yaml": "a: [2"}), repositories, SAFE)

    assert {conflict.file for conflict in result.conflicts} == {"s/n.txt", "s/r.yaml"}
    assert "s/r.yaml" in {finding.location.file for finding in result.findings}


def test_error_in_a_subpackage_leaves_the_whole_package_unchanged() -> None:
    repositories = FakeRepositories({OLD: {"r.yaml": B}, ("s", "v1"): {}, ("s", "v2"): {"r.yaml": A}})
    kptfiles = {
        "Kptfile": format_kptfile("app", "r / v1"),
        "s/Kptfile": format_kptfile("s", "s / v2", "v1", "fast-forward"),
    }
    local = build_tree({**kptfiles, "s/mine.yaml": A})
    result = update_from_upstream(local, repositories, SAFE)

    assert result.files == local
    assert [(finding.code, finding.location.file) for finding in result.findings] == [
        ("FastForwardLocalChanges", "s/mine.yaml")
    ]


@pytest.mark.parametrize(
    ("kptfile", "code"),
    [
        pytest.param(format_kptfile("app"), "UpstreamMissing", id="no-upstream"),
        pytest.param("a: [", "KptfileSyntax", id="broken"),
    ],
)
def test_package_without_upstream_cannot_be_updated(kptfile: str, code: str) -> None:
    local = build_package({"Kptfile": kptfile})
    result = update_from_upstream(local, FakeRepositories({}), SAFE)

    assert result.files == local
    assert [finding.code for finding in result.findings] == [code]


def test_compat_matches_renamed_resources_by_merge_comments() -> None:
    repositories = FakeRepositories({OLD: {"r.yaml": A}, NEW: {"r.yaml": format_resource("a", "2")}})
    local = build_tree(
        {
            "Kptfile": format_kptfile("app", "r / v1", "v1"),
            "r.yaml": add_merge_comment(A).replace("name: a", "name: site-a"),
        }
    )
    result = update_from_upstream(local, repositories, create_compat_options(), ref="v2")

    assert "value: 2" in read_texts(result.files)["r.yaml"]
    assert "name: site-a" in read_texts(result.files)["r.yaml"]
