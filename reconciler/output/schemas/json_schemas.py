"""The notation of our schemas: JSON Schema with a few words of its own, so that it reads like a list of fields.

`fields` are the properties of a mapping that must have no others, unless it is `open`, or they begin with `x-` and the
mapping lets people have their `own`; `values` are those of a mapping with any keys, `each` the items of a list. `use`
stands for a part by its name, over which everything beside it is laid. A field that is not `required` may be null,
which is as if it were not there, and of several words may be empty, unless `nullable` or `blank` says otherwise.

The kinds that have a schema: those of the pages beside this file, and those that component types make (design 7).

Schemas as files: one for each kind and version, and an index that picks among them by apiVersion and kind.

Which schemas there are, and one of them by its name, in whatever case it is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from reconciler.controllers.components.model import API_VERSION
from reconciler.krm.objects import split_api_version
from reconciler.krm.yaml import parse_yaml

Node = Mapping[str, Any]
Parts = Mapping[str, Node]
_NESTED = ("if", "then", "else", "not", "propertyNames")
_LISTED = ("anyOf", "allOf", "oneOf")
_OURS = ("fields", "open", "own", "values", "each", "use", "nullable", "blank")
_OWN = "^x-"


def expand(node: Node, parts: Parts) -> dict[str, Any]:
    """Return the JSON Schema that a node of the notation means; it refers to nothing outside of itself."""
    node = _used(node, parts)
    schema = {key: _below(key, value, parts) for key, value in node.items() if key not in _OURS}
    if "each" in node:
        schema |= {"type": "array", "items": _item(node["each"], parts)}
    if "values" in node:
        schema |= {"type": "object", "additionalProperties": _item(node["values"], parts)}
    if "fields" in node:
        schema |= _mapping(node, parts)
    return schema


def _used(node: Node, parts: Parts) -> Node:
    if "use" not in node:
        return node
    return {**_used(parts[node["use"]], parts), **{key: value for key, value in node.items() if key != "use"}}


def _below(key: str, value: Any, parts: Parts) -> Any:
    if key in _NESTED:
        return expand(value, parts)
    return [expand(one, parts) for one in value] if key in _LISTED else value


def _item(node: Node, parts: Parts) -> dict[str, Any]:
    schema = expand(node, parts)
    return _let_be_null(schema) if _used(node, parts).get("nullable") else schema


def _mapping(node: Node, parts: Parts) -> dict[str, Any]:
    required = node.get("required", ())
    schema: dict[str, Any] = {"type": "object"}
    if required:
        schema["required"] = list(required)
    schema["properties"] = {
        name: expand(one, parts) if name in required else _optional(one, parts) for name, one in node["fields"].items()
    }
    if node.get("own"):
        schema["patternProperties"] = {_OWN: {}}
    if not node.get("open"):
        schema["additionalProperties"] = False
    return schema


def _optional(node: Node, parts: Parts) -> dict[str, Any]:
    node, schema = _used(node, parts), expand(node, parts)
    if not node.get("nullable", True):
        return schema
    if "enum" in schema and node.get("blank", True):
        # editors propose the words, and none of the rest
        words = schema.pop("enum")
        return schema | {"anyOf": [{"enum": words}, {"type": ["string", "null"], "maxLength": 0}]}
    return _let_be_null(schema)


def _let_be_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that takes null as well; one that says nothing of types takes it already."""
    if "enum" in schema:
        return schema | {"enum": [*schema["enum"], None]}
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return schema | {"type": [*dict.fromkeys([*kinds, "null"])]}
    return schema | {"anyOf": [*schema["anyOf"], {"type": "null"}]} if "anyOf" in schema else schema


DIALECT = "http://json-schema.org/draft-07/schema#"
"""The newest one that every editor and validator of YAML knows; nothing in our schemas needs a newer one."""

_PAGES = ("porch", "kubeadmiral", "greenhouse", "composition", "strimzi", "kpt")


@dataclass(frozen=True)
class Kind:
    """A kind, the versions in which it is read, and what its objects may hold."""

    name: str
    api_versions: tuple[str, ...]
    description: str
    body: Mapping[str, Any] = field(repr=False)

    @property
    def group(self) -> str:
        """The API group of its objects."""
        return split_api_version(self.api_versions[0])[0]


def kind_schema(kind: Kind) -> dict[str, Any]:
    """Return the JSON Schema of the objects of a kind; it stands for itself, and refers to no other."""
    return {"$schema": DIALECT, **kind.body}


def component_kind(name: str, component_type: str, spec: Mapping[str, Any]) -> Kind:
    """Return the kind that a component type makes, whose `spec` has this JSON Schema (openchoreo 2)."""
    described = f"A component of the type {component_type}."
    values = {key: value for key, value in spec.items() if key != "$schema"}
    one = {
        "kind": name,
        "description": described,
        "namespace": "default",
        "spec": {"description": "What can be set.", **values},
    }
    return Kind(name, (API_VERSION,), described, _body(one, [API_VERSION], {}))


def _kinds() -> Iterator[Kind]:
    shared = _page("shared")
    for name in _PAGES:
        page = _page(name)
        parts = {**shared, **page["parts"]}
        for one in page["kinds"]:
            versions = one["apiVersion"] if isinstance(one["apiVersion"], list) else [one["apiVersion"]]
            body = _body(one, versions, parts)
            yield Kind(one["kind"], tuple(versions), one["description"], body)


def _page(name: str) -> dict[str, Any]:
    text = resources.files(__package__).joinpath(f"{name}.yaml").read_bytes()
    data: dict[str, Any] = parse_yaml(text).documents[0].data
    return data


def _body(one: Node, versions: list[str], parts: Mapping[str, Node]) -> dict[str, Any]:
    """Return what a kind's page says, with what all objects have."""
    fields = {
        "apiVersion": {"enum": versions, "description": "API group and version."},
        "kind": {"const": one["kind"], "description": one["description"]},
        "metadata": _metadata(one),
        **({"spec": one["spec"]} if "spec" in one else {}),
        **({} if one.get("open") else {"status": {"description": "Written by programs; it is not read."}}),
        **one.get("fields", {}),
    }
    optional = ("metadata" if one.get("nameless") else "", "spec" if one.get("specOptional") else "")
    required = [name for name in ("apiVersion", "kind", "metadata", "spec") if name in fields and name not in optional]
    about = {"title": one["kind"], "description": one["description"], "open": one.get("open", False)}
    return expand({**about, "required": required, "fields": fields}, parts)


def _metadata(one: Node) -> Node:
    """Return what the metadata of a kind must say; what else is in it is Kubernetes' business."""
    namespaces: dict[str, Any] = {
        "default": {"type": "string", "description": 'Namespace of the object; "default" if it is missing.'},
        "none": {"enum": [""], "blank": False, "description": "This kind is in no namespace."},
        "": {"type": "string", "description": "Namespace of the object."},
    }
    namespace = one.get("namespace", "")
    # people write versions without quotes, and readers take them
    anything = {"type": ["string", "number", "boolean", "null"]}
    labels = {"description": "Labels, by which others select it.", "open": True, "fields": one.get("labels", {})}
    # one that is read does nothing where it is no text, and nobody would be told
    marks = {"description": "Annotations, by which others are told more.", "open": True}
    marks["fields"] = {name: {"type": "string", **node} for name, node in one.get("annotations", {}).items()}
    return {
        "description": "What the object is called.",
        "open": True,
        "required": [*([] if one.get("nameless") else ["name"])],
        "fields": {
            "name": {"type": "string", "minLength": 1, "description": "Name of the object."},
            "namespace": namespaces[namespace],
            "labels": {**labels, "additionalProperties": anything},
            "annotations": {**marks, "additionalProperties": anything},
        },
    }


KINDS = tuple(_kinds())
"""Every kind that is read, in the order of the pages."""


INDEX = "all.json"
_SETTINGS = "settings.json"


def schema_files(kinds: Sequence[Kind], settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each file by its path: `<group>/<kind>_<version>.json`, the index, and that of the settings.

    Validators of Kubernetes objects know this layout from collections of CRDs.
    """
    files = {path_of(kind, version): schema_text(kind_schema(kind)) for kind in kinds for version in kind.api_versions}
    return {INDEX: schema_text(index_schema(kinds)), _SETTINGS: schema_text(settings), **dict(sorted(files.items()))}


def path_of(kind: Kind, api_version: str) -> str:
    """Return where the schema of a kind stands."""
    group, version = split_api_version(api_version)
    return f"{group}/{kind.name.lower()}_{version}.json"


def index_schema(kinds: Iterable[Kind]) -> dict[str, Any]:
    """Return one schema for all objects: each is held to its kind's, and any other may say what it likes."""
    listed = tuple(kinds)
    versions = sorted({version for kind in listed for version in kind.api_versions})
    return {
        "$schema": DIALECT,
        "description": "Each object is held to the schema of its kind; of other kinds nothing is asked.",
        "properties": {"apiVersion": _proposed(versions), "kind": _proposed(sorted({kind.name for kind in listed}))},
        "allOf": [{"if": _is_of(kind), "then": dict(kind.body)} for kind in listed],
    }


def schema_text(schema: Mapping[str, Any]) -> str:
    """Return a schema as it is written to files."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _proposed(words: Sequence[str]) -> dict[str, Any]:
    # others are allowed; what they mean is for the kinds to say
    return {"anyOf": [{"enum": [*words]}, {"type": "string"}]}


def _is_of(kind: Kind) -> dict[str, Any]:
    # whatever the version: of another one editors are to tell that it is none
    begins = kind.group.replace(".", "\\.")
    told = {"apiVersion": {"type": "string", "pattern": f"^{begins}/"}, "kind": {"const": kind.name}}
    return {"required": ["apiVersion", "kind"], "properties": told}


ALL, SETTINGS = "all", "settings"
_OTHERS = {
    SETTINGS: "The settings file of this program.",
    ALL: "One schema that picks among these by apiVersion and kind.",
}


def kind_lines(kinds: Sequence[Kind]) -> list[str]:
    """Return the kinds by their API groups, each with its sentence."""
    width = max(len(kind.name) for kind in kinds) + 2
    lines: list[str] = []
    for group in dict.fromkeys(kind.api_versions for kind in kinds):
        lines += ["", ", ".join(group)] if lines else [", ".join(group)]
        lines += [f"  {kind.name:{width}}{kind.description}" for kind in kinds if kind.api_versions == group]
    return [*lines, "", *(f"{name:{width + 2}}{what}" for name, what in _OTHERS.items())]


def kinds_data(kinds: Sequence[Kind]) -> list[dict[str, Any]]:
    """Return the kinds as data."""
    return [{"kind": kind.name, "apiVersions": [*kind.api_versions], "description": kind.description} for kind in kinds]


def schema_named(name: str, kinds: Sequence[Kind]) -> dict[str, Any] | None:
    """Return the schema of the kind of this name, in whatever case, None where there is none."""
    found = next((kind for kind in kinds if kind.name.lower() == name.lower()), None)
    return kind_schema(found) if found else None
