"""Combines the options of a chart on several clusters into one template, with values per label or cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reconciler.adopt.expressions import (
    CLUSTER_NAME,
    format_expression,
    format_literal,
    generalize,
    is_valid,
    quote,
)
from reconciler.adopt.generated import Documents
from reconciler.adopt.requests import HelmRequest, PackageRequest
from reconciler.adopt.rules import MIN_CLUSTERS_PER_LABEL
from reconciler.adopt.units import Choice, Cluster
from reconciler.krm import yaml
from reconciler.krm.helm_paths import format_option_name
from reconciler.krm.json_text import encode_canonical_json
from reconciler.krm.names import validate_dns_subdomain
from reconciler.lazy_dataclasses import dataclass

MAX_CHOICES = 20
"""The maximum number of different values in an expression that lists the clusters of each value."""

Labels = Mapping[str, Mapping[str, str]]
ValuesPath = tuple[str, ...]


@dataclass(frozen=True)
class ChartOptions:
    """The options of a chart, in which the name and the labels of the cluster are replaced by variables."""

    request: HelmRequest
    cluster: str
    labels: Mapping[str, str]

    @classmethod
    def from_request(cls, request: PackageRequest, labels: Mapping[str, str]) -> ChartOptions:
        """Return the options of a request for a chart."""
        assert request.helm
        return cls(request.helm, request.cluster, labels)

    @property
    def shape(self) -> str:
        """A key for grouping: ChartOptions with equal keys can share one template. Chart values are not in the key."""
        texts = [self.request.release_name, self.request.namespace, *self.request.values_files]
        return encode_canonical_json([[*map(self.generalize, texts)], dict(self.request.flags)]).decode()

    def generalize(self, text: str) -> list[str]:
        """Divide a text into literals and CEL expressions for the cluster, as the function `generalize` does."""
        return generalize(text, self.cluster, self.labels)


@dataclass(frozen=True)
class SharedOptions:
    """The chart options of one package on several clusters, as parts of the generated config.

    Attributes:
        helm: The field `helm` of the template in the PackageVariantSet.
        config_maps: ConfigMaps with chart values. Each one is for all clusters with a label value, or for one cluster.
        choices: The decisions of the import. The option --explain shows them.
    """

    helm: Mapping[str, Any]
    config_maps: Documents
    choices: tuple[Choice, ...]


def count_differences(first: PackageRequest, second: PackageRequest) -> int:
    """Return the number of values that differ between two requests."""
    if first.helm is None or second.helm is None:
        return 0
    one, other = _list_leaves(first.helm.values), _list_leaves(second.helm.values)
    return sum(one.get(path) != other.get(path) for path in {*one, *other})


def build_shared_options(
    name: str, requests: Sequence[PackageRequest], clusters: Sequence[Cluster], *, is_alone: bool
) -> SharedOptions:
    """Return the options that give each cluster its own release, files and values.

    Args:
        name: The name of the set.
        is_alone: Whether the set has no other package. Otherwise, the names of ConfigMaps contain the package.
    """
    labels: Labels = {cluster.name: cluster.labels for cluster in clusters}
    options = [ChartOptions.from_request(request, labels[request.cluster]) for request in requests]
    helm: dict[str, Any] = {}
    for field, get in _TEXT_FIELDS.items():
        helm |= _build_text(field, options, get)
    helm |= options[0].request.flags
    helm |= _build_values_files(options)
    prefix = name if is_alone else f"{name}-{requests[0].package}"
    values = _build_values(prefix, requests, labels)
    return SharedOptions({**helm, **values.helm}, values.config_maps, values.choices)


_TEXT_FIELDS: Mapping[str, Callable[[HelmRequest], str]] = {
    "releaseName": lambda request: request.release_name,
    "namespace": lambda request: request.namespace,
}


def _build_text(field: str, options: Sequence[ChartOptions], get: Callable[[HelmRequest], str]) -> dict[str, str]:
    first = get(options[0].request)
    if all(get(option.request) == first for option in options):
        return {field: first}
    return {f"{field}Expr": format_expression(options[0].generalize(first))}


def _build_values_files(options: Sequence[ChartOptions]) -> dict[str, list[str]]:
    """Return the files that are equal for all clusters, then an expression for each of the other files."""
    first = options[0]
    files: list[str] = []
    expressions: list[str] = []
    for index, file in enumerate(first.request.values_files):
        is_equal = all(option.request.values_files[index] == file for option in options)
        if is_equal and not expressions:
            files.append(file)
        else:
            expressions.append(quote(file) if is_equal else format_expression(first.generalize(file)))
    return {**({"valuesFiles": files} if files else {}), **({"valuesFilesExprs": expressions} if expressions else {})}


def _list_leaves(values: Mapping[str, Any], path: ValuesPath = ()) -> dict[ValuesPath, str]:
    """Map the path of each chart value to the value as canonical JSON. A list is one value, as in the merge of Helm."""
    leaves: dict[ValuesPath, str] = {}
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            leaves |= _list_leaves(value, (*path, str(key)))
        else:
            leaves[*path, str(key)] = encode_canonical_json(value).decode()
    return leaves


def _build_values(prefix: str, requests: Sequence[PackageRequest], labels: Labels) -> SharedOptions:
    leaves = {request.cluster: _list_leaves(request.helm.values) for request in requests if request.helm}
    paths = sorted({path for found in leaves.values() for path in found})
    equal: dict[ValuesPath, str] = {}
    sources: dict[str, dict[str, dict[ValuesPath, str]]] = {}
    parameters: list[dict[str, str]] = []
    choices: list[Choice] = []
    for path in paths:
        values = {cluster: found.get(path) for cluster, found in leaves.items()}
        first = next(iter(values.values()))
        subject = f"value {format_option_name(path)}"
        if first is not None and all(value == first for value in values.values()):
            equal[path] = first
        elif key := _find_label(values, labels):
            for cluster, value in values.items():
                if value is not None:
                    sources.setdefault(key, {}).setdefault(labels[cluster][key], {})[path] = value
            choices.append(Choice(prefix, subject, f'clusters with the same label "{key}" have the same value'))
        elif expression := _find_expression(values, labels) or _format_choice(values):
            parameters.append({"name": format_option_name(path), "valueExpr": expression})
            choices.append(Choice(prefix, subject, "the value depends on the name of the cluster"))
        else:
            for cluster, value in values.items():
                if value is not None:
                    sources.setdefault("", {}).setdefault(cluster, {})[path] = value
            is_partial = None in values.values()
            reason = "only some clusters have the value" if is_partial else "an expression cannot contain all values"
            choices.append(Choice(prefix, subject, reason))
    helm: dict[str, Any] = {}
    if sources:
        helm["valuesFrom"] = [_build_reference(prefix, key) for key in sorted(sources)]
    if equal:
        helm["values"] = _nest(equal)
    if parameters:
        helm["parameterExprs"] = parameters
    config_maps = [
        _build_config_map(_name_config_map(prefix, key, value), found)
        for key, by_value in sorted(sources.items())
        for value, found in sorted(by_value.items())
    ]
    return SharedOptions(helm, tuple(config_maps), tuple(choices))


def _find_label(values: Mapping[str, str | None], labels: Labels) -> str:
    """Return the key of a label that determines a chart value. Return "" if there is no such label.

    A label determines the chart value if all clusters with the same label value have the same chart value. In addition,
    each label value must occur on at least two clusters.
    """
    for key in sorted({key for cluster in values for key in labels[cluster]}):
        groups: dict[str, list[str | None]] = {}
        for cluster, value in values.items():
            groups.setdefault(labels[cluster].get(key, ""), []).append(value)
        is_function = all(len(set(found)) == 1 for found in groups.values())
        # Require valid names, because the values of the label become parts of the names of ConfigMaps.
        is_named = all(validate_dns_subdomain(name) is None for name in groups)
        if is_function and is_named and all(len(found) >= MIN_CLUSTERS_PER_LABEL for found in groups.values()):
            return key
    return ""


def _find_expression(values: Mapping[str, str | None], labels: Labels) -> str:
    """Return a CEL expression that computes a chart value from the name or labels of each cluster.

    Return "" if no single expression gives the values of all clusters, or if a value is not a string.
    """
    texts = {cluster: json.loads(value or "null") for cluster, value in values.items()}
    if not all(isinstance(text, str) for text in texts.values()):
        return ""
    found = {tuple(generalize(text, cluster, labels[cluster])) for cluster, text in texts.items()}
    expression = format_expression(found.pop()) if len(found) == 1 else ""
    return expression if expression and is_valid(expression) else ""


def _format_choice(values: Mapping[str, str | None]) -> str:
    """Return a CEL expression that selects the chart value by the name of the cluster.

    Return "" if a cluster has no value, if there are too many values, or if CEL does not support a value.
    """
    groups: dict[str, list[str]] = {}
    for cluster, value in sorted(values.items()):
        if value is None:
            return ""
        groups.setdefault(value, []).append(cluster)
    if len(groups) > MAX_CHOICES:
        return ""
    *others, last = sorted(groups.items(), key=lambda pair: (len(pair[1]), pair[0]))
    text = format_literal(json.loads(last[0]))
    for value, names in others:
        listed = ", ".join(map(quote, names))
        text = f"{CLUSTER_NAME} in [{listed}] ? {format_literal(json.loads(value))} : {text}"
    return text if is_valid(text) else ""


def _nest(leaves: Mapping[ValuesPath, str]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for path, value in leaves.items():
        level = nested
        for step in path[:-1]:
            level = level.setdefault(step, {})
        level[path[-1]] = json.loads(value)
    return nested


def _build_reference(prefix: str, key: str) -> dict[str, Any]:
    variable = f"repository.labels[{quote(key)}]" if key else CLUSTER_NAME
    start = _name_config_map(prefix, key, "")
    return {"kind": "ConfigMap", "nameExpr": f"{quote(start)} + {variable}", "optional": True}


def _name_config_map(prefix: str, key: str, value: str) -> str:
    return f"{prefix}-{re.sub(r'[^a-z0-9]+', '-', key.lower()).strip('-') or 'cluster'}-{value}"


def _build_config_map(name: str, leaves: Mapping[ValuesPath, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"values.yaml": yaml.emit(_nest(leaves))},
    }
