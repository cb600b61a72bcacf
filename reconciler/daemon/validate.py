"""Validating: everything that is wrong with a config, or odd about it, whether or not a pass would stumble over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.daemon.desk import unread
from reconciler.daemon.reconcile import begin, catalog_findings, gather, plan_fleet, plan_proposal
from reconciler.daemon.remotes import Remotes
from reconciler.daemon.tools import ConfigSource, Tools, keeping_stages
from reconciler.krm.findings import Finding, errors
from reconciler.krm.identity import ObjectKey
from reconciler.krm.schema.api_removals import Release
from reconciler.planning.conformance import Checked, Conformance, Schemas
from reconciler.planning.fleet import FleetPlan
from reconciler.planning.lint import told_once
from reconciler.planning.made_anew import decide_anew
from reconciler.planning.outcome import Blocked, Draft, Outcome, Rendered
from reconciler.planning.plan import Decided
from reconciler.planning.survey import Surveyed, Workshop
from reconciler.reporting.rendered import Unsaid, rendered_findings, unsaid_findings
from reconciler.rules.overrides.lint import unreached_findings
from reconciler.rules.variant import RoomResult, Variant
from reconciler.snapshot.catalog import ConfigObject


@dataclass(frozen=True)
class Validated:
    """What was found about a config, its objects, by which findings have their places, and who made their owners.

    `makers` are by owner, both as `Kind/namespace/name`.
    """

    findings: tuple[Finding, ...]
    objects: Mapping[ObjectKey, ConfigObject]
    makers: Mapping[str, str]


@dataclass(frozen=True)
class Judge:
    """By what rendered resources are judged: schemas, and the release of clusters that do not say theirs."""

    schemas: Schemas
    release: Release | None = None


def validate(source: ConfigSource, remotes: Remotes, tools: Tools) -> Validated:
    """Return every finding about the config: files, objects, references, and what rooms make of them."""
    found = gather(source, remotes, tools)
    room = tools.rooms(found.catalog, remotes, {}, found.now)
    proposal = plan_proposal(found, room, tools, ())
    made = (finding for variant in room.variants for finding in variant.findings)
    told = (*catalog_findings(found.catalog), *tools.conflicts(found.catalog).values(), *proposal.findings, *made)
    is_whole = found.catalog.is_whole
    findings = FleetPlan(found.snapshot.id, 0, room, (), told, is_whole, objects=found.catalog.objects).all_findings()
    odd = told_once(findings, tools.lint(found.catalog, remotes, room, found.now))
    return Validated((*findings, *odd), found.catalog.objects, _makers(room))


def validate_rendered(source: ConfigSource, remotes: Remotes, tools: Tools, judge: Judge) -> Validated:
    """Return what `validate` does, what a plan tells, and what is wrong with every package as it would be drafted.

    All packages are rendered, whether or not anything has moved; nothing is written anywhere.
    """
    found = gather(source, remotes, tools)
    fleet = tools.fleet(found.catalog)
    releases = {name: judge.release for name in fleet.clusters if judge.release} | dict(fleet.releases.known)
    examined = _Examined(Conformance(found.catalog, releases, judge.schemas))
    begun = begin(found, remotes, keeping_stages(tools), examined.decide)
    planned = plan_fleet(found, begun, tools)
    plan = replace(planned, findings=(*planned.findings, *unread(planned, remotes)))
    unreached = unreached_findings(plan.usages, begun.desk.policies, fleet.clusters) if _is_all_made(plan) else ()
    unsaid = [name for name in fleet.clusters if name not in releases and name in examined.clusters]
    told = (
        *plan.all_findings(), *fleet.releases.findings, *unreached,
        *rendered_findings(examined.checked, found.catalog.objects),
        *unsaid_findings(Unsaid(unsaid, judge.schemas.words(None), fleet.places)),
    )  # fmt: skip
    odd = told_once(told, tools.lint(found.catalog, remotes, begun.room, found.now))
    return Validated(tuple(dict.fromkeys((*told, *odd))), found.catalog.objects, _makers(begun.room))


def _is_all_made(plan: FleetPlan) -> bool:
    """Tell whether all that is wanted could be made: only then can be said what no resource meets."""
    blocked = any(isinstance(one, Blocked) for _, one in plan.outcomes())
    return not (blocked or plan.room.stalled or any(one.findings for one in plan.destinations))


def _makers(room: RoomResult) -> Mapping[str, str]:
    owners = (*(one.owner for one in room.variants), *(one.owner for one in room.stalled))
    return {str(one.key): str(one.set) for one in owners if one.set}


class _Examined:
    """Looks at the packages of each destination as they are made."""

    def __init__(self, conformance: Conformance) -> None:
        self._conformance = conformance
        self.checked: list[Checked] = []
        self.clusters: set[str] = set()

    def decide(self, one: Surveyed, shop: Workshop) -> Decided:
        """Return what becomes of a destination, after a look at everything that is rendered for it."""
        decided, rendered = decide_anew(one, shop)
        if one.destination.deployment:
            self.clusters.add(one.destination.name)
            usable = _usable(decided, rendered)
            self.checked += (found for found in self._conformance.check(one.destination.name, usable) if _tells(found))
        # of what is sound nobody asks how it came to be
        return replace(decided, outcomes=tuple(map(_without_stages, decided.outcomes)))


def _without_stages(outcome: Outcome) -> Outcome:
    if not isinstance(outcome, Draft):
        return outcome
    return replace(outcome, rendered=replace(outcome.rendered, stages=()))


def _usable(decided: Decided, rendered: Mapping[str, Rendered]) -> Sequence[tuple[Variant, Rendered]]:
    """Return the packages that may be used as they are rendered."""
    made = ((one.variant, rendered.get(one.variant.place.package)) for one in decided.outcomes)
    return [(variant, one) for variant, one in made if one and not errors(one.findings)]


def _tells(found: Checked) -> bool:
    return bool(found.faults or found.unknown)
