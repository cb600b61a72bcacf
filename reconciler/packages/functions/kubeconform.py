"""The functions `kubeconform` and `kubeval`: validate resources against the schemas of their kinds.

The functions use installed schemas and download nothing. The installed schemas contain the built-in kinds of
Kubernetes. The images of the original functions also contain schemas of some cloud providers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from reconciler.api.profile import Profile
from reconciler.krm.schema.validation import (
    SCHEMAS_EXTRA,
    KubernetesSchemas,
    Violation,
    find_schemas_version,
    load_kubernetes_schemas,
)
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.functions.function import (
    FunctionConfig,
    FunctionContext,
    FunctionOutput,
    FunctionResult,
    Item,
    ResultSeverity,
    create_failure,
    read_config_strings,
    read_string_map,
    report_errors_as_failure,
)

_FieldMessage = tuple[str, str]
"""A pair of strings: the path of a field, and the message about the field."""


def format_kubeconform_violations(violations: Sequence[Violation], profile: Profile) -> Iterator[_FieldMessage]:
    """Yield the path and the message of each violation, with the texts of kubeconform.

    If a value has several violations, the profile `compat` reports only "validation failed" for the value, as kpt does.
    """
    if not violations:
        return
    root = _group_violations(violations, 0)
    for part in root.parts if isinstance(root, _Group) else (root,):
        if isinstance(part, Violation):
            yield _join_path(part.path), _format_kubeconform_message(part)
        elif profile == "compat":
            yield _join_path(part.path), "validation failed"
        else:
            yield from ((_join_path(leaf.path), _format_kubeconform_message(leaf)) for leaf in part.leaves)


def format_kubeval_violations(violations: Sequence[Violation], profile: Profile) -> Iterator[_FieldMessage]:
    """Yield the path and the message of each violation, with the texts of kubeval.

    In the profile `compat`, the path of a missing or unknown field is only the name of the field, as in kpt.
    """
    for violation in violations:
        for path, message in _format_kubeval_messages(violation):
            field = path[-1:] if violation.rule in ("required", "unknown") and profile == "compat" else path
            yield _join_path(field) or "(root)", message


@dataclass(frozen=True)
class _Group:
    path: tuple[str | int, ...]
    parts: tuple[Violation | _Group, ...]

    @property
    def leaves(self) -> Iterator[Violation]:
        for part in self.parts:
            yield from part.leaves if isinstance(part, _Group) else (part,)


def _group_violations(violations: Sequence[Violation], depth: int) -> Violation | _Group:
    """Group the violations by the field that contains them, as kpt does. Unknown fields of a mapping come last."""
    direct_violations = [violation for violation in violations if len(violation.path) == depth]
    deeper = (violation for violation in violations if len(violation.path) > depth)
    children = [
        _group_violations(list(group), depth + 1)
        for _, group in groupby(deeper, key=lambda violation: violation.path[depth])
    ]
    in_known_fields = [violation for violation in direct_violations if violation.rule != "unknown"]
    in_unknown_fields = [violation for violation in direct_violations if violation.rule == "unknown"]
    parts = (*in_known_fields, *children, *in_unknown_fields)
    return parts[0] if len(parts) == 1 else _Group(violations[0].path[:depth], parts)


def _format_kubeconform_message(violation: Violation) -> str:
    names = [_quote(name) for name in violation.names]
    match violation.rule:
        case "type":
            return f"got {_get_type_name(violation.value, 'number')}, want {' or '.join(violation.names)}"
        case "required":
            return f"missing {'property' if len(names) == 1 else 'properties'} {', '.join(names)}"
        case "unknown":
            return f"additional properties {', '.join(names)} not allowed"
        case "enum":
            values = [_format_value(json.loads(name)) for name in violation.names]
            return f"value must be {'one of ' if len(values) > 1 else ''}{', '.join(values)}"
        case "one-of":
            return "'oneOf' failed, none matched"
        case "format":
            return f"{_format_value(violation.value)} is not valid {violation.names[0]}"
        case "other":
            return violation.names[0]


def _format_kubeval_messages(violation: Violation) -> Iterator[tuple[tuple[str | int, ...], str]]:
    path, names = violation.path, violation.names
    match violation.rule:
        case "type":
            types = sorted(names, key=lambda name: name == "null")
            expected = types[0] if len(types) == 1 else f"[{','.join(types)}]"
            yield path, f"Invalid type. Expected: {expected}, given: {_get_type_name(violation.value, 'integer')}"
        case "required":
            yield from (((*path, name), f"{name} is required") for name in names)
        case "unknown":
            yield from (((*path, name), f"Additional property {name} is not allowed") for name in names)
        case "enum":
            yield path, f"{_join_path(path)} must be one of the following: {', '.join(names)}"
        case "one-of":
            yield path, "Must validate one and only one schema (oneOf)"
            for alternative in violation.alternative:
                yield from _format_kubeval_messages(alternative)
        case "format":
            yield path, f"Does not match format '{names[0]}'"
        case "other":
            yield path, names[0]


def _get_type_name(value: Any, integer: str) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return integer
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _format_value(value: Any) -> str:
    return _quote(value) if isinstance(value, str) else json.dumps(value)


def _quote(text: str) -> str:
    inner = json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"'{inner}'"


def _join_path(path: tuple[str | int, ...]) -> str:
    return ".".join(map(str, path))


# The schema locations in the images of the original functions. They are replaced by the installed schemas.
_INCLUDED_LOCATIONS = ("default", "/jsonschema", "file:///jsonschema")
# API groups whose schemas are in the original kubeval image, and not in the installed schemas.
_CLOUD_GROUPS = (".cloud.google.com", ".gke.io")
_TRUE, _FALSE = ("true", "1"), ("", "false", "0")

_MessageFormat = Callable[[Sequence[Violation], Profile], Iterator[_FieldMessage]]


@dataclass(frozen=True)
class _ValidationConfig:
    locations: tuple[str, ...]
    skipped: tuple[str, ...]
    ignores_missing: bool
    strict: bool

    @property
    def unreadable_locations(self) -> list[str]:
        return [location for location in self.locations if location.rstrip("/") not in _INCLUDED_LOCATIONS]


@report_errors_as_failure
def kubeconform(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
    """Validate the items. Return the items and an error for each violation, with the messages of kubeconform.

    If no schema exists for the kind of a resource, the results contain a warning. The profile `compat` omits this
    warning, as kpt does.
    """
    return _validate(
        items, config, context, format_kubeconform_violations, "warning" if context.profile == "safe" else None
    )


@report_errors_as_failure
def kubeval(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
    """Validate the items. Return the items and an error for each violation and each missing schema, as kubeval does."""
    return _validate(items, config, context, format_kubeval_violations, "error")


def describe_installed_schemas() -> str:
    """Return the version of the installed schemas. The schemas can change without a new version of this program."""
    return find_schemas_version() or "no schemas"


def _validate(
    items: Sequence[Item],
    config: FunctionConfig | None,
    context: FunctionContext,
    format_messages: _MessageFormat,
    missing_severity: ResultSeverity | None,
) -> FunctionOutput:
    settings = _read_validation_config(config)
    if isinstance(settings, str):
        return create_failure(items, settings)
    schemas = load_kubernetes_schemas(strict=settings.strict)
    if schemas is None:
        return create_failure(
            items, f'no schemas are installed: install the extra "{SCHEMAS_EXTRA}" (`reconciler[{SCHEMAS_EXTRA}]`)'
        )
    if settings.unreadable_locations and len(settings.unreadable_locations) == len(settings.locations):
        return create_failure(
            items,
            f"{_format_unreadable_locations(settings.unreadable_locations)}; remove this field to use the "
            "installed schemas",
        )
    checked = (item for item in items if not _is_skipped(item, settings))
    results = tuple(
        result
        for item in checked
        for result in _validate_item(item, schemas, settings, context, format_messages, missing_severity)
    )
    all_results = (
        (FunctionResult(_format_unreadable_locations(settings.unreadable_locations), "warning"), *results)
        if settings.unreadable_locations
        else results
    )
    return FunctionOutput(
        tuple(items), all_results, has_failed=any(result.severity == "error" for result in all_results)
    )


def _read_validation_config(config: FunctionConfig | None) -> _ValidationConfig | str:
    """Return the configuration of the function, or an error message."""
    # Read `data` of a ConfigMap, and fields at the top level, which the original kubeconform function accepts as well.
    values = read_config_strings((config or {}).get("data"), "data") | read_string_map(config)
    flags = {name: values.get(name, "").lower() for name in ("ignore_missing_schemas", "strict")}
    for name, value in flags.items():
        if value not in (*_TRUE, *_FALSE):
            return f'`{name}` must be "true" or "false", but is "{values[name]}"'
    locations = [values.get("schema_location", ""), *values.get("additional_schema_locations", "").split(",")]
    return _ValidationConfig(
        locations=_strip_names(locations),
        skipped=_strip_names(values.get("skip_kinds", "").split(",")),
        ignores_missing=flags["ignore_missing_schemas"] in _TRUE,
        strict=flags["strict"] in _TRUE,
    )


def _strip_names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.strip() for name in names if name.strip())


def _format_unreadable_locations(locations: Sequence[str]) -> str:
    names = ", ".join(f'"{location}"' for location in locations)
    return f"schema_location: {names} cannot be read, because functions have no network or file access"


def _is_skipped(item: Item, settings: _ValidationConfig) -> bool:
    # Skip Kptfiles, because they are validated when they are read.
    return (
        item.kind == "Kptfile" or item.kind in settings.skipped or f"{item.api_version}/{item.kind}" in settings.skipped
    )


def _validate_item(
    item: Item,
    schemas: KubernetesSchemas,
    settings: _ValidationConfig,
    context: FunctionContext,
    format_messages: _MessageFormat,
    missing_severity: ResultSeverity | None,
) -> Iterator[FunctionResult]:
    resource = (item.api_version, item.kind, item.namespace, item.name)
    violations = schemas.find_violations(item.data)
    if violations is not None:
        for path, message in format_messages(violations, context.profile):
            yield item.create_result(message, "error", path, resource=resource)
    elif missing_severity and not settings.ignores_missing and not (item.is_local_config and context.profile == "safe"):
        severity = "warning" if item.group.endswith(_CLOUD_GROUPS) else missing_severity
        yield item.create_result(_format_missing_schema(item), severity, resource=resource)


def _format_missing_schema(item: Item) -> str:
    return (
        f"no schema is installed for {item.api_version} {item.kind}; "
        "to skip it, set `ignore_missing_schemas` or `skip_kinds` in the function's configuration"
    )
