"""Deletion guards: a mass deletion of packages is blocked until a person acknowledges its hash in an annotation."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

ACK_DELETIONS = "reconciler.dev/ack-deletions"
_MAX_LISTED = 5

PackageLocation = tuple[str, str]
"""Location of a package: its Repository or cluster, and its path."""
AnyPackageLocation = TypeVar("AnyPackageLocation", bound=PackageLocation)


def compute_deletion_hash(locations: Iterable[PackageLocation]) -> str:
    """Return the hash with which a person acknowledges exactly these deletions."""
    lines = "".join(f"{repository}\0{package}\n" for repository, package in sorted(locations))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def read_acknowledged_hashes(annotations: Mapping[str, str]) -> frozenset[str]:
    """Return the acknowledged deletion hashes from an object's annotations, separated by commas."""
    return frozenset(part.strip() for part in annotations.get(ACK_DELETIONS, "").split(",")) - {""}


def count_existing(
    deletions: Sequence[AnyPackageLocation], existing_count: int, blocked_counts: Mapping[AnyPackageLocation, int]
) -> int:
    """Return the number of packages that the limit is a percentage of.

    This is the number when the first of these deletions was blocked. Packages that were created since then do not
    count, because they must not raise the limit.
    """
    return min([existing_count, *(blocked_counts[location] for location in deletions if location in blocked_counts)])


def exceeds_limit(deletion_count: int, existing_count: int, max_percent: int) -> bool:
    """Return whether the deletions are more than `max_percent` of the existing packages. One of two is 50 %."""
    return deletion_count * 100 > existing_count * max_percent


def is_mass_deletion(deletion_count: int, existing_count: int, max_percent: int) -> bool:
    """Return whether an owner must not delete so many packages at once: all, or more than the limit."""
    return deletion_count >= existing_count or exceeds_limit(deletion_count, existing_count, max_percent)


def format_deletion_message(
    deletions: Sequence[PackageLocation], existing_count: int, packages: str, annotated_object: str
) -> str:
    """Return the message about blocked deletions and how to confirm them."""
    more = ", ..." if len(deletions) > _MAX_LISTED else ""
    examples = ", ".join("/".join(location) for location in deletions[:_MAX_LISTED]) + more
    return (
        f"{len(deletions)} of {existing_count} {packages} would be deleted ({examples});"
        f' to confirm, annotate {annotated_object} with {ACK_DELETIONS}: "{compute_deletion_hash(deletions)}"'
    )


def contains_deletion_hash(message: str, token: str) -> bool:
    """Return whether a guard's message requests this hash as confirmation."""
    return bool(token) and f'{ACK_DELETIONS}: "{token}"' in message


@dataclass(frozen=True)
class DeletionDecision:
    """Decision about deletions: `reason` says why they are blocked and is "" if they are allowed.

    `existing_count` is the number that the limit was calculated with. `is_confirmed`: a person has acknowledged exactly
    these deletions.
    """

    reason: str = ""
    existing_count: int = 0
    is_confirmed: bool = False


def decide_deletions(
    deletions: Sequence[AnyPackageLocation],
    existing_count: int,
    blocked_counts: Mapping[AnyPackageLocation, int],
    acknowledged_hashes: Container[str],
    max_percent: int,
    nouns: tuple[str, str],
) -> DeletionDecision:
    """Decide whether packages may be deleted, from the acknowledged hashes and the limit.

    Args:
        deletions: The packages to delete.
        existing_count: The number of existing packages of the owner.
        blocked_counts: For each package whose deletion was blocked before: the number of existing packages at that
            time.
        acknowledged_hashes: The deletion hashes that users have acknowledged.
        max_percent: The limit in percent of the existing packages.
        nouns: How the message names the packages, and the object to annotate.
    """
    if not deletions or compute_deletion_hash(deletions) in acknowledged_hashes:
        return DeletionDecision("", existing_count, is_confirmed=bool(deletions))
    counted = count_existing(deletions, existing_count, blocked_counts)
    if not is_mass_deletion(len(deletions), counted, max_percent):
        return DeletionDecision("", counted)
    return DeletionDecision(format_deletion_message(deletions, counted, *nouns), counted)
