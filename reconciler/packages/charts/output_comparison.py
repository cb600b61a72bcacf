"""Compares the outputs of several renders of one chart, and finds the fields that differ."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Sequence
from typing import Any

from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DEFAULT_YAML_LIMITS, DataPath, YamlError, emit, normalize_document
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.charts.documents import OutputText, RenderedResource
from reconciler.packages.charts.hooks import is_left_out, read_hooks
from reconciler.packages.charts.request import ChartRequest
from reconciler.packages.functions.function import get_value_at

REWRITE_REASON = "text that changes with each render"


@dataclass(frozen=True)
class FieldDifference:
    """A field that differs between the renders of a chart.

    Attributes:
        resource: The resource that contains the field, from the first render that contains the resource.
        path: The path of the field. () means the whole resource.
        text: The values of the field in the renders after the first one. Do not show this text: it can be confidential.
    """

    resource: RenderedResource
    path: DataPath
    text: str


@dataclass(frozen=True)
class OutputComparison:
    """The documents of the first output, and the fields that differ in the other outputs.

    If a document differs only in its comments or in the order of its keys, `texts` contains a new text, which is
    generated from the data of the document.
    """

    texts: tuple[OutputText, ...]
    differences: tuple[FieldDifference, ...]


def compare_outputs(
    outputs: Sequence[tuple[OutputText, ...]], request: ChartRequest, *, has_random_order: bool = False
) -> OutputComparison:
    """Compare the first output with the other outputs. Resources that are not part of the package are ignored.

    Args:
        has_random_order: If True, all outputs can have keys in a random order. If False, only the first output can.
    """
    indexed = [{(text.template, text.index): text for text in output} for output in outputs]
    texts = dict(indexed[0])
    differences: list[FieldDifference] = []
    for place in dict.fromkeys(place for output in indexed for place in output):
        versions = [output.get(place) for output in indexed]
        if len({version.text if version else None for version in versions}) > 1:
            first, found = _compare_versions(versions, request, has_random_order)
            differences += found
            texts.update({place: first} if first else {})
    return OutputComparison(tuple(texts.values()), tuple(differences))


def _compare_versions(
    versions: Sequence[OutputText | None], request: ChartRequest, has_random_order: bool
) -> tuple[OutputText | None, list[FieldDifference]]:
    """Compare one document in the outputs of several renders. Return its new text, and the fields that differ.

    A version is None if the output does not contain the document. The text is None if the first version is None.
    """
    first = versions[0]
    resources = [_parse(version) for version in versions]
    has_stable_name = len({resource.name for resource in resources if resource}) == 1
    first = replace(first, has_stable_name=has_stable_name) if first else None
    included = [resource for resource in resources if resource and not _is_left_out(resource, request)]
    if not included:
        return first, []
    subject = replace(included[0], source=replace(included[0].source, has_stable_name=has_stable_name))
    if len(included) < len(versions):
        return first, [FieldDifference(subject, (), _join_values([resource.data for resource in included[1:]]))]
    data = [resource.data for resource in included]
    paths = dict.fromkeys(path for other in data[1:] for path in _find_changed_paths(data[0], other, ()))
    if not paths and first:
        # Only comments or the order of keys differ. Use the second version, which comes from a copy of the chart with
        # placeholders. This copy sorts the results of the function `keys`. If `has_random_order` is True, the copy
        # does not sort them, so that the keys are sorted here.
        stable = _sort_changed_orders(data) if has_random_order else data[1]
        return replace(first, text=emit(stable), rewrite_reason=REWRITE_REASON), []
    return first, [
        FieldDifference(subject, path, _join_values([get_value_at(d, path) for d in data[1:]])) for path in paths
    ]


def _sort_changed_orders(versions: Sequence[Any]) -> Any:
    """Return the data of the versions, which differ at most in the order of keys.

    If the keys of a mapping have a different order in two versions, the result contains the keys in sorted order.
    """
    first = versions[0]
    if isinstance(first, dict):
        keys = list(first) if len({tuple(version) for version in versions}) == 1 else sorted(first)
        return {key: _sort_changed_orders([version[key] for version in versions]) for key in keys}
    if isinstance(first, list):
        return [_sort_changed_orders(items) for items in zip(*versions, strict=True)]
    return first


def _parse(version: OutputText | None) -> RenderedResource | None:
    if version is None:
        return None
    try:
        normalized = normalize_document(version.text, DEFAULT_YAML_LIMITS, allow_duplicate_keys=True)
    except YamlError:
        return None
    return RenderedResource(version, normalized.document) if normalized else None


def _is_left_out(resource: RenderedResource, request: ChartRequest) -> bool:
    return is_left_out(read_hooks(resource), request.hooks, skip_tests=request.skip_tests)


def _find_changed_paths(before: Any, after: Any, path: DataPath) -> Iterator[DataPath]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            yield from _find_changed_paths(before.get(key, ABSENT), after.get(key, ABSENT), (*path, key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _find_changed_paths(old, new, (*path, index))
    elif before is ABSENT or after is ABSENT or not is_equal_data(before, after):
        yield path


def _join_values(values: Sequence[Any]) -> str:
    """Return the values as one text, with the decoded text of each value in base64."""
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return "\n".join([*texts, *map(_decode, texts)])


def _decode(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        return ""
