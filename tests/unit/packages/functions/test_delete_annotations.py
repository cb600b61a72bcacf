"""Tests of delete-annotations: deleted annotations and messages."""

from __future__ import annotations

import pytest

from reconciler.api.profile import Profile
from reconciler.packages.functions.labels_and_annotations import delete_annotations
from tests.unit.packages.builders import build_config, format_items, list_messages, run_function

HEAD = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n"
BOTH = f"{HEAD}  annotations:\n    a: x # why\n    b: y\n"


@pytest.mark.parametrize(
    ("keys", "profile", "after"),
    [
        pytest.param("a", "safe", f"{HEAD}  annotations:\n    b: y\n", id="one"),
        pytest.param("a,b", "safe", HEAD, id="the-last-takes-the-mapping-along"),
        pytest.param("a, b", "safe", HEAD, id="blanks-do-not-count"),
        pytest.param("a, b", "compat", f"{HEAD}  annotations:\n    b: y\n", id="blanks-count-upstream"),
        pytest.param("c", "safe", BOTH, id="nothing-there"),
    ],
)
def test_delete_annotations(keys: str, profile: Profile, after: str) -> None:
    output = run_function(delete_annotations, BOTH, build_config("ConfigMap", {"annotationKeys": keys}), profile)

    assert format_items(output.items) == after


def test_messages() -> None:
    output = run_function(
        delete_annotations, f"{BOTH}---\n{HEAD}", build_config("ConfigMap", {"annotationKeys": "b,a"})
    )

    assert list_messages(output) == [
        ("info", "The provided annotations were deleted from 1 resource(s)"),
        ("info", "Annonation: [b] removed from resource: [a]"),
        ("info", "Annonation: [a] removed from resource: [a]"),
    ]


def test_nothing_to_delete() -> None:
    output = run_function(delete_annotations, HEAD, build_config("ConfigMap", {"annotationKeys": "a"}))

    assert list_messages(output) == [("info", "None of the resources had the provided annotations to delete")]


def test_missing_keys_are_an_error() -> None:
    assert run_function(delete_annotations, HEAD, build_config("ConfigMap", {})).has_failed
