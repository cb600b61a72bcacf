"""Sample messages, with which people test a channel or a template."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.krm.findings import Severity
from reconciler.notifications.events import Event, get_start_event
from reconciler.notifications.messages import (
    DIGEST_EVENT,
    Message,
    compute_message_id,
    format_lines,
    format_title,
)
from reconciler.notifications.observation import Condition, Item

SAMPLE_EVENTS = (*(event.value for event in Event), DIGEST_EVENT)
"""The events for which there is a sample message."""
_WARNINGS = frozenset({
    Event.DRAFT_CONFLICT, Event.DELETION_HELD, Event.CREDENTIAL_EXPIRING, Event.REVIEW_OVERDUE,
})  # fmt: skip
_ERRORS = frozenset({Event.PACKAGE_BLOCKED, Event.REMOTE_UNAVAILABLE, Event.PASS_FAILING, Event.ROLLOUT_STOPPED})
_SUBJECTS: Mapping[Event, str] = {
    Event.DRAFTS_WAITING: "update web v1 → v2",
    Event.REJECTED: "update web v1 → v2",
    Event.DRAFT_CONFLICT: "web: deployment.yaml: Deployment shop/web: spec.replicas",
    Event.PUBLISHED: "berlin",
    Event.DELETION_HELD: "PackageVariantSet default/web",
    Event.REMOTE_UNAVAILABLE: "https://git.example.com/fleet.git",
    Event.REMOTE_RECOVERED: "https://git.example.com/fleet.git",
    Event.PASS_FAILING: "shard 1/1",
    Event.PASS_RECOVERED: "shard 1/1",
    Event.CREDENTIAL_EXPIRING: "api of api.github.com",
    Event.ROLLOUT_ADVANCED: "rule replicas of OverridePolicy shop/web: wave 1 is open",
    Event.ROLLOUT_STOPPED: "rule replicas of OverridePolicy shop/web: wave 2 stays closed",
}


def build_sample(channel: str, event: str, shard: str, seconds: int, link: str) -> Message:
    """Return a sample message about an event, for a channel. The items and names are examples."""
    items = tuple(Item(f"{target}/web", target, target, "web", "this is a test message") for target in _TARGETS)
    kind = Event.DRAFTS_WAITING if event == DIGEST_EVENT else Event(event)
    condition = Condition(
        kind, "sample", _SUBJECTS.get(kind, "PackageVariant default/web: UpstreamNotFound"), _get_severity(kind), items
    )
    title = "2 changes" if event == DIGEST_EVENT else format_title(condition)
    return Message(
        compute_message_id(f"test {channel}", [], seconds), f"test {channel}", channel, event,
        f"{get_start_event(kind)}:sample", title, format_lines(items), condition.severity, items,
        {"sample": True}, (), "", shard, seconds, link, 2 if event == DIGEST_EVENT else 1,
    )  # fmt: skip


_TARGETS = ("berlin", "lisbon")


def _get_severity(event: Event) -> Severity:
    if event in _ERRORS:
        return Severity.ERROR
    return Severity.WARNING if event in _WARNINGS else Severity.INFO
