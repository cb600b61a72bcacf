"""Equal changes have equal keys on all targets, and different changes have different keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.files import BlobId
from reconciler.output.fleet.change_key import Change, describe_change
from reconciler.planning.model.state import PackageRecord, ProposedRemoval, RenderedVersion
from tests.unit.output.builders import TREE, build_owner

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


PLUGIN = Change(
    "install", "PluginPreset acme/eu-logs", "plugins/eu-logs-eu", owner_name="eu-logs-eu", is_generated=True
)


def test_names_of_a_preset_are_not_replaced() -> None:
    other = replace(PLUGIN, package="plugins/eu-logs-us", owner_name="eu-logs-us")

    assert PLUGIN.compute_key("eu") == other.compute_key("us")
    assert replace(PLUGIN, owner="PluginPreset acme/us-logs").compute_key("eu") != PLUGIN.compute_key("eu")


def test_name_of_the_target_in_the_middle_of_an_owner_is_not_replaced() -> None:
    first = Change("install", "PackageVariant default/eu-web-eu", "eu-web-eu", owner_name="eu-web-eu")
    second = Change("install", "PackageVariant default/eu-web-us", "eu-web-us", owner_name="eu-web-us")

    assert first.compute_key("eu") == second.compute_key("us")


def test_targets_named_like_operations_and_versions_have_different_keys() -> None:
    update, rerender = (Change(operation, "PackageVariant default/web", "web") for operation in ("update", "re-render"))
    first, second = (replace(CHANGE, before="", after=f"catalog/web {name} 1111111111") for name in ("v1", "v2"))

    assert update.compute_key("update") != rerender.compute_key("re-render")
    assert first.compute_key("v1") != second.compute_key("v2")


OWNER = build_owner("web", "apps")
VERSION = RenderedVersion(TREE, BlobId("5a" * 20), TREE, TREE, TREE, "", upstream=V1)
NEWER = replace(VERSION, upstream=V2)


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        pytest.param({"draft_version": VERSION}, "install web v1", id="install"),
        pytest.param({"published_version": VERSION, "draft_version": NEWER}, "update web v1 → v2", id="update"),
        pytest.param({"published_version": VERSION, "draft_version": VERSION}, "re-render web v1", id="re-render"),
        pytest.param({"published_version": VERSION}, "edit web v1", id="only-local-changes"),
        pytest.param({"removal": ProposedRemoval("d", TREE), "published_version": VERSION}, "delete web", id="delete"),
    ],
)
def test_operation_of_a_draft(versions: dict[str, Any], expected: str) -> None:
    change = describe_change(PackageRecord(OWNER, **versions), "web")

    assert str(change) == expected
    assert (change.owner, change.owner_name, change.is_generated) == ("PackageVariantSet default/apps", "web", True)
