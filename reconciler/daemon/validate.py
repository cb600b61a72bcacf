"""Validating: everything that is wrong with a config, or odd about it, whether or not a pass would stumble over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from reconciler.daemon.codes import REPOSITORY_UNREACHABLE, URL_REFUSED
from reconciler.daemon.desk import unread
from reconciler.daemon.doubts import emptiness, recorded_doubts
from reconciler.daemon.isolation import Steps, error_finding, log_failures
from reconciler.daemon.reconcile import Gathered, begin, catalog_findings, gather, plan_fleet, plan_proposal
from reconciler.daemon.remotes import Remotes
from reconciler.daemon.states import read_states
from reconciler.daemon.tools import ConfigSource, Tools, keeping_stages
from reconciler.gitio.errors import GitError
from reconciler.krm.findings import Finding, Where, errors
from reconciler.krm.identity import ObjectKey
from reconciler.krm.schema.api_removals import Release
from reconciler.planning.conformance import Checked, Conformance, Schemas
from reconciler.planning.destination import Destination
from reconciler.planning.fleet import FleetPlan
from reconciler.planning.lint import told_once
from reconciler.planning.made_anew import decide_anew
from reconciler.planning.outcome import Blocked, Draft, Outcome, Rendered
from reconciler.planning.plan import Decided
from reconciler.planning.state import DestinationState
from reconciler.planning.survey import Surveyed, Workshop
from reconciler.reporting.rendered import Unsaid, rendered_findings, unsaid_findings
from reconciler.rules.clusters.versions import KnownClusters, Releases
from reconciler.rules.overrides.lint import unreached_findings
from reconciler.rules.variant import RoomResult, Variant
from reconciler.snapshot.catalog import ConfigObject

_NO_CLUSTERS = KnownClusters({}, {}, Releases())


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
    steps = Steps()
    proposal = plan_proposal(found, room, tools, (), steps)
    wanted = {(one.place.namespace, one.place.repository) for one in room.variants}
    destinations = tools.destinations(found.catalog)
    used = [one for one in destinations if one.deployment or _name(one) in wanted]
    nothing: tuple[Finding, ...] = ()
    settings = steps.run("the repositories that the settings name", lambda: settings_unread(remotes, tools), nothing)
    targets = [steps.run(one.title, partial(_unread_target, one, remotes, tools), nothing, one.where) for one in used]
    conflicts = steps.run("conflicts between targets", lambda: tuple(tools.conflicts(found.catalog).values()), nothing)
    made = (finding for variant in room.variants for finding in variant.findings)
    empty = emptiness(found.catalog, found.snapshot, bool(found.catalog.objects))
    absent = steps.run("evidence of deletions", partial(_absent, found, destinations, remotes, tools), nothing)
    told = (
        *empty,
        *catalog_findings(found.catalog),
        *absent,
        *found.findings,
        *conflicts,
        *proposal.findings,
        *made,
        *settings,
        *(each for findings in targets for each in findings),
        *steps.findings,
    )
    is_whole = found.catalog.is_whole
    findings = FleetPlan(found.snapshot.id, 0, room, (), told, is_whole, objects=found.catalog.objects).all_findings()
    odd = _lint(findings, lambda: tools.lint(found.catalog, remotes, room, found.now))
    log_failures((*findings, *odd))
    return Validated((*findings, *odd), found.catalog.objects, _makers(room))


def validate_rendered(source: ConfigSource, remotes: Remotes, tools: Tools, judge: Judge) -> Validated:
    """Return what `validate` does, what a plan tells, and what is wrong with every package as it would be drafted.

    All packages are rendered, whether or not anything has moved; nothing is written anywhere.
    """
    found = gather(source, remotes, tools)
    steps = Steps()
    nothing: tuple[Finding, ...] = ()
    fleet = steps.run("the releases of clusters", lambda: tools.fleet(found.catalog), _NO_CLUSTERS)
    releases = {name: judge.release for name in fleet.clusters if judge.release} | dict(fleet.releases.known)
    examined = _Examined(Conformance(found.catalog, releases, judge.schemas))
    begun = begin(found, remotes, keeping_stages(tools), examined.decide)
    planned = plan_fleet(begun, tools)
    settings = steps.run("the repositories that the settings name", lambda: settings_unread(remotes, tools), nothing)
    plan = replace(planned, findings=(*planned.findings, *unread(planned, remotes), *settings))
    unreached = unreached_findings(plan.usages, begun.desk.policies, fleet.clusters) if _is_all_made(plan) else ()
    unsaid = [name for name in fleet.clusters if name not in releases and name in examined.clusters]
    told = (
        *plan.all_findings(), *fleet.releases.findings, *unreached,
        *rendered_findings(examined.checked, found.catalog.objects),
        *unsaid_findings(Unsaid(unsaid, judge.schemas.words(None), fleet.places)), *steps.findings,
    )  # fmt: skip
    odd = _lint(told, lambda: tools.lint(found.catalog, remotes, begun.room, found.now))
    log_failures((*steps.findings, *odd))
    return Validated(tuple(dict.fromkeys((*told, *odd))), found.catalog.objects, _makers(begun.room))


def _absent(
    found: Gathered, destinations: Sequence[Destination], remotes: Remotes, tools: Tools
) -> tuple[Finding, ...]:
    """Return an error for each file that does not prove the deletion of the objects that a state records for it."""
    states = read_states(destinations, remotes, tools.state_ref).values()
    known = [one for one in states if isinstance(one, DestinationState)]
    return recorded_doubts(found.catalog, found.snapshot, destinations, known, tools.max_delete_percent)


def settings_unread(remotes: Remotes, tools: Tools) -> tuple[Finding, ...]:
    """Return an error for each repository that the settings name, and that cannot be used or read.

    A repository that no cluster lives in is read as well: it receives the status.
    """
    places = tools.places()
    remotes.fetch((), {url for url in places.values() if isinstance(url, str)} - remotes.read)
    return tuple(
        found for setting, url in places.items() if (found := _unusable_setting(setting, url, remotes)) is not None
    )


def _unusable_setting(setting: str, url: str | GitError, remotes: Remotes) -> Finding | None:
    if isinstance(url, GitError):
        return URL_REFUSED.finding(f"{setting} must name a Git repository: {url.told}", Where(pointer=setting))
    error = remotes.failures.get(url)
    if error is None:
        return None
    return REPOSITORY_UNREACHABLE.finding(f"{setting} must name a Git repository: {error.told}", Where(pointer=setting))


def _unread_target(one: Destination, remotes: Remotes, tools: Tools) -> tuple[Finding, ...]:
    """Return an error for a target whose repository cannot be read; one that the settings name is reported by them."""
    error = remotes.failures.get(one.url)
    if error is None or one.url in tools.places().values():
        return ()
    return (error_finding(error, REPOSITORY_UNREACHABLE, f"{one.title}: {error.told}", one.where),)


def _name(one: Destination) -> tuple[str, str]:
    return one.key.namespace, one.name


def _lint(known: Sequence[Finding], lint: Callable[[], tuple[Finding, ...]]) -> tuple[Finding, ...]:
    steps = Steps()
    nothing: tuple[Finding, ...] = ()
    found = steps.run("the additional checks of the config", lint, nothing)
    return (*told_once(known, found), *steps.findings)


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
