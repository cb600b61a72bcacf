"""apply-replacements: copy a field of one resource into fields of others (kpt.md 15.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.caching import cached
from reconciler.krm.label_query import LabelQueryError, matches_query
from reconciler.krm.patterns import PatternError, compile_pattern
from reconciler.krm.yaml.same import same
from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    Result,
    plain_copy,
    reports_faults,
    scalar_text,
)
from reconciler.packages.functions.limits import MAX_LEVELS, Budget, LimitError, depth_fault, text_bytes, value_bytes
from reconciler.packages.functions.replacement_path import (
    Matching,
    PathError,
    Reference,
    Segment,
    find,
    parse_path,
)
from reconciler.packages.functions.scalars import resolved
from reconciler.packages.functions.scopes import scope_of
from reconciler.packages.functions.structured_text import restructured, structured

# from here on missing target fields are an error, the default target is the name, and targets keep their type
_STRICT = (0, 1, 2)
# from here on ids are patterns, a value needs no source, and paths lead on into text that holds JSON or YAML
_PATTERNS = (0, 1, 3)
# the patterns of the replacements in flight, each with the texts that it is held against
_REMEMBERED_MATCHES = 4096
# what it takes to find and to write one field
_WRITE_STEPS = 10
_ID_FIELDS = ("group", "version", "kind", "name", "namespace")


class _ReplacementError(ValueError):
    """A replacement cannot be made; the message says why."""


@dataclass(frozen=True)
class _Rules:
    """What differs between releases and profiles."""

    strict: bool
    patterns: bool
    matching: Matching
    types: str
    """Whose type a replaced scalar has: `source` or `target`."""
    missing: str
    """What a missing target field is: `ignored`, a `warning` or an `error`."""
    keeps_order: bool
    budget: Budget
    """Whether JSON inside a text keeps the order of its keys, and YAML its last line."""


class _Resources:
    """The items, each with data that is copied when it is first written to."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = tuple(items)
        self._changed: dict[Item, Any] = {}
        self._current: dict[Item, Item] = {}

    def data(self, item: Item) -> Any:
        """Return the item's data as it is now; read-only."""
        return self._changed.get(item, item.data)

    def current(self, item: Item) -> Item:
        """Return the item as it is now, earlier replacements included."""
        if item not in self._changed:
            return item
        if item not in self._current:
            self._current[item] = item.with_data(self._changed[item])
        return self._current[item]

    def writable(self, item: Item) -> Any:
        """Return the item's data, free to change."""
        # what was asked of it before may be otherwise from now on
        self._current.pop(item, None)
        if item not in self._changed:
            self._changed[item] = item.copy()
        return self._changed[item]

    def check(self) -> None:
        """Raise LimitError for data that is nested too deeply to be written."""
        for item, data in self._changed.items():
            if fault := depth_fault(data):
                raise LimitError(f"{item.file}: {item.kind} {item.name}: {fault}")

    def all(self) -> tuple[Item, ...]:
        """Return all items as they are now; the very same item where it came to what it was."""
        return tuple(self._shared(item) for item in self.items)

    def _shared(self, item: Item) -> Item:
        data = self.data(item)
        return item if same(data, item.data) else item.with_shared_data(data)


@reports_faults
def apply_replacements(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items with the replacements made, in order, each seeing those before it.

    An error is an error result, and the items stay as they were (upstream exits 0 then).
    """
    resources, rules, results = _Resources(items), _rules(context), list[Result]()
    try:
        for replacement in _replacements(config):
            results += _replace(resources, replacement, rules)
        resources.check()
    except (_ReplacementError, PathError, LabelQueryError) as error:
        return Output(tuple(items), (Result(str(error), "error"),))
    return Output(resources.all(), tuple(results))


def _rules(context: FunctionContext) -> _Rules:
    strict, patterns = context.version >= _STRICT, context.version >= _PATTERNS
    if context.profile == "safe":
        missing = "error" if strict else "warning"
        return _Rules(strict, patterns, Matching(), "target", missing, keeps_order=True, budget=context.budget)
    if strict:
        return _Rules(strict, patterns, Matching(by_pattern=True), "target", "error", False, context.budget)
    return _Rules(strict, patterns, Matching(every=False), "source", "ignored", False, context.budget)


def _replacements(config: Config | None) -> list[Mapping[str, Any]]:
    if not config:
        raise _ReplacementError("the configuration must be an ApplyReplacements; there is none")
    kind = config.get("kind")
    if kind != "ApplyReplacements" or not str(config.get("apiVersion")).startswith("fn.kpt.dev/"):
        raise _ReplacementError(f'the configuration must be an fn.kpt.dev ApplyReplacements, not "{kind}"')
    replacements = config.get("replacements")
    if not isinstance(replacements, list) or not all(isinstance(entry, Mapping) for entry in replacements):
        raise _ReplacementError("replacements must be a list of mappings")
    return replacements


def _replace(resources: _Resources, replacement: Mapping[str, Any], rules: _Rules) -> Iterator[Result]:
    targets = replacement.get("targets")
    if not isinstance(targets, list) or not targets:
        raise _ReplacementError("a replacement must have a source and at least one target")
    rules.budget.spend(len(resources.items))
    value = _value(resources, replacement, rules)
    for target in targets:
        if not isinstance(target, Mapping) or not isinstance(target.get("select"), Mapping):
            raise _ReplacementError("a target must select resources")
        yield from _write(resources, target, value, rules)


def _value(resources: _Resources, replacement: Mapping[str, Any], rules: _Rules) -> Any:
    source, given = replacement.get("source"), replacement.get("sourceValue") if rules.patterns else None
    if given is not None and source is not None:
        raise _ReplacementError("a replacement must have either a source or a sourceValue, not both")
    if given is not None:
        return scalar_text(given) or ""
    if not isinstance(source, Mapping):
        raise _ReplacementError("a replacement must have a source and at least one target")
    return _source_value(resources, source)


def _source_value(resources: _Resources, source: Mapping[str, Any]) -> Any:
    item = _only_source(resources, source)
    path = str(source.get("fieldPath") or "metadata.name")
    found = [reference.read() for reference in find(resources.data(item), parse_path(path))]
    if not found or found[0] is None or found[0] in ({}, []):
        raise _ReplacementError(f"the source field {path} must have a value in {item.key}")
    options = _options(source)
    return _part(found[0], options, path) if options.get("delimiter") else found[0]


def _only_source(resources: _Resources, source: Mapping[str, Any]) -> Item:
    matching = [item for item in resources.items if _has_id(resources.current(item), source)]
    if len(matching) != 1:
        wanted = " ".join(f"{name}={source[name]}" for name in _ID_FIELDS if source.get(name))
        raise _ReplacementError(f"exactly one resource must match the source {wanted}, not {len(matching)}")
    return matching[0]


def _part(value: Any, options: Mapping[str, Any], path: str) -> str:
    text, index = scalar_text(value), _index(options)
    if text is None:
        raise _ReplacementError(f"the source field {path} must be a scalar to be split")
    parts = text.split(str(options["delimiter"]))
    if not 0 <= index < len(parts):
        raise _ReplacementError(f"the source field {path} has {len(parts)} parts, so there is none at {index}")
    return parts[index]


def _write(resources: _Resources, target: Mapping[str, Any], value: Any, rules: _Rules) -> Iterator[Result]:
    default = ["metadata.name"] if rules.strict else []
    # what one look at an item costs: its labels, its id, and what is rejected
    rejects, selectors = target.get("reject"), target["select"]
    size = sum(len(str(selectors.get(name) or "")) for name in ("labelSelector", "annotationSelector"))
    look = 1 + size // 16 + (len(rejects) if isinstance(rejects, list) else 0)
    for item in resources.items:
        rules.budget.spend(look)
        if not _is_target(resources.current(item), target, rules):
            continue
        for path in target.get("fieldPaths") or default:
            rules.budget.spend(_WRITE_STEPS)
            rules.budget.scan(len(str(path)) + (len(item.base.text) if item.base else 0))
            data, options = resources.writable(item), _options(target)
            segments = parse_path(str(path))
            if len(segments) > MAX_LEVELS:
                raise _ReplacementError(f"a field path must not have more than {MAX_LEVELS} parts, not {len(segments)}")
            done = _write_fields(data, segments, value, options, rules, str(path))
            done = done or (rules.patterns and _write_in_text(data, str(path), value, options, rules))
            yield from _missing(item, str(path), rules) if not done else ()


def _write_fields(
    data: Any, segments: tuple[Segment, ...], value: Any, options: Mapping[str, Any], rules: _Rules, path: str
) -> bool:
    """Set the fields that the segments of a path lead to, and tell whether there are any."""
    references = find(data, segments, create=bool(options.get("create")), matching=rules.matching)
    for reference in references:
        # before the value is joined or copied; of the field no more than its text is kept
        old = reference.read() if options.get("delimiter") else None
        size = value_bytes(value, len(segments)) + (text_bytes(old) if isinstance(old, str) else 0)
        size += len(str(options.get("delimiter") or ""))
        rules.budget.create(size, f"the target field {path[:100]}", str(value)[:100])
        reference.write(_new_value(reference, value, options, rules, path))
    return bool(references)


def _write_in_text(data: Any, path: str, value: Any, options: Mapping[str, Any], rules: _Rules) -> bool:
    """Set the fields at a path that leads on into a text with JSON or YAML, and tell whether there are any."""
    segments = parse_path(path)
    for length in range(1, len(segments)):
        for reference in find(data, segments[:length], matching=rules.matching):
            text = reference.read()
            rules.budget.parse(len(text) if isinstance(text, str) else 0)
            inner = structured(text) if isinstance(text, str) else None
            if inner is not None and _write_fields(inner, segments[length:], value, options, rules, path):
                rules.budget.create(value_bytes(inner), f"the text at {path}")
                reference.write(restructured(str(text), inner, keeps_order=rules.keeps_order))
                return True
    return False


def _missing(item: Item, path: str, rules: _Rules) -> Iterator[Result]:
    message = f"the target field {path} does not exist in {item.key}"
    if rules.missing == "error":
        raise _ReplacementError(message)
    if rules.missing == "warning":
        yield item.result(message, "warning", path)


def _new_value(reference: Reference, value: Any, options: Mapping[str, Any], rules: _Rules, path: str) -> Any:
    old, text = reference.read(), scalar_text(value)
    if options.get("delimiter"):
        return _joined(old, text, options, path)
    if old is None or isinstance(old, dict | list) or text is None or rules.types == "source":
        return plain_copy(value)
    return text if isinstance(old, str) else resolved(text)


def _joined(old: Any, text: str | None, options: Mapping[str, Any], path: str) -> str:
    old_text = scalar_text(old) if old is not None else None
    if old_text is None or text is None:
        raise _ReplacementError(f"the target field {path} and what goes into it must be scalars to be split")
    delimiter, index = str(options["delimiter"]), _index(options)
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
    return not any(_rejects(item, entry, rules) for entry in (rejects if isinstance(rejects, list) else []))


def _rejects(item: Item, entry: Any, rules: _Rules) -> bool:
    if not isinstance(entry, Mapping):
        return False
    names_id = any(entry.get(name) for name in _ID_FIELDS)
    by_id = names_id and _has_id(item, entry, by_pattern=rules.patterns)
    by_labels = bool(entry.get("labelSelector") or entry.get("annotationSelector")) and _has_labels(item, entry)
    return by_id or by_labels


def _has_id(item: Item, wanted: Mapping[str, Any], *, by_pattern: bool = False) -> bool:
    for name in _ID_FIELDS:
        asked = wanted.get(name)
        if asked in (None, ""):
            continue
        value = getattr(item, name) or (_unset_namespace(item, wanted) if name == "namespace" else "")
        if asked != value and not (by_pattern and _matches(str(asked), value)):
            return False
    return True


@cached(_REMEMBERED_MATCHES)
def _matches(pattern: str, value: str) -> bool:
    try:
        return compile_pattern(pattern).fullmatch(value) is not None
    except PatternError as error:
        raise _ReplacementError(f'"{pattern[:200]}" must be a regular expression: {error}') from error


def _unset_namespace(item: Item, wanted: Mapping[str, Any]) -> str:
    is_default = wanted.get("namespace") == "default" and scope_of(item) != "cluster"
    return "default" if is_default else ""


def _has_labels(item: Item, wanted: Mapping[str, Any]) -> bool:
    labels, annotations = str(wanted.get("labelSelector") or ""), str(wanted.get("annotationSelector") or "")
    return matches_query(labels, item.labels) and matches_query(annotations, item.annotations)


def _options(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    options = entry.get("options")
    return options if isinstance(options, Mapping) else {}


def _index(options: Mapping[str, Any]) -> int:
    index = options.get("index")
    return index if isinstance(index, int) else 0
