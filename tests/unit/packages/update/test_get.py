"""Getting packages by hand, unfetched subpackages included."""

from __future__ import annotations

import pytest

from reconciler.packages.kptfile import GitUpstream
from reconciler.packages.update import get_package
from tests.unit.packages.builders import texts
from tests.unit.packages.update.builders import SAFE, Repositories, sub, thing
from tests.unit.packages.update.test_walk import commented

A, B = thing("a", "1"), thing("b", "1")
SOURCE = GitUpstream(repo="r", directory="/p", ref="v1")


def test_a_package_comes_with_its_unfetched_subpackages() -> None:
    files = {"p/Kptfile": sub("p") + "info:\n  site: x\n", "p/r.yaml": A, "p/s/Kptfile": sub("s", "s / v2")}
    inner = {"Kptfile": sub("theirs"), "r.yaml": B, "t/Kptfile": sub("t", "t / v3")}
    repositories = Repositories({("r", "v1"): files, ("s", "v2"): inner, ("t", "v3"): {"n.txt": "x"}})
    result = get_package(repositories, SOURCE, "app", SAFE, "fast-forward")

    assert texts(result.files) == {
        "Kptfile": sub("app", "r /p v1", "v1", "fast-forward") + "info:\n  site: x\n",
        "r.yaml": commented(A),
        "s/Kptfile": sub("s", "s / v2", "v2"),
        "s/r.yaml": commented(B),
        "s/t/Kptfile": sub("t", "t / v3", "v3"),
        "s/t/n.txt": "x",
    }
    assert result.findings == ()


def test_fetched_subpackages_are_part_of_the_package() -> None:
    files = {"p/s/Kptfile": sub("s", "s / v2", "c"), "p/s/r.yaml": A}
    repositories = Repositories({("r", "v1"): files})
    result = get_package(repositories, SOURCE, "app", SAFE)

    assert texts(result.files)["s/Kptfile"] == files["p/s/Kptfile"]
    assert repositories.asked == [("r", "/p", "v1")]


@pytest.mark.parametrize(
    ("files", "code"),
    [
        pytest.param({"p/s/Kptfile": sub("s", "r /p v1")}, "SubpackageDepth", id="a-package-in-itself"),
        pytest.param({"p/Kptfile": "a: ["}, "KptfileSyntax", id="broken"),
    ],
)
def test_what_cannot_be_got(files: dict[str, str], code: str) -> None:
    result = get_package(Repositories({("r", "v1"): files}), SOURCE, "app", SAFE)

    assert len(result.files) == 0
    assert [finding.code for finding in result.findings] == [code]
