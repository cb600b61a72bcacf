"""Revision tags: which published revisions are to have one, and what it is called (git.md 3, findings 10 and 11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from reconciler.planning.destination import Destination
from reconciler.planning.state import DestinationState, PackageRecord, Revision
from reconciler.rules.variant import Place
from reconciler.snapshot.objects import CommitId, ObjectId


@dataclass(frozen=True)
class Tagging:
    """Whose revisions get tags; `used` are the packages that some variant names as its upstream (design 10.31)."""

    which: Literal["used", "all", "none"] = "none"
    used: frozenset[Place] = frozenset()

    def wants(self, destination: Destination, package: str) -> bool:
        """Return whether the revisions of a package are to have tags."""
        place = Place(destination.key.namespace, destination.name, package)
        return self.which == "all" or (self.which == "used" and place in self.used)


@dataclass(frozen=True)
class MissingTag:
    """A published revision that is to have a tag, and as far as state knows has none."""

    name: str
    package: str
    revision: Revision
    record: PackageRecord


@dataclass(frozen=True)
class TaggedRevision:
    """A revision as its tag tells it: whoever made the tag, its number is used."""

    number: int
    commit: CommitId
    tag: ObjectId
    message: str = ""


def tag_start(destination: Destination, package: str) -> str:
    """Return what the tags of a package's revisions begin with; the number follows (design 10.11)."""
    return f"{destination.tag_prefix}{package}/v"


def missing_tags(destination: Destination, state: DestinationState, tagging: Tagging) -> tuple[MissingTag, ...]:
    """Return the remembered revisions that are to have a tag and have none, by package and number."""
    return tuple(
        MissingTag(f"{tag_start(destination, package)}{revision.number}", package, revision, record)
        for package, record in sorted(state.packages.items())
        if tagging.wants(destination, package)
        for revision in record.revisions
        if not revision.tag
    )


def note_tags(state: DestinationState, made: Mapping[tuple[str, int], ObjectId]) -> DestinationState:
    """Return the state with these tags known, by package and number."""
    packages = {package: _noted(package, record, made) for package, record in state.packages.items()}
    return replace(state, packages=packages)


def _noted(package: str, record: PackageRecord, made: Mapping[tuple[str, int], ObjectId]) -> PackageRecord:
    revisions = tuple(replace(one, tag=made.get((package, one.number), one.tag)) for one in record.revisions)
    return replace(record, revisions=revisions)
