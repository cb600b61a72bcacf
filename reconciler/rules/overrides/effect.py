"""Effects: what one item of an overrider makes of a resource, and what it has to say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.findings import Code, Severity
from reconciler.krm.yaml import Path


@dataclass(frozen=True)
class Note:
    """One thing that an overrider says; `path` is the place in the resource.

    `value` is what stood there, where the message is about that: who tells it decides whether it may be seen.
    """

    code: Code
    message: str
    path: Path = ()
    value: Any = ABSENT

    @property
    def is_error(self) -> bool:
        """Whether the resource must not be published."""
        return self.code.severity is Severity.ERROR


@dataclass(frozen=True)
class Inside:
    """What changed inside of a text: the path of the string, and what it held before and holds afterwards."""

    path: Path
    before: Any
    after: Any


@dataclass(frozen=True)
class Effect:
    """A resource's data afterwards, the very same object where nothing changed; with an error it must not be used."""

    data: Any
    notes: tuple[Note, ...] = ()
    inside: Inside | None = None

    @property
    def failed(self) -> bool:
        """Whether one of the notes is an error."""
        return any(note.is_error for note in self.notes)

    def then(self, step: Callable[[Any], Effect]) -> Effect:
        """Return this effect and that of a next step on top of it, which is not taken after an error."""
        if self.failed:
            return self
        after = step(self.data)
        return Effect(after.data, self.notes + after.notes)
