"""Injected options: options that the controller adds to every Plugin.

Expressions can read the injected options from the variable `global.greenhouse`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from reconciler.api.greenhouse import OWNED_BY_LABEL
from reconciler.controllers.plugin_presets.helm_values import build_values
from reconciler.krm.helm_paths import format_option_name, parse_option_name
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached

METADATA_PREFIX: Final = "metadata.greenhouse.sap/"
"""Prefix of Cluster labels whose values are injected as the options `global.greenhouse.metadata.*`."""

EXPRESSION_VARIABLE: Final = "global"
"""Name of the only variable that option expressions can use."""

_ROOT: Final = (EXPRESSION_VARIABLE, "greenhouse")
_REMOVED: Final = ((*_ROOT, "clusterNames"), (*_ROOT, "teamNames"))
_BASE_DOMAIN: Final = "baseDomain"
_USES_BASE_DOMAIN = re.compile(rf"\bglobal\s*\.\s*greenhouse\s*\.\s*{_BASE_DOMAIN}\b")


@dataclass(frozen=True)
class InjectedOption:
    """An option that the controller adds to a Plugin.

    `label` is the key of the label that contains the value. It is "" if the value does not come from a label.
    """

    name: str
    value: str
    label: str = ""


def list_injected_options(
    organization: str,
    *,
    cluster: str = "",
    cluster_labels: Mapping[str, str] = MappingProxyType({}),
    owner: str = "",
    base_domain: str = "",
) -> tuple[InjectedOption, ...]:
    """Return the injected options of a Plugin. Options with values from Cluster labels are sorted by label.

    Args:
        organization: The Plugin's namespace.
        cluster: The name of the Plugin's cluster. It is "" if the Plugin has no cluster.
        cluster_labels: The labels of the Plugin's cluster.
        owner: The owner label of the Plugin or of its preset.
        base_domain: The setting `rules.base_domain`. It is "" if the setting is missing.
    """
    options = [InjectedOption(_format_name("organizationName"), organization)]
    if cluster:
        options.append(InjectedOption(_format_name("clusterName"), cluster))
        options += _iterate_metadata(cluster_labels)
    if base_domain:
        options.append(InjectedOption(_format_name(_BASE_DOMAIN), base_domain))
    if owner:
        options.append(InjectedOption(_format_name("ownedBy"), owner, OWNED_BY_LABEL))
    return tuple(options)


def build_expression_variables(options: Iterable[InjectedOption]) -> dict[str, Any]:
    """Return the variables that expressions can use: the injected options, nested by the steps of their names."""
    return build_values((option.name, option.value) for option in options).values


def suggest_setting(expression: str, error: str) -> str:
    """Return a hint for an error message if an expression fails because the setting `rules.base_domain` is missing.

    Return "" for all other errors.
    """
    if f"no such key: {_BASE_DOMAIN}" in error and _USES_BASE_DOMAIN.search(expression):
        return "; set the setting `rules.base_domain`"
    return ""


def is_removed_option(name: str) -> bool:
    """Return whether earlier versions of the reconciler injected this option or its parent option."""
    return parse_option_name(name)[:3] in _REMOVED


def _iterate_metadata(labels: Mapping[str, str]) -> Iterator[InjectedOption]:
    for label, value in sorted(labels.items()):
        key = label.removeprefix(METADATA_PREFIX)
        if key and key != label:
            yield InjectedOption(_format_name("metadata", *key.split(".")), value, label)


@cached(1_024)
def _format_name(*steps: str) -> str:
    return format_option_name((*_ROOT, *steps))
