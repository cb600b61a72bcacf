"""Matching of resources: find the documents on the three sides of a merge that represent the same resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.clone import read_merge_identity
from reconciler.packages.package import PackageResource
from reconciler.packages.resource import UPSTREAM_IDENTIFIER

IdentityKey: TypeAlias = tuple[str, ...]
KeyOf: TypeAlias = Callable[["MergeEntry", bool], IdentityKey | None]
_SOURCES = ("origin", "updated")


@dataclass(frozen=True)
class MergeEntry(PackageResource):
    """One document on one side of a merge. Its path is relative to the root package."""

    @cached_property
    def identity(self) -> IdentityKey:
        """Group, kind, namespace and name of the resource in the upstream package.

        These values are read from the merge comment if the document has a merge comment, because a local function can
        rename the resource.
        """
        namespace, name = read_merge_identity(self.document) or (self.namespace, self.name)
        return self.group, self.kind, namespace, name

    @cached_property
    def plain_identity(self) -> IdentityKey:
        """The identity with "" instead of the namespace `default`.

        The merge comment of a resource without a namespace can contain `default`. Therefore, `default` and "" must
        match.
        """
        group, kind, namespace, name = self.identity
        return group, kind, "" if namespace == "default" else namespace, name

    @property
    def annotated_identity(self) -> IdentityKey | None:
        """The identity in the annotation `internal.kpt.dev/upstream-identifier`. None without a valid annotation.

        The namespace `default` is replaced by "".
        """
        parts = str(self.annotations.get(UPSTREAM_IDENTIFIER, "")).split("|")
        if len(parts) != 4:
            return None
        return parts[0], parts[1], "" if parts[2] == "default" else parts[2], parts[3]


@dataclass(frozen=True)
class ResourceGroup:
    """The documents of one resource on the sides of a merge. None means that a side lacks the resource."""

    origin: MergeEntry | None = None
    updated: MergeEntry | None = None
    local: MergeEntry | None = None

    @property
    def entries(self) -> Iterator[MergeEntry]:
        """The documents of the sides that have the resource."""
        return (entry for entry in (self.origin, self.updated, self.local) if entry)

    @property
    def is_complete(self) -> bool:
        """Whether the origin, updated and local side all have the resource."""
        return self.origin is not None and self.updated is not None and self.local is not None

    @property
    def first(self) -> MergeEntry:
        """The first existing document of the resource, in the order: local, updated, origin."""
        entry = self.local or self.updated or self.origin
        assert entry is not None
        return entry


def match_resources(
    sides: Sequence[Sequence[MergeEntry]], *, follow_moves: bool, use_annotations: bool
) -> tuple[ResourceGroup, ...]:
    """Match the documents of three sides. Return one group for each resource.

    Local resources come first, then resources of the origin that do not exist locally, then new upstream resources.

    No side may contain two documents with the same identity in the same file.

    Args:
        sides: The documents of the origin, updated and local side.
        follow_moves: Whether to match documents in different files. Such documents match only if no other document on
            their side has the same identity.
        use_annotations: Whether to compare the annotation `internal.kpt.dev/upstream-identifier` of documents that have
            no match yet.
    """
    groups = _match_exactly(sides)
    for key_of in _iterate_weaker_key_functions(follow_moves=follow_moves, use_annotations=use_annotations):
        groups = _join_groups(groups, key_of)
    return tuple(sorted(groups, key=_sort_key))


def match_by_position(groups: Sequence[ResourceGroup]) -> tuple[ResourceGroup, ...]:
    """Match resources whose name or kind a function changed between `origin` and `updated`.

    The documents in `origin` and `updated` must be at the same position in the same file, and must have the same name
    or the same kind. The file must have the same number of documents on both sides.
    """
    counts = {side: Counter(entry.path for group in groups if (entry := getattr(group, side))) for side in _SOURCES}
    updated = {
        (group.updated.path, group.updated.index): group for group in groups if group.updated and not group.origin
    }
    result: list[ResourceGroup] = []
    joined_ids: set[int] = set()
    for group in groups:
        origin = group.origin
        other = updated.get((origin.path, origin.index)) if origin and not group.updated else None
        if origin is None or other is None or other.updated is None or (group.local and other.local):
            result.append(group)
        elif (
            _has_same_name_or_kind(origin, other.updated) and len({counts[side][origin.path] for side in _SOURCES}) == 1
        ):
            result.append(replace(group, updated=other.updated, local=group.local or other.local))
            joined_ids.add(id(other))
        else:
            result.append(group)
    return tuple(sorted((group for group in result if id(group) not in joined_ids), key=_sort_key))


def _has_same_name_or_kind(first: MergeEntry, second: MergeEntry) -> bool:
    has_name = bool(first.name) and first.name == second.name
    return has_name or (first.group, first.kind) == (second.group, second.kind)


def find_duplicate_entries(entries: Iterable[MergeEntry]) -> Iterator[tuple[MergeEntry, MergeEntry]]:
    """Yield each pair of documents in `entries` that have the same identity and the same file."""
    entries_by_key: dict[IdentityKey, MergeEntry] = {}
    for entry in entries:
        first = entries_by_key.setdefault(_get_exact_key(entry), entry)
        if first is not entry:
            yield first, entry


def get_move_key(entry: MergeEntry) -> IdentityKey | None:
    """Return the identity that is used to find a resource in other files. Return None if the resource has no name."""
    return entry.plain_identity if entry.plain_identity[3] else None


def _iterate_weaker_key_functions(*, follow_moves: bool, use_annotations: bool) -> Iterator[KeyOf]:
    if follow_moves or use_annotations:
        yield lambda entry, is_local: (*entry.plain_identity, entry.path)
    if follow_moves:
        yield lambda entry, is_local: get_move_key(entry)
    if use_annotations:
        # A local resource can be renamed. Therefore, compare the upstream identity in its annotation, and not its own
        # identity, with the identity of an upstream resource.
        yield lambda entry, is_local: entry.annotated_identity if is_local else get_move_key(entry)


def _match_exactly(sides: Sequence[Sequence[MergeEntry]]) -> list[ResourceGroup]:
    origin, updated, local = ({_get_exact_key(entry): entry for entry in side} for side in sides)
    keys = dict.fromkeys([*local, *origin, *updated])
    return [ResourceGroup(origin.get(key), updated.get(key), local.get(key)) for key in keys]


def _get_exact_key(entry: MergeEntry) -> IdentityKey:
    return (*entry.identity, entry.path)


def _join_groups(groups: Sequence[ResourceGroup], key_of: KeyOf) -> list[ResourceGroup]:
    """Join the incomplete groups that have the same key.

    Groups with the same key are not joined if two of them have a document of the same side: origin, updated or local.
    """
    by_key: dict[IdentityKey, list[ResourceGroup]] = {}
    for group in groups:
        keys = {key_of(entry, entry is group.local) for entry in group.entries} if not group.is_complete else ()
        for key in keys:
            if key is not None:
                by_key.setdefault(key, []).append(group)
    joined: dict[int, ResourceGroup] = {}
    for candidates in by_key.values():
        parts = [group for group in candidates if id(group) not in joined]
        united = _combine_groups(parts) if len(parts) > 1 else None
        joined |= {id(group): united for group in parts} if united else {}
    return list(dict.fromkeys(joined.get(id(group), group) for group in groups))


def _combine_groups(groups: Sequence[ResourceGroup]) -> ResourceGroup | None:
    union = ResourceGroup()
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


def _sort_key(group: ResourceGroup) -> tuple[int, str, int]:
    entry = group.first
    return (0 if group.local else 1 if group.origin else 2), entry.path, entry.index
