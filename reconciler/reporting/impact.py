"""The impact of a change of the config, as values for every format: the risk first, then equal changes told once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from reconciler.krm.findings import Finding, Severity
from reconciler.planning.conflicts import place_of
from reconciler.planning.fleet import FleetPlan
from reconciler.planning.impact import DESTINATION_GONE, HELD_UP, Effect, Unknown
from reconciler.planning.outcome import Draft
from reconciler.reporting.causes import object_words
from reconciler.reporting.changes import Changes, compare
from reconciler.reporting.cluster_names import Clusters, Labels
from reconciler.reporting.config_changes import ConfigChange, Culprits, config_changes
from reconciler.reporting.conflicts import conflict_lines
from reconciler.reporting.consequences import Consequence, consequences
from reconciler.reporting.findings import in_order
from reconciler.reporting.review import ReviewedDraft, review_draft, sameness
from reconciler.snapshot.files import FileTree

How = Literal["new", "changed", "removed", "orphaned", "unmade", "kept", "heldUp", "mended"]
HOWS: tuple[How, ...] = ("removed", "heldUp", "changed", "new", "unmade", "orphaned", "kept", "mended")
_WHOLE: frozenset[How] = frozenset({"new", "removed", "unmade"})
_CONFLICTS = 20
_TELLING = 3
_LINE = re.compile(r":\d+")


@dataclass(frozen=True)
class Impact:
    """What planning found: the fleet by two configs, the packages that they make different, all clusters' labels.

    `unknown` says for which clusters the effect is unknown, and why.
    """

    base: FleetPlan
    head: FleetPlan
    effects: tuple[Effect, ...]
    labels: Labels = field(default_factory=dict)
    unknown: Unknown = field(default_factory=Unknown)


@dataclass(frozen=True)
class Affected:
    """One package as it is told: how the change meets it, what is different in it, and of what that comes.

    `how`: `removed` is put up for removal, `unmade` was never published and is not made any more, `orphaned` is left to
    people, `kept` is not removed after all; `heldUp` gets nothing now, `mended` gets something again. `changes` is None
    where it is too large to be compared. `culprits` are the changed objects of the config that it is made of, `causes`
    the same in words, where no object tells. `conflicts` are those that are new.
    """

    effect: Effect
    how: How
    changes: Changes | None
    consequences: tuple[Consequence, ...] = ()
    culprits: tuple[ConfigChange, ...] = ()
    causes: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    draft: ReviewedDraft | None = None

    @property
    def place(self) -> str:
        """Where the package is, `<repository>/<package>`; of an owner without a place, the owner."""
        return self.effect.place or self.owner

    @property
    def cluster(self) -> str:
        """The destination, by name; "" where it is not known."""
        return self.effect.destination.name if self.effect.destination else ""

    @property
    def owner(self) -> str:
        """Whose package it is, `Kind namespace/name`."""
        return object_words(self.effect.owner.key) if self.effect.owner else ""

    def unnamed(self, text: str) -> str:
        """Return a text with a star for the names of the cluster, of the package and of its owner."""
        return self._names.sub("*", text) if self._names else text

    @cached_property
    def _names(self) -> re.Pattern[str] | None:
        owner, package = self.effect.owner, self.effect.package.rpartition("/")[2]
        names = {self.cluster, package, owner.key.name if owner else ""}
        # longer ones first; a short one, or a number, stands for many other things
        known = sorted((one for one in names if len(one) >= _TELLING and not one.isdigit()), key=len, reverse=True)
        return re.compile(rf"(?<![0-9A-Za-z])(?:{'|'.join(map(re.escape, known))})(?![0-9A-Za-z])") if known else None

    @property
    def trouble(self) -> str:
        """What is in its way now: a reason and a sentence; "" where nothing is."""
        now = self.effect.after
        return f"{now.reason}: {now.message}" if now.kind in HELD_UP else ""


Group = tuple[Affected, ...]


@dataclass(frozen=True)
class ImpactReview:
    """An impact as it is told; packages that equal things happen to are one group.

    `config` is what is different in the config. `news` are findings that the first config does not have, `mended` those
    that the second does not have any more, `standing` counts the errors of both. Where something is `unknown`, a
    missing group does not prove that there is no effect.
    """

    base: str
    head: str
    config: tuple[ConfigChange, ...]
    groups: tuple[Group, ...]
    news: tuple[Finding, ...]
    mended: tuple[Finding, ...]
    standing: int
    clusters: Clusters
    unknown: Unknown = field(default_factory=Unknown)

    @cached_property
    def affected(self) -> tuple[Affected, ...]:
        """All packages, group by group."""
        return tuple(one for group in self.groups for one in group)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The errors that are new."""
        return tuple(one for one in self.news if one.severity is Severity.ERROR)

    @property
    def news_besides(self) -> tuple[Finding, ...]:
        """What else is new: nothing that withholds anything."""
        return tuple(one for one in self.news if one.severity is not Severity.ERROR)

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many packages meet what, on how many clusters, and what is at risk."""
        hows = [one.how for one in self.affected]
        levels = [{each.level for each in one.consequences} for one in self.affected]
        return {
            "packages": len(self.affected),
            "clusters": len({one.cluster for one in self.affected if one.cluster}),
            "drafts": sum(one.effect.drafts for one in self.affected),
            **{how: hows.count(how) for how in HOWS},
            "conflicts": sum(bool(one.conflicts) for one in self.affected),
            "resourcesRemoved": sum(_removed(one) for one in self.affected),
            **{
                level: sum(level in each for each in levels) for level in ("destroys", "recreates", "stops", "restarts")
            },
            "newErrors": len(self.errors),
            "mendedErrors": sum(one.severity is Severity.ERROR for one in self.mended),
            "standingErrors": self.standing,
            "unknownClusters": len(self.unknown.clusters),
        }


def _removed(one: Affected) -> int:
    objects = one.changes.objects if one.changes else ()
    return sum(each.how == "removed" and not each.is_local for each in objects)


def review_impact(impact: Impact) -> ImpactReview:
    """Return an impact as it is told to people."""
    config = config_changes(impact.base.objects, impact.head.objects)
    culprits = Culprits(config)
    affected = [_affected(one, culprits) for one in impact.effects]
    news, mended, standing = _findings(impact.base.all_findings(), impact.head.all_findings())
    return ImpactReview(
        impact.base.config, impact.head.config, config, _groups(affected), news, mended, standing,
        Clusters(impact.labels), impact.unknown,
    )  # fmt: skip


def _affected(effect: Effect, culprits: Culprits) -> Affected:
    changes = compare(effect.had, effect.has) if effect.had is not None and effect.has is not None else None
    how, draft = _how(effect), _draft(effect)
    return Affected(
        effect, how, changes, consequences(changes) if changes else (), culprits.of(effect, changes),
        draft.causes if draft else (), _conflicts(effect), draft,
    )  # fmt: skip


def _draft(effect: Effect) -> ReviewedDraft | None:
    """Return the draft that is made, told against what the other config would have had."""
    draft = effect.after.outcome
    if not isinstance(draft, Draft) or effect.destination is None:
        return None
    had = effect.had if effect.had is not None else FileTree()
    return review_draft(replace(draft, before=had, causes=effect.causes), effect.destination)


def _how(effect: Effect) -> How:
    before, after = effect.before, effect.after
    if after.reason == DESTINATION_GONE:
        return "orphaned"
    if after.kind in HELD_UP:
        return "heldUp"
    if after.kind == "leaving":
        return _LEAVING.get(after.reason, "unmade")
    if after.kind == "none":
        return "mended" if before.kind in HELD_UP else "unmade"
    if before.kind == "leaving":
        return "kept"
    if before.kind in HELD_UP:
        return "mended"
    return "new" if before.kind == "none" else "changed"


_LEAVING: Mapping[str, How] = {"proposed": "removed", "orphaned": "orphaned", "declined": "kept", "recalled": "kept"}


def _conflicts(effect: Effect) -> tuple[str, ...]:
    draft = effect.after.outcome
    found = draft.rendered.conflicts if isinstance(draft, Draft) else ()
    return conflict_lines((one for one in found if place_of(one) not in effect.known), _CONFLICTS)


def _findings(
    before: Iterable[Finding], after: Iterable[Finding]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...], int]:
    """Return what is new, what is mended, and how many errors stand; a finding that only moved in its file is none."""
    was, now = ({_known_by(one): one for one in in_order(found)} for found in (before, after))
    news = tuple(one for key, one in now.items() if key not in was)
    mended = tuple(one for key, one in was.items() if key not in now)
    return news, mended, sum(one.severity is Severity.ERROR for key, one in now.items() if key in was)


def _known_by(one: Finding) -> tuple[Finding, str]:
    return replace(one, where=replace(one.where, line=0), message=""), _LINE.sub("", one.message)


def _groups(affected: Iterable[Affected]) -> tuple[Group, ...]:
    """Return equal ones together: the riskiest first, then the largest."""
    groups: dict[str, list[Affected]] = {}
    for one in affected:
        groups.setdefault(_sameness(one), []).append(one)
    ranked = sorted(groups.values(), key=lambda group: (HOWS.index(group[0].how), -len(group)))
    return tuple(tuple(group) for group in ranked)


def _sameness(one: Affected) -> str:
    """Return a text that is equal for equal changes, whatever the cluster, the package and its owner are called."""
    draft = one.draft
    more = [draft.waiting, draft.overrides, draft.templates, draft.children] if draft else []
    changes = _told_alike(one.changes, whole=one.how in _WHOLE) if one.changes else []
    told = [one.how, one.trouble, one.conflicts, changes, *more]
    owner = one.effect.owner
    return one.unnamed(sameness(told, owner.key.name if owner else ""))


def _told_alike(changes: Changes, *, whole: bool) -> list[Any]:
    """Return data for equal changes; of what goes, and of packages that come or go, what was in it is no difference."""
    objects = [
        [*change.key, change.how, "" if whole or change.how == "removed" else change.digest]
        for change in changes.objects
    ]
    return [objects, *([] if whole else changes.sameness[1:])]
