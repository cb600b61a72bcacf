"""The review of a plan: its drafts with what they change, equal changes told once, as values for every format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from reconciler.krm.conditions import Condition
from reconciler.krm.findings import Finding, errors
from reconciler.planning.destination import Destination
from reconciler.planning.fleet import DestinationPlan, FleetPlan
from reconciler.planning.outcome import Blocked, Draft, Unchanged
from reconciler.reporting.causes import cause_words, object_words
from reconciler.reporting.changes import Changes, compare
from reconciler.reporting.conflicts import conflict_lines
from reconciler.reporting.findings import in_order
from reconciler.reporting.gates import waiting_for
from reconciler.reporting.leaving import Departure, departures
from reconciler.reporting.overrides import news_of_overrides
from reconciler.reporting.templates import news_of_children, template_lines

Kind = Literal["blocked", "stalled", "held"]
_KINDS: tuple[Kind, ...] = ("blocked", "stalled", "held")
_OVERRIDES_PER_DRAFT = 20
_TEMPLATES_PER_DRAFT = 20


@dataclass(frozen=True)
class ReviewedDraft:
    """One draft: what it changes, why, what it waits for, and where both sides had changed the same.

    `overrides` say what policies made different in a package that is new, `templates` what the change does to pods and
    other objects by templates, and `children` are those that it is about.
    """

    draft: Draft
    destination: Destination
    changes: Changes
    causes: tuple[str, ...]
    waiting: tuple[str, ...]
    conflicts: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    children: tuple[Mapping[str, Any], ...] = ()

    @property
    def place(self) -> str:
        """Where the package goes, `<repository>/<package>`."""
        return str(self.draft.variant.place)

    @property
    def owner(self) -> str:
        """Whose package it is, `Kind namespace/name`."""
        return object_words(self.draft.variant.owner.key)


@dataclass(frozen=True)
class Trouble:
    """What is in the way: of which package, of whom, a reason and a sentence.

    `findings` are the errors that say the same, as the plan lists them.
    """

    kind: Kind
    place: str
    owner: str
    reason: str
    message: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Review:
    """A plan as it is told; drafts with equal changes are one group, the largest group first."""

    config: str
    groups: tuple[tuple[ReviewedDraft, ...], ...]
    unchanged: int
    troubles: tuple[Trouble, ...]
    findings: tuple[Finding, ...]
    departures: tuple[Departure, ...] = ()

    @property
    def removals(self) -> tuple[Departure, ...]:
        """Packages that nothing wants any more, and that something is done about now."""
        return tuple(one for one in self.departures if one.is_done_now)

    @property
    def drafts(self) -> tuple[ReviewedDraft, ...]:
        """All drafts, group by group."""
        return tuple(one for group in self.groups for one in group)

    @property
    def counts(self) -> dict[str, int]:
        """How many of what there is: drafts, the destinations they are for, and what is not well."""
        kinds = [trouble.kind for trouble in self.troubles]
        return {
            "drafts": len(self.drafts),
            "destinations": len({one.destination.key for one in self.drafts}),
            "removals": len(self.removals),
            "unchanged": self.unchanged,
            **{kind: kinds.count(kind) for kind in _KINDS},
            "errors": len(errors(self.findings)),
        }


def review(plan: FleetPlan) -> Review:
    """Return the plan as it is told to people."""
    drafts = [one for destination in plan.destinations for one in _drafts(destination)]
    unchanged = sum(isinstance(outcome, Unchanged) for _, outcome in plan.outcomes())
    findings = tuple(in_order(plan.all_findings()))
    troubles = tuple(sorted(_find_blocked(plan, _Listed(findings)), key=_rank))
    return Review(plan.config, _groups(drafts), unchanged, troubles, findings, departures(plan))


def _drafts(plan: DestinationPlan) -> Iterator[ReviewedDraft]:
    return (review_draft(one, plan.destination) for one in plan.outcomes if isinstance(one, Draft))


def review_draft(draft: Draft, destination: Destination) -> ReviewedDraft:
    """Return a draft as it is told, against what it replaces."""
    changes = compare(draft.before, draft.rendered.files)
    causes, waiting = cause_words(draft, destination), waiting_for(draft.rendered)
    conflicts = conflict_lines(draft.rendered.conflicts)
    overrides = news_of_overrides(draft, _OVERRIDES_PER_DRAFT)
    templates = template_lines(draft.rendered, _TEMPLATES_PER_DRAFT)
    children = tuple(news_of_children(draft))
    return ReviewedDraft(draft, destination, changes, causes, waiting, conflicts, overrides, templates, children)


def _groups(drafts: list[ReviewedDraft]) -> tuple[tuple[ReviewedDraft, ...], ...]:
    groups: dict[str, list[ReviewedDraft]] = {}
    for one in sorted(drafts, key=lambda one: one.draft.variant.place):
        groups.setdefault(_sameness(one), []).append(one)
    # sorting is stable: among equally large groups the one with the first place stays first
    return tuple(tuple(group) for group in sorted(groups.values(), key=len, reverse=True))


def _sameness(one: ReviewedDraft) -> str:
    """Return a text that is equal for equal changes; which PackageVariant put a function in is no difference."""
    told = [
        one.draft.task,
        *one.changes.sameness,
        one.waiting,
        one.conflicts,
        one.overrides,
        one.templates,
        one.children,
    ]
    return sameness(told, one.draft.variant.owner.key.name)


def sameness(told: object, owner: str) -> str:
    """Return a text that is equal for what is told of equal changes, whichever PackageVariant asks for them."""
    return json.dumps(told, default=str).replace(f"PackageVariant.{owner}.", "PackageVariant.*.")


def _rank(trouble: Trouble) -> tuple[int, str, str]:
    return _KINDS.index(trouble.kind), trouble.place, trouble.owner


class _Listed:
    """The findings of a plan by what they say: the plan adds the places of objects to them."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._known = {_text(one): one for one in errors(list(findings))}

    def of(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return these findings as the plan lists them."""
        return tuple(one for each in findings if (one := self._known.get(_text(each))))


def _text(finding: Finding) -> tuple[str, str, str, str]:
    return finding.code, finding.message, finding.where.object, finding.where.package


def _worst(conditions: tuple[Condition, ...]) -> Condition:
    """Return the condition that says why an object is stalled or not ready."""
    wrong = {"Stalled": "True", "Ready": "False"}
    found = (one for kind, status in wrong.items() for one in conditions if (one.type, one.status) == (kind, status))
    return next(found, conditions[-1])


def _find_blocked(plan: FleetPlan, listed: _Listed) -> Iterator[Trouble]:
    for _, outcome in plan.outcomes():
        if isinstance(outcome, Blocked):
            ready = next((one for one in outcome.conditions if one.type == "Ready"), outcome.conditions[-1])
            owner = object_words(outcome.variant.owner.key)
            found = listed.of(outcome.findings)
            yield Trouble("blocked", str(outcome.variant.place), owner, ready.reason, ready.message, found)
    for stalled in plan.room.stalled:
        condition = _worst(stalled.conditions)
        place, owner = str(stalled.place) if stalled.place else "", object_words(stalled.owner.key)
        yield Trouble("stalled", place, owner, condition.reason, condition.message, listed.of(stalled.findings))
    for destination in plan.destinations:
        for held in destination.held:
            place, owner = f"{destination.destination.name}/{held.package}", object_words(held.record.owner.key)
            found = listed.of((held.finding,))
            yield Trouble("held", place, owner, held.finding.code, held.finding.message, found)
