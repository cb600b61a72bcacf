"""The HelmRelease of a Plugin, as Flux takes it, and why Flux would not (greenhouse 11, optional outputs)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final

from reconciler.krm.findings import Finding
from reconciler.krm.yaml import Path
from reconciler.rules.fields import shown
from reconciler.rules.presets.codes import HELM_RELEASE_INVALID
from reconciler.rules.presets.helm_values import nested
from reconciler.rules.presets.model import CLUSTER_DEFINITION, Definition, Given, Preset, SecretRef
from reconciler.rules.presets.outcome import Wish
from reconciler.rules.presets.plugin import Release
from reconciler.rules.presets.resolved import ResolvedOption

API_VERSION: Final = "helm.toolkit.fluxcd.io/v2"
KIND: Final = "HelmRelease"
CHARTS_NAMESPACE: Final = "greenhouse"
"""Where the charts of cluster-scoped definitions are."""

_KUBE_CONFIG_KEY: Final = "greenhousekubeconfig"
_NAME_LENGTH: Final = 253
_NAMESPACE_LENGTH: Final = 63
_TARGET_PATH_LENGTH: Final = 250
_TARGET_PATH = re.compile(r"([a-zA-Z0-9_\-.\\/]|\[[0-9]{1,5}\])+", re.ASCII)
_VALUES_KEY = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)

Secrets = Sequence[tuple[ResolvedOption, SecretRef]]
"""The options that come from Secrets and count, in the order in which they are set."""


def helm_release(
    wish: Wish, definition: Definition, release: Release, values: Mapping[str, Any], secrets: Secrets
) -> dict[str, Any]:
    """Return the HelmRelease of a Plugin with a chart; what has nothing to say is left out."""
    fields = {
        "interval": "5m",
        "timeout": "5m",
        "maxHistory": 10,
        "releaseName": release.name,
        "targetNamespace": release.namespace,
        "storageNamespace": release.namespace,
        "chartRef": chart_ref(wish, definition),
        "install": {"createNamespace": True, "remediation": {"retries": 3}},
        "upgrade": {"crds": "CreateReplace", "remediation": {"retries": 3}},
        "driftDetection": _drift_detection(wish.spec.written.get("ignoreDifferences") or ()),
        "suspend": False,
        "kubeConfig": _kube_config(wish),
        "dependsOn": _depends_on(wish),
        "valuesFrom": [_values_from(one.name, ref) for one, ref in secrets],
        "values": dict(values),
    }
    spec = {name: value for name, value in fields.items() if value not in ({}, [])}
    metadata = {"name": wish.key.name, "namespace": wish.key.namespace}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def chart_ref(wish: Wish, definition: Definition) -> dict[str, str]:
    """Return where the chart of a definition is: beside a definition of an organization, else with Greenhouse's own."""
    version = definition.one.data["spec"]["helmChart"]["version"]
    ref = wish.spec.definition
    namespace = CHARTS_NAMESPACE if ref.kind == CLUSTER_DEFINITION else wish.key.namespace
    return {"kind": "HelmChart", "name": f"{ref.name}-{version}", "namespace": namespace}


def release_findings(
    wish: Wish, spec: Mapping[str, Any], options: Iterable[ResolvedOption], secrets: Secrets
) -> Iterator[Finding]:
    """Yield an error for everything that Flux refuses: what its CRD does not take, and secrets within secrets.

    What Flux does not look at is not looked at here.
    """
    yield from _length_findings(wish, spec)
    for option in options:
        if isinstance(option.source, Given) and not _is_json(option.source.value):
            message = f"{option.winner} gives {shown(option.name)}, which must have numbers of JSON, not .inf or .nan"
            yield HELM_RELEASE_INVALID.finding(f"{message}, in the {KIND}", option.winner.where)
    for one, ref in secrets:
        for field, value, fault in _reference_faults(one.name, ref):
            message = f"{one.winner} gives {shown(one.name)} by a secret, and the {KIND} has {shown(value)} as {field}"
            yield HELM_RELEASE_INVALID.finding(f"{message}, which must have {fault}", one.winner.where)
    yield from _secrets_in_secrets([one for one, _ in secrets])


def _length_findings(wish: Wish, spec: Mapping[str, Any]) -> Iterator[Finding]:
    ref = spec["chartRef"]
    for field, value, most, said in (
        ("targetNamespace", spec["targetNamespace"], _NAMESPACE_LENGTH, "releaseNamespace"),
        ("chartRef.name", ref["name"], _NAME_LENGTH, "pluginDefinitionRef"),
        ("chartRef.namespace", ref["namespace"], _NAMESPACE_LENGTH, "pluginDefinitionRef"),
    ):
        if len(value) > most:
            message = f"spec.{field} of the {KIND} must have at most {most} characters, not the {len(value)} of"
            yield HELM_RELEASE_INVALID.finding(f"{message} {shown(value)}", wish.written.where_at(_path(wish, said)))


def _path(wish: Wish, field: str) -> Path:
    return ("spec", "plugin", field) if isinstance(wish.by, Preset) else ("spec", field)


def _reference_faults(name: str, ref: SecretRef) -> Iterator[tuple[str, str, str]]:
    if len(name) > _TARGET_PATH_LENGTH:
        yield "targetPath", name, f"at most {_TARGET_PATH_LENGTH} characters, not {len(name)}"
    if not _TARGET_PATH.fullmatch(name):
        yield "targetPath", name, "only letters of ASCII, digits, -, _, ., / and \\, and up to 5 digits in brackets"
    for field, value in (("name", ref.name), ("valuesKey", ref.key)):
        if len(value) > _NAME_LENGTH:
            yield field, value, f"at most {_NAME_LENGTH} characters, not {len(value)}"
    if not _VALUES_KEY.fullmatch(ref.key):
        yield "valuesKey", ref.key, "only letters of ASCII, digits, -, _ and ."


def _secrets_in_secrets(secrets: Iterable[ResolvedOption]) -> Iterator[Finding]:
    """Yield what makes Flux give up on all values: a secret is one text, and another cannot lie in it."""
    by_name = {one.name: one for one in secrets}
    for fault in nested((name, "") for name in by_name).faults:
        one, other = by_name[fault.name], by_name.get(fault.other)
        beside = f", and {other.winner} gives {shown(other.name)}" if other else ""
        message = f"{one.winner} gives {shown(one.name)}{beside}, by secrets: {shown(one.name)} {fault.message}"
        yield HELM_RELEASE_INVALID.finding(message, one.winner.where)


def _is_json(value: Any) -> bool:
    match value:
        case float():
            return isfinite(value)
        case list():
            return all(map(_is_json, value))
        case dict():
            return all(map(_is_json, value.values()))
        case _:
            return True


def _drift_detection(ignored: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    rules = [_ignore_rule(one) for one in ignored]
    return {"mode": "enabled", **({"ignore": rules} if rules else {})}


def _ignore_rule(entry: Mapping[str, Any]) -> dict[str, Any]:
    target = {field: entry[field] for field in ("group", "version", "kind", "name") if entry.get(field)}
    return {**({"target": target} if target else {}), "paths": list(entry["paths"])}


def _kube_config(wish: Wish) -> dict[str, Any]:
    return {"secretRef": {"name": wish.cluster.name, "key": _KUBE_CONFIG_KEY}} if wish.cluster else {}


def _depends_on(wish: Wish) -> list[dict[str, str]]:
    names = dict.fromkeys(one.plugin(wish.place.repository) for one in wish.spec.wait_for)
    return [{"name": name} for name in names]


def _values_from(name: str, ref: SecretRef) -> dict[str, str]:
    return {"kind": "Secret", "name": ref.name, "valuesKey": ref.key, "targetPath": name}
