"""set-annotations: annotations on resources and their templates, local-config objects included (kpt.md 15.4)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from reconciler.packages.functions.fieldspec import FieldSpec, read_field_specs, specs
from reconciler.packages.functions.function import Config, FunctionContext, Item, Output, Result, failure, string_map

_KINDS = ("SetAnnotations", "SetAnnotationConfig")
_TEMPLATED = (
    ("", "ReplicationController"),
    (None, "Deployment"),
    (None, "ReplicaSet"),
    (None, "DaemonSet"),
    (None, "StatefulSet"),
    ("batch", "Job"),
)
_JOB_TEMPLATE = "spec/jobTemplate/metadata/annotations"
_JOB_POD_TEMPLATE = "spec/jobTemplate/spec/template/metadata/annotations"
_SPECS = (
    FieldSpec("metadata/annotations", create=True),
    *specs(_TEMPLATED, "spec/template/metadata/annotations"),
    *specs((("batch", "CronJob"),), _JOB_TEMPLATE, _JOB_POD_TEMPLATE),
)


def set_annotations(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items with the annotations set; one result for each item and mapping, sorted by its path."""
    read = _read(config)
    if isinstance(read, str):
        return failure(items, read)
    annotations, field_specs = read
    changed: list[Item] = []
    results: list[Result] = []
    message = f"set annotations: {json.dumps(annotations, ensure_ascii=False, separators=(',', ':'))}"
    for item in items:
        paths = sorted({path for spec in field_specs for path in spec.targets(item)}, key=str)
        results += [item.result(message, "info", path) for path in paths]
        ordered = sorted(paths, key=lambda path: path != ("metadata", "annotations"))
        changed.append(item.with_values(((*path, key), text) for path in ordered for key, text in annotations.items()))
    return Output(tuple(changed), tuple(results))


def _read(config: Config | None) -> tuple[dict[str, str], tuple[FieldSpec, ...]] | str:
    """Return the annotations by key in sorted order and where they go, or what is wrong with the configuration."""
    config = config or {}
    kind, added = config.get("kind"), [config.get("additionalAnnotationFields"), config.get("fieldSpecs")]
    if all(added):
        return "at most one of `additionalAnnotationFields` and `fieldSpecs` may be given"
    if (config.get("apiVersion"), kind) == ("v1", "ConfigMap"):
        annotations = string_map(config.get("data"))
    elif kind in _KINDS:
        annotations = string_map(config.get("annotations"))
    else:
        return f'the configuration must be a ConfigMap or SetAnnotations, not "{kind or ""}"'
    if not annotations:
        return "the configuration must give at least one annotation"
    return dict(sorted(annotations.items())), (*_SPECS, *read_field_specs(added[0] or added[1]))
