"""set-labels: labels on resources, and where selectors and templates repeat them (kpt.md 15.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.caching import cached
from reconciler.krm.yaml import Path
from reconciler.packages.functions.fieldspec import FieldSpec
from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    Result,
    config_strings,
    failure,
    reports_faults,
    value_at,
)
from reconciler.packages.functions.limits import value_bytes
from reconciler.packages.kptfile import Profile

_ACCEPTED = "`SetLabels.fn.kpt.dev` or `ConfigMap.v1`"
# from here on labels are updated one by one; before, kustomize added them wherever the mapping was
_PER_KEY = (0, 2, 0)
_AFFINITY_TERMS = tuple(
    f"spec/affinity/{kind}/{when}DuringSchedulingIgnoredDuringExecution[]{term}"
    for kind in ("podAffinity", "podAntiAffinity")
    for when, term in (("preferred", "/podAffinityTerm"), ("required", ""))
)
# the resources of the packages in flight: what labels make of one does not depend on any other
_REMEMBERED_ITEMS = 4096
# of labels in a template
_USUAL_DEPTH = 4
Kind = tuple[str | None, str]
_REPLICAS: tuple[Kind, ...] = ((None, "Deployment"), (None, "ReplicaSet"), (None, "DaemonSet"), ("apps", "StatefulSet"))
_TEMPLATED: tuple[Kind, ...] = (("", "ReplicationController"), *_REPLICAS, ("batch", "Job"))
_CRON: tuple[Kind, ...] = (("batch", "CronJob"),)
_POLICY: tuple[Kind, ...] = (("networking.k8s.io", "NetworkPolicy"),)


@dataclass(frozen=True)
class _Rule:
    """Labels at `labels` inside every `container` that exists; without `create` only those that are there change."""

    kinds: tuple[Kind, ...]
    container: str
    labels: Path
    create: bool = False


_MATCH = ("selector", "matchLabels")
_METADATA = ("metadata", "labels")
_RULES = (
    _Rule((), "", _METADATA, create=True),
    _Rule((("", "Service"), ("", "ReplicationController")), "", ("spec", "selector"), create=True),
    _Rule(_REPLICAS, "", ("spec", *_MATCH), create=True),
    _Rule((("batch", "Job"), ("policy", "PodDisruptionBudget")), "", ("spec", *_MATCH)),
    _Rule(_POLICY, "", ("spec", "podSelector", "matchLabels")),
    _Rule(_TEMPLATED, "spec/template", _METADATA, create=True),
    _Rule(_TEMPLATED, "spec/template/spec/topologySpreadConstraints[]", ("labelSelector", "matchLabels")),
    _Rule(_CRON, "spec/jobTemplate", _METADATA, create=True),
    _Rule(_CRON, "spec/jobTemplate/spec", _MATCH),
    _Rule(_CRON, "spec/jobTemplate/spec/template", _METADATA, create=True),
    _Rule(_CRON, "spec/jobTemplate/spec/template/spec/topologySpreadConstraints[]", ("labelSelector", "matchLabels")),
    _Rule((("apps", "StatefulSet"),), "spec/volumeClaimTemplates[]", _METADATA, create=True),
    _Rule((("apps", "StatefulSet"),), "spec/volumeClaimTemplates[]", _MATCH),
    _Rule(_POLICY, "spec/ingress[]/from[]", ("podSelector", "matchLabels")),
    _Rule(_POLICY, "spec/egress[]/to[]", ("podSelector", "matchLabels")),
)
# D29: upstream means to follow these and never reaches them
_AFFINITY_RULES = tuple(
    _Rule(kinds, f"{template}/{term}", ("labelSelector", "matchLabels"))
    for kinds, template in ((_TEMPLATED, "spec/template"), (_CRON, "spec/jobTemplate/spec/template"))
    for term in _AFFINITY_TERMS
)
# kustomize knew them for two kinds
_OLD_AFFINITY_RULES = tuple(
    _Rule((("apps", "Deployment"), ("apps", "StatefulSet")), f"spec/template/{term}", ("labelSelector", "matchLabels"))
    for term in _AFFINITY_TERMS
)


@reports_faults
def set_labels(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items with the labels set; results count the labels that were looked at, as upstream does."""
    labels = _labels(config)
    seen = [item for item in items if context.version < _PER_KEY or not item.is_local_config]
    if isinstance(labels, str):
        return failure(items, labels)
    if not seen:
        return Output(tuple(items), (Result("no input resources"),))
    if labels is None:
        return Output(tuple(items), (Result("`FunctionConfig` is not given"),), failed=True)
    if not labels:
        return Output(tuple(items), (Result("no `labels` arguments are given in FunctionConfig", "warning"),))
    places = {item: _places(item, context) for item in seen}
    given = tuple(labels.items())
    each = value_bytes(labels, _USUAL_DEPTH)
    for item, found in places.items():
        # results are cached for each item, so that the charge belongs here
        context.budget.spend(len(found) * len(given))
        size = each * len(found)
        context.budget.create(size, f"{item.file}: {item.kind} {item.name}: all its labels", given[0][1])
    changed = tuple(_labelled(item, given, context) if item in places else item for item in items)
    total = len(labels) * sum(map(len, places.values()))
    return Output(changed, (Result(f"set {total} labels in total"),))


def _labels(config: Config | None) -> dict[str, str] | str | None:
    """Return the labels by key in sorted order, None for no configuration, or what is wrong with it."""
    if not config:
        return None
    kind, api_version = config.get("kind"), str(config.get("apiVersion"))
    if (api_version, kind) == ("v1", "ConfigMap"):
        return dict(sorted(config_strings(config.get("data"), "data", strict=True).items())) or None
    if (api_version.partition("/")[0], kind) == ("fn.kpt.dev", "SetLabels"):
        return dict(sorted(config_strings(config.get("labels"), "labels", strict=True).items()))
    return f"unknown FunctionConfig `{kind}.{api_version.rpartition('/')[0]}`, expect {_ACCEPTED}"


@cached(_REMEMBERED_ITEMS)
def _labelled(item: Item, labels: tuple[tuple[str, str], ...], context: FunctionContext) -> Item:
    return item.with_values(_values(item, _places(item, context), dict(labels), context))


@cached(_REMEMBERED_ITEMS)
def _places(item: Item, context: FunctionContext) -> tuple[tuple[Path, bool], ...]:
    """Return the paths of label mappings, and whether labels are created there."""
    return tuple(_found(item, context))


def _found(item: Item, context: FunctionContext) -> Iterator[tuple[Path, bool]]:
    for rule in _rules_of(item.group, item.kind, context.profile, context.version < _PER_KEY):
        create = rule.create and not _invents_selector(item, rule, context)
        for container in FieldSpec(rule.container).targets(item) if rule.container else ((),):
            yield (*container, *rule.labels), create


@cached(1024)
def _rules_of(group: str, kind: str, profile: Profile, is_old: bool) -> tuple[_Rule, ...]:
    affinity = _AFFINITY_RULES if profile == "safe" else _OLD_AFFINITY_RULES if is_old else ()
    rules = (*_RULES, *affinity)
    return tuple(rule for rule in rules if not rule.kinds or {(group, kind), (None, kind)} & {*rule.kinds})


def _invents_selector(item: Item, rule: _Rule, context: FunctionContext) -> bool:
    # D29: a Service without a selector may be headless or backed by Endpoints
    return item.kind == "Service" and rule.labels == ("spec", "selector") and context.profile == "safe"


def _values(
    item: Item, places: Sequence[tuple[Path, bool]], labels: Mapping[str, str], context: FunctionContext
) -> Iterator[tuple[Path, str]]:
    for path, create in places:
        old = value_at(item.data, path)
        if old is not None and not isinstance(old, dict):
            continue
        everywhere = create or (old and (context.version < _PER_KEY or path == ("spec", "selector")))
        yield from (((*path, key), text) for key, text in labels.items() if everywhere or key in (old or {}))
