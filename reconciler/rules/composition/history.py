"""What led to each value of an object, by the place that the value has in the end: items of lists move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.yaml import Path
from reconciler.krm.yaml.same import same
from reconciler.rules.composition.patching.apply import Write

Change = tuple[Path, Any, Any]
GONE = "-"
"""Where an item is told that is not in its list any more: in JSON pointers the item behind the last."""


@dataclass(eq=False)
class History:
    """The steps of the value at one place, and what is known of the places below it."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    fields: dict[str, History] = field(default_factory=dict)
    items: list[History | None] = field(default_factory=list)

    def at(self, path: Path) -> History:
        """Return the history of a place."""
        found = self
        for step in path:
            found = found._below(step)
        return found

    def _below(self, step: str | int) -> History:
        if isinstance(step, str):
            return self.fields.setdefault(step, History())
        self.items.extend([None] * (step + 1 - len(self.items)))
        found = self.items[step] or History()
        self.items[step] = found
        return found

    def move(self, write: Write) -> None:
        """Move what is behind an item that is put in, or taken out."""
        *above, step = write.location
        if isinstance(step, str) or write.op == "replace" or write.is_appended:
            return
        items = self.at(tuple(above)).items
        if write.op == "add":
            items.insert(step, None) if step < len(items) else None
        else:
            del items[step : step + 1]

    def forget_items(self) -> None:
        """Forget what is told of the items of a list, which is another one now."""
        self.items.clear()

    def all(self, at: Path = ()) -> Iterator[tuple[Path, list[dict[str, Any]]]]:
        """Yield every place that has steps."""
        if self.steps:
            yield at, self.steps
        for key, one in self.fields.items():
            yield from one.all((*at, key))
        for index, item in enumerate(self.items):
            if item:
                yield from item.all((*at, index))


def changes_of(write: Write) -> Iterator[Change]:
    """Yield what a write changed, leaf by leaf; a list is one leaf, for what is in it may be another than before."""
    *above, step = write.location
    if write.op == "remove" and isinstance(step, int):
        yield (*above, GONE), write.before, ABSENT
    else:
        yield from _changes(write.before, write.after, write.location)


def _changes(before: Any, after: Any, path: Path) -> Iterator[Change]:
    maps = [one if isinstance(one, dict) else {} for one in (before, after)]
    keys = dict.fromkeys((*maps[0], *maps[1]))
    if keys and all(one is ABSENT or isinstance(one, dict) for one in (before, after)):
        for key in keys:
            yield from _changes(maps[0].get(key, ABSENT), maps[1].get(key, ABSENT), (*path, key))
    elif before is ABSENT or after is ABSENT or not same(before, after):
        yield path, before, after
