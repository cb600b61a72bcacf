"""Effects: what one item of an overrider makes of a resource, and what it has to say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reconciler.rules.notes import Note
from reconciler.rules.provenance import Inside


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
