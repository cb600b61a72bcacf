"""The function `set-namespace`: set one namespace in all resources of a package.

The versions of the original function change different fields. In the profile `safe`, versions up to v0.4.1 behave like
v0.4.1, and later versions like v0.4.2. The profile `safe` also fixes defects of these versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.api.functions import SetNamespace
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.functions.field_specs import FieldSpec, convert_field_specs, get_resource_scope
from reconciler.packages.functions.function import (
    FunctionConfig,
    FunctionContext,
    FunctionOutput,
    FunctionResult,
    FunctionVersion,
    Item,
    charge_values,
    get_value_at,
    read_config_object,
    read_config_strings,
    report_errors_as_failure,
)
from reconciler.packages.functions.limits import FunctionBudget, estimate_text_bytes
from reconciler.packages.functions.name_references import DEPENDS_ON
from reconciler.packages.package_context import is_package_context
from reconciler.packages.resource import UPSTREAM_IDENTIFIER

_DEFAULT = "default"
_ACCEPTED = "`ConfigMap.v1` or `SetNamespace.v1alpha1.fn.kpt.dev`"
_CRD_SERVICE = "spec/conversion/webhook/clientConfig/service?/namespace"
_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class _NamespaceConfig:
    namespace: str
    matcher: str = ""
    fields: tuple[FieldSpec, ...] = ()


@dataclass(frozen=True)
class _Behavior:
    """The behavior of one version of the function: which resources and fields it changes."""

    local_config: bool = False
    custom_kinds: bool = False
    """Whether the namespace is also set in custom resources without a namespace."""
    subjects: str = "accounts"
    """The rule that selects the subjects of role bindings to change (see `_matches_subject`)."""
    creates_service: bool = False
    """Whether to create a missing namespace field of the service in a CRD or APIService."""
    one_namespace: bool = False
    """Whether only one namespace can be replaced. Several different namespaces are then an error."""
    origins: bool = False
    """Whether resources are also selected by their upstream namespace, and not only by their current namespace.

    If true, the namespaces in annotations `depends-on` are updated too.
    """
    fills_in_default: bool = False
    """Whether to write `default` to empty namespace fields that do not get the configured namespace."""


_SAFE_OLD = _Behavior()
_SAFE_NEW = replace(_SAFE_OLD, origins=True)
_COMPAT: tuple[tuple[FunctionVersion, _Behavior], ...] = (
    ((0, 4, 2), _Behavior(subjects="cluster", creates_service=True, origins=True, fills_in_default=True)),
    ((0, 4, 0), _Behavior(local_config=True, subjects="namespaced")),
    ((0, 3, 0), _Behavior(subjects="cluster", one_namespace=True)),
    ((0, 2, 0), _Behavior(local_config=True, custom_kinds=True, subjects="package")),
    ((0, 0, 0), _Behavior(local_config=True, custom_kinds=True, subjects="default")),
)


@dataclass(frozen=True)
class _Slot:
    """A field that contains a namespace.

    Attributes:
        current: The current namespace, or "" if the field is missing.
        origin: The namespace of the upstream resource, or "" if it is unknown.
    """

    item: Item
    path: DataPath
    current: str
    origin: str


@report_errors_as_failure
def set_namespace(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
    """Set the configured namespace in the items.

    For an invalid configuration, the output contains a result with the severity `error`, but is not marked as failed.
    The original function also exits with 0 in this case.
    """
    settings = _read_namespace_config(config)
    if isinstance(settings, str):
        return FunctionOutput(tuple(items), (FunctionResult(settings, "error"),))
    behavior = _select_behavior(context)
    context.budget.charge_steps(len(items) * (1 + len(settings.fields)))
    visible_items = [item for item in items if behavior.local_config or not item.is_local_config]
    slots = [slot for item in visible_items for slot in _find_slots(item, visible_items, behavior, settings)]
    ambiguity = _find_ambiguity(visible_items, slots, behavior, settings)
    if ambiguity:
        return FunctionOutput(tuple(items), (FunctionResult(ambiguity, "error"),))
    matcher = _get_single_namespace(visible_items, slots, settings) if behavior.one_namespace else settings.matcher
    if behavior.one_namespace and not matcher:
        return FunctionOutput(tuple(items), _build_summaries([], [], settings, behavior))
    changes = [slot for slot in slots if _should_change(slot, settings.namespace, matcher, behavior)]
    depends_on_changes = (
        _find_depends_on_changes(visible_items, settings.namespace, matcher, context) if behavior.origins else []
    )
    new_slots = [replace(slot, current=settings.namespace) for slot in changes] + depends_on_changes
    if behavior.fills_in_default:
        empty_slots = [slot for slot in slots if not slot.current and slot not in changes]
        new_slots += [replace(slot, current=_DEFAULT) for slot in empty_slots]
    return FunctionOutput(
        _apply_slots(items, new_slots, context.budget),
        _build_summaries(changes, depends_on_changes, settings, behavior),
    )


def _select_behavior(context: FunctionContext) -> _Behavior:
    if context.profile == "safe":
        return _SAFE_NEW if context.version >= (0, 4, 2) else _SAFE_OLD
    return next(behavior for since, behavior in _COMPAT if context.version >= since)


def _read_namespace_config(config: FunctionConfig | None) -> _NamespaceConfig | str:
    """Return the configuration of the function, or an error message."""
    if not config:
        return f"FunctionConfig is missing. Expect {_ACCEPTED}"
    kind, api_version = config.get("kind"), config.get("apiVersion")
    if (api_version, kind) == ("v1", "ConfigMap"):
        data = read_config_strings(config.get("data"), "data", strict=True)
        namespace = data.get("namespace") or (data.get("name", "") if is_package_context(config) else "")
        field = "data.name" if is_package_context(config) else "data.namespace"
        settings = SetNamespace(namespace=namespace, namespace_matcher=data.get("namespaceMatcher", ""))
    elif (api_version, kind) == ("fn.kpt.dev/v1alpha1", "SetNamespace"):
        settings, field = read_config_object(SetNamespace, config), "namespace"
    else:
        return f"unknown functionConfig Kind={kind} ApiVersion={api_version}, expect {_ACCEPTED}"
    if not settings.namespace:
        return f"`{field}` should not be empty"
    fields = convert_field_specs(settings.additional_namespace_fields)
    return _NamespaceConfig(settings.namespace, settings.namespace_matcher, fields)


def _find_slots(
    item: Item, visible_items: Sequence[Item], behavior: _Behavior, settings: _NamespaceConfig
) -> Iterator[_Slot]:
    for path in _find_paths(item, visible_items, behavior, settings):
        current_value = get_value_at(item.data, path)
        yield _Slot(
            item, path, current_value if isinstance(current_value, str) else "", _get_upstream_value(item, path)
        )


def _find_paths(
    item: Item, visible_items: Sequence[Item], behavior: _Behavior, settings: _NamespaceConfig
) -> Iterator[DataPath]:
    create = behavior.creates_service
    match (item.group, item.kind):
        case ("", "Namespace"):
            yield ("metadata", "name")
        case ("apiextensions.k8s.io", "CustomResourceDefinition"):
            path = _CRD_SERVICE.replace("?", "") if create else _CRD_SERVICE
            yield from FieldSpec(path, create=create).find_paths(item)
        case ("apiregistration.k8s.io", "APIService"):
            yield from FieldSpec(f"spec/service{'' if create else '?'}/namespace", create=True).find_paths(item)
        case (_, "RoleBinding" | "ClusterRoleBinding"):
            yield from _find_subjects(item, visible_items, behavior, settings)
    if _has_namespace_field(item, behavior):
        yield ("metadata", "namespace")
    for spec in settings.fields:
        yield from spec.find_paths(item)


def _has_namespace_field(item: Item, behavior: _Behavior) -> bool:
    match get_resource_scope(item):
        case "namespaced":
            return True
        case "cluster":
            return False
        case _:
            return bool(item.namespace) or (behavior.custom_kinds and item.kind != "Kptfile")


def _find_subjects(
    item: Item, visible_items: Sequence[Item], behavior: _Behavior, settings: _NamespaceConfig
) -> Iterator[DataPath]:
    if item.group != _RBAC or (behavior.subjects == "cluster" and item.kind == "RoleBinding"):
        return
    accounts = {other.name for other in visible_items if other.kind == "ServiceAccount"}
    subjects = item.data.get("subjects")
    for index, subject in enumerate(subjects if isinstance(subjects, list) else []):
        if isinstance(subject, dict) and _matches_subject(subject, behavior.subjects, accounts, settings.matcher):
            yield ("subjects", index, "namespace")


def _matches_subject(subject: Mapping[str, Any], rule: str, accounts: set[str], matcher: str) -> bool:
    namespace = subject.get("namespace")
    match rule:
        case "default":
            return subject.get("name") == _DEFAULT
        case "package":
            is_account = subject.get("kind") == "ServiceAccount" and subject.get("name") in accounts
            return is_account or subject.get("name") == _DEFAULT
        case "accounts":
            return subject.get("kind") == "ServiceAccount" and bool(namespace) and matcher in ("", namespace)
        case _:
            return "namespace" in subject


def _get_upstream_value(item: Item, path: DataPath) -> str:
    """Return the upstream namespace of a resource, or the upstream name of a Namespace. Return "" if this name is
    unknown.

    The annotation `internal.kpt.dev/upstream-identifier` contains this value.
    """
    group_kind_ns_name = str(item.annotations.get(UPSTREAM_IDENTIFIER, "")).split("|")
    if len(group_kind_ns_name) != 4 or path[0] != "metadata":
        return ""
    return group_kind_ns_name[3] if path == ("metadata", "name") else group_kind_ns_name[2]


def _find_ambiguity(
    visible_items: Sequence[Item], slots: Sequence[_Slot], behavior: _Behavior, settings: _NamespaceConfig
) -> str:
    """Return an error message if there are several old namespaces and only one can be replaced. Otherwise return ""."""
    if behavior.origins and not settings.matcher:
        origins = sorted({slot.origin for slot in slots if slot.path == ("metadata", "namespace") and slot.origin})
        if len(origins) > 1:
            return (
                "unable to use origin `namespace` to match. expect a single upstream namespace, "
                f"found [{' '.join(origins)}]. please switch to use `namespaceMatcher`"
                "to specify the namespace value you want to change"  # Omit the space, as in the message of kpt.
            )
    if behavior.one_namespace and len(_list_candidates(visible_items, slots, settings)) > 1:
        return f"more than one namespace is in use: {', '.join(_list_candidates(visible_items, slots, settings))}"
    return ""


def _list_candidates(visible_items: Sequence[Item], slots: Sequence[_Slot], settings: _NamespaceConfig) -> list[str]:
    declared = [item.name for item in visible_items if (item.group, item.kind) == ("", "Namespace")]
    if len(declared) == 1:
        return declared
    return [settings.matcher] if settings.matcher else sorted({slot.current for slot in slots if slot.current})


def _get_single_namespace(visible_items: Sequence[Item], slots: Sequence[_Slot], settings: _NamespaceConfig) -> str:
    return next(iter(_list_candidates(visible_items, slots, settings)), "")


def _should_change(slot: _Slot, namespace: str, matcher: str, behavior: _Behavior) -> bool:
    current_namespace = slot.current or (_DEFAULT if behavior.fills_in_default else "")
    return current_namespace != namespace and matcher in ("", current_namespace, slot.origin)


def _find_depends_on_changes(
    visible_items: Sequence[Item], namespace: str, matcher: str, context: FunctionContext
) -> list[_Slot]:
    """Return a slot for each annotation `depends-on` that contains a namespace to change.

    In these slots, `current` is the new annotation, and `origin` is the old annotation.
    """
    namespaced_entries = {_format_entry(item) for item in visible_items if get_resource_scope(item) != "cluster"}
    slots = []
    for item in visible_items:
        annotation = item.annotations.get(DEPENDS_ON)
        if isinstance(annotation, str):
            entries = annotation.split(",") if context.profile == "safe" else [annotation]
            context.budget.charge_output(
                sum(map(estimate_text_bytes, entries)) + len(entries) * estimate_text_bytes(namespace),
                f"{item.file}: {item.kind} {item.name}: the annotation {DEPENDS_ON}",
                annotation,
            )
            changed = ",".join(_change_entry(entry, namespaced_entries, namespace, matcher) for entry in entries)
            slots += (
                [_Slot(item, ("metadata", "annotations", DEPENDS_ON), changed, annotation)]
                if changed != annotation
                else []
            )
    return slots


def _change_entry(entry: str, namespaced_entries: set[str], namespace: str, matcher: str) -> str:
    parts = entry.strip().split("/")
    if entry.strip() not in namespaced_entries or matcher not in ("", parts[2]):
        return entry
    return entry.replace(f"/namespaces/{parts[2]}/", f"/namespaces/{namespace}/", 1)


def _format_entry(item: Item) -> str:
    return f"{item.group}/namespaces/{item.namespace or _DEFAULT}/{item.kind}/{item.name}"


def _apply_slots(items: Sequence[Item], slots: Sequence[_Slot], budget: FunctionBudget) -> tuple[Item, ...]:
    """Write the value `current` of each slot to its field. Return all items."""
    values: dict[Item, list[tuple[DataPath, str]]] = {}
    for slot in slots:
        values.setdefault(slot.item, []).append((slot.path, slot.current))
    return tuple(item.with_values(charge_values(values.get(item, ()), item, budget)) for item in items)


def _build_summaries(
    changes: Sequence[_Slot], depends_on_changes: Sequence[_Slot], settings: _NamespaceConfig, behavior: _Behavior
) -> tuple[FunctionResult, ...]:
    if behavior.one_namespace:
        return (FunctionResult("namespace updated"),)
    old_namespaces = sorted({slot.current or _DEFAULT for slot in changes})
    summary = (
        f'namespace [{" ".join(old_namespaces)}] updated to "{settings.namespace}", {len(changes)} value(s) changed'
    )
    message = summary if changes else f'all matching namespaces are already "{settings.namespace}". no value changed'
    if not behavior.origins:
        return (FunctionResult(message),)
    unchanged_message = "all `depends-on` annotations are up-to-date. no `namespace` changed"
    moved_namespaces = sorted({slot.origin.strip().split("/")[2] for slot in depends_on_changes})
    depends_on_summary = (
        f'`depends-on` annotation namespace [{" ".join(moved_namespaces)}] updated to "{settings.namespace}", '
    )
    return FunctionResult(message), FunctionResult(
        f"{depends_on_summary}{len(depends_on_changes)} value(s) changed" if depends_on_changes else unchanged_message
    )
