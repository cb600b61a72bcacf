"""The part of the index of the fleet that a person may read. Counts and lists contain only this part."""

from __future__ import annotations

import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from threading import Lock

from reconciler.krm.findings import Finding, SourceLocation
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.fleet.builder import build_fleet_index
from reconciler.output.fleet.model import FleetIndex, IndexedDraft, PackageRow, TargetEntry
from reconciler.output.fleet.publications import Publication
from reconciler.output.fleet.rollouts import select_rollouts
from reconciler.output.fleet.target_names import TargetNames
from reconciler.output.text import format_object_reference
from reconciler.planning.lifecycle.open_drafts import BlockingReason
from reconciler.review.permissions import PackageScope, Permissions

HIDDEN_TEXT = "the text contains names of targets that you may not read"
"""Replaces each text that contains the name of a target that the person may not read."""
_MAX_CACHED = 50
_MAX_KEPT = 20
KEPT_SECONDS = 600.0
"""The time in which a client can read further pages of an index after a newer index appears."""
_WORD = re.compile(r"[^\W_]+")


def restrict_index(index: FleetIndex, permissions: Permissions) -> FleetIndex:
    """Return the index with the targets, packages, drafts and findings that a person may read.

    The messages of reasons contain no names of other targets. Findings about other objects are omitted.
    """
    if permissions.reads_everything:
        return index
    readable = [entry for target in index.targets if (entry := _restrict_target(target, permissions))]
    names = {entry.name for entry in readable}
    hidden = TargetNameSet(target.name for target in index.targets if target.name not in names)
    targets = [_hide_names(entry, hidden) for entry in readable]
    findings = tuple(_select_findings(index, permissions, targets, hidden))
    tenants = {str(value.location): name for value in findings if (name := index.find_finding_tenant(value))}
    rollouts = select_rollouts(index.rollouts, names)
    owners = {row.owner for target in targets for row in target.packages}
    places = {
        owner: place
        for owner, place in index.owner_places.items()
        if owner in owners and not hidden.occur_in(place.file)
    }
    return build_fleet_index(
        index.number, index.completed_at, index.config, targets, findings, rollouts, places, tenants
    )  # fmt: skip


def _restrict_target(target: TargetEntry, permissions: Permissions) -> TargetEntry | None:
    if permissions.can_read_target(target.labels):
        return target
    packages = tuple(
        row for row in target.packages if permissions.can_read(PackageScope(target.labels, row.package, row.tenant))
    )
    return replace(target, packages=packages) if packages else None


def _hide_names(target: TargetEntry, hidden: TargetNameSet) -> TargetEntry:
    """Replace the texts of a target that contain names of hidden targets."""
    rows = tuple(_hide_names_in_row(row, hidden) for row in target.packages)
    place = SourceLocation() if hidden.occur_in(target.place.file) else target.place
    shown = replace(target, packages=rows, read_error=hide_names(target.read_error, hidden), place=place)
    return target if shown == target else shown


def _hide_names_in_row(row: PackageRow, hidden: TargetNameSet) -> PackageRow:
    shown = replace(
        row,
        reasons=hide_names_in_reasons(row.reasons, hidden),
        draft=_hide_names_in_draft(row.draft, hidden) if row.draft else None,
        publication=hide_publication_names(row.publication, hidden) if row.publication else None,
    )
    return row if shown == row else shown


def _hide_names_in_draft(draft: IndexedDraft, hidden: TargetNameSet) -> IndexedDraft:
    """Return a draft without names of hidden targets.

    `member.refusals` contains the reasons why the draft cannot be approved. The reasons of the risk repeat these texts.
    Therefore, the reasons of the risk are omitted if a refusal contains the name of a hidden target.
    """
    member, content = draft.member, draft.content
    refusals = hide_names_in_reasons(member.refusals, hidden)
    causes, effects = (
        tuple(hide_names(text, hidden) for text in texts) for texts in (content.causes, content.template_effects)
    )
    risk = content.risk if refusals == member.refusals else replace(content.risk, reasons=())
    member = replace(member, refusals=refusals, rejection=hide_names(member.rejection, hidden))
    shown = replace(content, causes=causes, template_effects=effects, risk=risk)
    return replace(draft, member=member, content=shown)


def hide_names_in_reasons(reasons: Iterable[BlockingReason], hidden: TargetNameSet) -> tuple[BlockingReason, ...]:
    """Return reasons whose messages contain no names of hidden targets."""
    return tuple(replace(reason, message=hide_names(reason.message, hidden)) for reason in reasons)


def hide_publication_names(publication: Publication, hidden: TargetNameSet) -> Publication:
    """Return a publication whose message and reason contain no names of hidden targets."""
    return replace(
        publication, subject=hide_names(publication.subject, hidden), reason=hide_names(publication.reason, hidden)
    )


def hide_names(text: str, hidden: TargetNameSet) -> str:
    """Return `HIDDEN_TEXT` if the text contains a name of a hidden target. Otherwise, return the text unchanged."""
    return HIDDEN_TEXT if hidden.occur_in(text) else text


def list_hidden_names(index: FleetIndex, readable: FleetIndex) -> TargetNameSet:
    """Return the names of the targets in `index` that `readable` does not contain."""
    return TargetNameSet(target.name for target in index.targets if target.name not in readable.by_target)


class TargetNameSet:
    """Names of targets. The method `occur_in` checks whether a text contains one of these names.

    A fleet has thousands of names and texts. Therefore, `occur_in` compares a text only with the names
    whose first word is in the text.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._by_first_word: dict[str, list[str]] = {}
        for name in names:
            word = _WORD.search(name)
            self._by_first_word.setdefault(word[0] if word else "", []).append(name)

    def occur_in(self, text: str) -> bool:
        """Return whether a text contains one of the names."""
        if not (text and self._by_first_word):
            return False
        return any(
            TargetNames(name).replace_cluster(text, "") != text
            for word in ("", *_WORD.findall(text))
            for name in self._by_first_word.get(word, ())
        )


def _select_findings(
    index: FleetIndex, permissions: Permissions, targets: Iterable[TargetEntry], hidden: TargetNameSet
) -> Iterator[Finding]:
    """Yield the findings about readable targets, the owners of their packages, and the config of readable tenants.

    Omit findings that contain the name of a hidden target.
    """
    readable = tuple(targets)
    names = TargetNameSet(target.name for target in readable)
    rows = [row for target in readable for row in target.packages]
    owners = {row.owner for row in rows if row.owner}
    packages = {f"{row.target}/{row.package}" for row in rows}

    def is_about_readable(location: SourceLocation) -> bool:
        if location.package:
            return location.package in packages
        objects = (location.object, location.owner)
        return any(
            format_object_reference(name) in owners or names.occur_in(name.rpartition("/")[2]) for name in objects
        )

    for finding in index.findings:
        texts = f"{finding.location} {finding.message}"
        is_readable = is_about_readable(finding.location) or (
            not finding.location.package and permissions.can_read_tenant(index.find_finding_tenant(finding))
        )
        if is_readable and not hidden.occur_in(texts):
            yield finding


@dataclass
class _KeptIndex:
    """An index that is kept until `ends_at`, because clients may still read its other pages.

    `ends_at` is None as long as the index is the newest index.
    """

    index: FleetIndex
    ends_at: float | None = None


class RestrictedIndexes:
    """The newest index and some earlier indexes, for people with different permissions.

    Restricted indexes are cached. People with equal permissions get the same restricted index.

    Args:
        get_index: Returns the newest index of the whole fleet. None if no index is complete.
        clock: Returns the seconds of a monotonic clock.

    Attributes:
        id: An ID that is different for each object, because two objects can contain indexes with the same number.
    """

    def __init__(self, get_index: Callable[[], FleetIndex | None], clock: Callable[[], float] = time.monotonic) -> None:
        self._get_index = get_index
        self._clock = clock
        self._lock = Lock()
        self._kept: dict[int, _KeptIndex] = {}
        self._restricted: OrderedDict[tuple[int, Permissions], FleetIndex] = OrderedDict()
        self.id = secrets.token_hex(4)

    def find(self, permissions: Permissions) -> FleetIndex | None:
        """Return the part of the newest index that a person may read. Return None if no index is complete."""
        index = self._get_index()
        return None if index is None else self.restrict(index, permissions)

    def restrict(self, index: FleetIndex, permissions: Permissions) -> FleetIndex:
        """Return the part of an index that a person may read."""
        if permissions.reads_everything:
            return index
        key = (index.number, permissions)
        with self._lock:
            found = self._restricted.pop(key, None) or restrict_index(index, permissions)
            self._restricted[key] = found
            if len(self._restricted) > _MAX_CACHED:
                self._restricted.popitem(last=False)
        return found

    def keep(self, index: FleetIndex) -> None:
        """Keep an index of the whole fleet, so that a client can still read it after a newer index exists.

        The index is deleted `KEPT_SECONDS` after that, or earlier if too many indexes are kept.
        """
        with self._lock:
            self._remove_old(self._get_index())
            self._kept.setdefault(index.number, _KeptIndex(index))
            for oldest in sorted(self._kept)[:-_MAX_KEPT]:
                del self._kept[oldest]

    def find_kept(self, number: int) -> FleetIndex | None:
        """Return the index of the whole fleet that has this number. Return None if this index is not kept any more."""
        newest = self._get_index()
        if newest and newest.number == number:
            return newest
        with self._lock:
            self._remove_old(newest)
            kept = self._kept.get(number)
        return kept.index if kept else None

    def _remove_old(self, newest: FleetIndex | None) -> None:
        now = self._clock()
        for number, kept in tuple(self._kept.items()):
            if kept.ends_at is None and newest and newest.number != number:
                kept.ends_at = now + KEPT_SECONDS
            if kept.ends_at is not None and kept.ends_at <= now:
                del self._kept[number]
                for key in [key for key in self._restricted if key[0] == number]:
                    del self._restricted[key]
