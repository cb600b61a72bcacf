"""Tests of `get_package`, including subpackages that must be fetched."""

from __future__ import annotations

import pytest

from reconciler.api.kpt import GitUpstream
from reconciler.packages.update.fetching import get_package
from tests.unit.packages.builders import read_texts
from tests.unit.packages.update.builders import SAFE, FakeRepositories, format_kptfile, format_resource
from tests.unit.packages.update.test_update_from_upstream import add_merge_comment

A, B = format_resource("a", "1"), format_resource("b", "1")
SOURCE = GitUpstream(repo="r", directory="/p", ref="v1")


def test_unfetched_subpackages_are_fetched() -> None:
    files = {
        "p/Kptfile": format_kptfile("p") + "info:\n  site: x\n",
        "p/r.yaml": A,
        "p/s/Kptfile": format_kptfile("s", "s / v2"),
    }
    inner = {"Kptfile": format_kptfile("theirs"), "r.yaml": B, "t/Kptfile": format_kptfile("t", "t / v3")}
    repositories = FakeRepositories({("r", "v1"): files, ("s", "v2"): inner, ("t", "v3"): {"n.txt": "x"}})
    result = get_package(repositories, SOURCE, "app", SAFE, "fast-forward")

    assert read_texts(result.files) == {
        "Kptfile": format_kptfile("app", "r /p v1", "v1", "fast-forward") + "info:\n  site: x\n",
        "r.yaml": add_merge_comment(A),
        "s/Kptfile": format_kptfile("s", "s / v2", "v2"),
        "s/r.yaml": add_merge_comment(B),
        "s/t/Kptfile": format_kptfile("t", "t / v3", "v3"),
        "s/t/n.txt": "x",
    }
    assert result.findings == ()


def test_fetched_subpackages_are_part_of_the_package() -> None:
    files = {"p/s/Kptfile": format_kptfile("s", "s / v2", "c"), "p/s/r.yaml": A}
    repositories = FakeRepositories({("r", "v1"): files})
    result = get_package(repositories, SOURCE, "app", SAFE)

    assert read_texts(result.files)["s/Kptfile"] == files["p/s/Kptfile"]
    assert repositories.asked == [("r", "/p", "v1")]


@pytest.mark.parametrize(
    ("files", "code"),
    [
        pytest.param({"p/s/Kptfile": format_kptfile("s", "r /p v1")}, "SubpackageDepth", id="a-package-in-itself"),
        pytest.param({"p/Kptfile": "a: ["}, "KptfileSyntax", id="broken"),
    ],
)
def test_unavailable_package_has_a_finding(files: dict[str, str], code: str) -> None:
    result = get_package(FakeRepositories({("r", "v1"): files}), SOURCE, "app", SAFE)

    assert len(result.files) == 0
    assert [finding.code for finding in result.findings] == [code]
