"""Custom resources: what a CustomResourceDefinition says about the lists of its kind (kpt.md 9, D22).

A definition is anybody's text: what has the wrong type says nothing, and a schema is only read where a merge goes, so
that its size and depth cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.krm.shapes import UNKNOWN, Shape

_API_VERSIONS = ("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1")
_SCALARS = ("boolean", "integer", "number", "string")
# lists of lists, and maps of maps, are read at once: not more of them than a document can have
_DEEPEST = 100

Kind = tuple[str, str]
"""apiVersion, kind"""


def crd_shapes(crd: Mapping[str, Any], metadata: Shape | None) -> Iterator[tuple[Kind, Shape]]:
    """Yield the shape of each version that has a schema.

    `metadata` is the shape that the metadata of all objects has; None reads the schema as upstream does: only
    Kubernetes' patch extensions count (profile `compat`).
    """
    spec = _mapping(crd.get("spec"))
    group, kind = spec.get("group"), _mapping(spec.get("names")).get("kind")
    is_crd = crd.get("kind") == "CustomResourceDefinition" and crd.get("apiVersion") in _API_VERSIONS
    if not is_crd or not isinstance(group, str) or not isinstance(kind, str):
        return
    for name, schema in _versions(spec):
        shape = _Reading(patch_only=metadata is None).shape(schema)
        yield (f"{group}/{name}", kind), _with_metadata(shape, schema, metadata) if metadata else shape


def read_schema(schema: Any) -> Shape:
    """Return the shape of what an OpenAPI schema describes, as upstream reads it: by patch extensions only."""
    return _Reading(patch_only=True).shape(schema)


def _versions(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and schema of the versions; v1beta1 may have one schema for all, and a version outside the list."""
    shared = _mapping(spec.get("validation")).get("openAPIV3Schema")
    listed = spec.get("versions")
    versions = [version for version in listed if isinstance(version, Mapping)] if isinstance(listed, list) else []
    for version in versions or [{"name": spec.get("version")}]:
        name, schema = version.get("name"), _mapping(version.get("schema")).get("openAPIV3Schema", shared)
        if isinstance(name, str) and isinstance(schema, Mapping):
            yield name, schema


def _with_metadata(shape: Shape, schema: Mapping[str, Any], metadata: Shape) -> Shape:
    properties = {**_mapping(schema.get("properties")), "metadata": {}}
    return replace(shape, fields=_Fields(properties, _Reading(depth=1), {"metadata": metadata}))


@dataclass(frozen=True)
class _Reading:
    """How a schema is read, and how deep in lists and maps we are."""

    patch_only: bool = False
    depth: int = 0

    def shape(self, schema: Any) -> Shape:
        """Return the shape of what a schema describes."""
        if not isinstance(schema, Mapping) or self.depth > _DEEPEST:
            return UNKNOWN
        return self._list(schema) if _is_list(schema) else self._map(schema)

    def _list(self, schema: Mapping[str, Any]) -> Shape:
        keys = self._keys(schema)
        items = _mapping(schema.get("items"))
        return Shape(items=self._deeper.shape(items), keys=keys, defaults=_defaults(keys, items), closed=True)

    def _map(self, schema: Mapping[str, Any]) -> Shape:
        properties = _mapping(schema.get("properties"))
        others = schema.get("additionalProperties")
        described = bool(properties) or isinstance(others, Mapping)
        return Shape(
            fields=_Fields(properties, self._deeper) if properties else {},
            others=self._deeper.shape(others) if isinstance(others, Mapping) else None,
            closed=described and schema.get("x-kubernetes-preserve-unknown-fields") is not True,
        )

    def _keys(self, schema: Mapping[str, Any]) -> tuple[str, ...] | None:
        named = schema.get("x-kubernetes-list-map-keys")
        keys = tuple(key for key in named if isinstance(key, str)) if isinstance(named, list) else ()
        if "merge" in str(schema.get("x-kubernetes-patch-strategy", "")).split(","):
            merge_key = schema.get("x-kubernetes-patch-merge-key")
            return keys or ((merge_key,) if isinstance(merge_key, str) and merge_key else ())
        if self.patch_only:
            return None
        match schema.get("x-kubernetes-list-type"):
            case "map":
                return keys or None
            case "set":
                return () if _mapping(schema.get("items")).get("type") in _SCALARS else None
            case _:
                return None

    @property
    def _deeper(self) -> _Reading:
        return replace(self, depth=self.depth + 1)


@dataclass(frozen=True, eq=False)
class _Fields(Mapping[str, Shape]):
    """The shapes of properties, each made when it is asked for."""

    properties: Mapping[str, Any]
    reading: _Reading
    made: dict[str, Shape] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Shape:
        if name not in self.made:
            self.made[name] = self.reading.shape(self.properties[name])
        return self.made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.properties)

    def __len__(self) -> int:
        return len(self.properties)

    # a comparison by content would read the whole schema
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def _is_list(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "array" or ("type" not in schema and "items" in schema)


def _defaults(keys: tuple[str, ...] | None, items: Mapping[str, Any]) -> dict[str, str]:
    properties = _mapping(items.get("properties"))
    values = {key: _mapping(properties.get(key)).get("default") for key in keys or ()}
    return {key: value for key, value in values.items() if isinstance(value, str)}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
