from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
import pytest

from reconciler.bootstrap.controllers import _RESERVED_KINDS as READ_KINDS
from reconciler.catalog.known_kinds import KNOWN_KINDS
from reconciler.output.schemas.json_schemas import (
    KINDS,
    Kind,
    build_component_kind,
    build_index_schema,
    build_kind_schema,
    build_schema_files,
    find_schema,
    format_kind_lines,
)

PORT = {"type": "integer", "description": "Where."}
SHOP = build_component_kind(
    "ShopApp",
    "shop-app",
    {
        "$schema": "of the part",
        "type": "object",
        "properties": {"port": PORT},
        "required": ["port"],
    },
)
PROPAGATION = {"apiVersion": "core.kubeadmiral.io/v1alpha1", "kind": "ClusterPropagationPolicy", "spec": {}}
ACK = "reconciler.dev/ack-deletions"
NAMED = {"name": "a", "namespace": "b"}
POLICY = {"apiVersion": "core.kubeadmiral.io/v1alpha1", "kind": "ClusterOverridePolicy", "metadata": {"name": "one"}}


@pytest.mark.parametrize("kind", [*KINDS, SHOP], ids=lambda kind: kind.name)
def test_every_schema_is_valid_and_documented(kind: Kind) -> None:
    jsonschema_rs.meta.validate(build_kind_schema(kind))

    assert [at for at, item in list_fields(kind.body) if not item["description"].endswith((".", "…"))] == []
    assert "$ref" not in json.dumps(kind.body)
    # The schema declares its dialect once, and no part of it declares another dialect.
    assert json.dumps(build_kind_schema(kind)).count("$schema") == 1


def list_fields(schema: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, item in schema.get("properties", {}).items():
        yield f"{at}.{name}".lstrip("."), item
        yield from list_fields(item, f"{at}.{name}".lstrip("."))
    for key in ("items", "then", "else", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from list_fields(schema[key], at)
    for item in schema.get("anyOf", ()):
        yield from list_fields(item, at)


def test_every_read_kind_has_a_schema() -> None:
    # No user writes a Placement. It is the internal owner of the resources of a namespace.
    assert READ_KINDS - {kind.name for kind in KINDS} == {"Placement"}


def test_every_kind_with_a_model_is_known() -> None:
    in_packages = {"kpt.dev", "fn.kpt.dev"}

    assert {(kind.group, kind.name) for kind in KINDS if kind.group not in in_packages} == {
        (group, name) for group, names in KNOWN_KINDS.items() for name in names if name != "RenderResult"
    }


def test_kinds_are_unique() -> None:
    assert len({(kind.group, kind.name) for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize(
    ("document", "is_valid"),
    [
        pytest.param({**POLICY, "spec": {}}, True, id="empty-spec"),
        pytest.param({**POLICY, "spec": {"overrideRule": []}}, False, id="unknown-field"),
        pytest.param({**POLICY, "apiVersion": "core.kubeadmiral.io/v2", "spec": {}}, False, id="of-another-version"),
        pytest.param({**POLICY, "apiVersion": "core.example.com/v1", "any": 1}, True, id="other-api-group"),
        pytest.param({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}, True, id="of-no-kind-of-ours"),
        pytest.param({"apiVersion": "apps/v1"}, True, id="that-is-not-finished"),
        pytest.param({"apiVersion": "kpt.dev/v1", "kind": "Kptfile"}, True, id="that-needs-no-name"),
        pytest.param({**POLICY, "metadata": {"name": ""}, "spec": {}}, False, id="that-has-none"),
        pytest.param({**PROPAGATION, "metadata": {"name": "a", "annotations": {ACK: "f00"}}}, True, id="with-a-mark"),
        pytest.param({**PROPAGATION, "metadata": {"name": "a", "annotations": {ACK: 400}}}, False, id="no-text"),
        pytest.param({**PROPAGATION, "metadata": {"name": "a", "annotations": {"b": 4}}}, True, id="other-annotation"),
        pytest.param(
            {
                "apiVersion": "platform/v1alpha1",
                "kind": "ShopApp",
                "metadata": {"name": "a", "namespace": "b"},
                "spec": {},
            },
            False,
            id="that-a-component-type-makes",
        ),
    ],
)
def test_index_selects_the_schema_by_kind(document: dict[str, Any], is_valid: bool) -> None:
    index = build_index_schema([*KINDS, SHOP])

    assert jsonschema_rs.validator_for(index).is_valid(document) is is_valid


def test_schema_files_have_the_paths_of_crd_validators() -> None:
    files = build_schema_files([*KINDS, SHOP], {"title": "Settings"})

    assert [*files][:2] == ["all.json", "settings.json"]
    assert json.loads(files["platform/shopapp_v1alpha1.json"]) == build_kind_schema(SHOP)
    assert {"kafka.strimzi.io/kafka_v1.json", "kafka.strimzi.io/kafka_v1beta2.json"} <= files.keys()


@pytest.mark.parametrize(
    ("name", "title"),
    [
        pytest.param("PluginPreset", "PluginPreset", id="by-name"),
        pytest.param("pluginpreset", "PluginPreset", id="in-any-case"),
        pytest.param("PluginPresets", None, id="not-of-many"),
    ],
)
def test_find_schema_by_name(name: str, title: str | None) -> None:
    schema = find_schema(name, KINDS)

    assert (schema or {}).get("title") == title


def test_kinds_are_listed_by_group() -> None:
    lines = format_kind_lines([*KINDS, SHOP])

    assert "  ShopApp                   A component of the type shop-app." in lines
    assert lines.count("platform/v1alpha1") == 1
    assert len([line for line in lines if line.startswith("  ")]) == len(KINDS) + 1
