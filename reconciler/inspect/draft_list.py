"""Reads open drafts from the mirrors of the service, with the details that the commands `drafts` and `show` print."""

from __future__ import annotations

from collections.abc import Mapping, Set
from itertools import chain

from reconciler.inspect.fleet_index import FleetIndexer
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.review.open_drafts import DraftDetails
from reconciler.reconcile.remotes.targets import DraftReader, OpenTarget


@dataclass(frozen=True)
class DraftSelection:
    """Drafts of one target.

    Attributes:
        branches: The draft branches.
        packages: The packages that are shown.
        contents: The packages whose files are read. {} reads no files.
    """

    branches: Set[str]
    packages: Set[str]
    contents: Set[str] = frozenset()


@dataclass(frozen=True)
class ReadDrafts:
    """The drafts that exist now, and the targets that cannot be read."""

    drafts: tuple[DraftDetails, ...] = ()
    failed_targets: tuple[OpenTarget, ...] = ()


class DraftListReader:
    """Reads open drafts.

    Args:
        indexer: Opens the targets of the drafts.
    """

    def __init__(self, indexer: FleetIndexer) -> None:
        self._indexer = indexer

    def read(self, selections: Mapping[str, DraftSelection], failed: Mapping[str, str]) -> ReadDrafts:
        """Return the selected drafts, sorted by target and branch.

        Args:
            selections: The selected drafts by target.
            failed: The errors of targets that the last pass could not read.

        Raises:
            GitError: A repository cannot be opened.
        """
        if not (selections or failed):
            return ReadDrafts()
        with self._indexer.open_targets({*selections, *failed}) as (reader, targets):
            failures = tuple(
                replace(target, error=error)
                for target in targets
                if (error := failed.get(target.target.name) or target.error)
            )
            drafts = tuple(
                chain.from_iterable(
                    _read_drafts(reader, target, selection)
                    for target in targets
                    if (selection := selections.get(target.target.name))
                )
            )
        return ReadDrafts(drafts, failures)


def _read_drafts(reader: DraftReader, target: OpenTarget, selection: DraftSelection) -> list[DraftDetails]:
    return [
        reader.read_draft_details(
            draft.restrict(selection.packages), frozenset(selection.contents),
            should_read_files=bool(selection.contents),
        )
        for draft in target.drafts
        if draft.branch in selection.branches
    ]  # fmt: skip
