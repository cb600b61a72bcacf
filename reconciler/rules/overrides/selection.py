"""Policies that choose their resources themselves: resourceSelectors (kubeadmiral 12)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from reconciler.krm.identity import split_api_version
from reconciler.krm.selectors import read_label_selector
from reconciler.packages.resource import Described
from reconciler.rules.fields import Fields, shown
from reconciler.rules.overrides.model import ResourceSelector

_FIELDS = ("apiVersion", "kind", "namespace", "name", "labelSelector")


def read_selectors(spec: Fields, namespace: str) -> tuple[ResourceSelector, ...]:
    """Return what the policy of a namespace, "" for none, says it is for; nothing is chosen without any."""
    return tuple(_read_selector(one, namespace) for one in spec.mappings("resourceSelectors", _FIELDS))


def _read_selector(one: Fields, namespace: str) -> ResourceSelector:
    group, _ = split_api_version(one.text("apiVersion", required=True))
    kind, name, wanted = one.text("kind", required=True), one.text("name"), one.text("namespace")
    if namespace and wanted not in ("", namespace):
        one.fault("namespace", f"must be {namespace}, where the policy is, or left out, not {shown(wanted)}")
    if name and one.has("labelSelector"):
        one.fault("labelSelector", "must be left out where there is a name")
    labels, faults = read_label_selector(one.data.get("labelSelector"))
    for fault in faults:
        one.fault("labelSelector", f"must be a label selector: {fault}")
    return ResourceSelector(group, kind, namespace or wanted, name, labels if one.has("labelSelector") else None)


def rank(selectors: tuple[ResourceSelector, ...], resource: Described, namespace: str) -> int | None:
    """Return how closely a policy chooses a resource: 0 by its kind, 1 by labels, 2 by name; None if it does not."""
    ranks = [_rank(one) for one in selectors if _chooses(one, resource, namespace)]
    return max(ranks) if ranks else None


def may_choose(selectors: tuple[ResourceSelector, ...], kinds: Collection[str]) -> tuple[ResourceSelector, ...]:
    """Return the selectors that may choose something of these kinds (`group/Kind`), whatever it is called."""
    return tuple(one for one in selectors if kinds and (one.is_unreadable or f"{one.group}/{one.kind}" in kinds))


def _rank(one: ResourceSelector) -> int:
    return 2 if one.name else 1 if one.labels else 0


def _chooses(one: ResourceSelector, resource: Described, namespace: str) -> bool:
    if one.namespace and one.namespace != namespace:
        return False
    if one.is_unreadable:
        return True
    return (
        (one.group, one.kind) == (resource.group, resource.kind)
        and (not one.name or one.name == resource.name)
        and (one.labels is None or one.labels.matches(_texts(resource.labels)))
    )


def _texts(labels: Mapping[str, Any]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if isinstance(value, str)}
