"""The work of the notification thread with a channel in memory, and with a clock that the test sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.krm.findings import Severity
from reconciler.notifications.channel import ChannelError
from reconciler.notifications.channel_findings import ChannelFindings
from reconciler.notifications.delivery import Delivery
from reconciler.notifications.events import Event
from reconciler.notifications.ledger import Ledger
from reconciler.notifications.messages import Message
from reconciler.notifications.observation import Condition, Item, Observation
from reconciler.notifications.routes import Route
from reconciler.notifications.service import NotificationWork
from reconciler.notifications.tracker import Tracker, TrackerOptions

START = 1_700_000_000.0


@dataclass
class MemoryChannel:
    """A channel that stores messages. It raises the errors in `errors` first."""

    messages: list[Message] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    posted: dict[str, str] = field(default_factory=dict)

    def send(self, message: Message) -> Mapping[str, str]:
        if self.errors:
            raise self.errors.pop(0)
        self.messages.append(message)
        return self.posted

    def format(self, message: Message) -> str:
        return message.title

    @property
    def titles(self) -> list[str]:
        return [message.title for message in self.messages]


@dataclass
class NotificationHarness:
    """The notification thread's work, run step by step with a manual clock. `restart` starts a new process."""

    file: Path
    routes: list[Route]
    options: TrackerOptions = field(default_factory=TrackerOptions)
    channel: MemoryChannel = field(default_factory=MemoryChannel)
    now: float = START
    work: NotificationWork = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        ledger = Ledger(self.file)
        tracker = Tracker(self.routes, ledger, self.options)
        self.work = NotificationWork(
            ledger, tracker, Delivery({"ops": self.channel}, tracker.record, ChannelFindings())
        )

    def run(self, *observations: Observation, after: float = 0.0) -> list[str]:
        """Advance the clock, run the work once, and return the titles of all new messages."""
        self.now += after
        known = len(self.channel.messages)
        self.work.run(observations, self.now)
        return self.channel.titles[known:]

    def settle(self, *observations: Observation) -> list[str]:
        """Run the work now, and again after the gather time. Return the titles of all new messages."""
        return [*self.run(*observations), *self.run(after=self.options.gather_seconds)]


def item(name: str, **fields: object) -> Item:
    """Return an item with the ID `name`, which is `target/package@content`."""
    place = name.partition("@")[0]
    target, _, package = place.partition("/")
    return Item(**{"id": name, "scope": target, "target": target, "package": package, **fields})


def drafts(*names: str, group: str = "key", subject: str = "update web v1 → v2") -> Condition:
    """Return the condition that these drafts wait."""
    return Condition(Event.DRAFTS_WAITING, group, subject, Severity.INFO, tuple(map(item, names)))


def blocked(*names: str, group: str = "Bad web") -> Condition:
    """Return the condition that these packages are blocked."""
    return Condition(Event.PACKAGE_BLOCKED, group, "PackageVariant web: Bad", Severity.ERROR, tuple(map(item, names)))


def observe(*conditions: Condition, **fields: object) -> Observation:
    """Return the observation of a complete pass."""
    return Observation(conditions, **{"config": "c1", **fields})


def unreachable(retry_seconds: float | None = None) -> ChannelError:
    """Return the error of a service that does not respond."""
    return ChannelError("ops cannot be reached", retry_seconds)
