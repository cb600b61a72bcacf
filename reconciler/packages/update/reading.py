"""Reading: the files of a merge that must be read, their resources, and why some cannot be merged (kpt.md 6.1, 6.5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from reconciler.krm.codes import YAML_SYNTAX
from reconciler.krm.conflicts import Chosen
from reconciler.krm.findings import Code, Where, softened
from reconciler.packages.codes import DUPLICATE_RESOURCE
from reconciler.packages.parsing import Unparsable, parse_cached
from reconciler.packages.update.matching import Entry, Group, Key, duplicates, follow_key, match, with_positions
from reconciler.packages.update.opaque import merge_whole_file, only
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.result import Updated
from reconciler.packages.update.sides import Sides

Fault: TypeAlias = tuple[Code, str, int]


@dataclass(frozen=True)
class Reading:
    """The files that had to be read: those that cannot be merged, and the resources of all others."""

    sides: Sides
    paths: tuple[str, ...]
    options: MergeOptions

    @cached_property
    def faults(self) -> dict[str, Fault]:
        """Why files cannot be merged, by their path."""
        found = ((path, self._fault(path)) for path in self.paths)
        return {path: fault for path, fault in found if fault}

    def _fault(self, path: str) -> Fault | None:
        faults = (_fault(path, side[path].data) for side in self.sides if path in side)
        return next((fault for fault in faults if fault), None)

    @cached_property
    def merged_paths(self) -> tuple[str, ...]:
        """The files whose resources are merged."""
        return tuple(path for path in self.paths if path not in self.faults and any(self._count(path)))

    def _count(self, path: str) -> Iterator[int]:
        return (len(entries_of(path, side[path].data)) for side in self.sides if path in side)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The resources of all files that can be merged."""
        entries = [
            [entry for path in self.merged_paths if path in side for entry in entries_of(path, side[path].data)]
            for side in self.sides
        ]
        groups = match(entries, moved=self.options.follow_moves, noted=self.options.match_identifiers)
        return with_positions(groups) if self.options.match_positions else groups

    def broken_files(self) -> Iterator[Updated]:
        """Yield the files that cannot be merged, as one side has them, and those without any resource."""
        for path in self.paths:
            if path in self.faults:
                yield self._broken(path, *self.faults[path])
            elif path not in self.merged_paths:
                yield merge_whole_file(self.sides, path, self.options.rules.winner, "D17")

    def _broken(self, path: str, code: Code, message: str, line: int) -> Updated:
        if not self.options.isolate_broken:
            return only(path, self.sides.local.get(path)).noting((), [code.finding(message, Where(path, line))])
        taken = merge_whole_file(self.sides, path, self._winner(path), "D17")
        text = f"{message}; it was taken whole" if taken.conflicts else message
        return taken.noting((), [softened(code.finding(text, Where(path, line)))])

    def _winner(self, path: str) -> Chosen:
        """Return whose file is taken: a good one does not make way for a broken one."""
        updated, local = (
            _fault(path, side[path].data) if path in side else None for side in (self.sides.updated, self.sides.local)
        )
        return self.options.rules.winner if (updated is None) == (local is None) else "local" if updated else "upstream"


def _fault(path: str, content: bytes) -> Fault | None:
    """Return why the resources of a file cannot be merged."""
    parsed = parse_cached(content)
    if isinstance(parsed, Unparsable):
        return YAML_SYNTAX, f"the file must be YAML: {parsed.message}", parsed.line
    for first, second in duplicates(entries_of(path, content)):
        lines = f"{first.document.line} and {second.document.line}"
        text = f"a file must hold a resource once, but {first.key} stands in lines {lines}"
        return DUPLICATE_RESOURCE, text, second.document.line
    return None


def followed(sides: Sides, opened: Sequence[str], options: MergeOptions) -> list[str]:
    """Return the other files in which resources of the opened ones stand, on sides that moved them there (D10)."""
    found: list[str] = []
    missing = _missing(sides, opened, options)
    while missing:
        more = [path for path in sides.paths if path not in {*opened, *found} and _holds(sides, path, missing)]
        found += more
        missing = _missing(sides, [*opened, *found], options) if more else ()
    return found


def _missing(sides: Sides, paths: Collection[str], options: MergeOptions) -> tuple[Group, ...]:
    groups = Reading(sides, tuple(paths), options).groups
    return tuple(group for group in groups if group.origin and not group.is_complete and follow_key(group.origin))


def _holds(sides: Sides, path: str, missing: Iterable[Group]) -> bool:
    """Tell whether a side that changed the file has a missing resource in it."""
    origin = sides.origin.get(path)
    changed = [file for file in (sides.updated.get(path), sides.local.get(path)) if file and file != origin]
    wanted = [group.first for group in missing]
    likely = {file.data for file in changed if any(entry.identity[3].encode() in file.data for entry in wanted)}
    keys: set[Key | None] = {follow_key(entry) for entry in wanted}
    return any(not keys.isdisjoint(_names(path, data)) for data in sorted(likely))


def _names(path: str, content: bytes) -> Iterator[Key | None]:
    for entry in entries_of(path, content):
        yield from (follow_key(entry), entry.noted_identity)


def entries_of(path: str, content: bytes) -> tuple[Entry, ...]:
    """Return the documents of a file; none of one that does not parse."""
    parsed = parse_cached(content)
    if isinstance(parsed, Unparsable):
        return ()
    return tuple(Entry("", path, index, document) for index, document in enumerate(parsed.documents))
