"""What all guards share: too much that would go at once is held until somebody says so (design 10.15)."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

ACK_DELETIONS = "reconciler.dev/ack-deletions"
_LISTED = 5

Unit = tuple[str, str]
"""A package that may go: its Repository or cluster, and its path."""
AnyUnit = TypeVar("AnyUnit", bound=Unit)


def deletion_hash(units: Iterable[Unit]) -> str:
    """Return the hash by which a person acknowledges exactly these deletions."""
    listed = "".join(f"{place}\0{package}\n" for place, package in sorted(units))
    return hashlib.sha256(listed.encode()).hexdigest()[:16]


def acknowledged(annotations: Mapping[str, str]) -> frozenset[str]:
    """Return the hashes of deletions that the annotations of an object confirm: several with commas between them."""
    return frozenset(part.strip() for part in annotations.get(ACK_DELETIONS, "").split(",")) - {""}


def existing_before(doomed: Sequence[AnyUnit], existing: int, held: Mapping[AnyUnit, int]) -> int:
    """Return how many units count as existing: those that there were when the first of the doomed was held.

    What has been made since is no reason to let it go.
    """
    return min([existing, *(held[unit] for unit in doomed if unit in held)])


def exceeds(doomed: int, existing: int, max_percent: int) -> bool:
    """Return whether so many are more than a share of those that there are: one of two is 50 %."""
    return doomed * 100 > existing * max_percent


def is_too_much(doomed: int, existing: int, max_percent: int) -> bool:
    """Return whether an owner may not give up so many units at once: all of them, or more than a share of them."""
    return doomed >= existing or exceeds(doomed, existing, max_percent)


def held_message(doomed: Sequence[Unit], existing: int, what: str, whom: str) -> str:
    """Return what is said of units that are held, and how to confirm that they go."""
    listed = ", ".join("/".join(unit) for unit in doomed[:_LISTED])
    return (
        f"{len(doomed)} of {existing} {what} would be deleted ({listed}{', ...' if len(doomed) > _LISTED else ''});"
        f' to confirm, annotate {whom} with {ACK_DELETIONS}: "{deletion_hash(doomed)}"'
    )


def names_hash(message: str, token: str) -> bool:
    """Return whether a message of a guard asked for this hash as the confirmation."""
    return bool(token) and f'{ACK_DELETIONS}: "{token}"' in message


@dataclass(frozen=True)
class Decision:
    """Why units do not go now, "" where they may; `existing` is how many counted as being there.

    `is_confirmed`: a person has acknowledged exactly these.
    """

    why: str = ""
    existing: int = 0
    is_confirmed: bool = False


def decide(
    doomed: Sequence[AnyUnit],
    existing: int,
    held: Mapping[AnyUnit, int],
    acknowledged: Container[str],
    max_percent: int,
    named: tuple[str, str],
) -> Decision:
    """Return whether the doomed of so many existing units may go, by what people acknowledged and by their share.

    `held` says of those that were held before how many there were then; `named` are the words for such units, and
    whom to annotate.
    """
    if not doomed or deletion_hash(doomed) in acknowledged:
        return Decision("", existing, is_confirmed=bool(doomed))
    total = existing_before(doomed, existing, held)
    if not is_too_much(len(doomed), total, max_percent):
        return Decision("", total)
    return Decision(held_message(doomed, total, *named), total)
