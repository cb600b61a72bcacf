"""Builds an observation (the list of current conditions of the fleet) from the report of a pass.

The plan of a target is read again only if it has changed since the previous pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.controllers.clusters.inventory import read_cluster_labels
from reconciler.controllers.override_policies.rollout import RolloutGate, RuleId
from reconciler.git.errors import GitError, RemoteBusyError
from reconciler.krm.findings import CommonCodes, Finding, Severity, SourceLocation, select_errors
from reconciler.krm.json_text import compute_hash
from reconciler.krm.objects import Condition as PackageCondition
from reconciler.krm.objects import ObjectKey
from reconciler.krm.times import format_rfc3339
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.notifications.events import MAX_FAILED_PASSES, REMOTE_HOLD_SECONDS, Event
from reconciler.notifications.observation import SEVERITIES, Condition, Item, Observation
from reconciler.output.fleet.change_key import describe_change, format_owner
from reconciler.output.status.package_sections import format_conflict_location, format_recorded_conflicts
from reconciler.output.text import format_object_reference, to_one_line
from reconciler.planning.decide.fleet_plan import FleetPlan, TargetPlan
from reconciler.planning.model.outcomes import Blocked, Draft
from reconciler.planning.model.shard import Shard
from reconciler.planning.model.sources import serialize_conflict
from reconciler.planning.model.state import PackageRecord
from reconciler.planning.model.targets import Target
from reconciler.reconcile.codes import PassCodes
from reconciler.reconcile.reconcile_pass import PassReport
from reconciler.redaction import redact_url

_CONFIG_SCOPE, _PASS_SCOPE, _ROLLOUT_SCOPE, _CREDENTIAL_SCOPE = "/config", "/pass", "/rollouts", "/credentials"
# The days before the expiry of a credential on which a message is sent, in increasing order.
_EXPIRY_DAYS = (3, 14)
_DAY_SECONDS = 86_400
_REMOTE_CODES = frozenset({
    PassCodes.REPOSITORY_UNREACHABLE.name, PassCodes.PUSH_FAILED.name, PassCodes.PUSH_POSTPONED.name,
})  # fmt: skip
# The messages of these codes contain texts that differ between passes, such as the output of a remote.
_CODES_WITH_CHANGING_MESSAGES = frozenset({PassCodes.PUSH_REFUSED.name, CommonCodes.INTERNAL_ERROR.name})
_DIGEST_LENGTH = 12
_REMOVED = "removed"


@dataclass
class _Conditions:
    """Collects conditions, and combines conditions with the same event and group key."""

    by_group: dict[tuple[Event, str], tuple[Condition, dict[str, Item]]] = field(default_factory=dict)

    def add(self, condition: Condition) -> None:
        """Add the items of a condition to its group. The group gets all other data from its most severe condition."""
        key = (condition.event, condition.group)
        first, items = self.by_group.get(key, (condition, {}))
        items.update((item.id, item) for item in condition.items)
        is_more_severe = SEVERITIES.index(condition.severity) > SEVERITIES.index(first.severity)
        self.by_group[key] = (condition if is_more_severe else first, items)

    def build(self) -> tuple[Condition, ...]:
        """Return one condition per group."""
        return tuple(replace(first, items=tuple(items.values())) for first, items in self.by_group.values())


@dataclass(frozen=True)
class _TargetObservation:
    """The part of an observation that comes from the plan of one target."""

    conditions: tuple[Condition, ...]
    published: Mapping[str, int]
    rejected: frozenset[str]


class PassObserver:
    """Builds the observation of each pass of one shard."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._targets: dict[ObjectKey, tuple[TargetPlan, _TargetObservation]] = {}
        self._objects: Mapping[ObjectKey, Any] = {}
        self._labels: Mapping[str, Mapping[str, str]] = {}

    def observe(self, report: PassReport, failures: Mapping[str, GitError]) -> Observation:
        """Return the observation of a completed pass.

        Args:
            failures: Maps the URL of each remote that the pass could not read to the error.
        """
        plan, conditions = report.plan, _Conditions()
        observed = [self._observe_target(target_plan) for target_plan in plan.targets]
        keys = {target_plan.target.key for target_plan in plan.targets}
        self._targets = {key: known for key, known in self._targets.items() if key in keys}
        for target in observed:
            for condition in target.conditions:
                conditions.add(condition)
        for condition in self._list_fleet_conditions(plan, failures):
            conditions.add(condition)
        unread = {target_plan.target.name for target_plan in plan.targets if _is_unread(target_plan)}
        late = {_remote_scope(url) for url, error in failures.items() if isinstance(error, RemoteBusyError)}
        return Observation(
            conditions.build(),
            plan.config_id,
            self._read_labels(plan),
            frozenset(unread | late | (set() if plan.is_complete else {_CONFIG_SCOPE})),
            published={item: number for target in observed for item, number in target.published.items()},
            rejected=frozenset(item for target in observed for item in target.rejected),
        )

    def observe_credentials(self, expiries: Mapping[tuple[str, str], float], now: float) -> Observation:
        """Return the observation of the credentials that expire soon.

        Args:
            expiries: Maps the remote and the use of each credential to its expiry time, in seconds since 1970.
        """
        conditions = []
        # Report the expiry only in the leader shard, because all shards use the same credentials.
        for (remote, use), expiry in sorted(expiries.items()) if self._shard.is_leader else ():
            days = next((days for days in _EXPIRY_DAYS if expiry - now <= days * _DAY_SECONDS), None)
            if days is not None:
                name, time = to_one_line(f"{use} of {remote}"), format_rfc3339(int(expiry))
                item = Item(f"{name} {time} {days}", _CREDENTIAL_SCOPE, message=f"expires at {time}")
                severity = Severity.ERROR if days == _EXPIRY_DAYS[0] else Severity.WARNING
                data = {"remote": remote, "use": use, "expiresAt": time}
                conditions.append(Condition(Event.CREDENTIAL_EXPIRING, name, name, severity, (item,), data))
        return Observation(tuple(conditions), only_scopes=frozenset({_CREDENTIAL_SCOPE}))

    def observe_skipped_pass(self) -> Observation:
        """Return the observation of a pass that read the config and found no change."""
        return Observation((), only_scopes=frozenset({_PASS_SCOPE}))

    def observe_failed_pass(self, message: str, failed_passes: int) -> Observation:
        """Return the observation of a pass that could not read the config.

        Args:
            failed_passes: The number of consecutive failed passes, with this pass.
        """
        if failed_passes < MAX_FAILED_PASSES:
            return Observation((), only_scopes=frozenset())
        shard = str(self._shard)
        item = Item(f"pass {shard}", _PASS_SCOPE, message=to_one_line(message))
        condition = Condition(Event.PASS_FAILING, shard, f"shard {shard}", Severity.ERROR, (item,), {"shard": shard})
        return Observation((condition,), only_scopes=frozenset({_PASS_SCOPE}))

    def _observe_target(self, plan: TargetPlan) -> _TargetObservation:
        known = self._targets.get(plan.target.key)
        if known and known[0] is plan:
            return known[1]
        observation = _TargetObservation(
            tuple(_list_target_conditions(plan)),
            dict(_list_published(plan)),
            frozenset(_list_rejected(plan)),
        )
        if not plan.has_new_drafts:
            # Store no plan with new drafts, because such a plan keeps the files of the drafts in memory.
            self._targets[plan.target.key] = (plan, observation)
        return observation

    def _list_fleet_conditions(self, plan: FleetPlan, failures: Mapping[str, GitError]) -> Iterator[Condition]:
        targets: dict[str, list[Target]] = {}
        for target_plan in plan.targets:
            targets.setdefault(target_plan.target.url, []).append(target_plan.target)
        for url, error in failures.items():
            if isinstance(error, RemoteBusyError):
                continue
            # Report errors of the config and of upstreams only in the leader shard, because all shards read these
            # remotes.
            if url in targets or self._shard.is_leader:
                yield _build_remote_condition(url, error.full_message, targets.get(url, ()))
        if self._shard.is_leader:
            yield from _list_config_conditions(plan)
            for rule, gate in plan.rollout_gates.items():
                yield from _list_rollout_conditions(rule, gate)

    def _read_labels(self, plan: FleetPlan) -> Mapping[str, Mapping[str, str]]:
        if plan.objects is not self._objects:
            self._objects, self._labels = plan.objects, read_cluster_labels(plan.objects)
        return self._labels


def _is_unread(plan: TargetPlan) -> bool:
    """Return whether a pass could not read the target.

    The plan of such a target has findings and no outcomes. If the target was read, but the push failed, the plan has
    findings and outcomes.
    """
    return bool(plan.findings) and not plan.outcomes


def _remote_scope(url: str) -> str:
    return f"/remote {redact_url(url)}"


def _list_target_conditions(plan: TargetPlan) -> Iterator[Condition]:
    conflicts = {
        outcome.variant.target.package: [serialize_conflict(conflict) for conflict in outcome.rendered.conflicts]
        for outcome in plan.outcomes
        if isinstance(outcome, Draft)
    }
    for package, record in plan.next_state.packages.items():
        if _has_open_draft(record):
            draft = _build_draft_condition(plan.target.name, package, record)
            yield draft
            recorded = (*conflicts.get(package, ()), *record.conflicts)
            yield from (_build_conflict_condition(draft.items[0], conflict) for conflict in recorded)
    yield from _list_blocked(plan)
    for held in plan.held:
        item = Item(
            f"{plan.target.name}/{held.package} {held.finding.code}", plan.target.name, plan.target.name, held.package,
            to_one_line(held.finding.message), tenant=held.record.tenant,
        )  # fmt: skip
        owner = format_owner(held.record.owner)
        yield Condition(Event.DELETION_HELD, owner, owner, Severity.WARNING, (item,), {"owner": owner})


def _has_open_draft(record: PackageRecord) -> bool:
    if record.removal:
        return not record.removal.is_declined
    return record.draft_version is not None


def _format_draft_id(target: str, package: str, content: str) -> str:
    return f"{target}/{package}@{content[:_DIGEST_LENGTH]}"


def _build_draft_condition(target: str, package: str, record: PackageRecord) -> Condition:
    change = describe_change(record, package)
    content = record.draft_version.rendered if record.draft_version and not record.removal else _REMOVED
    risks = _list_risks(record)
    data = {
        "operation": change.operation, "owner": change.owner, "package": package, "from": change.before,
        "to": change.after, "risks": risks,
    }  # fmt: skip
    item = Item(
        _format_draft_id(target, package, content), target, target, package, ", ".join(risks), tenant=record.tenant
    )
    severity = Severity.WARNING if risks else Severity.INFO
    return Condition(
        Event.DRAFTS_WAITING, change.compute_key(target), to_one_line(str(change)), severity, (item,), data
    )


def _list_risks(record: PackageRecord) -> list[str]:
    risks = {
        "deletes the package": record.removal is not None,
        "has conflicts": bool(record.conflicts),
        "the render failed": record.render_status.get("status") == "False",
        "readiness gates are not met": bool(record.render_status.get("unmetGates")),
    }
    return [text for text, applies in risks.items() if applies]


def _build_conflict_condition(draft: Item, conflict: Mapping[str, Any]) -> Condition:
    location = to_one_line(format_conflict_location(conflict))
    item = replace(
        draft, id=f"{draft.id} {location}", message="; ".join(format_recorded_conflicts([conflict])), parent=draft.id
    )
    subject, data = f"{draft.package}: {location}", {"package": draft.package, "location": location}
    return Condition(Event.DRAFT_CONFLICT, f"{draft.package} {location}", subject, Severity.WARNING, (item,), data)


def _list_blocked(plan: TargetPlan) -> Iterator[Condition]:
    target = plan.target
    for finding in select_errors(plan.findings):
        if finding.code in _REMOTE_CODES:
            if finding.code == PassCodes.PUSH_FAILED.name:
                yield _build_remote_condition(target.url, finding.message, (target,))
        else:
            item = Item("", target.name, target.name)
            yield _build_blocked_condition(finding.code, finding.message, finding.location, target.title, item)
    for outcome in plan.outcomes:
        # Skip packages with a finding about the whole target, because the target is reported instead.
        if isinstance(outcome, Blocked) and not set(outcome.findings) & set(plan.findings):
            owner = outcome.variant.owner
            variant = outcome.variant
            item = Item("", target.name, target.name, variant.target.package, tenant=variant.tenant)
            owner_name = format_owner(owner)
            errors = select_errors(outcome.findings)
            for finding in errors:
                name = finding.location.object
                reference = owner_name if name in ("", owner.key.reference) else name
                yield _build_blocked_condition(finding.code, finding.message, finding.location, reference, item)
            if not errors:
                # Report the reason of the outcome, because the package has no error of its own, e.g. if its owner is
                # blocked.
                reason = _find_reason(outcome)
                yield _build_blocked_condition(reason.reason, reason.message, SourceLocation(), owner_name, item)


def _find_reason(outcome: Blocked) -> PackageCondition:
    """Return the condition with the reason why a package is blocked."""
    conditions = outcome.conditions
    return next((condition for condition in conditions if condition.type == "Ready"), conditions[-1])


def _build_blocked_condition(
    code: str, message: str, location: SourceLocation, reference: str, item: Item
) -> Condition:
    name = to_one_line(format_object_reference(reference))
    digest = "" if code in _CODES_WITH_CHANGING_MESSAGES else compute_hash(message)
    place = f"{item.target}/{item.package}" if item.package else item.target
    data = {"code": code, "object": name, "file": location.file, "line": location.line}
    item = replace(item, id=f"{place}!{code} {digest[:_DIGEST_LENGTH]}", message=to_one_line(message))
    return Condition(
        Event.PACKAGE_BLOCKED, f"{code} {name}", f"{name}: {code}", Severity.ERROR, (item,),
        {key: value for key, value in data.items() if value},
    )  # fmt: skip


def _list_published(plan: TargetPlan) -> Iterator[tuple[str, int]]:
    for package, record in plan.next_state.packages.items():
        if record.published_version:
            yield _format_draft_id(plan.target.name, package, record.published_version.rendered), record.last_revision
        elif not record.is_owned and record.removal is None:
            yield _format_draft_id(plan.target.name, package, _REMOVED), 0


def _list_rejected(plan: TargetPlan) -> Iterator[str]:
    for package, record in plan.next_state.packages.items():
        for tree in record.declined_trees:
            yield _format_draft_id(plan.target.name, package, tree)
        if record.removal and record.removal.is_declined:
            yield _format_draft_id(plan.target.name, package, _REMOVED)


def _build_remote_condition(url: str, message: str, targets: Sequence[Target]) -> Condition:
    remote, scope = to_one_line(redact_url(url)), _remote_scope(url)
    items = [
        Item(f"{remote} {name}", scope, name, message=to_one_line(message), hold_seconds=REMOTE_HOLD_SECONDS)
        for name in ([target.name for target in targets] or [""])
    ]
    return Condition(Event.REMOTE_UNAVAILABLE, remote, remote, Severity.ERROR, tuple(items), {"remote": remote})


def _list_config_conditions(plan: FleetPlan) -> Iterator[Condition]:
    """Yield one condition for each object or file that cannot be processed, and that has no target."""
    # Omit packages that a deletion guard holds, because they have their own event.
    held_codes = {held.finding.code for target_plan in plan.targets for held in target_plan.held}
    stalled = [finding for owner in plan.controller_result.stalled for finding in owner.findings]
    findings: Iterable[Finding] = (*plan.findings, *plan.controller_result.findings, *stalled)
    for finding in select_errors([finding for finding in dict.fromkeys(findings) if finding.code not in held_codes]):
        location = finding.location
        name = location.object or location.file or location.package or "config"
        item = Item("", _CONFIG_SCOPE, tenant=plan.find_finding_tenant(finding))
        yield _build_blocked_condition(finding.code, finding.message, location, name, item)


def _list_rollout_conditions(rule: RuleId, gate: RolloutGate) -> Iterator[Condition]:
    name = to_one_line(f"rule {rule.rule} of {rule.policy}")
    next_wave = min(gate.wait_reasons, default=None)
    reason = "" if next_wave is None else to_one_line(gate.wait_reasons[next_wave])
    data = {"rollout": name, "openClusters": len(gate.open_clusters), "reason": reason}
    if next_wave is not None:
        data["nextWave"] = next_wave
    if next_wave is None or next_wave > 1:
        opened = "all waves are open" if next_wave is None else f"wave {next_wave - 1} is open"
        item = Item(f"{rule} {opened}", _ROLLOUT_SCOPE, message=reason)
        yield Condition(Event.ROLLOUT_ADVANCED, f"{rule} {opened}", f"{name}: {opened}", Severity.INFO, (item,), data)
    if next_wave is not None and not gate.undecided_clusters:
        # The rollout has stopped, because a package with the current version of the rule was reverted.
        item = Item(f"{rule} stopped {next_wave}", _ROLLOUT_SCOPE, message=reason)
        yield Condition(
            Event.ROLLOUT_STOPPED, f"{rule} {next_wave}", f"{name}: wave {next_wave} stays closed", Severity.ERROR,
            (item,), data,
        )  # fmt: skip
