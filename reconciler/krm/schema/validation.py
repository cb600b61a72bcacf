"""Validation of built-in Kubernetes objects with the JSON schemas of the optional extra `k8s-schemas`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module, metadata
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from reconciler.krm.objects import split_api_version
from reconciler.krm.schema.kubernetes_apis import KubernetesRelease, format_kubernetes_release, parse_kubernetes_release
from reconciler.lazy_dataclasses import dataclass, field

if TYPE_CHECKING:
    import jsonschema_rs

_PACKAGE = "kubernetes-validate"
SCHEMAS_EXTRA = "k8s-schemas"

GroupVersionKind = tuple[str, str, str]
"""(group, version, kind)"""
ViolationRule = Literal["type", "enum", "required", "unknown", "one-of", "format", "other"]


@dataclass(frozen=True)
class Violation:
    """A violation of one schema rule by the value at `path`. The steps of `path` are field names and list indexes."""

    path: tuple[str | int, ...]
    rule: ViolationRule
    names: tuple[str, ...] = ()
    """The details of the violation, which depend on `rule`.

    These are the allowed types or values, the missing or unknown fields, the required format, or a message.
    """
    value: Any = None
    alternative: tuple[Violation, ...] = ()
    """The violations of the first alternative if `rule` is `one-of`; otherwise ()."""


@dataclass(frozen=True)
class KubernetesSchemas:
    """The JSON schemas of one Kubernetes release."""

    uri: str
    registry: jsonschema_rs.Registry = field(repr=False)
    kinds: Mapping[GroupVersionKind, str] = field(repr=False)
    """The name of the schema definition in `uri` for each kind."""
    _validators: dict[str, jsonschema_rs.Validator] = field(default_factory=dict, init=False, compare=False, repr=False)

    def find_violations(self, data: Mapping[str, Any]) -> tuple[Violation, ...] | None:
        """Return the schema violations of an object, in document order.

        Return None if the schemas do not contain its kind.

        If a value has the wrong type, other violations of the same value are not reported.
        """
        name = self.kinds.get(_group_version_kind(data))
        if name is None:
            return None
        return find_violations(self._get_validator(name), data)

    def _get_validator(self, name: str) -> jsonschema_rs.Validator:
        if name not in self._validators:
            schema = {"$ref": f"{self.uri}#/$defs/{name}"}
            validator = import_module("jsonschema_rs").Draft202012Validator
            self._validators[name] = validator(schema, registry=self.registry, validate_formats=True, offline=True)
        return self._validators[name]


def find_violations(validator: jsonschema_rs.Validator, data: Mapping[str, Any]) -> tuple[Violation, ...]:
    """Return the schema violations of an object, in document order.

    If a value has the wrong type, other violations of the same value are not reported.
    """
    instance = _to_json_values(data)
    violations = [_create_violation(error) for error in validator.iter_errors(instance)]
    paths_of_wrong_types = {violation.path for violation in violations if violation.rule == "type"}
    reported = (
        violation
        for violation in violations
        if violation.rule == "type" or not (violation.path in paths_of_wrong_types or _is_allowed_null(violation))
    )
    return tuple(
        sorted(_join_violations(reported), key=lambda violation: _get_document_order(instance, violation.path))
    )


def create_draft4_validator(schema: Mapping[str, Any]) -> jsonschema_rs.Validator:
    """Return a validator for an untrusted schema.

    The validator loads no remote references. It matches regular expressions in linear time.

    Raises:
        ValueError: The schema is invalid.
    """
    rs = import_module("jsonschema_rs")
    validator: jsonschema_rs.Validator = rs.Draft4Validator(schema, pattern_options=rs.RegexOptions(), offline=True)
    return validator


def list_installed_releases() -> tuple[KubernetesRelease, ...]:
    """Return the Kubernetes releases whose schemas are installed, oldest first.

    Return () if the extra `k8s-schemas` is not installed.
    """
    if not find_schemas_version():
        return ()
    folders = (folder.name for folder in _find_schemas_folder().iterdir() if folder.name.endswith("-local"))
    return tuple(sorted(release for name in folders if (release := parse_kubernetes_release(name.partition("-")[0]))))


@cache
def load_kubernetes_schemas(*, strict: bool, release: KubernetesRelease | None = None) -> KubernetesSchemas | None:
    """Return the installed schemas of a Kubernetes release. Return None if they are not installed.

    Args:
        strict: Whether an unknown field is a violation.
        release: The Kubernetes release. None selects the newest installed release.
    """
    selected = release or max(list_installed_releases(), default=None)
    if selected is None or selected not in list_installed_releases():
        return None
    suffix = "-local-strict" if strict else "-local"
    folders = (folder for folder in _find_schemas_folder().iterdir() if folder.name.endswith(suffix))
    newest = max(
        (folder for folder in folders if _parse_version(folder.name)[:2] == selected),
        key=lambda folder: _parse_version(folder.name),
    )
    definitions = json.loads(newest.joinpath("_definitions.json").read_bytes())
    uri = definitions["$id"]
    registry = import_module("jsonschema_rs").Registry([(uri, definitions)])
    return KubernetesSchemas(uri, registry, dict(_iterate_kinds(definitions["$defs"])))


@cache
def find_schemas_version() -> str:
    """Return the versions of `kubernetes-validate` and `jsonschema-rs`. Return "" if one of them is not installed."""
    try:
        return " ".join(f"{name} {metadata.version(name)}" for name in (_PACKAGE, "jsonschema-rs"))
    except metadata.PackageNotFoundError:
        return ""


def _find_schemas_folder() -> Path:
    # Do not use `importlib.resources.files`, because it would import the package with all of its dependencies.
    found = find_spec("kubernetes_validate")
    assert found is not None
    assert found.submodule_search_locations
    return Path(found.submodule_search_locations[0], "kubernetes-json-schema")


def _parse_version(folder: str) -> tuple[int, ...]:
    return tuple(int(part) for part in folder.removeprefix("v").partition("-")[0].split("."))


def _iterate_kinds(definitions: Mapping[str, Any]) -> Iterator[tuple[GroupVersionKind, str]]:
    for name, schema in definitions.items():
        for gvk in schema.get("x-kubernetes-group-version-kind", ()):
            yield (gvk["group"], gvk["version"], gvk["kind"]), name


def _group_version_kind(data: Mapping[str, Any]) -> GroupVersionKind:
    group, version = split_api_version(str(data.get("apiVersion", "")))
    return group, version, str(data.get("kind", ""))


def _create_violation(error: jsonschema_rs.ValidationError) -> Violation:
    path, value = tuple(error.instance_path), error.instance
    match error.kind.name, error.kind.as_dict():
        case "type", {"types": types}:
            return Violation(path, "type", tuple(types), value)
        case "enum", {"options": options}:
            return Violation(path, "enum", tuple(json.dumps(option, ensure_ascii=False) for option in options), value)
        case "required", {"property": name}:
            return Violation(path, "required", (name,))
        case "additionalProperties", {"unexpected": names}:
            return Violation(path, "unknown", tuple(names))
        case "falseSchema", _ if path:
            # Report the field at `path` as an unknown field of its parent object, because the schema `false` forbids
            # this field.
            return Violation(path[:-1], "unknown", (str(path[-1]),))
        case "format", {"format": name}:
            return Violation(path, "format", (name,), value)
        case "oneOf", {"context": [first, *_]}:
            return Violation(path, "one-of", value=value, alternative=tuple(map(_create_violation, first)))
        case _:
            return Violation(path, "other", (error.message,))


def _join_violations(violations: Iterable[Violation]) -> Iterator[Violation]:
    """Yield the violations, but only one violation for all missing fields of an object.

    The violations about the unknown fields of an object are combined in the same way.
    """
    for (path, rule), group in groupby(violations, key=lambda violation: (violation.path, violation.rule)):
        first, *other_violations = group
        if rule in ("required", "unknown"):
            names = tuple(name for violation in (first, *other_violations) for name in violation.names)
            yield Violation(path, rule, names)
        else:
            yield from (first, *other_violations)


def _is_allowed_null(violation: Violation) -> bool:
    # Ignore this violation, because Kubernetes accepts null, but `oneOf` rejects null if several alternatives allow
    # null.
    return violation.rule == "one-of" and violation.value is None


def _get_document_order(instance: Any, path: tuple[str | int, ...]) -> tuple[int, ...]:
    order = []
    for step in path:
        order.append(step if isinstance(step, int) else list(instance).index(step))
        instance = instance[step]
    return tuple(order)


def _to_json_values(value: Any) -> Any:
    """Return a copy with 0.0 instead of Infinity and NaN, because the validator would read Infinity and NaN as null."""
    if isinstance(value, Mapping):
        return {key: _to_json_values(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_to_json_values(child) for child in value]
    return 0.0 if isinstance(value, float) and not math.isfinite(value) else value


class InstalledSchemas:
    """The installed schemas of built-in kinds, for all installed Kubernetes releases."""

    def __init__(self) -> None:
        self._releases = list_installed_releases()

    def find_violations(
        self, release: KubernetesRelease | None, data: Mapping[str, Any]
    ) -> tuple[Violation, ...] | None:
        """Return the schema violations of an object. Return None if no schema for its kind is installed.

        If `release` is None, use the newest installed Kubernetes release.
        """
        schemas = load_kubernetes_schemas(strict=True, release=release) if self.is_complete(release) else None
        return schemas.find_violations(data) if schemas else None

    def is_complete(self, release: KubernetesRelease | None) -> bool:
        """Return whether the schemas of a Kubernetes release are installed.

        If `release` is None, any release is sufficient.
        """
        return bool(self._releases) if release is None else release in self._releases

    def describe_release(self, release: KubernetesRelease | None) -> str:
        """Return the name of the schemas that validate objects, e.g. "Kubernetes 1.31". Messages contain this name.

        Return "the list of removed API versions" if no schemas are installed.
        """
        selected = release or max(self._releases, default=None)
        return f"Kubernetes {format_kubernetes_release(selected)}" if selected else "the list of removed API versions"

    def explain_missing_schema(self, release: KubernetesRelease | None) -> str:
        """Return the reason why no schema for a built-in kind is available, and the next step for the user."""
        if not self._releases:
            return f'no schemas are installed; install the extra "reconciler[{SCHEMAS_EXTRA}]", or use --schemas DIR'
        if release is None:
            return (
                "no installed Kubernetes release contains the API version; set --kubernetes-version, or the annotation"
                " reconciler.dev/kubernetes-version of the cluster"
            )
        oldest, newest = format_kubernetes_release(self._releases[0]), format_kubernetes_release(self._releases[-1])
        return (
            f"the extra {SCHEMAS_EXTRA} contains the schemas of Kubernetes {oldest} to {newest}, but not of"
            f" {format_kubernetes_release(release)}; use --schemas DIR"
        )
