"""Deletion guards, which block the deletion of many packages until a person confirms the deletion.

To confirm a deletion, a person writes the hash of the deletion to an annotation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TypeVar

from reconciler.krm.field_text import split_list
from reconciler.lazy_dataclasses import dataclass

ACK_DELETIONS = "reconciler.dev/ack-deletions"
_MAX_LISTED = 5

PackageLocation = tuple[str, str]
"""Location of a package: its Repository or cluster, and its path."""
AnyPackageLocation = TypeVar("AnyPackageLocation", bound=PackageLocation)


def compute_deletion_hash(locations: Iterable[PackageLocation]) -> str:
    """Return a hash of the packages to delete. A person uses the hash to confirm the deletion of these packages."""
    lines = "".join(f"{repository}\0{package}\n" for repository, package in sorted(locations))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def read_acknowledged_hashes(annotations: Mapping[str, str]) -> frozenset[str]:
    """Return the deletion hashes in the annotation `reconciler.dev/ack-deletions`, which are separated by commas."""
    return read_annotation(annotations, ACK_DELETIONS)


def read_annotation(annotations: Mapping[str, str], name: str) -> frozenset[str]:
    """Return the entries of an annotation, which are separated by commas."""
    return frozenset(split_list(annotations.get(name, "")))


def count_existing(
    deletions: Sequence[AnyPackageLocation], existing_count: int, blocked_counts: Mapping[AnyPackageLocation, int]
) -> int:
    """Return the number of packages from which the deletion limit, a percentage, is computed.

    This is the number of existing packages. However, packages that were created after a deletion was blocked must not
    raise the limit. Therefore, return the number of packages at the time of the block if this number is lower.

    Args:
        blocked_counts: Maps a package with a blocked deletion to the number of packages at the time of the block.
    """
    return min([existing_count, *(blocked_counts[location] for location in deletions if location in blocked_counts)])


def exceeds_limit(deletion_count: int, existing_count: int, max_percent: int) -> bool:
    """Return whether more than `max_percent` percent of the existing packages would be deleted."""
    return deletion_count * 100 > existing_count * max_percent


def is_mass_deletion(deletion_count: int, existing_count: int, max_percent: int) -> bool:
    """Return whether an owner would delete all its packages, or more packages than the limit allows."""
    return deletion_count >= existing_count or exceeds_limit(deletion_count, existing_count, max_percent)


def format_deletion_message(
    deletions: Sequence[PackageLocation], existing_count: int, packages: str, annotated_object: str
) -> str:
    """Return the message about blocked deletions. The message contains the annotation that confirms the deletions."""
    more = ", ..." if len(deletions) > _MAX_LISTED else ""
    examples = ", ".join("/".join(location) for location in deletions[:_MAX_LISTED]) + more
    return (
        f"{len(deletions)} of {existing_count} {packages} would be deleted ({examples}). A person must confirm this"
        f" deletion. Next step: annotate {annotated_object} with"
        f' {ACK_DELETIONS}: "{compute_deletion_hash(deletions)}"'
    )


def contains_deletion_hash(message: str, token: str) -> bool:
    """Return whether the message of a deletion guard contains `token` as the hash that confirms the deletions."""
    return bool(token) and f'{ACK_DELETIONS}: "{token}"' in message


@dataclass(frozen=True)
class DeletionDecision:
    """Decision about deletions. `reason` explains why the deletions are blocked, and is "" if they are allowed.

    `existing_count` is the number of packages from which the limit was calculated. `is_confirmed` is True if a person
    has acknowledged exactly these deletions.
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
    """Decide whether the packages may be deleted, from the limit and the acknowledged hashes.

    Args:
        existing_count: The number of existing packages of the owner.
        blocked_counts: For each package whose deletion an earlier pass blocked: the number of packages that the owner
            had in that pass.
        max_percent: The limit in percent of the existing packages.
        nouns: Two terms for the message: the term for the packages, and the name of the object to annotate.
    """
    if not deletions or compute_deletion_hash(deletions) in acknowledged_hashes:
        return DeletionDecision("", existing_count, is_confirmed=bool(deletions))
    counted = count_existing(deletions, existing_count, blocked_counts)
    if not is_mass_deletion(len(deletions), counted, max_percent):
        return DeletionDecision("", counted)
    return DeletionDecision(format_deletion_message(deletions, counted, *nouns), counted)
