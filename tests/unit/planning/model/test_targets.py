"""Tests of targets: the paths of packages and status files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.planning.model.targets import PackagePathIndex, are_paths_nested
from tests.unit.planning.builders import build_target


@pytest.mark.parametrize(
    ("directory", "path", "status"),
    [
        pytest.param("", "team/gw", ".reconciler/team/gw.yaml", id="at-the-top"),
        pytest.param("sites/b", "sites/b/team/gw", "sites/b/.reconciler/team/gw.yaml", id="in-a-directory"),
    ],
)
def test_paths_of_a_package_and_its_status_file(directory: str, path: str, status: str) -> None:
    target = build_target(directory=directory)

    assert (target.get_package_path("team/gw"), target.get_status_file_path("team/gw")) == (path, status)


@pytest.mark.parametrize(
    ("package", "expected"),
    [
        pytest.param("a/b", ("a", "a/b/c"), id="above-and-below"),
        pytest.param("a/bc", ("a",), id="a-common-beginning-is-no-nesting"),
        pytest.param("d", (), id="beside"),
        pytest.param("a/b/c", ("a",), id="itself-does-not-count"),
    ],
)
def test_find_nested_packages(package: str, expected: tuple[str, ...]) -> None:
    assert PackagePathIndex(["a", "a/b/c", "b"]).find_nested(package) == expected


PATHS = st.lists(st.sampled_from(["a", "b", "ab"]), max_size=4).map("/".join)


@given(st.lists(PATHS), PATHS)
def test_index_finds_the_same_nested_packages_as_a_full_search(known: list[str], package: str) -> None:
    looked_at = (item for item in set(known) if item != package and are_paths_nested(item, package))

    assert PackagePathIndex(known).find_nested(package) == tuple(sorted(looked_at))


@pytest.mark.parametrize("other", ["a", "a/b", ""])
def test_nesting_is_symmetric(other: str) -> None:
    assert are_paths_nested("a", other)
    assert are_paths_nested(other, "a")
