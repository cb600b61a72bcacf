"""Object changes: KRM objects that were added, removed or changed between two sets of files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from posixpath import basename
from typing import Any, Literal

from reconciler.krm.digest import digest
from reconciler.krm.identity import ObjectKey
from reconciler.krm.secrets import MASK, holds_secret, is_secret_path
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.nesting import is_krm_file
from reconciler.packages.package import documents_of
from reconciler.packages.parsing import Unparsable
from reconciler.packages.resource import Described
from reconciler.reporting.fields import ABSENT, FieldChange, field_changes
from reconciler.reporting.values import count, one_line
from reconciler.snapshot.files import FileTree

How = Literal["removed", "changed", "added"]
ORDER: tuple[How, ...] = ("removed", "changed", "added")
_WORKLOADS = frozenset({"CronJob", "DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet", "StatefulSet"})
_FIELDS_PER_LINE = 3


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

    @property
    def rank(self) -> tuple[int, int, ObjectKey]:
        """Its place in a list: removals first, workloads before the rest, what is never applied last."""
        importance = 2 if self.is_local else 0 if self.key.kind in _WORKLOADS else 1
        return ORDER.index(self.how), importance, self.key


@dataclass(frozen=True)
class Standing(Described):
    """One document where it stands, as packages describe documents."""

    file: str
    content: Any

    @property
    def data(self) -> Any:
        """The document as plain data; read-only."""
        return self.content

    @property
    def is_object(self) -> bool:
        """Whether it is a KRM object with a name."""
        return bool(self.api_version and self.kind and self.name)


def some_fields(told: list[str]) -> str:
    """Return the first field changes on one line, and how many more there are."""
    rest = len(told) - _FIELDS_PER_LINE
    return "; ".join(told[:_FIELDS_PER_LINE]) + (f"; and {count(rest, 'more field')}" if rest > 0 else "")


def standing(path: str, content: bytes) -> tuple[Standing, ...] | None:
    """Return the documents of a file; None when it is no KRM file, is a Kptfile or cannot be parsed."""
    if basename(path) == KPTFILE or not is_krm_file(path):
        return None
    documents = documents_of(path, content)
    return None if isinstance(documents, Unparsable) else tuple(Standing(path, one.data) for one in documents)


def object_changes(old: FileTree, new: FileTree) -> tuple[ObjectChange, ...]:
    """Return what became of the objects of `old` and `new`, by rank."""
    before, after = _objects(old), _objects(new)
    changes = (_change(before.get(key), after.get(key)) for key in {**before, **after})
    return tuple(sorted((change for change in changes if change), key=lambda change: change.rank))


def _objects(files: FileTree) -> dict[tuple[ObjectKey, int], Standing]:
    # an identity that stands twice is no valid package, but a person must still see what changed in it
    seen: Counter[ObjectKey] = Counter()
    found: dict[tuple[ObjectKey, int], Standing] = {}
    for one in _all_objects(files):
        found[one.key, seen[one.key]] = one
        seen[one.key] += 1
    return found


def _all_objects(files: FileTree) -> Iterator[Standing]:
    for path, content in files.items():
        yield from (one for one in standing(path, content.data) or () if one.is_object)


def _change(before: Standing | None, after: Standing | None) -> ObjectChange | None:
    if before and after:
        fields = tuple(field_changes(before.data, after.data))
        return _made(after, "changed", {before.file, after.file}, fields, _digest(fields)) if fields else None
    if before:
        return _made(before, "removed", {before.file}, (), digest(before.data))
    assert after is not None
    return _made(after, "added", {after.file}, (), digest(after.data))


def _made(one: Standing, how: How, files: set[str], fields: tuple[FieldChange, ...], equality: str) -> ObjectChange:
    holds = holds_secret(one.data)
    shown = tuple(_masked(change) if _hides(change, one, holds) else change for change in fields)
    return ObjectChange(one.key, how, frozenset(files), shown, one.is_local_config, equality)


def _hides(change: FieldChange, one: Standing, holds: bool) -> bool:
    own = (one.group, one.kind) == ("", "Secret") and is_secret_path(change.path)
    # items of lists go by their names here, so that of a Secret in a List any values are taken for its own
    inner = holds and any(is_secret_path(change.path[start:]) for start in range(1, len(change.path)))
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
    documents = standing(path, files[path].data) if path in files else ()
    return documents is not None and all(one.is_object for one in documents)
