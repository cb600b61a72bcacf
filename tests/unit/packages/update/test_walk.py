"""Updates by hand: every remote package from its own upstream."""

from __future__ import annotations

import pytest

from reconciler.packages.update import create_compat_options, update_from_upstream
from tests.unit.packages.builders import texts, tree
from tests.unit.packages.update.builders import SAFE, Repositories, package, sub, thing

A, B, C = thing("a", "1"), thing("b", "1"), thing("c", "1")
OLD, NEW = ("r", "v1"), ("r", "v2")


def commented(text: str) -> str:
    name = text.partition("name: ")[2].partition("\n")[0]
    return text.replace("metadata:", f"metadata: # kpt-merge: /{name}")


def test_the_root_moves_to_another_ref() -> None:
    repositories = Repositories({OLD: {"p/r.yaml": A}, NEW: {"p/r.yaml": A, "p/new.yaml": B}})
    local = tree({"Kptfile": sub("app", "r /p v1", "v1"), "r.yaml": A, "mine.yaml": C})
    result = update_from_upstream(local, repositories, SAFE, ref="v2", strategy="copy-merge")

    assert texts(result.files) == {
        "Kptfile": sub("app", "r /p v2", "v2", "copy-merge"),
        "r.yaml": A,
        "mine.yaml": C,
        "new.yaml": commented(B),
    }
    assert repositories.asked == [("r", "/p", "v2"), ("r", "/p", "v1")]


def test_subpackages_move_along_or_follow_what_they_followed() -> None:
    files = {"p/r.yaml": A, "p/in/r.yaml": A, "q/r.yaml": A}
    newer = {"p/r.yaml": B, "p/in/r.yaml": thing("a", "2"), "q/r.yaml": B}
    repositories = Repositories({OLD: files, NEW: newer})
    local = tree(
        {
            "Kptfile": sub("app", "r /p v1", "v1"),
            "r.yaml": A,
            "inside/Kptfile": sub("inside", "r /p/in v1", "v1"),
            "inside/r.yaml": A,
            "beside/Kptfile": sub("beside", "r /q v1", "v1"),
            "beside/r.yaml": A,
            "beside/in/Kptfile": sub("in", "r /p/in v1", "v1"),
            "beside/in/r.yaml": A,
        }
    )
    result = update_from_upstream(local, repositories, SAFE, ref="v2")

    assert texts(result.files) == {
        "Kptfile": sub("app", "r /p v2", "v2"),
        "r.yaml": commented(B),
        "inside/Kptfile": sub("inside", "r /p/in v2", "v2"),
        "inside/r.yaml": commented(thing("a", "2")),
        "beside/Kptfile": sub("beside", "r /q v1", "v1"),
        "beside/r.yaml": A,
        "beside/in/Kptfile": sub("in", "r /p/in v2", "v2"),
        "beside/in/r.yaml": commented(thing("a", "2")),
    }


def test_a_remote_package_below_a_local_one_is_found() -> None:
    repositories = Repositories({OLD: {}, NEW: {}, ("s", "v1"): {"r.yaml": A}})
    local = {"Kptfile": sub("app", "r / v1", "v1"), "l/Kptfile": sub("l"), "l/s/Kptfile": sub("s", "s / v1")}
    result = update_from_upstream(tree(local), repositories, SAFE)

    assert texts(result.files)["l/s/r.yaml"] == commented(A)
    assert texts(result.files)["l/s/Kptfile"] == sub("s", "s / v1", "v1")


def test_conflicts_and_findings_tell_the_path_from_the_root() -> None:
    repositories = Repositories({OLD: {}, ("s", "v1"): {"n.txt": "1", "r.yaml": "a: ["}})
    repositories.contents["s", "v2"] = tree({"n.txt": "2", "r.yaml": "a: [1"})
    local = {"Kptfile": sub("app", "r / v1", "v1"), "s/Kptfile": sub("s", "s / v2", "v1")}
    result = update_from_upstream(tree({**local, "s/n.txt": "3", "s/r.yaml": "a: [2"}), repositories, SAFE)

    assert {conflict.file for conflict in result.conflicts} == {"s/n.txt", "s/r.yaml"}
    assert "s/r.yaml" in {finding.location.file for finding in result.findings}


def test_an_error_below_leaves_the_whole_package_as_it_was() -> None:
    repositories = Repositories({OLD: {"r.yaml": B}, ("s", "v1"): {}, ("s", "v2"): {"r.yaml": A}})
    kptfiles = {"Kptfile": sub("app", "r / v1"), "s/Kptfile": sub("s", "s / v2", "v1", "fast-forward")}
    local = tree({**kptfiles, "s/mine.yaml": A})
    result = update_from_upstream(local, repositories, SAFE)

    assert result.files == local
    assert [(finding.code, finding.location.file) for finding in result.findings] == [
        ("FastForwardLocalChanges", "s/mine.yaml")
    ]


@pytest.mark.parametrize(
    ("kptfile", "code"),
    [pytest.param(sub("app"), "UpstreamMissing", id="no-upstream"), pytest.param("a: [", "KptfileSyntax", id="broken")],
)
def test_what_has_no_upstream_cannot_be_updated(kptfile: str, code: str) -> None:
    local = package({"Kptfile": kptfile})
    result = update_from_upstream(local, Repositories({}), SAFE)

    assert result.files == local
    assert [finding.code for finding in result.findings] == [code]


def test_renamed_resources_are_found_in_compat_by_the_comments_of_all_sides() -> None:
    repositories = Repositories({OLD: {"r.yaml": A}, NEW: {"r.yaml": thing("a", "2")}})
    local = tree({"Kptfile": sub("app", "r / v1", "v1"), "r.yaml": commented(A).replace("name: a", "name: site-a")})
    result = update_from_upstream(local, repositories, create_compat_options(), ref="v2")

    assert "value: 2" in texts(result.files)["r.yaml"]
    assert "name: site-a" in texts(result.files)["r.yaml"]
