"""An observation of the fleet: the conditions after one pass, such as open drafts. `observe_pass` builds the
observation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.krm.findings import Severity
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.notifications.events import Event

SEVERITIES = (Severity.INFO, Severity.WARNING, Severity.ERROR)
"""All severities, in increasing order."""


@dataclass(frozen=True)
class Item:
    """One member of a condition, for example one draft. People are notified once about each item.

    Attributes:
        id: Identifies the item with its content, without times. An item with changed content has a different ID.
        scope: The target, or the part of a pass, in which the item is observed. If a pass observes this scope without
            the item, the item has ended.
        target: The name of the target. "" if the item is about the whole fleet.
        package: The path of the package. "" if the item is about a whole target.
        message: The description of the item.
        hold_seconds: The minimum age of the item before it is sent.
        parent: The ID of the item with which this item ends. "" if the item ends when it is not observed.
        tenant: The tenant of the package, object or file. "" for the platform team.
    """

    id: str
    scope: str
    target: str = ""
    package: str = ""
    message: str = ""
    hold_seconds: float = 0.0
    parent: str = ""
    tenant: str = ""


@dataclass(frozen=True)
class Condition:
    """A condition of the fleet that people should know, or an action that happened once.

    Attributes:
        group: The group key. All items with the same event and group key are one message.
        subject: The subject of the message, for example a change or an object.
        data: Further data for the payload. The keys are part of the public format.
    """

    event: Event
    group: str
    subject: str
    severity: Severity
    items: tuple[Item, ...]
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Observation:
    """The conditions after one pass.

    Attributes:
        config: The ID of the config.
        labels: The labels of each target.
        unknown_scopes: The scopes that the pass could not observe. Their items stay unchanged.
        only_scopes: The only scopes that were observed. None if the pass observed all scopes except `unknown_scopes`.
        published: Maps the ID of each item whose content is published to the revision number.
        rejected: The IDs of the items that a person rejected.
    """

    conditions: tuple[Condition, ...]
    config: str = ""
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unknown_scopes: frozenset[str] = frozenset()
    only_scopes: frozenset[str] | None = None
    published: Mapping[str, int] = field(default_factory=dict)
    rejected: frozenset[str] = frozenset()

    def covers(self, scope: str) -> bool:
        """Return whether the pass observed this scope."""
        if self.only_scopes is not None:
            return scope in self.only_scopes
        return scope not in self.unknown_scopes
