"""The kinds that have a schema: those of the pages beside this file, and those that component types make (design 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from reconciler.krm.identity import split_api_version
from reconciler.krm.yaml import parse
from reconciler.reporting.schemas.notation import Node, expand
from reconciler.rules.composition.model import API_VERSION

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
    data: dict[str, Any] = parse(text).documents[0].data
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
