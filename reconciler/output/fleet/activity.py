"""The activity of the fleet: what people and passes did, as events. This module reads no file and no clock."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.fleet.model import PackageRow
from reconciler.output.fleet.publications import Publication

ActivityAction = Literal[
    "published", "removed", "approved", "proposed", "rejected", "draft-created", "draft-updated", "draft-withdrawn",
    "conflict", "pass",
]  # fmt: skip
ACTIVITY_ACTIONS: tuple[ActivityAction, ...] = get_args(ActivityAction)
_PUBLICATION_ACTIONS: tuple[ActivityAction, ...] = ("approved", "published", "removed")


@dataclass(frozen=True, slots=True)
class ActivityEvent:
    """An action of a person, or an effect of a pass, on one package. It contains no value of a field.

    Attributes:
        actions: The actions, such as `approved` and `published` for a publication that a person approved.
        seconds: The time of the event, in seconds since 1970.
        recorded_at: The time at which the event was added to the activity log, in seconds since 1970.
        target: The name of the target. "" for an event about a pass.
        package: The path of the package. "" for an event about a pass.
        person: The name of the person. "" if the service itself acted.
        message: The subject of the commit, the causes of a draft, or the effects of a pass.
        commit: The commit that the action created. "" if there is none.
        revision: The number of the published revision. 0 for other events.
        job: The ID of the console's job that published the revision. "" for other events.
    """

    actions: tuple[ActivityAction, ...]
    seconds: int
    recorded_at: int
    target: str = ""
    package: str = ""
    person: str = ""
    message: str = ""
    reason: str = ""
    commit: str = ""
    revision: int = 0
    job: str = ""

    @property
    def publication_key(self) -> tuple[str, str, str] | None:
        """The package and the commit of a publication, removal or approval. None for other events."""
        is_publication = self.commit and any(action in _PUBLICATION_ACTIONS for action in self.actions)
        return (self.target, self.package, self.commit) if is_publication else None


def create_publication_event(row: PackageRow, publication: Publication, recorded_at: int) -> ActivityEvent:
    """Return the event of a publication."""
    return ActivityEvent(
        ("approved", "published") if publication.via else ("published",),
        publication.seconds,
        recorded_at,
        row.target,
        row.package,
        publication.author,
        publication.subject,
        publication.reason,
        publication.commit,
        publication.number,
    )


def merge_activity(
    events: Iterable[ActivityEvent], publications: Iterable[tuple[PackageRow, Publication]]
) -> tuple[ActivityEvent, ...]:
    """Return the events of the log and the publications of an index, the newest first.

    An approval and a publication or removal with the same commit become one event. Among events with the same time,
    approvals, publications and removals come first. All other events follow in the reverse order of the log.
    """
    known = {(row.target, row.package, publication.commit): (row, publication) for row, publication in publications}
    merged = {key: create_publication_event(*item, item[1].seconds) for key, item in known.items()}
    others = []
    for event in events:
        key = event.publication_key
        if key is None:
            others.append(event)
        else:
            merged[key] = _merge(merged[key], event) if key in merged else event
    return tuple(sorted((*merged.values(), *reversed(others)), key=lambda event: -event.seconds))


def _merge(first: ActivityEvent, second: ActivityEvent) -> ActivityEvent:
    """Merge two events of one publication or removal. The result has the data of both."""
    chosen = replace(first if first.revision else second, job=first.job or second.job)
    if first.actions == second.actions:
        return chosen
    actions = {*first.actions, *second.actions}
    return replace(chosen, actions=tuple(action for action in _PUBLICATION_ACTIONS if action in actions))
