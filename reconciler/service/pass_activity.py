"""The activity of a pass: the events about the drafts that it changed, and one event about the pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from reconciler.git.push_outcomes import PushDone
from reconciler.inspect.published_removals import ObservedRemoval
from reconciler.krm.numbers import format_count
from reconciler.output.fleet.activity import ActivityEvent
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.planning.model.outcomes import Draft, Unchanged
from reconciler.reconcile.commits import WrittenPlan
from reconciler.reconcile.publication_log import list_new_revisions
from reconciler.reconcile.reconcile_pass import PassReport

_MAX_CAUSES = 10


def list_pass_events(report: PassReport, now: int) -> list[ActivityEvent]:
    """Return the events of a pass. A pass without an effect has no events.

    Other code creates the events about publications and removals. Therefore, this function only counts them.

    Args:
        now: The end of the pass, in seconds since 1970.
    """
    pushed = [*_list_pushed(report)]
    events = [event for written in pushed for event in _list_draft_events(written, now)]
    counts = Counter(action for event in events for action in event.actions)
    publications = sum(1 for written in pushed for _ in list_new_revisions(written.plan))
    effects = {
        "draft created": counts["draft-created"],
        "draft updated": counts["draft-updated"],
        "draft withdrawn": counts["draft-withdrawn"],
        "draft with conflicts": counts["conflict"],
        "publication found": publications,
        "package removed": sum(1 for _ in list_published_removals(report)),
    }
    texts = [_format_effect(count, effect) for effect, count in effects.items() if count]
    if texts:
        events.append(ActivityEvent(("pass",), now, now, message=", ".join(texts), commit=report.plan.config_id))
    return events


def list_published_removals(report: PassReport) -> Iterator[ObservedRemoval]:
    """Yield the packages that were published in the previous pass, and whose removal is published now."""
    for written in _list_pushed(report):
        plan = written.plan
        for removal in plan.removals:
            if removal.kind == "withdrawn" and plan.heads.target_branch and _was_published(plan, removal.package):
                yield ObservedRemoval(
                    plan.target, removal.package, removal.reason, plan.previous_state.observed_commit,
                    plan.heads.target_branch,
                )  # fmt: skip


def _list_pushed(report: PassReport) -> Iterator[WrittenPlan]:
    return (written for name, written in report.written.items() if isinstance(report.outcomes[name], PushDone))


def _was_published(plan: TargetPlan, package: str) -> bool:
    previous = plan.previous_state.packages.get(package)
    return previous is not None and (previous.removal is not None or previous.published_version is not None)


def _format_effect(count: int, effect: str) -> str:
    noun, _, state = effect.partition(" ")
    return f"{format_count(count, noun)} {state}"


def _list_draft_events(written: WrittenPlan, now: int) -> Iterator[ActivityEvent]:
    """Yield one event for each package whose draft the pass has created, updated or withdrawn."""
    plan = written.plan
    target = plan.target.name
    for outcome in plan.outcomes:
        if isinstance(outcome, Draft):
            package = outcome.variant.target.package
            branch = plan.next_state.packages[package].draft_branch
            yield ActivityEvent(
                (
                    "draft-updated" if outcome.record.draft_version else "draft-created",
                    *(("conflict",) if outcome.rendered.conflicts else ()),
                ),
                now,
                now,
                target,
                package,
                message=f"{outcome.task}: {', '.join(outcome.causes[:_MAX_CAUSES])}",
                commit=written.draft_heads.get(branch, ""),
            )
        elif isinstance(outcome, Unchanged) and outcome.should_withdraw:
            package = outcome.variant.target.package
            yield ActivityEvent(("draft-withdrawn",), now, now, target, package, message=outcome.reason)
    for removal in plan.removals:
        if removal.kind == "withdrawn" and not _was_published(plan, removal.package):
            yield ActivityEvent(("draft-withdrawn",), now, now, target, removal.package, message=removal.reason)
        elif removal.kind == "proposed" and removal.is_new:
            commit = written.draft_heads.get(removal.record.draft_branch, "")
            yield ActivityEvent(
                ("draft-created",), now, now, target, removal.package, message=removal.reason, commit=commit
            )
