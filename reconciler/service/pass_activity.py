"""The activity of a pass: the events about the drafts that it changed, and one event about the pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from reconciler.git.push_outcomes import PushDone
from reconciler.output.fleet.activity import ActivityEvent
from reconciler.output.text import format_count
from reconciler.planning.model.outcomes import Draft, Unchanged
from reconciler.reconcile.commits import WrittenPlan
from reconciler.reconcile.publication_log import list_new_revisions
from reconciler.reconcile.reconcile_pass import PassReport

_MAX_CAUSES = 10


def list_pass_events(report: PassReport, now: int) -> list[ActivityEvent]:
    """Return the events of a pass. A pass without an effect has no events.

    The index contains the publications. Therefore, this function only counts them.

    Args:
        now: The end of the pass, in seconds since 1970.
    """
    pushed = [written for name, written in report.written.items() if isinstance(report.outcomes[name], PushDone)]
    events = [event for written in pushed for event in _list_draft_events(written, now)]
    counts = Counter(action for event in events for action in event.actions)
    publications = sum(1 for written in pushed for _ in list_new_revisions(written.plan))
    effects = {
        "draft created": counts["draft-created"],
        "draft updated": counts["draft-updated"],
        "draft withdrawn": counts["draft-withdrawn"],
        "draft with conflicts": counts["conflict"],
        "publication found": publications,
    }
    texts = [_format_effect(count, effect) for effect, count in effects.items() if count]
    if texts:
        events.append(ActivityEvent(("pass",), now, now, message=", ".join(texts), commit=report.plan.config_id))
    return events


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
        if removal.kind == "withdrawn":
            yield ActivityEvent(("draft-withdrawn",), now, now, target, removal.package, message=removal.reason)
        elif removal.kind == "proposed" and removal.is_new:
            commit = written.draft_heads.get(removal.record.draft_branch, "")
            yield ActivityEvent(
                ("draft-created",), now, now, target, removal.package, message=removal.reason, commit=commit
            )
