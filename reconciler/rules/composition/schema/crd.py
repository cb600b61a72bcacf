"""The CRD that a component type makes (openchoreo 2, 3.5, 11 step 9, 16.2)."""

from __future__ import annotations

from typing import Any

from reconciler.rules.composition.names import crd_name, plural
from reconciler.rules.composition.schema.dialect import LIST_TYPE, MAP_TYPE, Schema, converted, ordered
from reconciler.rules.composition.schema.validation import violations_once
from reconciler.rules.composition.schema.values import with_defaults

_VERSION = "v1alpha1"


def crd(kind: str, group: str, schema: Schema) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind whose `spec` has this schema."""
    singular = kind.lower()
    spec = {"type": "object", "properties": {"spec": converted(schema, _structural)}, "required": ["spec"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": crd_name(kind, group)},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural(kind), "singular": singular},
            "versions": [{"name": _VERSION, "served": True, "storage": True, "schema": {"openAPIV3Schema": spec}}],
        },
    }


def _structural(schema: Schema) -> Schema:
    # openchoreo 3.2: hints for pages are nothing that Kubernetes would take
    node = {keyword: value for keyword, value in schema.items() if not keyword.startswith("x-query-")}
    if node.get(LIST_TYPE) == "set":
        node.update(_set_of(node.pop(LIST_TYPE), node["items"]))
    if node.get("default") is not None:
        node["default"] = _complete(node["default"], schema)
    return node


def _complete(default: Any, schema: Schema) -> Any:
    """Return a default that Kubernetes takes: it checks what is written, before the defaults inside have filled it."""
    return with_defaults(default, schema) if violations_once(default, schema, ()) else default


def _set_of(mark: str, items: Schema) -> Schema:
    """Return the keywords of a set, whose items Kubernetes wants to be compared as a whole, and never null."""
    if items.get("nullable"):
        return {}
    atomic = {"array": LIST_TYPE, "object": MAP_TYPE}.get(items["type"])
    return {"items": ordered(items | {atomic: "atomic"}) if atomic else items, LIST_TYPE: mark}
