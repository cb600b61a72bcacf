"""Patches on templates: done where no expression decides on what is done, else refused with that (openchoreo 13.3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.yaml import Path
from reconciler.rules.composition.codes import NOT_BAKEABLE
from reconciler.rules.composition.faults import FaultError, fault_of
from reconciler.rules.composition.marks import OPEN
from reconciler.rules.composition.model import Instance
from reconciler.rules.composition.patching.allowance import Allowance
from reconciler.rules.composition.patching.locate import Location, locate
from reconciler.rules.composition.patching.operations import Operation
from reconciler.rules.composition.patching.paths import Every, Filter, Index, Key, Numeric, PatchPath, Step
from reconciler.rules.composition.patching.pods import CONTAINER_LISTS, pod_path
from reconciler.rules.composition.patching.targets import Target, matches, may_match
from reconciler.rules.composition.patching.writers import Writers
from reconciler.rules.composition.text.scan import Expression, scan
from reconciler.rules.edits import value_at
from reconciler.rules.fields import shown

IsScalar = Callable[[str], bool]
_VALUE: Path = ("value",)
_LABELS: Path = ("metadata", "labels")
_OMIT = re.compile(r"\b(oc_)?omit\b")


def is_target(target: Target, template: Any, name: str, at: Path) -> bool:
    """Tell whether whatever is made of a template is what a target asks for. Raises FaultError where that depends."""
    if not may_match(replace(target, labels=(), containers=None), template, name):
        return False
    if not may_match(target, template, name) and not _open_keys(target, template):
        return False
    for one in (*_open_keys(target, template), *_open_values(target, template)):
        raise _undecided(at, one)
    return matches(target, template, name)


def require_decided(
    template: Any,
    operation: Operation,
    writers: Writers,
    by: Instance,
    allowance: Allowance,
    is_scalar: IsScalar,
    *,
    skip_missing: bool,
) -> None:
    """Raise FaultError where an expression of a template, or of a value, decides on what an operation does.

    `is_scalar` returns whether an expression can only result in a string, number or boolean.
    """
    at, steps = (*operation.at, "path"), operation.path.steps
    for number, step in enumerate(steps):
        so_far = PatchPath(operation.path.text, steps[:number])
        for place in locate(template, so_far, "remove", allowance, at, skip_missing=skip_missing):
            for text in _deciding(value_at(template, place), step):
                raise _undecided(at, text)
    for place in locate(template, operation.path, operation.op, allowance, at, skip_missing=skip_missing):
        for inside, text in _deciding_at(template, place, operation, writers, by, is_scalar):
            raise _undecided((*operation.at, *inside), text)


def _deciding(holder: Any, step: Step) -> Iterator[str]:
    """Yield the expressions of a container that decide on where a step leads."""
    match holder, step:
        case str(), _ if OPEN in holder:
            yield holder
        case dict(), Key() | Numeric():
            yield from (key for key in holder if OPEN in key)
        case list(), Index() | Numeric() | Every():
            yield from filter(_may_omit, holder)
        case list(), Filter(fields):
            for item in holder:
                yield from _deciding_field(item, fields)


def _deciding_field(item: Any, fields: tuple[str, ...]) -> Iterator[str]:
    """Yield the expressions that decide on whether a filter chooses an item."""
    for field in (*fields, None):
        if isinstance(item, str) and OPEN in item:
            yield item
        if not isinstance(item, dict) or field is None:
            return
        yield from (key for key in item if OPEN in key)
        item = item.get(field)


def _deciding_at(
    template: Any, place: Location, operation: Operation, writers: Writers, by: Instance, is_scalar: IsScalar
) -> Iterator[tuple[Path, str]]:
    """Yield the expressions that decide on the result at one place, each with its path below the operation."""
    holder, old, value = value_at(template, place[:-1]), value_at(template, place), operation.value
    if holder is ABSENT or holder is None or not isinstance(holder, dict | list):
        yield from [(_VALUE, value)] if _may_omit(value) else []
    if operation.op == "remove":
        return
    is_new = old is ABSENT or (operation.op == "add" and isinstance(holder, list))
    yield from ((("path",), str(step)) for step in place if isinstance(step, str) and OPEN in step)
    yield from ((_VALUE, one) for one in (old, value) if not is_new and _may_omit(one))
    if operation.op == "merge":
        yield from _deciding_merge(old, value, _VALUE, is_scalar)
        return
    # A map or list that another addon has set is merged with a map or list.
    is_foreign = operation.op == "add" and not is_new and writers.writer_of(place) not in (None, by)
    if is_foreign and all(_may_merge(one, is_scalar) for one in (old, value)):
        yield from _deciding_merge(old, value, _VALUE, is_scalar)


def _may_merge(value: Any, is_scalar: IsScalar) -> bool:
    return isinstance(value, dict | list) or (_is_whole(value) and not is_scalar(value))


def _deciding_merge(old: Any, value: Any, at: Path, is_scalar: IsScalar) -> Iterator[tuple[Path, str]]:
    """Yield the expressions that decide on how a value at a path is merged: maps by key, lists one after the other."""
    if old is ABSENT:
        return
    if isinstance(old, dict) and isinstance(value, dict):
        yield from ((at, key) for one in (old, value) for key in one if OPEN in key)
        for key, inner in value.items():
            yield from _deciding_merge(old.get(key, ABSENT), inner, (*at, key), is_scalar)
    elif old is None:
        yield from [(at, value)] if _may_omit(value) else []
    else:
        undecided = (one for one in (old, value) if _may_omit(one) or (_is_whole(one) and not is_scalar(one)))
        yield from ((at, one) for one in undecided)


def _open_keys(target: Target, template: Any) -> list[str]:
    """Return the keys of a template that may be those of labels, of containers, or on the way there."""
    asked: list[Path] = []
    if target.labels and not matches(Target(labels=target.labels), template, ""):
        asked += (_LABELS[:depth] for depth in range(len(_LABELS) + 1))
    if target.containers is not None:
        asked += (pod_path(template)[:depth] for depth in range(len(pod_path(template)) + 1))
    holders = (value_at(template, path) for path in asked)
    return [key for holder in holders if isinstance(holder, dict) for key in holder if OPEN in key]


def _open_values(target: Target, template: Any) -> Iterator[str]:
    """Yield the values of a template that may or may not be what a target, which it may match, asks for."""
    if target.group is not None or target.version is not None:
        yield from _texts_at(template, ("apiVersion",))
    for key, _ in target.labels:
        yield from _texts_at(template, (*_LABELS, key))
    if target.containers is not None and not matches(Target(containers=target.containers), template, ""):
        for name in CONTAINER_LISTS:
            yield from _texts_at(template, (*pod_path(template), name))
            items = value_at(template, (*pod_path(template), name))
            for item in items if isinstance(items, list) else ():
                yield from _texts_at(item, ("name",))


def _texts_at(data: Any, path: Path) -> Iterator[str]:
    """Yield the expression at a path, or in the place of one of the containers on the way."""
    for depth in range(len(path) + 1):
        found = value_at(data, path[:depth])
        if isinstance(found, str) and OPEN in found:
            yield found


def _may_omit(value: Any) -> bool:
    return isinstance(value, str) and OPEN in value and _OMIT.search(value) is not None


def _is_whole(value: Any) -> bool:
    """Tell whether a value is one expression, which may give anything."""
    if not isinstance(value, str) or OPEN not in value:
        return False
    found = [piece for piece in scan(value, ()) if not isinstance(piece, str) or not piece.isspace()]
    return len(found) == 1 and isinstance(found[0], Expression)


def _undecided(at: Path, text: str) -> FaultError:
    message = f"must be known before anything is rendered, and {shown(text)} decides on it"
    return FaultError(fault_of(NOT_BAKEABLE, at, message))
