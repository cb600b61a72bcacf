"""The options that every Plugin gets, and what expressions see of them as `global.greenhouse` (greenhouse 8.2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.caching import cached
from reconciler.rules.presets.helm_values import nested, spelled, steps_of

METADATA_PREFIX: Final = "metadata.greenhouse.sap/"
"""What the labels of a Cluster begin with that become metadata."""

OWNED_BY: Final = "greenhouse.sap/owned-by"
"""The label that names the team that owns a preset or a Plugin."""

VARIABLE: Final = "global"
"""The one variable of expressions."""

_ROOT: Final = (VARIABLE, "greenhouse")
_REMOVED: Final = ((*_ROOT, "clusterNames"), (*_ROOT, "teamNames"))
_BASE_DOMAIN: Final = "baseDomain"
_WANTS_BASE_DOMAIN = re.compile(rf"\bglobal\s*\.\s*greenhouse\s*\.\s*{_BASE_DOMAIN}\b")


@dataclass(frozen=True)
class InjectionContext:
    """What is known of a Plugin where options are injected.

    `organization` is its namespace; `cluster` is "" for a Plugin without one, and `cluster_labels` are {} when there is
    no such Cluster; `plugin_labels` are those after propagation; `base_domain` is the setting, "" when it is not made.
    """

    organization: str
    cluster: str = ""
    cluster_labels: Mapping[str, str] = field(default_factory=dict)
    plugin_labels: Mapping[str, str] = field(default_factory=dict)
    preset_labels: Mapping[str, str] = field(default_factory=dict)
    base_domain: str = ""


@dataclass(frozen=True)
class Injected:
    """An option that is injected, and the label it comes from, "" when it comes from none."""

    name: str
    value: str
    label: str = ""


def injected_entries(context: InjectionContext) -> tuple[Injected, ...]:
    """Return the options to inject, in the order of greenhouse 8.2, metadata sorted by label.

    Without the setting there is no base domain (design 10.32).
    """
    return tuple(_entries(context))


def expression_variables(entries: Iterable[Injected]) -> dict[str, Any]:
    """Return the variables of expressions: the injected options, nested, and nothing else (greenhouse 8.1)."""
    return nested((one.name, one.value) for one in entries).values


def setting_to_make(expression: str, fault: str) -> str:
    """Return the end of a sentence on why an expression has no value: the setting that it lacks, or "" for none."""
    if f"no such key: {_BASE_DOMAIN}" in fault and _WANTS_BASE_DOMAIN.search(expression):
        return "; it is there when the setting rules.base_domain is made"
    return ""


def is_removed(name: str) -> bool:
    """Tell whether an option is, or lies in, one of those that are injected no more and stripped when given."""
    return steps_of(name)[:3] in _REMOVED


def _entries(context: InjectionContext) -> Iterator[Injected]:
    yield Injected(_name("organizationName"), context.organization)
    if context.cluster:
        yield Injected(_name("clusterName"), context.cluster)
        yield from _metadata(context.cluster_labels)
    if context.base_domain:
        yield Injected(_name(_BASE_DOMAIN), context.base_domain)
    # one source for expressions and values: the Plugin's label, where it has one (greenhouse 8.2)
    owner = context.plugin_labels.get(OWNED_BY) or context.preset_labels.get(OWNED_BY)
    if owner:
        yield Injected(_name("ownedBy"), owner, OWNED_BY)


def _metadata(labels: Mapping[str, str]) -> Iterator[Injected]:
    for label, value in sorted(labels.items()):
        key = label.removeprefix(METADATA_PREFIX)
        if key and key != label:
            yield Injected(_name("metadata", *key.split(".")), value, label)


@cached(1_024)
def _name(*steps: str) -> str:
    return spelled((*_ROOT, *steps))
