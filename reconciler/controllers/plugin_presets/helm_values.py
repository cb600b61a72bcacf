"""Helm values, which are assembled from options. An option name is a path into the values.

If one option sets a list item and the path of another option continues below this item, Helm silently drops the item.
In this module, this case is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reconciler.krm.helm_paths import PathStep, check_option_name, parse_option_name
from reconciler.krm.values_tree import PlaceError, ValuesTree
from reconciler.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class PathConflict:
    """The reason why the Helm values cannot contain the value of the option `name`.

    `conflicting_name` is the other option that causes the conflict. `message` is then a sentence about both options.
    If no other option causes the conflict, `conflicting_name` is "", and `message` continues a sentence about the
    option.
    """

    name: str
    conflicting_name: str
    message: str


@dataclass(frozen=True)
class HelmValues:
    """Helm values that are assembled from options, and a conflict for each option that the values cannot contain."""

    values: dict[str, Any]
    conflicts: tuple[PathConflict, ...] = ()


def build_values(entries: Iterable[tuple[str, Any]]) -> HelmValues:
    """Assemble Helm values from options. `entries` are pairs of option name and value.

    If the path of one option is the parent of another path, the order of these entries has no effect: the value of
    `a.b` always replaces a part of the value of `a`. If two names have the same path, the later entry replaces the
    earlier entry.
    """
    parsed = [(parse_option_name(name), check_option_name(name), name, value) for name, value in entries]
    conflicts = [PathConflict(name, "", message) for _, message, name, _ in parsed if message]
    tree = ValuesTree()
    for steps, _, name, value in sorted(
        (entry for entry in parsed if entry[0]), key=lambda entry: _get_sort_key(entry[0])
    ):
        try:
            tree.place(steps, name, value)
        except PlaceError as error:
            conflicts.append(PathConflict(name, error.conflicting_name, _format_message(name, error)))
    return HelmValues(tree.values, tuple(conflicts))


def _format_message(name: str, error: PlaceError) -> str:
    if not error.conflicting_name:
        return error.message
    return (
        f'"{name}" requires {error.required_kind} at "{error.path}", but "{error.conflicting_name}" sets'
        f" {error.found_kind} there"
    )


def _get_sort_key(steps: tuple[PathStep, ...]) -> tuple[tuple[bool, int, str], ...]:
    return tuple((False, step, "") if isinstance(step, int) else (True, 0, step) for step in steps)
