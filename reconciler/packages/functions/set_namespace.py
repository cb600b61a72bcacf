"""set-namespace: one namespace for the resources of a package (kpt.md 15.2).

Each generation of the upstream image looks at other fields. In `safe` all tags up to v0.4.1 behave as v0.4.1 and
newer ones as v0.4.2, both without upstream's faults (D28).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reconciler.krm.yaml import Path
from reconciler.packages.context import is_context
from reconciler.packages.functions.depends_on import DEPENDS_ON
from reconciler.packages.functions.fieldspec import FieldSpec, read_field_specs
from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    Result,
    Version,
    charged,
    config_fields,
    config_strings,
    reports_faults,
    value_at,
)
from reconciler.packages.functions.limits import Budget, text_bytes
from reconciler.packages.functions.scopes import scope_of
from reconciler.packages.resource import UPSTREAM_IDENTIFIER

_DEFAULT = "default"
_ACCEPTED = "`ConfigMap.v1` or `SetNamespace.v1alpha1.fn.kpt.dev`"
_CRD_SERVICE = "spec/conversion/webhook/clientConfig/service?/namespace"
_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class _Wish:
    namespace: str
    matcher: str = ""
    fields: tuple[FieldSpec, ...] = ()


@dataclass(frozen=True)
class _Generation:
    """What one generation of the function looks at."""

    local_config: bool = False
    custom_kinds: bool = False
    """Whether kinds of unknown scope without a namespace get one."""
    subjects: str = "accounts"
    """Which role binding subjects: `default`, `package`, `namespaced`, `cluster` or `accounts`."""
    creates_service: bool = False
    """Whether the service namespace of CRDs and APIServices is made where it is missing."""
    one_namespace: bool = False
    """Whether only one old namespace may be replaced."""
    origins: bool = False
    """Whether the upstream identity counts, and depends-on annotations follow."""
    fills_in_default: bool = False
    """Whether `default` is written wherever a namespace is missing and stays as it is (D28)."""


_SAFE_OLD = _Generation()
_SAFE_NEW = replace(_SAFE_OLD, origins=True)
_COMPAT: tuple[tuple[Version, _Generation], ...] = (
    ((0, 4, 2), _Generation(subjects="cluster", creates_service=True, origins=True, fills_in_default=True)),
    ((0, 4, 0), _Generation(local_config=True, subjects="namespaced")),
    ((0, 3, 0), _Generation(subjects="cluster", one_namespace=True)),
    ((0, 2, 0), _Generation(local_config=True, custom_kinds=True, subjects="package")),
    ((0, 0, 0), _Generation(local_config=True, custom_kinds=True, subjects="default")),
)


@dataclass(frozen=True)
class _Slot:
    """A field that holds a namespace."""

    item: Item
    path: Path
    current: str
    origin: str


@reports_faults
def set_namespace(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items in the wanted namespace; a configuration error is an error result (upstream exits 0)."""
    wish = _wish(config)
    if isinstance(wish, str):
        return Output(tuple(items), (Result(wish, "error"),))
    generation = _generation(context)
    context.budget.spend(len(items) * (1 + len(wish.fields)))
    seen = [item for item in items if generation.local_config or not item.is_local_config]
    slots = [slot for item in seen for slot in _slots(item, seen, generation, wish)]
    refusal = _refusal(seen, slots, generation, wish)
    if refusal:
        return Output(tuple(items), (Result(refusal, "error"),))
    matcher = _only_namespace(seen, slots, wish) if generation.one_namespace else wish.matcher
    if generation.one_namespace and not matcher:
        return Output(tuple(items), _summary([], [], wish, generation))
    changes = [slot for slot in slots if _changes(slot, wish.namespace, matcher, generation)]
    depending = _depending(seen, wish.namespace, matcher, context) if generation.origins else []
    written = [replace(slot, current=wish.namespace) for slot in changes] + depending
    if generation.fills_in_default:
        missing = [slot for slot in slots if not slot.current and slot not in changes]
        written += [replace(slot, current=_DEFAULT) for slot in missing]
    return Output(_applied(items, written, context.budget), _summary(changes, depending, wish, generation))


def _generation(context: FunctionContext) -> _Generation:
    if context.profile == "safe":
        return _SAFE_NEW if context.version >= (0, 4, 2) else _SAFE_OLD
    return next(generation for since, generation in _COMPAT if context.version >= since)


def _wish(config: Config | None) -> _Wish | str:
    """Return what the configuration asks for, or what is wrong with it."""
    if not config:
        return f"FunctionConfig is missing. Expect {_ACCEPTED}"
    kind, api_version = config.get("kind"), config.get("apiVersion")
    if (api_version, kind) == ("v1", "ConfigMap"):
        data = config_strings(config.get("data"), "data", strict=True)
        namespace = data.get("namespace") or (data.get("name", "") if is_context(config) else "")
        field = "data.name" if is_context(config) else "data.namespace"
    elif (api_version, kind) == ("fn.kpt.dev/v1alpha1", "SetNamespace"):
        data = config_fields(config, "namespace", "namespaceMatcher")
        namespace, field = data["namespace"], "namespace"
    else:
        return f"unknown functionConfig Kind={kind} ApiVersion={api_version}, expect {_ACCEPTED}"
    if not namespace:
        return f"`{field}` should not be empty"
    fields = read_field_specs(config.get("additionalNamespaceFields"))
    return _Wish(namespace, data.get("namespaceMatcher", ""), fields)


def _slots(item: Item, seen: Sequence[Item], generation: _Generation, wish: _Wish) -> Iterator[_Slot]:
    for path in _paths(item, seen, generation, wish):
        current = value_at(item.data, path)
        yield _Slot(item, path, current if isinstance(current, str) else "", _origin(item, path))


def _paths(item: Item, seen: Sequence[Item], generation: _Generation, wish: _Wish) -> Iterator[Path]:
    create = generation.creates_service
    match (item.group, item.kind):
        case ("", "Namespace"):
            yield ("metadata", "name")
        case ("apiextensions.k8s.io", "CustomResourceDefinition"):
            path = _CRD_SERVICE.replace("?", "") if create else _CRD_SERVICE
            yield from FieldSpec(path, create=create).targets(item)
        case ("apiregistration.k8s.io", "APIService"):
            yield from FieldSpec(f"spec/service{'' if create else '?'}/namespace", create=True).targets(item)
        case (_, "RoleBinding" | "ClusterRoleBinding"):
            yield from _subjects(item, seen, generation, wish)
    if _is_placed(item, generation):
        yield ("metadata", "namespace")
    for spec in wish.fields:
        yield from spec.targets(item)


def _is_placed(item: Item, generation: _Generation) -> bool:
    match scope_of(item):
        case "namespaced":
            return True
        case "cluster":
            return False
        case _:
            return bool(item.namespace) or (generation.custom_kinds and item.kind != "Kptfile")


def _subjects(item: Item, seen: Sequence[Item], generation: _Generation, wish: _Wish) -> Iterator[Path]:
    if item.group != _RBAC or (generation.subjects == "cluster" and item.kind == "RoleBinding"):
        return
    accounts = {other.name for other in seen if other.kind == "ServiceAccount"}
    subjects = item.data.get("subjects")
    for index, subject in enumerate(subjects if isinstance(subjects, list) else []):
        if isinstance(subject, dict) and _is_ours(subject, generation.subjects, accounts, wish.matcher):
            yield ("subjects", index, "namespace")


def _is_ours(subject: Config, rule: str, accounts: set[str], matcher: str) -> bool:
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


def _origin(item: Item, path: Path) -> str:
    """Return the namespace that upstream gave the resource, "" where it does not say."""
    group_kind_ns_name = str(item.annotations.get(UPSTREAM_IDENTIFIER, "")).split("|")
    if len(group_kind_ns_name) != 4 or path[0] != "metadata":
        return ""
    return group_kind_ns_name[3] if path == ("metadata", "name") else group_kind_ns_name[2]


def _refusal(seen: Sequence[Item], slots: Sequence[_Slot], generation: _Generation, wish: _Wish) -> str:
    """Return why the namespaces cannot be told apart, or ""."""
    if generation.origins and not wish.matcher:
        origins = sorted({slot.origin for slot in slots if slot.path == ("metadata", "namespace") and slot.origin})
        if len(origins) > 1:
            return (
                "unable to use origin `namespace` to match. expect a single upstream namespace, "
                f"found [{' '.join(origins)}]. please switch to use `namespaceMatcher`"
                "to specify the namespace value you want to change"  # upstream has no blank here either
            )
    if generation.one_namespace and len(_candidates(seen, slots, wish)) > 1:
        return f"more than one namespace is in use: {', '.join(_candidates(seen, slots, wish))}"
    return ""


def _candidates(seen: Sequence[Item], slots: Sequence[_Slot], wish: _Wish) -> list[str]:
    declared = [item.name for item in seen if (item.group, item.kind) == ("", "Namespace")]
    if len(declared) == 1:
        return declared
    return [wish.matcher] if wish.matcher else sorted({slot.current for slot in slots if slot.current})


def _only_namespace(seen: Sequence[Item], slots: Sequence[_Slot], wish: _Wish) -> str:
    return next(iter(_candidates(seen, slots, wish)), "")


def _changes(slot: _Slot, namespace: str, matcher: str, generation: _Generation) -> bool:
    current = slot.current or (_DEFAULT if generation.fills_in_default else "")
    return current != namespace and matcher in ("", current, slot.origin)


def _depending(seen: Sequence[Item], namespace: str, matcher: str, context: FunctionContext) -> list[_Slot]:
    """Return the depends-on annotations that name a resource whose namespace changes; `current` is the new text."""
    known = {_reference(item) for item in seen if scope_of(item) != "cluster"}
    slots = []
    for item in seen:
        old = item.annotations.get(DEPENDS_ON)
        if isinstance(old, str):
            entries = old.split(",") if context.profile == "safe" else [old]
            context.budget.create(
                sum(map(text_bytes, entries)) + len(entries) * text_bytes(namespace),
                f"{item.file}: {item.kind} {item.name}: the annotation {DEPENDS_ON}",
                old,
            )
            new = ",".join(_followed(entry, known, namespace, matcher) for entry in entries)
            slots += [_Slot(item, ("metadata", "annotations", DEPENDS_ON), new, old)] if new != old else []
    return slots


def _followed(entry: str, known: set[str], namespace: str, matcher: str) -> str:
    parts = entry.strip().split("/")
    if entry.strip() not in known or matcher not in ("", parts[2]):
        return entry
    return entry.replace(f"/namespaces/{parts[2]}/", f"/namespaces/{namespace}/", 1)


def _reference(item: Item) -> str:
    return f"{item.group}/namespaces/{item.namespace or _DEFAULT}/{item.kind}/{item.name}"


def _applied(items: Sequence[Item], written: Sequence[_Slot], budget: Budget) -> tuple[Item, ...]:
    """Return the items with every slot's `current` at its place."""
    values: dict[Item, list[tuple[Path, str]]] = {}
    for slot in written:
        values.setdefault(slot.item, []).append((slot.path, slot.current))
    return tuple(item.with_values(charged(values.get(item, ()), item, budget)) for item in items)


def _summary(
    changes: Sequence[_Slot], depending: Sequence[_Slot], wish: _Wish, generation: _Generation
) -> tuple[Result, ...]:
    if generation.one_namespace:
        return (Result("namespace updated"),)
    old = sorted({slot.current or _DEFAULT for slot in changes})
    counted = f'namespace [{" ".join(old)}] updated to "{wish.namespace}", {len(changes)} value(s) changed'
    message = counted if changes else f'all matching namespaces are already "{wish.namespace}". no value changed'
    if not generation.origins:
        return (Result(message),)
    unchanged = "all `depends-on` annotations are up-to-date. no `namespace` changed"
    moved = sorted({slot.origin.strip().split("/")[2] for slot in depending})
    followed = f'`depends-on` annotation namespace [{" ".join(moved)}] updated to "{wish.namespace}", '
    return Result(message), Result(f"{followed}{len(depending)} value(s) changed" if depending else unchanged)
