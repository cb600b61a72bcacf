"""Tests that schemas and readers accept and reject the same documents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import jsonschema_rs
import pytest

from reconciler.output.schemas.json_schemas import KINDS, build_index_schema, build_kind_schema
from tests.support.readers import READ, read_errors
from tests.unit.output.schemas.documents import (
    ACCEPTANCE,
    CASES,
    SHOWCASE,
    UNKNOWN,
    Document,
    Place,
    get_field_names,
    read_documents_below,
    read_full_documents,
    remove_value,
    replace_value,
    walk_values,
)

FULL = list(read_full_documents())
# One value of each type, with content where possible.
WRONG: tuple[Any, ...] = (7, True, "text", ["text"], {"text": "text"})
EMPTY: tuple[Any, ...] = (None, "", [], {})
# A reader accepts these fields, and a later step rejects them. Editors should report them immediately.
LATER = {
    ("ComponentDefinition", "spec.resources.template.apiVersion"): "objects without one are refused when they are made",
    ("Addon", "spec.creates.apiVersion"): "the same",
    ("Addon", "spec.creates.resource.apiVersion"): "the same",
    ("Addon", "spec.creates.template.apiVersion"): "the same",
    ("ComponentType", "spec.platformAddons.condition"): "it is compiled with the addon",
    ("Cluster", "spec"): "the code reads only pluginOverrides",
    ("Organization", "spec"): "the same",
}


def get_document_id(document: Document) -> str:
    return f"{document['kind']}-{document['metadata']['name']}"


@cache
def build_validator(kind: str) -> Any:
    (item,) = (entry for entry in KINDS if entry.name == kind)
    return jsonschema_rs.validator_for(build_kind_schema(item))


@cache
def build_index_validator() -> Any:
    return jsonschema_rs.validator_for(build_index_schema(KINDS))


def is_later(document: Document, at: Place) -> bool:
    # Readers treat every empty value of matchExpressions as an absent value.
    return (document["kind"], ".".join(get_field_names(at))) in LATER or at[-1] == "matchExpressions"


def list_read_fields(document: Document) -> Iterator[tuple[Place, Any]]:
    """Yield the fields that readers read. Catalogs read the name in the metadata; Kubernetes defines the rest."""
    for at, value in walk_values(document):
        if at and at[0] not in ("apiVersion", "kind", "metadata", "status" if document["kind"] in READ else ""):
            yield at, value


@pytest.mark.parametrize("document", FULL, ids=get_document_id)
def test_document_that_readers_accept_is_valid(document: Document) -> None:
    result = read_errors(document)

    assert not result
    assert [iter_error.message for iter_error in build_validator(document["kind"]).iter_errors(document)] == []
    assert build_index_validator().is_valid(document)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_schema_field_is_in_a_valid_document(kind: Any) -> None:
    there = {(item["kind"], get_field_names(at)) for item in FULL for at, _ in walk_values(item)}
    shown = {
        _format_schema(field) for kind in KINDS for at, field in list_fields(kind.body) if (kind.name, at) in there
    }

    # A field that occurs in many places has its full content in one of them.
    assert {at for at, item in list_fields(kind.body) if at[0] != "metadata" and _format_schema(item) not in shown} <= {
        ("status",)
    }


def _format_schema(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, sort_keys=True)


def list_fields(
    schema: Mapping[str, Any], at: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield every field that a schema describes."""
    for name, item in schema.get("properties", {}).items():
        yield (*at, name), item
        yield from list_fields(item, (*at, name))
    inner = [schema.get(key) for key in ("items", "then", "else", "additionalProperties")]
    for item in (*inner, *schema.get("anyOf", ())):
        if isinstance(item, dict):
            yield from list_fields(item, at)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "document",
    # These two kinds have so many fields that their changes need as much time as those of all other kinds.
    [
        pytest.param(item, marks=[pytest.mark.slow] if item["kind"] in ("OverridePolicy", "PackageVariantSet") else [])
        for item in FULL
        if item["kind"] in READ
    ],
    ids=get_document_id,
)
def test_reader_and_schema_agree_about_one_change(document: Document) -> None:
    stricter, looser = [], []
    for what, item, must in change_document(document):
        result, valid = read_errors(item), build_validator(document["kind"]).is_valid(item)
        if not result and not valid:
            stricter.append(what)
        if result and valid and must:
            looser.append((what, result[0]))

    assert stricter == []
    assert looser == []


def change_document(document: Document) -> Iterator[tuple[str, Document, bool]]:
    """Yield documents with one change, and whether the schema must reject the change if the reader rejects it.

    Only readers check the content of values with the right type. Schemas check it where possible.
    """
    (kind,) = (kind for kind in KINDS if kind.name == document["kind"])
    described = dict(list_fields(kind.body))
    for at, value in list_read_fields(document):
        if is_later(document, at):
            continue
        field = described.get(get_field_names(at), {})
        place = ".".join(map(str, at))
        if len(at) > 1:
            yield f"no {place}", remove_value(document, at), False
        if isinstance(value, dict):
            yield f"{place}.{UNKNOWN}", replace_value(document, (*at, UNKNOWN), "text"), is_closed(field)
        for new in WRONG:
            yield f"{place}={new}", replace_value(document, at, new), is_typed(field) and type(new) is not type(value)
        for new in EMPTY:
            yield f"{place}={new!r}", replace_value(document, at, new), False


def is_typed(schema: Mapping[str, Any]) -> bool:
    return "type" in schema or any("enum" in item for item in schema.get("anyOf", ()))


def is_closed(schema: Mapping[str, Any]) -> bool:
    return "properties" in schema and schema.get("additionalProperties") is False


@pytest.mark.parametrize("document", FULL, ids=get_document_id)
def test_unknown_field_is_invalid_where_the_reader_rejects_it(document: Document) -> None:
    mapping = {**document, UNKNOWN: "text"}

    assert build_validator(document["kind"]).is_valid(mapping) == (not read_errors(mapping))


@pytest.mark.parametrize("document", FULL, ids=get_document_id)
@pytest.mark.parametrize(
    "at", [pytest.param(("apiVersion",), id="version"), pytest.param(("metadata", "namespace"), id="namespace")]
)
def test_versions_and_namespaces_of_schemas_and_readers_agree(document: Document, at: Place) -> None:
    group = document["apiVersion"].partition("/")[0]
    # The selectors of the OverridePolicy contain its namespace, and a schema cannot compare two fields.
    namespaces = ["edge"] if document["kind"] == "OverridePolicy" else ["", "edge", None]
    new = [f"{group}/v9"] if at == ("apiVersion",) else namespaces
    for value in new if document["kind"] in READ and document["kind"] not in UNVERSIONED else ():
        result = replace_value(document, at, value)

        assert build_validator(document["kind"]).is_valid(result) == (not read_errors(result)), value


# Readers of these kinds never receive another version.
UNVERSIONED = {
    "Cluster",
    "Organization",
    "PluginDefinition",
    "ClusterPluginDefinition",
    "Kptfile",
    "PackageRevisionSet",
}


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(CASES, id="cases"),
        pytest.param(SHOWCASE, id="demo"),
        pytest.param(
            ACCEPTANCE,
            id="acceptance",
            marks=pytest.mark.skipif(not ACCEPTANCE.is_dir(), reason="the acceptance cases are not at hand"),
        ),
    ],
)
def test_whole_configs_are_valid(folder: Any) -> None:
    known = {kind.name for kind in KINDS}
    held = [(place, item) for place, item in read_documents_below(folder) if item["kind"] in known]
    sound = [(place, item) for place, item in held if not read_errors(item)]

    assert sound
    assert {place for place, item in sound if not build_index_validator().is_valid(item)} == set()
