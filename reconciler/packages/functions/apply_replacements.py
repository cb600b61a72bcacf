"""The function `apply-replacements`: copy a field of one resource to fields of other resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.krm.numbers import format_count
from reconciler.krm.patterns import PatternError, compile_pattern
from reconciler.krm.selectors import LabelQueryError, matches_label_query
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached
from reconciler.packages.functions.field_edits import parse_plain_scalar
from reconciler.packages.functions.field_specs import get_resource_scope
from reconciler.packages.functions.function import (
    FunctionConfig,
    FunctionContext,
    FunctionOutput,
    FunctionResult,
    Item,
    copy_plain_data,
    format_scalar,
    report_errors_as_failure,
)
from reconciler.packages.functions.limits import (
    MAX_LEVELS,
    FunctionBudget,
    LimitError,
    estimate_text_bytes,
    estimate_value_bytes,
    find_depth_error,
)
from reconciler.packages.functions.replacement_fields import (
    ElementMatching,
    FieldReference,
    ReplacementPathError,
    Segment,
    find_references,
    format_structured_text,
    parse_replacement_path,
    parse_structured_text,
)

# In this version and later, a missing target field is an error, the default target is `metadata.name`, and a target
# field keeps its type.
_STRICT = (0, 1, 2)
# In this version and later, fields of target selectors, such as `name`, are regular expressions. The field
# `sourceValue` exists, and a path can continue inside a string with JSON or YAML.
_PATTERNS = (0, 1, 3)
# Maximum number of cached pattern matches. This number is sufficient for all packages that are rendered at the same
# time.
_MAX_CACHED_MATCHES = 4096
# The number of steps that are subtracted from the budget for finding and writing one field.
_WRITE_STEPS = 10
_ID_FIELDS = ("group", "version", "kind", "name", "namespace")


class _ReplacementError(ValueError):
    """A replacement is not possible. The message contains the reason."""


@dataclass(frozen=True)
class _Rules:
    """The behavior of a replacement, which depends on the version of the function and on the profile."""

    strict: bool
    patterns: bool
    matching: ElementMatching
    types: str
    """The field that determines the type of a replaced scalar: `source` or `target`."""
    missing: str
    """The effect of a missing target field: `ignored`, `warning` or `error`."""
    keeps_order: bool
    """Whether JSON text in a field keeps the order of its keys, and YAML text keeps its last line break."""
    budget: FunctionBudget


class _Resources:
    """The current state of all resources while the replacements are applied, one after the other.

    The data of a resource is copied before its first change.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = tuple(items)
        self._changed: dict[Item, Any] = {}
        self._current: dict[Item, Item] = {}

    def get_data(self, item: Item) -> Any:
        """Return the current data of an item. Do not change this data."""
        return self._changed.get(item, item.data)

    def get_current(self, item: Item) -> Item:
        """Return the item with the changes of the previous replacements."""
        if item not in self._changed:
            return item
        if item not in self._current:
            self._current[item] = item.with_data(self._changed[item])
        return self._current[item]

    def get_writable_data(self, item: Item) -> Any:
        """Return a copy of the item's data, which the caller can change."""
        # Remove the item from the cache, because the caller changes its data.
        self._current.pop(item, None)
        if item not in self._changed:
            self._changed[item] = item.copy()
        return self._changed[item]

    def check(self) -> None:
        """Raise LimitError if a changed resource has too many nesting levels to be written."""
        for item, data in self._changed.items():
            if error := find_depth_error(data):
                raise LimitError(f"{item.file}: {item.kind} {item.name}: {error}")

    def list_all(self) -> tuple[Item, ...]:
        """Return all items with their changes. Unchanged items are the original Python objects."""
        return tuple(self._share_unchanged(item) for item in self.items)

    def _share_unchanged(self, item: Item) -> Item:
        data = self.get_data(item)
        return item if is_equal_data(data, item.data) else item.with_shared_data(data)


@report_errors_as_failure
def apply_replacements(
    items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext
) -> FunctionOutput:
    """Apply all replacements in order. Each replacement reads the results of the previous replacements.

    After an error, the items are unchanged. For an invalid replacement, the output contains a result with the severity
    `error`, but is not marked as failed. The original function also exits with 0 in this case.
    """
    resources, rules, results = _Resources(items), _create_rules(context), list[FunctionResult]()
    try:
        for replacement in _read_replacements(config):
            results += _apply_replacement(resources, replacement, rules)
        resources.check()
    except (_ReplacementError, ReplacementPathError, LabelQueryError) as error:
        return FunctionOutput(tuple(items), (FunctionResult(str(error), "error"),))
    return FunctionOutput(resources.list_all(), tuple(results))


def _create_rules(context: FunctionContext) -> _Rules:
    strict, patterns = context.version >= _STRICT, context.version >= _PATTERNS
    if context.profile == "safe":
        missing_effect = "error" if strict else "warning"
        return _Rules(
            strict, patterns, ElementMatching(), "target", missing_effect, keeps_order=True, budget=context.budget
        )
    if strict:
        return _Rules(strict, patterns, ElementMatching(by_pattern=True), "target", "error", False, context.budget)
    return _Rules(strict, patterns, ElementMatching(every=False), "source", "ignored", False, context.budget)


def _read_replacements(config: FunctionConfig | None) -> list[Mapping[str, Any]]:
    if not config:
        raise _ReplacementError("the configuration must be an ApplyReplacements, but there is no configuration")
    kind = config.get("kind")
    if kind != "ApplyReplacements" or not str(config.get("apiVersion")).startswith("fn.kpt.dev/"):
        raise _ReplacementError(f'the configuration must be an fn.kpt.dev ApplyReplacements, but is "{kind}"')
    replacements = config.get("replacements")
    if not isinstance(replacements, list) or not all(isinstance(entry, Mapping) for entry in replacements):
        raise _ReplacementError("replacements must be a list of mappings")
    return replacements


def _apply_replacement(
    resources: _Resources, replacement: Mapping[str, Any], rules: _Rules
) -> Iterator[FunctionResult]:
    targets = replacement.get("targets")
    if not isinstance(targets, list) or not targets:
        raise _ReplacementError("a replacement must have a source and at least one target")
    rules.budget.charge_steps(len(resources.items))
    value = _get_value(resources, replacement, rules)
    for target in targets:
        if not isinstance(target, Mapping) or not isinstance(target.get("select"), Mapping):
            raise _ReplacementError("a target must select resources")
        yield from _write_target(resources, target, value, rules)


def _get_value(resources: _Resources, replacement: Mapping[str, Any], rules: _Rules) -> Any:
    source, source_value = replacement.get("source"), replacement.get("sourceValue") if rules.patterns else None
    if source_value is not None and source is not None:
        raise _ReplacementError("a replacement must have either a source or a sourceValue, not both")
    if source_value is not None:
        return format_scalar(source_value) or ""
    if not isinstance(source, Mapping):
        raise _ReplacementError("a replacement must have a source and at least one target")
    return _get_source_value(resources, source)


def _get_source_value(resources: _Resources, source: Mapping[str, Any]) -> Any:
    item = _find_source(resources, source)
    path = str(source.get("fieldPath") or "metadata.name")
    values = [reference.read() for reference in find_references(resources.get_data(item), parse_replacement_path(path))]
    if not values or values[0] is None or values[0] in ({}, []):
        raise _ReplacementError(f"the source field {path} must have a value in {item.key}")
    options = _get_options(source)
    return _get_part(values[0], options, path) if options.get("delimiter") else values[0]


def _find_source(resources: _Resources, source: Mapping[str, Any]) -> Item:
    matching = [item for item in resources.items if _has_id(resources.get_current(item), source)]
    if len(matching) != 1:
        selector = " ".join(f"{name}={source[name]}" for name in _ID_FIELDS if source.get(name))
        raise _ReplacementError(
            f"exactly one resource must match the source {selector}, but {len(matching)} resources match"
        )
    return matching[0]


def _get_part(value: Any, options: Mapping[str, Any], path: str) -> str:
    text, index = format_scalar(value), _get_index(options)
    if text is None:
        raise _ReplacementError(f"the source field {path} must be a scalar, because the replacement has a delimiter")
    parts = text.split(str(options["delimiter"]))
    if not 0 <= index < len(parts):
        raise _ReplacementError(
            f"the source field {path} has {format_count(len(parts), 'part')}, and no part with index {index}"
        )
    return parts[index]


def _write_target(
    resources: _Resources, target: Mapping[str, Any], value: Any, rules: _Rules
) -> Iterator[FunctionResult]:
    default = ["metadata.name"] if rules.strict else []
    # Estimate the budget steps that one item takes. The item is compared with the label selectors and with each entry
    # of `reject`.
    rejections, selectors = target.get("reject"), target["select"]
    size = sum(len(str(selectors.get(name) or "")) for name in ("labelSelector", "annotationSelector"))
    steps = 1 + size // 16 + (len(rejections) if isinstance(rejections, list) else 0)
    for item in resources.items:
        rules.budget.charge_steps(steps)
        if not _is_target(resources.get_current(item), target, rules):
            continue
        for path in target.get("fieldPaths") or default:
            rules.budget.charge_steps(_WRITE_STEPS)
            rules.budget.charge_scan(len(str(path)) + (len(item.base.text) if item.base else 0))
            data, options = resources.get_writable_data(item), _get_options(target)
            segments = parse_replacement_path(str(path))
            if len(segments) > MAX_LEVELS:
                raise _ReplacementError(
                    f"a field path must not have more than {MAX_LEVELS} parts, but has {len(segments)}"
                )
            is_written = _write_fields(data, segments, value, options, rules, str(path))
            is_written = is_written or (rules.patterns and _write_in_text(data, str(path), value, options, rules))
            yield from _report_missing(item, str(path), rules) if not is_written else ()


def _write_fields(
    data: Any, segments: tuple[Segment, ...], value: Any, options: Mapping[str, Any], rules: _Rules, path: str
) -> bool:
    """Set all fields that a path selects. Return False if there is no such field."""
    references = find_references(data, segments, create=bool(options.get("create")), matching=rules.matching)
    for reference in references:
        # Check the budget before the value is joined or copied, so that a large value is never created.
        old_value = reference.read() if options.get("delimiter") else None
        size = estimate_value_bytes(value, len(segments)) + (
            estimate_text_bytes(old_value) if isinstance(old_value, str) else 0
        )
        size += len(str(options.get("delimiter") or ""))
        rules.budget.charge_output(size, f"the target field {path[:100]}", str(value)[:100])
        reference.write(_compute_value(reference, value, options, rules, path))
    return bool(references)


def _write_in_text(data: Any, path: str, value: Any, options: Mapping[str, Any], rules: _Rules) -> bool:
    """Set the fields at a path that leads into a string with JSON or YAML.

    If the path leads into several strings, change only the first string. Return False if no field exists at the path.
    """
    segments = parse_replacement_path(path)
    for length in range(1, len(segments)):
        is_found = False
        for reference in find_references(data, segments[:length], matching=rules.matching):
            text = reference.read()
            rules.budget.charge_parse(len(text) if isinstance(text, str) else 0)
            text_data = parse_structured_text(text) if isinstance(text, str) else None
            if text_data is not None and _write_fields(text_data, segments[length:], value, options, rules, path):
                rules.budget.charge_output(estimate_value_bytes(text_data), f"the text at {path}")
                reference.write(format_structured_text(str(text), text_data, keep_order=rules.keeps_order))
                is_found = True
        if is_found:
            return True
    return False


def _report_missing(item: Item, path: str, rules: _Rules) -> Iterator[FunctionResult]:
    message = f"the target field {path} does not exist in {item.key}"
    if rules.missing == "error":
        raise _ReplacementError(message)
    if rules.missing == "warning":
        yield item.create_result(message, "warning", path)


def _compute_value(reference: FieldReference, value: Any, options: Mapping[str, Any], rules: _Rules, path: str) -> Any:
    old_value, text = reference.read(), format_scalar(value)
    if options.get("delimiter"):
        return _replace_part(old_value, text, options, path)
    if old_value is None or isinstance(old_value, dict | list) or text is None or rules.types == "source":
        return copy_plain_data(value)
    return text if isinstance(old_value, str) else parse_plain_scalar(text)


def _replace_part(old: Any, text: str | None, options: Mapping[str, Any], path: str) -> str:
    old_text = format_scalar(old) if old is not None else None
    if old_text is None or text is None:
        raise _ReplacementError(
            f"the target field {path} and its new value must be scalars, because the replacement has a delimiter"
        )
    delimiter, index = str(options["delimiter"]), _get_index(options)
    parts = old_text.split(delimiter)
    if index < 0:
        parts.insert(0, text)
    elif index >= len(parts):
        parts.append(text)
    else:
        parts[index] = text
    return delimiter.join(parts)


def _is_target(item: Item, target: Mapping[str, Any], rules: _Rules) -> bool:
    select = target["select"]
    if not _has_id(item, select, by_pattern=rules.patterns) or not _has_labels(item, select):
        return False
    rejects = target.get("reject")
    return not any(_is_rejected(item, entry, rules) for entry in (rejects if isinstance(rejects, list) else []))


def _is_rejected(item: Item, entry: Any, rules: _Rules) -> bool:
    if not isinstance(entry, Mapping):
        return False
    has_id_fields = any(entry.get(name) for name in _ID_FIELDS)
    rejects_id = has_id_fields and _has_id(item, entry, by_pattern=rules.patterns)
    rejects_labels = bool(entry.get("labelSelector") or entry.get("annotationSelector")) and _has_labels(item, entry)
    return rejects_id or rejects_labels


def _has_id(item: Item, selector: Mapping[str, Any], *, by_pattern: bool = False) -> bool:
    for name in _ID_FIELDS:
        expected = selector.get(name)
        if expected in (None, ""):
            continue
        value = getattr(item, name) or (_get_default_namespace(item, selector) if name == "namespace" else "")
        if expected != value and not (by_pattern and _matches(str(expected), value)):
            return False
    return True


@cached(_MAX_CACHED_MATCHES)
def _matches(pattern: str, value: str) -> bool:
    try:
        return compile_pattern(pattern).fullmatch(value) is not None
    except PatternError as error:
        raise _ReplacementError(f'"{pattern[:200]}" must be a valid regular expression: {error}') from error


def _get_default_namespace(item: Item, selector: Mapping[str, Any]) -> str:
    is_default = selector.get("namespace") == "default" and get_resource_scope(item) != "cluster"
    return "default" if is_default else ""


def _has_labels(item: Item, selector: Mapping[str, Any]) -> bool:
    labels, annotations = str(selector.get("labelSelector") or ""), str(selector.get("annotationSelector") or "")
    return matches_label_query(labels, item.labels) and matches_label_query(annotations, item.annotations)


def _get_options(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    options = entry.get("options")
    return options if isinstance(options, Mapping) else {}


def _get_index(options: Mapping[str, Any]) -> int:
    index = options.get("index")
    return index if isinstance(index, int) else 0
