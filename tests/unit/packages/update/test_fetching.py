"""Tests of the Git refs that a package version can have."""

from __future__ import annotations

import pytest

from reconciler.packages.update.fetching import list_ref_candidates


@pytest.mark.parametrize(
    ("directory", "expected"),
    [
        pytest.param("/", ("v1",), id="whole-repository"),
        pytest.param("a/b", ("a/b/v1", "a/v1", "v1"), id="folders"),
        pytest.param("/a/./b/", ("a/b/v1", "a/v1", "v1"), id="untidy"),
    ],
)
def test_ref_candidates(directory: str, expected: tuple[str, ...]) -> None:
    assert list_ref_candidates(directory, "v1") == expected
