"""Matching: which documents of the three sides are the same resource (kpt.md 6.1, D10, D11)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from reconciler.packages.merge_comments import merge_identity
from reconciler.packages.package import PackageResource
from reconciler.packages.resource import UPSTREAM_IDENTIFIER

Key: TypeAlias = tuple[str, ...]
KeyOf: TypeAlias = Callable[["Entry", bool], Key | None]
_SOURCES = ("origin", "updated")


@dataclass(frozen=True)
class Entry(PackageResource):
    """One document of one side; its path starts at the root package."""

    @cached_property
    def identity(self) -> Key:
        """Group, kind, namespace and name as upstream knows them: a merge comment goes before the metadata."""
        namespace, name = merge_identity(self.document) or (self.namespace, self.name)
        return self.group, self.kind, namespace, name

    @cached_property
    def plain_identity(self) -> Key:
        """The identity with no namespace for `default`, which merge comments may write where none is given."""
        group, kind, namespace, name = self.identity
        return group, kind, "" if namespace == "default" else namespace, name

    @property
    def noted_identity(self) -> Key | None:
        """The plain identity that the upstream-identifier annotation tells."""
        parts = str(self.annotations.get(UPSTREAM_IDENTIFIER, "")).split("|")
        if len(parts) != 4:
            return None
        return parts[0], parts[1], "" if parts[2] == "default" else parts[2], parts[3]


@dataclass(frozen=True)
class Group:
    """The documents that are one resource, on the sides that have it."""

    origin: Entry | None = None
    updated: Entry | None = None
    local: Entry | None = None

    @property
    def entries(self) -> Iterator[Entry]:
        """The documents that there are."""
        return (entry for entry in (self.origin, self.updated, self.local) if entry)

    @property
    def is_complete(self) -> bool:
        """Whether every side has the resource."""
        return self.origin is not None and self.updated is not None and self.local is not None

    @property
    def first(self) -> Entry:
        """The document that stands for the resource: the local one if there is one."""
        entry = self.local or self.updated or self.origin
        assert entry is not None
        return entry


def match(sides: Sequence[Sequence[Entry]], *, moved: bool, noted: bool) -> tuple[Group, ...]:
    """Return the resources, those of the local side first, then old ones, then new ones (kpt.md 6.1).

    No side may hold two documents of one key. `moved` matches what remains without the path, `noted` by the
    upstream-identifier annotation, both only where there is one candidate on each side.
    """
    groups = _exact(sides)
    for key_of in _weaker_keys(moved=moved, noted=noted):
        groups = _joined(groups, key_of)
    return tuple(sorted(groups, key=_first_place))


def with_positions(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Return the groups, with old and updated documents together that only a function made different in identity.

    They are at the same position in the same file, both sides have the same number of documents there, and their
    kinds or names are equal.
    """
    counts = {side: Counter(one.path for group in groups if (one := getattr(group, side))) for side in _SOURCES}
    updated = {
        (group.updated.path, group.updated.index): group for group in groups if group.updated and not group.origin
    }
    found: list[Group] = []
    joined: set[int] = set()
    for group in groups:
        origin = group.origin
        other = updated.get((origin.path, origin.index)) if origin and not group.updated else None
        if origin is None or other is None or other.updated is None or (group.local and other.local):
            found.append(group)
        elif _is_alike(origin, other.updated) and len({counts[side][origin.path] for side in _SOURCES}) == 1:
            found.append(replace(group, updated=other.updated, local=group.local or other.local))
            joined.add(id(other))
        else:
            found.append(group)
    return tuple(sorted((group for group in found if id(group) not in joined), key=_first_place))


def _is_alike(first: Entry, second: Entry) -> bool:
    has_name = bool(first.name) and first.name == second.name
    return has_name or (first.group, first.kind) == (second.group, second.kind)


def duplicates(entries: Iterable[Entry]) -> Iterator[tuple[Entry, Entry]]:
    """Yield the pairs of documents of one side that have the same key."""
    seen: dict[Key, Entry] = {}
    for entry in entries:
        first = seen.setdefault(_exact_key(entry), entry)
        if first is not entry:
            yield first, entry


def follow_key(entry: Entry) -> Key | None:
    """Return what a resource is found by in another file: its identity, unless it has no name."""
    return entry.plain_identity if entry.plain_identity[3] else None


def _weaker_keys(*, moved: bool, noted: bool) -> Iterator[KeyOf]:
    if moved or noted:
        yield lambda entry, is_local: (*entry.plain_identity, entry.path)
    if moved:
        yield lambda entry, is_local: follow_key(entry)
    if noted:
        # upstream's own annotation tells where upstream had the resource from
        yield lambda entry, is_local: entry.noted_identity if is_local else follow_key(entry)


def _exact(sides: Sequence[Sequence[Entry]]) -> list[Group]:
    origin, updated, local = ({_exact_key(entry): entry for entry in side} for side in sides)
    keys = dict.fromkeys([*local, *origin, *updated])
    return [Group(origin.get(key), updated.get(key), local.get(key)) for key in keys]


def _exact_key(entry: Entry) -> Key:
    return (*entry.identity, entry.path)


def _joined(groups: Sequence[Group], key_of: KeyOf) -> list[Group]:
    """Return the groups with incomplete ones put together that agree in a key and share no side."""
    by_key: dict[Key, list[Group]] = {}
    for group in groups:
        keys = {key_of(entry, entry is group.local) for entry in group.entries} if not group.is_complete else ()
        for key in keys:
            if key is not None:
                by_key.setdefault(key, []).append(group)
    joined: dict[int, Group] = {}
    for candidates in by_key.values():
        parts = [group for group in candidates if id(group) not in joined]
        whole = _union(parts) if len(parts) > 1 else None
        joined |= {id(group): whole for group in parts} if whole else {}
    return list(dict.fromkeys(joined.get(id(group), group) for group in groups))


def _union(groups: Sequence[Group]) -> Group | None:
    union = Group()
    for group in groups:
        if any(getattr(union, side) and getattr(group, side) for side in ("origin", "updated", "local")):
            return None
        union = replace(
            union,
            origin=union.origin or group.origin,
            updated=union.updated or group.updated,
            local=union.local or group.local,
        )
    return union


def _first_place(group: Group) -> tuple[int, str, int]:
    entry = group.first
    return (0 if group.local else 1 if group.origin else 2), entry.path, entry.index
