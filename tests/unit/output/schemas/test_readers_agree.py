"""Schemas and readers say the same of one document, whatever becomes of it: neither knows of the other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import jsonschema_rs
import pytest
from pydantic import BaseModel

from reconciler.output.schemas import KINDS, build_index_schema, build_kind_schema
from reconciler.packages.kptfile.model import KptfileModel
from tests.support.readers import READ, read_errors
from tests.unit.output.schemas.documents import (
    ACCEPTANCE,
    CASES,
    SHOWCASE,
    UNKNOWN,
    Document,
    Place,
    changed,
    documents_below,
    full_documents,
    names,
    places,
    without,
)

FULL = list(full_documents())
# one of each type, with something in it where there can be
WRONG: tuple[Any, ...] = (7, True, "text", ["text"], {"text": "text"})
EMPTY: tuple[Any, ...] = (None, "", [], {})
# what a reader lets pass, and somebody behind it does not; editors are to tell at once
LATER = {
    ("ComponentDefinition", "spec.resources.template.apiVersion"): "objects without one are refused when they are made",
    ("Addon", "spec.creates.apiVersion"): "the same",
    ("Addon", "spec.creates.resource.apiVersion"): "the same",
    ("Addon", "spec.creates.template.apiVersion"): "the same",
    ("ComponentType", "spec.platformAddons.condition"): "it is compiled with the addon",
    ("Cluster", "spec"): "nobody reads more of it than pluginOverrides",
    ("Organization", "spec"): "the same",
}


def document_id(document: Document) -> str:
    return f"{document['kind']}-{document['metadata']['name']}"


@cache
def validator(kind: str) -> Any:
    (item,) = (entry for entry in KINDS if entry.name == kind)
    return jsonschema_rs.validator_for(build_kind_schema(item))


@cache
def index() -> Any:
    return jsonschema_rs.validator_for(build_index_schema(KINDS))


def is_later(document: Document, at: Place) -> bool:
    # of a label selector readers take anything that is empty for no expressions
    return (document["kind"], ".".join(names(at))) in LATER or at[-1] == "matchExpressions"


def read_places(document: Document) -> Iterator[tuple[Place, Any]]:
    """Yield what readers look at; of metadata catalogs take the name, and Kubernetes knows the rest."""
    for at, value in places(document):
        if at and at[0] not in ("apiVersion", "kind", "metadata", "status" if document["kind"] in READ else ""):
            yield at, value


@pytest.mark.parametrize("document", FULL, ids=document_id)
def test_what_is_sound_for_readers_is_sound_for_schemas(document: Document) -> None:
    result = read_errors(document)

    assert not result
    assert [iter_error.message for iter_error in validator(document["kind"]).iter_errors(document)] == []
    assert index().is_valid(document)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_field_of_a_schema_is_in_a_sound_document(kind: Any) -> None:
    there = {(item["kind"], names(at)) for item in FULL for at, _ in places(item)}
    shown = {_text(field) for kind in KINDS for at, field in fields(kind.body) if (kind.name, at) in there}

    # what stands in many places is written out in one of them
    assert {at for at, item in fields(kind.body) if at[0] != "metadata" and _text(item) not in shown} <= {("status",)}


def _text(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, sort_keys=True)


def fields(schema: Mapping[str, Any], at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield every field that a schema describes."""
    for name, item in schema.get("properties", {}).items():
        yield (*at, name), item
        yield from fields(item, (*at, name))
    inner = [schema.get(key) for key in ("items", "then", "else", "additionalProperties")]
    for item in (*inner, *schema.get("anyOf", ())):
        if isinstance(item, dict):
            yield from fields(item, at)


@pytest.mark.parametrize("document", [item for item in FULL if item["kind"] in READ], ids=document_id)
def test_one_change_is_told_by_both_or_by_neither(document: Document) -> None:
    stricter, looser = [], []
    for what, item, must in changes(document):
        result, valid = read_errors(item), validator(document["kind"]).is_valid(item)
        if not result and not valid:
            stricter.append(what)
        if result and valid and must:
            looser.append((what, result[0]))

    assert stricter == []
    assert looser == []


def changes(document: Document) -> Iterator[tuple[str, Document, bool]]:
    """Yield documents with one change, and whether a schema must see that it is wrong, if it is.

    Whether what has the right type says the right thing is for readers: schemas only help where they can.
    """
    (kind,) = (kind for kind in KINDS if kind.name == document["kind"])
    described = dict(fields(kind.body))
    for at, value in read_places(document):
        if is_later(document, at):
            continue
        field = described.get(names(at), {})
        place = ".".join(map(str, at))
        if len(at) > 1:
            yield f"no {place}", without(document, at), False
        if isinstance(value, dict):
            yield f"{place}.{UNKNOWN}", changed(document, (*at, UNKNOWN), "text"), is_closed(field)
        for new in WRONG:
            yield f"{place}={new}", changed(document, at, new), is_typed(field) and type(new) is not type(value)
        for new in EMPTY:
            yield f"{place}={new!r}", changed(document, at, new), False


def is_typed(schema: Mapping[str, Any]) -> bool:
    return "type" in schema or any("enum" in item for item in schema.get("anyOf", ()))


def is_closed(schema: Mapping[str, Any]) -> bool:
    return "properties" in schema and schema.get("additionalProperties") is False


@pytest.mark.parametrize("document", FULL, ids=document_id)
def test_an_object_has_no_other_fields_where_its_reader_refuses_them(document: Document) -> None:
    mapping = {**document, UNKNOWN: "text"}

    assert validator(document["kind"]).is_valid(mapping) == (not read_errors(mapping))


@pytest.mark.parametrize("document", FULL, ids=document_id)
@pytest.mark.parametrize(
    "at", [pytest.param(("apiVersion",), id="version"), pytest.param(("metadata", "namespace"), id="namespace")]
)
def test_versions_and_namespaces(document: Document, at: Place) -> None:
    group = document["apiVersion"].partition("/")[0]
    # The selectors of the OverridePolicy name its namespace, and no schema compares two fields.
    namespaces = ["edge"] if document["kind"] == "OverridePolicy" else ["", "edge", None]
    new = [f"{group}/v9"] if at == ("apiVersion",) else namespaces
    for value in new if document["kind"] in READ and document["kind"] not in UNVERSIONED else ():
        result = changed(document, at, value)

        assert validator(document["kind"]).is_valid(result) == (not read_errors(result)), value


# whose readers are asked for another version never
UNVERSIONED = {
    "Cluster",
    "Organization",
    "PluginDefinition",
    "ClusterPluginDefinition",
    "Kptfile",
    "PackageRevisionSet",
}


class Asked(dict[str, Any]):
    """A mapping that remembers which fields it was asked for."""

    def __init__(self, value: Mapping[str, Any], at: tuple[str, ...], values: set[tuple[str, ...]]) -> None:
        super().__init__({key: watched(item, (*at, key), values) for key, item in value.items()})
        self._at, self._asked = at, values

    def get(self, key: str, default: Any = None) -> Any:
        self._asked.add((*self._at, key))
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self._asked.add((*self._at, key))
        return super().__getitem__(key)


def watched(value: Any, at: tuple[str, ...], values: set[tuple[str, ...]]) -> Any:
    if isinstance(value, dict):
        return Asked(value, at, values)
    return [watched(item, at, values) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("document", [item for item in FULL if item["kind"] in READ], ids=document_id)
def test_what_a_schema_describes_its_reader_knows(document: Document) -> None:
    (kind,) = (kind for kind in KINDS if kind.name == document["kind"])
    described = dict(fields(kind.body))
    values = []
    for at, value in read_places(document):
        field = described.get(names(at), {})
        for name in field.get("properties", ()) if isinstance(value, dict) and is_closed(field) else ():
            result = changed(document, (*at, name), None)
            values += [fault for fault in read_errors(result) if name not in value and "unknown" in fault]

    assert [item for item in values if not any(alias in item for alias in ALIASES)] == []


# they are only known with something in them
ALIASES = ("upstream.ref", "upstreams[0].ref", "upstreams[1].ref", "upstreams[2].ref", "injectorExprs")


# what readers only look for to say that it cannot be
REFUSED = {"outputs", "presets", "ref"}
ELSEWHERE = {(f"{item}PropagationPolicy", name) for item in ("", "Cluster") for name in ("clusters", "excludeClusters")}


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.name in READ - {"Kptfile"}], ids=lambda kind: kind.name
)
def test_what_a_reader_looks_for_its_schema_describes(kind: Any) -> None:
    result: set[tuple[str, ...]] = set()
    for item in FULL:
        if item["kind"] == kind.name:
            read_errors(watched(item, (), result))
    described = {at for at, _ in fields(kind.body)}
    parents = {at[:-1] for at in described}
    values = {at for at in result - described if at[:-1] in parents and at[0] == "spec"}
    missing = {at for at in values if at[-1] not in REFUSED and (kind.name, at[-1]) not in ELSEWHERE}

    assert result
    assert missing == set()


def test_a_kptfiles_schema_describes_what_its_model_does() -> None:
    (kind,) = (kind for kind in KINDS if kind.name == "Kptfile")
    described = {at for at, _ in fields(kind.body)}

    assert set(modelled(KptfileModel)) - described == set()


def modelled(model: type[BaseModel], at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        here = (*at, field.alias or name)
        yield here
        for inner_model in inner_models(field.annotation):
            yield from modelled(inner_model, here)


def inner_models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for item in getattr(annotation, "__args__", ()):
        yield from inner_models(item)


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
def test_whole_configs(folder: Any) -> None:
    known = {kind.name for kind in KINDS}
    held = [(place, item) for place, item in documents_below(folder) if item["kind"] in known]
    sound = [(place, item) for place, item in held if not read_errors(item)]

    assert sound
    assert {place for place, item in sound if not index().is_valid(item)} == set()
