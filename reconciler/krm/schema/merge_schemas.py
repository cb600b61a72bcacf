"""Merge schemas: which lists are merged element by element, and which fields identify an element.

The data of built-in kinds, CustomResourceDefinitions, and the setting `merge.list_keys` define merge schemas. This
module reads CustomResourceDefinitions and the setting, and contains the collection of all merge schemas.

A CustomResourceDefinition is untrusted input. A part of the schema is ignored if it has the wrong type, e.g. a list
instead of a mapping. A schema is converted only when a merge needs it, so that large schemas need no additional time.

D22 is the name of a deviation from kpt (see `MergeRules.infers_names`). The setting `merge.deviations` can disable it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.krm.field_text import quote_value
from reconciler.krm.objects import split_api_version
from reconciler.lazy_dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class MergeSchema:
    """The merge rules of a value.

    `keys` decides how a list is merged:

    - Field names: the list is merged element by element, and these key fields identify an element. `defaults` contains
      the values that the API server sets for missing key fields.
    - (): the list is a set of scalars.
    - None: if `is_closed` is true, the list is atomic, which means that it is replaced as a whole. If `is_closed` is
      false, the merge may use the key `name`.
    """

    fields: Mapping[str, MergeSchema] = field(default_factory=dict)
    """For a mapping: the merge schema of each field that the schema names."""
    additional_fields: MergeSchema | None = None
    """For a mapping: the merge schema of all fields that `fields` does not contain."""
    items: MergeSchema | None = None
    """For a list: the merge schema of the elements."""
    keys: tuple[str, ...] | None = None
    defaults: Mapping[str, str] = field(default_factory=dict)
    is_closed: bool = False
    """Whether the schema is complete. If true, lists without keys and fields without a schema are atomic (D22)."""

    def find_field(self, name: str) -> MergeSchema:
        """Return the merge schema for the value of field `name` of a mapping."""
        return self.fields.get(name) or self.additional_fields or self._default_schema

    @property
    def element_schema(self) -> MergeSchema:
        """The merge schema of the elements of a list."""
        return self.items or self._default_schema

    @property
    def _default_schema(self) -> MergeSchema:
        return ATOMIC_SCHEMA if self.is_closed else UNKNOWN_SCHEMA


UNKNOWN_SCHEMA = MergeSchema()
ATOMIC_SCHEMA = MergeSchema(is_closed=True)


_API_VERSIONS = ("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1")
_SCALARS = ("boolean", "integer", "number", "string")
# Limit the depth, because nested lists and nested maps are converted recursively. Documents have at most 100 levels.
_MAX_DEPTH = 100

CustomResourceType = tuple[str, str]
"""(apiVersion, kind)"""


def read_crd_merge_schemas(
    crd: Mapping[str, Any], metadata: MergeSchema | None
) -> Iterator[tuple[CustomResourceType, MergeSchema]]:
    """Yield (apiVersion, kind) and the merge schema for each version of a CustomResourceDefinition that has a schema.

    Args:
        crd: A CustomResourceDefinition. For any other object, yield nothing.
        metadata: Merge schema of the field `metadata`, the same for all kinds. If it is None, read only the keywords
            `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key`, as kpt does.
    """
    spec = _get_mapping(crd.get("spec"))
    group, kind = spec.get("group"), _get_mapping(spec.get("names")).get("kind")
    is_crd = crd.get("kind") == "CustomResourceDefinition" and crd.get("apiVersion") in _API_VERSIONS
    if not is_crd or not isinstance(group, str) or not isinstance(kind, str):
        return
    for name, schema in _read_versions(spec):
        merge_schema = _SchemaConverter(patch_only=metadata is None).convert(schema)
        if metadata:
            merge_schema = _with_metadata(merge_schema, schema, metadata)
        yield (f"{group}/{name}", kind), merge_schema


def read_openapi_merge_schema(schema: Any) -> MergeSchema:
    """Return the merge schema of an OpenAPI schema.

    As in kpt, only `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key` define merge keys.
    """
    return _SchemaConverter(patch_only=True).convert(schema)


def _read_versions(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and schema of each version of a CustomResourceDefinition.

    In v1beta1, `spec.validation` can contain one schema for all versions, and `spec.version` can define a version.
    """
    shared = _get_mapping(spec.get("validation")).get("openAPIV3Schema")
    entries = spec.get("versions")
    versions = [version for version in entries if isinstance(version, Mapping)] if isinstance(entries, list) else []
    for version in versions or [{"name": spec.get("version")}]:
        name, schema = version.get("name"), _get_mapping(version.get("schema")).get("openAPIV3Schema", shared)
        if isinstance(name, str) and isinstance(schema, Mapping):
            yield name, schema


def _with_metadata(merge_schema: MergeSchema, schema: Mapping[str, Any], metadata: MergeSchema) -> MergeSchema:
    properties = {**_get_mapping(schema.get("properties")), "metadata": {}}
    return replace(merge_schema, fields=_LazyFields(properties, _SchemaConverter(depth=1), {"metadata": metadata}))


@dataclass(frozen=True)
class _SchemaConverter:
    """Converter from OpenAPI schemas to merge schemas. `depth` is the nesting level of the schema in lists and maps."""

    patch_only: bool = False
    depth: int = 0

    def convert(self, schema: Any) -> MergeSchema:
        """Return the merge schema of an OpenAPI schema."""
        if not isinstance(schema, Mapping) or self.depth > _MAX_DEPTH:
            return UNKNOWN_SCHEMA
        return self._convert_list(schema) if _is_list(schema) else self._convert_map(schema)

    def _convert_list(self, schema: Mapping[str, Any]) -> MergeSchema:
        keys = self._read_keys(schema)
        items = _get_mapping(schema.get("items"))
        return MergeSchema(
            items=self._nested.convert(items), keys=keys, defaults=_read_defaults(keys, items), is_closed=True
        )

    def _convert_map(self, schema: Mapping[str, Any]) -> MergeSchema:
        properties = _get_mapping(schema.get("properties"))
        additional = schema.get("additionalProperties")
        has_fields = bool(properties) or isinstance(additional, Mapping)
        return MergeSchema(
            fields=_LazyFields(properties, self._nested) if properties else {},
            additional_fields=self._nested.convert(additional) if isinstance(additional, Mapping) else None,
            is_closed=has_fields and schema.get("x-kubernetes-preserve-unknown-fields") is not True,
        )

    def _read_keys(self, schema: Mapping[str, Any]) -> tuple[str, ...] | None:
        map_keys = schema.get("x-kubernetes-list-map-keys")
        keys = tuple(key for key in map_keys if isinstance(key, str)) if isinstance(map_keys, list) else ()
        if "merge" in str(schema.get("x-kubernetes-patch-strategy", "")).split(","):
            merge_key = schema.get("x-kubernetes-patch-merge-key")
            return keys or ((merge_key,) if isinstance(merge_key, str) and merge_key else ())
        if self.patch_only:
            return None
        match schema.get("x-kubernetes-list-type"):
            case "map":
                return keys or None
            case "set":
                return () if _get_mapping(schema.get("items")).get("type") in _SCALARS else None
            case _:
                return None

    @property
    def _nested(self) -> _SchemaConverter:
        return replace(self, depth=self.depth + 1)


@dataclass(frozen=True, eq=False)
class _LazyFields(Mapping[str, MergeSchema]):
    """Merge schemas of the properties of an OpenAPI schema. A property is converted at the first access."""

    properties: Mapping[str, Any]
    converter: _SchemaConverter
    converted: dict[str, MergeSchema] = field(default_factory=dict)

    def __getitem__(self, name: str) -> MergeSchema:
        if name not in self.converted:
            self.converted[name] = self.converter.convert(self.properties[name])
        return self.converted[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.properties)

    def __len__(self) -> int:
        return len(self.properties)

    # Compare by identity, because a comparison of the contents would convert all properties.
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def _is_list(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "array" or ("type" not in schema and "items" in schema)


def _read_defaults(keys: tuple[str, ...] | None, items: Mapping[str, Any]) -> dict[str, str]:
    properties = _get_mapping(items.get("properties"))
    values = {key: _get_mapping(properties.get(key)).get("default") for key in keys or ()}
    return {key: value for key, value in values.items() if isinstance(value, str)}


def _get_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


_ELEMENT = "[]"
_ADDITIONAL_FIELDS = "*"
_KIND_RULE = "a kind with the merge keys of its lists, e.g. `apps/Deployment: {spec/template/spec/volumes: [name]}`"
_KEYS_RULE = "a list of unique field names, [] for a set of scalars, or null for a list that is replaced as a whole"


@dataclass(frozen=True)
class ListKeys:
    """The merge keys that the user sets for one list of a kind. They apply to all versions of the kind.

    If `keys` is None, the list is atomic. If `keys` is (), the list is a set of scalars.
    """

    group: str
    kind: str
    steps: tuple[str, ...]
    """Path to the list. The steps are field names, `[]` for list elements, and `*` for fields without a schema."""
    keys: tuple[str, ...] | None


def read_list_key_table(data: Any) -> tuple[tuple[ListKeys, ...], tuple[str, ...]]:
    """Parse the setting `merge.list_keys`.

    Example: `{"example.org/Gateway": {"spec/listeners": ["name"], "spec/listeners[]/hosts": []}}`

    Returns:
        The valid entries, and an error message for each invalid entry.
    """
    if not isinstance(data, Mapping):
        return (), (f"must be a mapping, but is {quote_value(data)}; each item must be {_KIND_RULE}",)
    results = [result for kind, lists in data.items() for result in _read_kind(kind, lists)]
    entries = tuple(result for result in results if isinstance(result, ListKeys))
    return entries, tuple(result for result in results if isinstance(result, str))


def apply_list_keys(schema: MergeSchema, entries: Iterable[ListKeys]) -> MergeSchema:
    """Return a copy of the merge schema of a kind with the merge keys in `entries`.

    The merge keys in `entries` replace the merge keys that the schema contains for the same lists.
    """
    for entry in entries:
        schema = _set_keys(schema, entry.steps, entry.keys)
    return schema


def _read_kind(kind: Any, lists: Any) -> Iterator[ListKeys | str]:
    group, _, name = str(kind).rpartition("/")
    if not name or not isinstance(lists, Mapping):
        yield f"{kind}: must be {_KIND_RULE}, but is {quote_value(lists)}"
        return
    for path, keys in lists.items():
        steps = _split_path(str(path))
        if not all(steps) or steps[-1:] == (_ELEMENT,):
            rule = 'must be field names joined by "/", with "[]" after each list before the last field'
            yield f'{kind}: the path {rule}, but is "{path}"'
        elif not _are_valid_keys(keys):
            yield f'{kind}: the keys of "{path}" must be {_KEYS_RULE}, but is {quote_value(keys)}'
        else:
            yield ListKeys(group, name, steps, None if keys is None else tuple(keys))


def _split_path(path: str) -> tuple[str, ...]:
    return tuple(step for part in path.split("/") for step in _split_part(part))


def _split_part(part: str) -> Iterator[str]:
    name = part
    while name.endswith(_ELEMENT):
        name = name.removesuffix(_ELEMENT)
    yield name
    yield from [_ELEMENT] * ((len(part) - len(name)) // len(_ELEMENT))


def _are_valid_keys(keys: Any) -> bool:
    if not isinstance(keys, list | tuple):
        return keys is None
    return all(isinstance(key, str) and key for key in keys) and len(set(keys)) == len(keys)


def _set_keys(schema: MergeSchema, steps: tuple[str, ...], keys: tuple[str, ...] | None) -> MergeSchema:
    if not steps:
        # Mark the schema of an atomic list as complete, so that the merge does not infer the key `name`.
        return replace(schema, keys=keys, is_closed=schema.is_closed or keys is None)
    step, remaining_steps = steps[0], steps[1:]
    if step == _ELEMENT:
        return replace(schema, items=_set_keys(schema.element_schema, remaining_steps, keys))
    if step == _ADDITIONAL_FIELDS:
        return replace(
            schema, additional_fields=_set_keys(schema.find_field(_ADDITIONAL_FIELDS), remaining_steps, keys)
        )
    return replace(schema, fields={**schema.fields, step: _set_keys(schema.find_field(step), remaining_steps, keys)})


# Read the merge schema of `metadata` from ConfigMap, because `metadata` has the same schema in all kinds.
_CONFIG_MAP = ("v1", "ConfigMap")


@dataclass(frozen=True)
class MergeSchemas:
    """Merge schemas of all kinds, and the list keys that the user configured.

    Attributes:
        schemas: Maps (apiVersion, kind) to a merge schema.
        table: The user's list keys. They override the merge schemas.
    """

    schemas: Mapping[tuple[str, str], MergeSchema] = field(default_factory=dict)
    table: tuple[ListKeys, ...] = ()
    _with_keys: dict[tuple[str, str], MergeSchema] = field(default_factory=dict, init=False, compare=False, repr=False)

    def find_schema(self, api_version: str, kind: str) -> MergeSchema:
        """Return the merge schema of a kind. Return `UNKNOWN_SCHEMA` if the kind is unknown."""
        key = (api_version, kind)
        if not self.table:
            return self.schemas.get(key, UNKNOWN_SCHEMA)
        if key not in self._with_keys:
            self._with_keys[key] = self._apply_list_keys(api_version, kind)
        return self._with_keys[key]

    def _apply_list_keys(self, api_version: str, kind: str) -> MergeSchema:
        group, _ = split_api_version(api_version)
        entries = (entry for entry in self.table if (entry.group, entry.kind) == (group, kind))
        return apply_list_keys(self.schemas.get((api_version, kind), UNKNOWN_SCHEMA), entries)

    def with_crds(self, *crds: Mapping[str, Any], compat: bool = False) -> MergeSchemas:
        """Return a copy to which the merge schemas of CustomResourceDefinitions are added.

        The existing merge schema of a kind is not replaced. Other objects and invalid schemas are ignored.

        If `compat` is true, only `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key` define merge keys, as
        in kpt. If `compat` is false, `x-kubernetes-list-type` does too, and the lists in `metadata` have merge keys.
        """
        if not crds:
            return self
        metadata = None if compat else self.schemas.get(_CONFIG_MAP, UNKNOWN_SCHEMA).find_field("metadata")
        schemas = dict(self.schemas)
        for crd in crds:
            for kind, schema in read_crd_merge_schemas(crd, metadata):
                schemas.setdefault(kind, schema)
        return MergeSchemas(schemas, self.table)

    def with_list_keys(self, table: Iterable[ListKeys]) -> MergeSchemas:
        """Return a copy with the additional merge keys in `table`, which override every merge schema.

        If `table` contains a list twice, the last merge keys are used.
        """
        return MergeSchemas(self.schemas, (*self.table, *table))
