"""Tests of package trees: packages with equal Kptfile paths share the tree, and equal files share their resources."""

from __future__ import annotations

from reconciler.packages.package import Package, build_package_tree
from tests.unit.packages.builders import KPTFILE, build_tree

A = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n"


def test_packages_with_equal_paths_share_their_tree() -> None:
    package_tree, other = (
        build_package_tree(build_tree({"Kptfile": KPTFILE, "a.yaml": text})) for text in (A, A.replace("a}", "b}"))
    )

    assert package_tree is other


def test_another_ignore_file_produces_another_tree() -> None:
    all_of_them, none = (
        build_package_tree(build_tree({"Kptfile": KPTFILE, "a.yaml": A, ".krmignore": ignored}))
        for ignored in ("", "a.yaml\n")
    )

    assert list(all_of_them.krm_files) == ["Kptfile", "a.yaml"]
    assert list(none.krm_files) == ["Kptfile"]


def test_equal_files_at_the_same_path_share_resources() -> None:
    package, other = (Package(build_tree({"Kptfile": KPTFILE, "a.yaml": A, "b.yaml": text})) for text in (A, "a: 1\n"))

    assert [first is second for first, second in zip(package.resources, other.resources, strict=True)] == [
        True,
        True,
        False,
    ]
