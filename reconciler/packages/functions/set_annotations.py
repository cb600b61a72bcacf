"""set-annotations: annotations on resources and their templates, local-config objects included (kpt.md 15.4)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from reconciler.krm.yaml import Path
from reconciler.packages.functions.fieldspec import FieldSpec, read_field_specs, specs
from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    Result,
    charged,
    config_strings,
    failure,
    reports_faults,
)
from reconciler.packages.kptfile import field_path

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


@reports_faults
def set_annotations(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items with the annotations set; one result for each item and mapping, sorted by its path."""
    read = _read(config)
    if isinstance(read, str):
        return failure(items, f"failed to configure function: {read}")
    annotations, field_specs = read
    for item in items:
        context.budget.spend(len(field_specs) + len(item.base.text) // 64 if item.base else len(field_specs))
    places = {item: list(dict.fromkeys(path for spec in field_specs for path in spec.targets(item))) for item in items}
    message = f"set annotations: {json.dumps(annotations, ensure_ascii=False, separators=(',', ':'))}"
    found = [(item.path, item.index, field_path(path), item) for item, paths in places.items() for path in paths]
    results = [item.result(message, "info", field) for _, _, field, item in sorted(found, key=lambda place: place[:3])]
    changed = tuple(
        item.with_values(charged(_values(places[item], annotations), item, context.budget)) for item in items
    )
    return Output(changed, tuple(results) or (Result("no annotations applied"),))


def _values(paths: Sequence[Path], annotations: dict[str, str]) -> Iterator[tuple[Path, str]]:
    ordered = sorted(paths, key=lambda path: (path != ("metadata", "annotations"), str(path)))
    return (((*path, key), text) for path in ordered for key, text in annotations.items())


def _read(config: Config | None) -> tuple[dict[str, str], tuple[FieldSpec, ...]] | str:
    """Return the annotations by key in sorted order and where they go, or what is wrong with the configuration."""
    config = config or {}
    kind, added = config.get("kind"), [config.get("additionalAnnotationFields"), config.get("fieldSpecs")]
    if all(added):
        return "`fieldSpecs` has been deprecated, please rename it to `additionalAnnotationFields`"
    if (config.get("apiVersion"), kind) == ("v1", "ConfigMap"):
        annotations = config_strings(config.get("data"), "data")
    elif config.get("apiVersion") == "fn.kpt.dev/v1alpha1" and kind in _KINDS:
        annotations = config_strings(config.get("annotations"), "annotations")
    else:
        return "`functionConfig` must be a `ConfigMap` or `SetAnnotations`"
    if not annotations:
        return "input annotation list cannot be empty"
    return dict(sorted(annotations.items())), (*_SPECS, *read_field_specs(added[0] or added[1]))
