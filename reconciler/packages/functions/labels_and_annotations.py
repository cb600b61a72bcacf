"""The functions `set-labels`, `set-annotations` and `delete-annotations`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from reconciler.api.functions import FieldSpecEntry, SetAnnotations, SetLabels
from reconciler.api.profile import Profile
from reconciler.krm.field_text import format_path
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached
from reconciler.packages.functions.field_specs import FieldSpec, convert_field_specs, create_field_specs
from reconciler.packages.functions.function import (
    FunctionConfig,
    FunctionContext,
    FunctionOutput,
    FunctionResult,
    Item,
    charge_values,
    create_failure,
    get_value_at,
    read_config_object,
    read_config_strings,
    report_errors_as_failure,
)
from reconciler.packages.functions.limits import estimate_value_bytes

_ACCEPTED = "`SetLabels.fn.kpt.dev` or `ConfigMap.v1`"
# In this version and later, a selector such as `spec.selector.matchLabels` of a Job gets a new value only for labels
# that it already contains. Earlier versions use kustomize, which adds all labels to every label field that exists.
_PER_LABEL_VERSION = (0, 2, 0)
_AFFINITY_TERMS = tuple(
    f"spec/affinity/{kind}/{when}DuringSchedulingIgnoredDuringExecution[]{term}"
    for kind in ("podAffinity", "podAntiAffinity")
    for when, term in (("preferred", "/podAffinityTerm"), ("required", ""))
)
# Results are cached by resource, because the labels of a resource do not depend on other resources.
_MAX_CACHED_ITEMS = 4096
# The nesting depth of labels in a pod template. This depth is used to estimate the size of the YAML text.
_TYPICAL_DEPTH = 4
Kind = tuple[str | None, str]
_REPLICAS: tuple[Kind, ...] = ((None, "Deployment"), (None, "ReplicaSet"), (None, "DaemonSet"), ("apps", "StatefulSet"))
_TEMPLATED: tuple[Kind, ...] = (("", "ReplicationController"), *_REPLICAS, ("batch", "Job"))
_CRON: tuple[Kind, ...] = (("batch", "CronJob"),)
_POLICY: tuple[Kind, ...] = (("networking.k8s.io", "NetworkPolicy"),)


@dataclass(frozen=True)
class _Rule:
    """A label field in resources of some kinds.

    Attributes:
        kinds: The kinds as (group, kind). All kinds if empty.
        container: The path of the mapping that contains the label field, as in FieldSpec. This mapping must exist.
        labels: The path of the label field in this mapping.
        create: Whether to create missing labels. If false, only existing labels change.
    """

    kinds: tuple[Kind, ...]
    container: str
    labels: DataPath
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
# The original function contains these rules, but never applies them because of a defect. Only the profile `safe`
# applies them.
_AFFINITY_RULES = tuple(
    _Rule(kinds, f"{template}/{term}", ("labelSelector", "matchLabels"))
    for kinds, template in ((_TEMPLATED, "spec/template"), (_CRON, "spec/jobTemplate/spec/template"))
    for term in _AFFINITY_TERMS
)
# The rules for affinity terms in versions that use kustomize. In these versions, only Deployments and StatefulSets have
# such rules.
_OLD_AFFINITY_RULES = tuple(
    _Rule((("apps", "Deployment"), ("apps", "StatefulSet")), f"spec/template/{term}", ("labelSelector", "matchLabels"))
    for term in _AFFINITY_TERMS
)


@report_errors_as_failure
def set_labels(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
    """Set labels in all label fields of the items. The result contains the number of labels, as in kpt."""
    labels = _read_labels(config)
    labeled_items = [item for item in items if context.version < _PER_LABEL_VERSION or not item.is_local_config]
    if isinstance(labels, str):
        return create_failure(items, labels)
    if not labeled_items:
        return FunctionOutput(tuple(items), (FunctionResult("no input resources"),))
    if labels is None:
        return FunctionOutput(tuple(items), (FunctionResult("`FunctionConfig` is not given"),), has_failed=True)
    if not labels:
        return FunctionOutput(
            tuple(items), (FunctionResult("no `labels` arguments are given in FunctionConfig", "warning"),)
        )
    fields_by_item = {item: _find_label_fields(item, context) for item in labeled_items}
    label_items = tuple(labels.items())
    size_per_field = estimate_value_bytes(labels, _TYPICAL_DEPTH)
    for item, paths in fields_by_item.items():
        # Subtract the cost from the budget here and not in `_set_item_labels`, because the results of that function are
        # cached.
        context.budget.charge_steps(len(paths) * len(label_items))
        size = size_per_field * len(paths)
        context.budget.charge_output(size, f"{item.file}: {item.kind} {item.name}: all its labels", label_items[0][1])
    changed_items = tuple(
        _set_item_labels(item, label_items, context) if item in fields_by_item else item for item in items
    )
    total = len(labels) * sum(map(len, fields_by_item.values()))
    return FunctionOutput(changed_items, (FunctionResult(f"set {total} labels in total"),))


def _read_labels(config: FunctionConfig | None) -> dict[str, str] | str | None:
    """Return the configured labels sorted by key, or an error message. Return None if no labels are configured."""
    if not config:
        return None
    kind, api_version = config.get("kind"), str(config.get("apiVersion"))
    if (api_version, kind) == ("v1", "ConfigMap"):
        return dict(sorted(read_config_strings(config.get("data"), "data", strict=True).items())) or None
    if (api_version.partition("/")[0], kind) == ("fn.kpt.dev", "SetLabels"):
        return dict(sorted(read_config_object(SetLabels, config).labels.items()))
    return f"unknown FunctionConfig `{kind}.{api_version.rpartition('/')[0]}`, expect {_ACCEPTED}"


@cached(_MAX_CACHED_ITEMS)
def _set_item_labels(item: Item, labels: tuple[tuple[str, str], ...], context: FunctionContext) -> Item:
    return item.with_values(_compute_label_values(item, _find_label_fields(item, context), dict(labels), context))


@cached(_MAX_CACHED_ITEMS)
def _find_label_fields(item: Item, context: FunctionContext) -> tuple[tuple[DataPath, bool], ...]:
    """Return the path of each label field, and whether missing labels are created in this field."""
    return tuple(_iterate_label_fields(item, context))


def _iterate_label_fields(item: Item, context: FunctionContext) -> Iterator[tuple[DataPath, bool]]:
    for rule in _select_rules(item.group, item.kind, context.profile, context.version < _PER_LABEL_VERSION):
        create = rule.create and not _is_new_selector(item, rule, context)
        for container in FieldSpec(rule.container).find_paths(item) if rule.container else ((),):
            yield (*container, *rule.labels), create


@cached(1024)
def _select_rules(group: str, kind: str, profile: Profile, is_old: bool) -> tuple[_Rule, ...]:
    affinity = _AFFINITY_RULES if profile == "safe" else _OLD_AFFINITY_RULES if is_old else ()
    rules = (*_RULES, *affinity)
    return tuple(rule for rule in rules if not rule.kinds or {(group, kind), (None, kind)} & {*rule.kinds})


def _is_new_selector(item: Item, rule: _Rule, context: FunctionContext) -> bool:
    # In the profile `safe`, add no selector to a Service without a selector, because its Endpoints can be set manually.
    # The original function adds a selector.
    return item.kind == "Service" and rule.labels == ("spec", "selector") and context.profile == "safe"


def _compute_label_values(
    item: Item, fields: Sequence[tuple[DataPath, bool]], labels: Mapping[str, str], context: FunctionContext
) -> Iterator[tuple[DataPath, str]]:
    for path, create in fields:
        old = get_value_at(item.data, path)
        if old is not None and not isinstance(old, dict):
            continue
        sets_all_labels = create or (old and (context.version < _PER_LABEL_VERSION or path == ("spec", "selector")))
        yield from (((*path, key), text) for key, text in labels.items() if sets_all_labels or key in (old or {}))


_KINDS = ("SetAnnotations", "SetAnnotationConfig")
_ANNOTATED_TEMPLATES = (
    ("", "ReplicationController"),
    (None, "Deployment"),
    (None, "ReplicaSet"),
    (None, "DaemonSet"),
    (None, "StatefulSet"),
    ("batch", "Job"),
)
_JOB_TEMPLATE = "spec/jobTemplate/metadata/annotations"
_JOB_POD_TEMPLATE = "spec/jobTemplate/spec/template/metadata/annotations"
_ANNOTATION_FIELDS = (
    FieldSpec("metadata/annotations", create=True),
    *create_field_specs(_ANNOTATED_TEMPLATES, "spec/template/metadata/annotations"),
    *create_field_specs((("batch", "CronJob"),), _JOB_TEMPLATE, _JOB_POD_TEMPLATE),
)


@report_errors_as_failure
def set_annotations(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
    """Set annotations in all annotation fields of the items. Return one result for each field, sorted by path."""
    settings = _read_annotations(config)
    if isinstance(settings, str):
        return create_failure(items, f"failed to configure function: {settings}")
    annotations, field_specs = settings
    for item in items:
        context.budget.charge_steps(len(field_specs) + len(item.base.text) // 64 if item.base else len(field_specs))
    paths_by_item = {
        item: list(dict.fromkeys(path for spec in field_specs for path in spec.find_paths(item))) for item in items
    }
    message = f"set annotations: {json.dumps(annotations, ensure_ascii=False, separators=(',', ':'))}"
    fields = [
        (item.path, item.index, format_path(path), item) for item, paths in paths_by_item.items() for path in paths
    ]
    results = [
        item.create_result(message, "info", field) for _, _, field, item in sorted(fields, key=lambda entry: entry[:3])
    ]
    changed_items = tuple(
        item.with_values(
            charge_values(_iterate_annotation_values(paths_by_item[item], annotations), item, context.budget)
        )
        for item in items
    )
    return FunctionOutput(changed_items, tuple(results) or (FunctionResult("no annotations applied"),))


def _iterate_annotation_values(
    paths: Sequence[DataPath], annotations: dict[str, str]
) -> Iterator[tuple[DataPath, str]]:
    ordered = sorted(paths, key=lambda path: (path != ("metadata", "annotations"), str(path)))
    return (((*path, key), text) for path in ordered for key, text in annotations.items())


def _read_annotations(config: FunctionConfig | None) -> tuple[dict[str, str], tuple[FieldSpec, ...]] | str:
    """Return the annotations, sorted by key, and the fields to which the function adds the annotations.

    If the configuration of the function is invalid, return an error message.
    """
    config = config or {}
    kind, additional_fields = config.get("kind"), [config.get("additionalAnnotationFields"), config.get("fieldSpecs")]
    if all(additional_fields):
        return "`fieldSpecs` has been deprecated, please rename it to `additionalAnnotationFields`"
    fields: tuple[FieldSpecEntry, ...] = ()
    if (config.get("apiVersion"), kind) == ("v1", "ConfigMap"):
        annotations = read_config_strings(config.get("data"), "data")
    elif config.get("apiVersion") == "fn.kpt.dev/v1alpha1" and kind in _KINDS:
        settings = read_config_object(SetAnnotations, config)
        annotations, fields = settings.annotations, settings.additional_annotation_fields or settings.field_specs
    else:
        return "`functionConfig` must be a `ConfigMap` or `SetAnnotations`"
    if not annotations:
        return "input annotation list cannot be empty"
    return dict(sorted(annotations.items())), (*_ANNOTATION_FIELDS, *convert_field_specs(fields))


@report_errors_as_failure
def delete_annotations(
    items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext
) -> FunctionOutput:
    """Delete annotations from the items. If no annotation remains, the field `metadata.annotations` is removed."""
    text = read_config_strings((config or {}).get("data"), "data").get("annotationKeys", "")
    keys = _split_keys(text, context.profile)
    if not keys:
        return create_failure(items, "annotationKeys must name at least one annotation, separated by commas")
    context.budget.charge_steps(len(items) * len(keys) // 16)
    keys_by_item = {item: [key for key in keys if key in item.annotations] for item in items}
    results = [
        FunctionResult(f"Annonation: [{key}] removed from resource: [{item.name}]", file=item.file)
        for item, item_keys in keys_by_item.items()
        for key in item_keys
    ]
    summary = f"The provided annotations were deleted from {sum(map(bool, keys_by_item.values()))} resource(s)"
    total = FunctionResult(summary if results else "None of the resources had the provided annotations to delete")
    return FunctionOutput(
        tuple(_delete_item_annotations(item, keys_by_item[item]) for item in items), (total, *results)
    )


def _split_keys(text: str, profile: Profile) -> tuple[str, ...]:
    """Split a comma-separated list of annotation names. The profile `compat` keeps spaces around names, as in kpt."""
    names = [name.strip() if profile == "safe" else name for name in text.strip().split(",")]
    return tuple(dict.fromkeys(name for name in names if name))


def _delete_item_annotations(item: Item, keys: Sequence[str]) -> Item:
    if not keys:
        return item
    annotations = {key: value for key, value in item.annotations.items() if key not in keys}
    metadata = {key: value for key, value in item.metadata.items() if key != "annotations" or annotations}
    return item.with_data({**item.data, "metadata": metadata | ({"annotations": annotations} if annotations else {})})
