"""What there is instead: why a selector that nothing meets meets nothing, in the words of what it could have met."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from reconciler.krm.selectors import LabelSelector, Requirement
from reconciler.rules.fields import meant

_VALUES = 8


class Asking(Protocol):
    """One requirement of labels, of whatever selector."""

    @property
    def key(self) -> str:
        """The label that it asks for."""
        ...

    @property
    def operator(self) -> str:
        """How it compares."""
        ...

    @property
    def values(self) -> tuple[str, ...]:
        """With what."""
        ...


def requirements_of(selector: LabelSelector) -> tuple[Requirement, ...]:
    """Return all that a selector asks for as requirements."""
    return (*equalities(selector.match_labels), *selector.match_expressions)


def equalities(labels: Iterable[tuple[str, str]]) -> tuple[Requirement, ...]:
    """Return labels that must have these values as requirements."""
    return tuple(Requirement(key, "In", (value,)) for key, value in labels)


def why_none(requirements: Sequence[Asking], labelled: Collection[Mapping[str, str]], thing: str) -> str:
    """Return why no `thing` with these labels meets all requirements, as the end of a sentence.

    That is the first requirement that none of them meets, and what they have in its place.
    """
    if not labelled:
        return f"there is no {thing}"
    missing = next(_missing(requirements, labelled, thing), "")
    return missing or f"no {thing} has all that it asks for"


def _missing(requirements: Sequence[Asking], labelled: Collection[Mapping[str, str]], thing: str) -> Iterator[str]:
    for one in requirements:
        there = sorted({labels[one.key] for labels in labelled if one.key in labels})
        if one.operator in ("In", "Exists", "Gt", "Lt") and not there:
            keys = sorted({key for labels in labelled for key in labels})
            yield f"no {thing} has a label {one.key}{meant(one.key, keys)}"
        elif one.operator == "In" and not {*one.values} & {*there}:
            wanted = " or ".join(f"{one.key}={value}" for value in one.values)
            guess = meant(one.values[0], there) if len(one.values) == 1 < len(there) else ""
            yield f"no {thing} has {wanted}; there are {_listed(there)}{guess}"
        elif one.operator == "DoesNotExist" and all(one.key in labels for labels in labelled):
            yield f"every {thing} has a label {one.key}"


def _listed(values: Sequence[str]) -> str:
    quoted = [value or '""' for value in values[:_VALUES]]
    more = f" and {len(values) - _VALUES} more" if len(values) > _VALUES else ""
    return f"{', '.join(quoted)}{more}"
