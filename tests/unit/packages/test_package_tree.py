"""Nesting: worked out once for packages of one shape; and what is in their files once for each content."""

from __future__ import annotations

from reconciler.packages.package import Package, build_package_tree
from tests.unit.packages.builders import KPTFILE, tree

A = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n"


def test_packages_of_one_shape_share_their_nesting() -> None:
    package_tree, other = (
        build_package_tree(tree({"Kptfile": KPTFILE, "a.yaml": text})) for text in (A, A.replace("a}", "b}"))
    )

    assert package_tree is other


def test_another_ignore_file_is_another_nesting() -> None:
    all_of_them, none = (
        build_package_tree(tree({"Kptfile": KPTFILE, "a.yaml": A, ".krmignore": ignored}))
        for ignored in ("", "a.yaml\n")
    )

    assert list(all_of_them.krm_files) == ["Kptfile", "a.yaml"]
    assert list(none.krm_files) == ["Kptfile"]


def test_equal_files_at_one_place_have_the_same_resources() -> None:
    package, other = (Package(tree({"Kptfile": KPTFILE, "a.yaml": A, "b.yaml": text})) for text in (A, "a: 1\n"))

    assert [first is second for first, second in zip(package.resources, other.resources, strict=True)] == [
        True,
        True,
        False,
    ]
