"""Options that every Plugin gets. Expressions use them as `global.greenhouse`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.controllers.plugin_presets.helm_values import build_values, format_option_name, parse_option_name
from reconciler.memory import cached

METADATA_PREFIX: Final = "metadata.greenhouse.sap/"
"""Prefix of Cluster labels that are injected as metadata."""

OWNED_BY_LABEL: Final = "greenhouse.sap/owned-by"
"""Label with the team that owns a preset or a Plugin."""

EXPRESSION_VARIABLE: Final = "global"
"""The only variable of expressions."""

_ROOT: Final = (EXPRESSION_VARIABLE, "greenhouse")
_REMOVED: Final = ((*_ROOT, "clusterNames"), (*_ROOT, "teamNames"))
_BASE_DOMAIN: Final = "baseDomain"
_USES_BASE_DOMAIN = re.compile(rf"\bglobal\s*\.\s*greenhouse\s*\.\s*{_BASE_DOMAIN}\b")


@dataclass(frozen=True)
class InjectionContext:
    """Data about a Plugin for injected options.

    Attributes:
        organization: The Plugin's namespace.
        cluster: The cluster's name; "" without a cluster.
        cluster_labels: The labels of the Cluster object; {} without one.
        plugin_labels: The Plugin's labels after propagation.
        base_domain: The setting `rules.base_domain`; "" if it is not set.
    """

    organization: str
    cluster: str = ""
    cluster_labels: Mapping[str, str] = field(default_factory=dict)
    plugin_labels: Mapping[str, str] = field(default_factory=dict)
    preset_labels: Mapping[str, str] = field(default_factory=dict)
    base_domain: str = ""


@dataclass(frozen=True)
class InjectedOption:
    """An injected option, and the label that its value comes from; "" if it does not come from a label."""

    name: str
    value: str
    label: str = ""


def list_injected_options(context: InjectionContext) -> tuple[InjectedOption, ...]:
    """Return the injected options in their order; metadata is sorted by label.

    `baseDomain` is omitted if the setting is missing.
    """
    return tuple(_iterate_options(context))


def build_expression_variables(options: Iterable[InjectedOption]) -> dict[str, Any]:
    """Return the variables of expressions: only the injected options, as nested values."""
    return build_values((option.name, option.value) for option in options).values


def suggest_setting(expression: str, error: str) -> str:
    """Return the end of an error message with the missing setting, or ""."""
    if f"no such key: {_BASE_DOMAIN}" in error and _USES_BASE_DOMAIN.search(expression):
        return "; set rules.base_domain to provide it"
    return ""


def is_removed_option(name: str) -> bool:
    """Return whether an option is one of the formerly injected options or below one. They are removed."""
    return parse_option_name(name)[:3] in _REMOVED


def _iterate_options(context: InjectionContext) -> Iterator[InjectedOption]:
    yield InjectedOption(_format_name("organizationName"), context.organization)
    if context.cluster:
        yield InjectedOption(_format_name("clusterName"), context.cluster)
        yield from _iterate_metadata(context.cluster_labels)
    if context.base_domain:
        yield InjectedOption(_format_name(_BASE_DOMAIN), context.base_domain)
    # Expressions and values use the same source: the Plugin's label, or the label of its preset.
    owner = context.plugin_labels.get(OWNED_BY_LABEL) or context.preset_labels.get(OWNED_BY_LABEL)
    if owner:
        yield InjectedOption(_format_name("ownedBy"), owner, OWNED_BY_LABEL)


def _iterate_metadata(labels: Mapping[str, str]) -> Iterator[InjectedOption]:
    for label, value in sorted(labels.items()):
        key = label.removeprefix(METADATA_PREFIX)
        if key and key != label:
            yield InjectedOption(_format_name("metadata", *key.split(".")), value, label)


@cached(1_024)
def _format_name(*steps: str) -> str:
    return format_option_name((*_ROOT, *steps))
