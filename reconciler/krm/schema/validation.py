"""Validation: what is wrong with an object of Kubernetes' own kinds, by the schemas of an extra, `k8s-schemas`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, metadata, resources
from importlib.resources.abc import Traversable
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from reconciler.krm.identity import split_api_version
from reconciler.krm.schema.api_removals import Release, read_release

if TYPE_CHECKING:
    import jsonschema_rs

_PACKAGE = "kubernetes-validate"
EXTRA = "k8s-schemas"

Kind = tuple[str, str, str]
"""group, version, kind"""
Rule = Literal["type", "enum", "required", "unknown", "one-of", "format", "other"]


@dataclass(frozen=True)
class Violation:
    """One rule that the value at a path breaks; the path's steps are field names and indices."""

    path: tuple[str | int, ...]
    rule: Rule
    names: tuple[str, ...] = ()
    """Types or values that are allowed, fields that are missing or unknown, the format, or another rule in words."""
    value: Any = None
    alternative: tuple[Violation, ...] = ()
    """Of `one-of`: what the first alternative says."""


@dataclass(frozen=True)
class KubernetesSchemas:
    """The schemas of one release of Kubernetes."""

    uri: str
    registry: jsonschema_rs.Registry = field(repr=False)
    kinds: Mapping[Kind, str] = field(repr=False)
    """Names of definitions below the URI."""
    _validators: dict[str, jsonschema_rs.Validator] = field(default_factory=dict, init=False, compare=False, repr=False)

    def violations(self, data: Mapping[str, Any]) -> tuple[Violation, ...] | None:
        """Return what is wrong with an object, in the order of its text; None when its kind has no schema.

        Of a value of the wrong type nothing else is said.
        """
        name = self.kinds.get(_kind(data))
        if name is None:
            return None
        return violations_of(self._validator(name), data)

    def _validator(self, name: str) -> jsonschema_rs.Validator:
        if name not in self._validators:
            schema = {"$ref": f"{self.uri}#/$defs/{name}"}
            validator = import_module("jsonschema_rs").Draft202012Validator
            self._validators[name] = validator(schema, registry=self.registry, validate_formats=True, offline=True)
        return self._validators[name]


def violations_of(validator: jsonschema_rs.Validator, data: Mapping[str, Any]) -> tuple[Violation, ...]:
    """Return what a validator says of an object, in the order of its text; nothing more of a value of a wrong type."""
    instance = _as_json(data)
    found = [_violation(error) for error in validator.iter_errors(instance)]
    mistyped = {violation.path for violation in found if violation.rule == "type"}
    told = (one for one in found if one.rule == "type" or not (one.path in mistyped or _is_allowed_null(one)))
    return tuple(sorted(_joined(told), key=lambda violation: _place(instance, violation.path)))


def draft4_validator(schema: Mapping[str, Any]) -> jsonschema_rs.Validator:
    """Return a validator of a schema that anybody may have written: nothing is fetched, patterns take linear time.

    Raises ValueError for what is no schema.
    """
    rs = import_module("jsonschema_rs")
    validator: jsonschema_rs.Validator = rs.Draft4Validator(schema, pattern_options=rs.RegexOptions(), offline=True)
    return validator


def installed_releases() -> tuple[Release, ...]:
    """Return the releases of Kubernetes whose schemas are installed, oldest first; none without the extra."""
    if not schemas_version():
        return ()
    folders = (folder.name for folder in _root().iterdir() if folder.name.endswith("-local"))
    return tuple(sorted(release for name in folders if (release := read_release(name.partition("-")[0]))))


@cache
def kubernetes_schemas(*, strict: bool, release: Release | None = None) -> KubernetesSchemas | None:
    """Return the installed schemas of a release, else the newest; None where they are not installed.

    `strict` ones know no fields but their own.
    """
    wanted = release or max(installed_releases(), default=None)
    if wanted is None or wanted not in installed_releases():
        return None
    suffix = "-local-strict" if strict else "-local"
    folders = (folder for folder in _root().iterdir() if folder.name.endswith(suffix))
    newest = max((one for one in folders if _minor(one.name)[:2] == wanted), key=lambda one: _minor(one.name))
    definitions = json.loads(newest.joinpath("_definitions.json").read_bytes())
    uri = definitions["$id"]
    registry = import_module("jsonschema_rs").Registry([(uri, definitions)])
    return KubernetesSchemas(uri, registry, dict(_kinds(definitions["$defs"])))


@cache
def schemas_version() -> str:
    """Return which schemas and which validator are installed, "" where one is missing."""
    try:
        return " ".join(f"{name} {metadata.version(name)}" for name in (_PACKAGE, "jsonschema-rs"))
    except metadata.PackageNotFoundError:
        return ""


def _root() -> Traversable:
    return resources.files("kubernetes_validate").joinpath("kubernetes-json-schema")


def _minor(folder: str) -> tuple[int, ...]:
    return tuple(int(part) for part in folder.removeprefix("v").partition("-")[0].split("."))


def _kinds(definitions: Mapping[str, Any]) -> Iterator[tuple[Kind, str]]:
    for name, schema in definitions.items():
        for known in schema.get("x-kubernetes-group-version-kind", ()):
            yield (known["group"], known["version"], known["kind"]), name


def _kind(data: Mapping[str, Any]) -> Kind:
    group, version = split_api_version(str(data.get("apiVersion", "")))
    return group, version, str(data.get("kind", ""))


def _violation(error: jsonschema_rs.ValidationError) -> Violation:
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
            # what an object gets that may have no fields at all
            return Violation(path[:-1], "unknown", (str(path[-1]),))
        case "format", {"format": name}:
            return Violation(path, "format", (name,), value)
        case "oneOf", {"context": [first, *_]}:
            return Violation(path, "one-of", value=value, alternative=tuple(map(_violation, first)))
        case _:
            return Violation(path, "other", (error.message,))


def _joined(violations: Iterable[Violation]) -> Iterator[Violation]:
    """Yield the violations, the fields that one object lacks or must not have as one."""
    for (path, rule), same in groupby(violations, key=lambda violation: (violation.path, violation.rule)):
        first, *others = same
        if rule in ("required", "unknown"):
            names = tuple(name for violation in (first, *others) for name in violation.names)
            yield Violation(path, rule, names)
        else:
            yield from (first, *others)


def _is_allowed_null(violation: Violation) -> bool:
    # two alternatives that both allow null do not forbid it
    return violation.rule == "one-of" and violation.value is None


def _place(instance: Any, path: tuple[str | int, ...]) -> tuple[int, ...]:
    place = []
    for step in path:
        place.append(step if isinstance(step, int) else list(instance).index(step))
        instance = instance[step]
    return tuple(place)


def _as_json(value: Any) -> Any:
    """Return plain data as JSON has it; .inf and .nan remain numbers, which the validator would take for null."""
    if isinstance(value, Mapping):
        return {key: _as_json(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_as_json(child) for child in value]
    return 0.0 if isinstance(value, float) and not math.isfinite(value) else value
