"""Tests of gen-pkg-context: one context per package. The safe profile keeps other keys."""

from __future__ import annotations

import pytest

from reconciler.api.profile import Profile
from reconciler.packages.functions.function import FunctionContext, Item
from reconciler.packages.functions.resources import gen_pkg_context
from tests.unit.packages.builders import KPTFILE, parse_items

OLD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kptfile.kpt.dev}\ndata: {name: old, zone: b}\n"


def build_package_items() -> list[Item]:
    [kptfile], [own], [nested] = (
        parse_items(KPTFILE, "Kptfile"),
        parse_items(OLD, "package-context.yaml"),
        parse_items(OLD, "c.yaml"),
    )
    return [kptfile, own, Item("sub", nested.path, 0, nested.data, 2, nested.base)]


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        pytest.param("safe", {"": {"name": "app", "zone": "b"}, "sub": {"name": "old", "zone": "b"}}, id="safe"),
        pytest.param("compat", {"": {"name": "app"}}, id="compat"),
    ],
)
def test_gen_pkg_context(profile: Profile, expected: dict[str, dict[str, str]]) -> None:
    output = gen_pkg_context(build_package_items(), None, FunctionContext(profile))

    assert {item.package: item.data["data"] for item in output.items if item.kind == "ConfigMap"} == expected


def test_missing_context_is_created() -> None:
    output = gen_pkg_context(build_package_items()[:1], None, FunctionContext())

    assert [(item.path, item.is_local_config) for item in output.items] == [
        ("Kptfile", False),
        ("package-context.yaml", True),
    ]


def test_package_without_kptfile_fails() -> None:
    assert gen_pkg_context([], None, FunctionContext()).has_failed
