"""Equal changes have equal keys on all targets, and different changes have different keys."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.output.review.change_key import Change

V1, V2 = "catalog/web v1 1111111111", "catalog/web v2 2222222222"
CHANGE = Change("update", "PackageVariant default/web-berlin", "apps/berlin", V1, V2)


def test_the_name_of_the_target_has_no_effect() -> None:
    lisbon = replace(CHANGE, owner="PackageVariant default/web-lisbon", package="apps/lisbon")

    assert CHANGE.compute_key("berlin") == lisbon.compute_key("lisbon")


@pytest.mark.parametrize(
    "other",
    [
        replace(CHANGE, operation="re-render"),
        replace(CHANGE, owner="PackageVariant default/other-berlin"),
        replace(CHANGE, package="apps/berlin-2"),
        replace(CHANGE, before=V2),
        replace(CHANGE, after=V1),
    ],
    ids=["operation", "owner", "package", "before", "after"],
)
def test_each_part_has_an_effect(other: Change) -> None:
    assert other.compute_key("berlin") != CHANGE.compute_key("berlin")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (CHANGE, "update apps/berlin v1 → v2"),
        (replace(CHANGE, operation="install", before=""), "install apps/berlin v2"),
        (replace(CHANGE, operation="delete", before="", after=""), "delete apps/berlin"),
        (replace(CHANGE, operation="re-render", before=V1, after=V1), "re-render apps/berlin v1"),
        (replace(CHANGE, after="catalog/web v1 9999999999"), "update apps/berlin v1 moved to 9999999"),
        (replace(CHANGE, after="catalog/web web/v2 2222222222"), "update apps/berlin v1 → v2"),
        (replace(CHANGE, after="damaged"), "update apps/berlin v1 → damaged"),
    ],
)
def test_the_text_of_a_change(change: Change, text: str) -> None:
    assert str(change) == text
