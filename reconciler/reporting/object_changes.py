"""Object changes: KRM objects that were added, removed or changed between two sets of files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from reconciler.caching import cached
from reconciler.krm.digest import digest
from reconciler.krm.identity import ObjectKey
from reconciler.krm.secrets import MASK, holds_secret, is_secret_path
from reconciler.reporting.fields import ABSENT, FieldChange, field_changes
from reconciler.reporting.file_objects import Standing, file_objects
from reconciler.reporting.values import count, one_line
from reconciler.snapshot.files import FileTree

How = Literal["removed", "changed", "added"]
ORDER: tuple[How, ...] = ("removed", "changed", "added")
_WORKLOADS = frozenset({"CronJob", "DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet", "StatefulSet"})
_FIELDS_PER_LINE = 3
# one change of a file is a change on many clusters; room for every object of the files that stay described
_REMEMBERED_CHANGES = 4096


@dataclass(frozen=True)
class ObjectChange:
    """One KRM object that was added, removed or changed; fields are told for changed ones only.

    `files` are those that it stands in, before and now. `digest` is equal for equal changes; it is made from
    the values themselves, those of Secrets included, and must not be shown.
    """

    key: ObjectKey
    how: How
    files: frozenset[str]
    fields: tuple[FieldChange, ...] = ()
    is_local: bool = False
    digest: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """The object in words, e.g. `Deployment web` or `ConfigMap prod/settings`."""
        namespace = f"{self.key.namespace}/" if self.key.namespace else ""
        return one_line(f"{self.key.kind} {namespace}{self.key.name}")

    def words(self) -> str:
        """Return the change on one line; `spec.` goes without saying."""
        if self.how != "changed":
            return f"{self.name}: {self.how}"
        told = [change.words().removeprefix("spec.") for change in self.fields]
        return f"{self.name}: {some_fields(told)}"

    @cached_property
    def rank(self) -> tuple[int, int, ObjectKey]:
        """Its place in a list: removals first, workloads before the rest, what is never applied last."""
        importance = 2 if self.is_local else 0 if self.key.kind in _WORKLOADS else 1
        return ORDER.index(self.how), importance, self.key


def some_fields(told: list[str]) -> str:
    """Return the first field changes on one line, and how many more there are."""
    rest = len(told) - _FIELDS_PER_LINE
    return "; ".join(told[:_FIELDS_PER_LINE]) + (f"; and {count(rest, 'more field')}" if rest > 0 else "")


def object_changes(old: FileTree, new: FileTree) -> tuple[ObjectChange, ...]:
    """Return what became of the objects of `old` and `new`, by rank."""
    return tuple(sorted(_changes(old, new), key=lambda change: change.rank))


def _changes(old: FileTree, new: FileTree) -> list[ObjectChange]:
    # most drafts are of packages that were not there before, where nothing has to be found again
    if not old:
        return [_added(one) for one in _all_objects(new)]
    before, after = _numbered(old), _numbered(new)
    kept = (_changed(before[key], one) if key in before else _added(one) for key, one in after.items())
    gone = (_removed(one) for key, one in before.items() if key not in after)
    return [change for change in (*kept, *gone) if change]


def _numbered(files: FileTree) -> dict[tuple[ObjectKey, int], Standing]:
    # an identity that stands twice is no valid package, but a person must still see what changed in it
    seen: Counter[ObjectKey] = Counter()
    found: dict[tuple[ObjectKey, int], Standing] = {}
    for one in _all_objects(files):
        found[one.key, seen[one.key]] = one
        seen[one.key] += 1
    return found


def _all_objects(files: FileTree) -> Iterator[Standing]:
    for path, file in files.items():
        yield from file_objects(path, file.data).objects


@cached(_REMEMBERED_CHANGES)
def _added(one: Standing) -> ObjectChange:
    return ObjectChange(one.key, "added", frozenset({one.file}), (), one.is_local_config, one.digest)


@cached(_REMEMBERED_CHANGES)
def _removed(one: Standing) -> ObjectChange:
    return ObjectChange(one.key, "removed", frozenset({one.file}), (), one.is_local_config, one.digest)


@cached(_REMEMBERED_CHANGES)
def _changed(before: Standing, after: Standing) -> ObjectChange | None:
    fields = tuple(field_changes(before.data, after.data))
    if not fields:
        return None
    shown = tuple(_masked(change) if _hides(change, after) else change for change in fields)
    files = frozenset({before.file, after.file})
    return ObjectChange(after.key, "changed", files, shown, after.is_local_config, _digest(fields))


def _hides(change: FieldChange, one: Standing) -> bool:
    own = (one.group, one.kind) == ("", "Secret") and is_secret_path(change.path)
    # items of lists go by their names here, so that of a Secret in a List any values are taken for its own
    inner = one.holds_secret and any(is_secret_path(change.path[start:]) for start in range(1, len(change.path)))
    return own or inner or holds_secret([change.before, change.after])


def _masked(change: FieldChange) -> FieldChange:
    before, after = (value if value is ABSENT else MASK for value in (change.before, change.after))
    return FieldChange(change.path, before, after)


def _digest(fields: tuple[FieldChange, ...]) -> str:
    return digest([[change.where, _known(change.before), _known(change.after)] for change in fields])


def _known(value: Any) -> list[Any]:
    return [] if value is ABSENT else [value]


def is_only_objects(path: str, files: FileTree) -> bool:
    """Tell whether a file of a tree holds KRM objects and nothing else; an absent file does."""
    return path not in files or file_objects(path, files[path].data).only_objects
