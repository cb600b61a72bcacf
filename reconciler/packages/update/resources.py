"""Resource files: which of them must be read, and what becomes of every resource in them (kpt.md 6)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from reconciler.krm.codes import YAML_SYNTAX
from reconciler.krm.conflicts import ABSENT, Chosen, Conflict
from reconciler.krm.findings import Code, Finding, Where, softened
from reconciler.krm.merge3 import MergeError, merge3
from reconciler.krm.schema import Shapes
from reconciler.krm.shapes import Shape
from reconciler.krm.yaml import Document, YamlError
from reconciler.packages.codes import DUPLICATE_RESOURCE
from reconciler.packages.merge_comments import MERGE_COMMENT, with_comments
from reconciler.packages.parsing import Unparsable, parse_cached
from reconciler.packages.update.difference import is_same_resource
from reconciler.packages.update.matching import Entry, Group, Key, duplicates, follow_key, match
from reconciler.packages.update.opaque import DELETED_HERE, DELETED_UPSTREAM, merge_whole_file, only, settle
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.result import Updated, combined
from reconciler.packages.update.sides import Sides
from reconciler.packages.update.writing import Placed, write_file
from reconciler.snapshot.files import File, FileTree

_CRD = "CustomResourceDefinition"
Fault: TypeAlias = tuple[Code, str, int]


def merge_resource_files(sides: Sides, options: MergeOptions) -> Updated:
    """Return the resource files of one package after the update; a file that only one side changed is never read."""
    settled = {path: file for path in sides.paths if (file := _settled(sides, path, options)) is not None}
    opened = [path for path in sides.paths if path not in settled]
    opened += _followed(sides, opened, options) if options.follow_moves or options.match_identifiers else []
    reading = _Reading(sides, tuple(sorted(opened)), options)
    whole = combined(only(path, file[0]) for path, file in settled.items() if path not in reading.paths)
    return combined([whole, *reading.broken_files(), _merged(reading)])


def _settled(sides: Sides, path: str, options: MergeOptions) -> tuple[File | None] | None:
    """Return what a file comes to if it need not be read, as a tuple of one; else None (kpt.md 6.5)."""
    origin, updated, local = (side.get(path) for side in sides)
    if origin == updated:
        return (local,) if options.keep_untouched else None
    if not options.take_untouched:
        return None
    return settle(origin, updated, local) or _settled_with_comments(origin, updated, local, options)


def _settled_with_comments(
    origin: File | None, updated: File | None, local: File | None, options: MergeOptions
) -> tuple[File | None] | None:
    """Return upstream's file with merge comments, if those are all that was changed locally."""
    if local is None or origin is None or MERGE_COMMENT.encode() not in local.data:
        return None
    if _commented(origin, options) != local:
        return None
    return (_commented(updated, options) if updated else None,)


def _commented(file: File, options: MergeOptions) -> File:
    """Return the file with merge comments, or as it is if it cannot get any."""
    content = with_comments(file.data, options.profile)
    return file if isinstance(content, Unparsable) else File(content, file.executable)


def _followed(sides: Sides, opened: Sequence[str], options: MergeOptions) -> list[str]:
    """Return the other files in which resources of the opened ones stand, on sides that moved them there (D10)."""
    found: list[str] = []
    missing = _missing(sides, opened, options)
    while missing:
        more = [path for path in sides.paths if path not in {*opened, *found} and _holds(sides, path, missing)]
        found += more
        missing = _missing(sides, [*opened, *found], options) if more else ()
    return found


def _missing(sides: Sides, paths: Collection[str], options: MergeOptions) -> tuple[Group, ...]:
    groups = _Reading(sides, tuple(paths), options).groups
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
    for entry in _entries(path, content):
        yield from (follow_key(entry), entry.noted_identity)


def _entries(path: str, content: bytes) -> tuple[Entry, ...]:
    parsed = parse_cached(content)
    if isinstance(parsed, Unparsable):
        return ()
    return tuple(Entry("", path, index, document) for index, document in enumerate(parsed.documents))


@dataclass(frozen=True)
class _Reading:
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
        return (len(_entries(path, side[path].data)) for side in self.sides if path in side)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The resources of all files that can be merged."""
        entries = [
            [entry for path in self.merged_paths if path in side for entry in _entries(path, side[path].data)]
            for side in self.sides
        ]
        return match(entries, moved=self.options.follow_moves, noted=self.options.match_identifiers)

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
    for first, second in duplicates(_entries(path, content)):
        lines = f"{first.document.line} and {second.document.line}"
        text = f"a file must hold a resource once, but {first.key} stands in lines {lines}"
        return DUPLICATE_RESOURCE, text, second.document.line
    return None


def _merged(reading: _Reading) -> Updated:
    shapes = _KnownShapes(reading)
    outcomes = [_resource(group, shapes, reading.options) for group in reading.groups]
    placed = [outcome.placed for outcome in outcomes if outcome.placed]
    paths = sorted({*reading.merged_paths, *(each.path for each in placed)})
    files = {path: write_file(reading.sides, path, placed, reading.options) for path in paths}
    return Updated(
        FileTree({path: file for path, file in files.items() if file}),
        tuple(conflict for outcome in outcomes for conflict in outcome.conflicts),
        tuple(finding for outcome in outcomes for finding in outcome.findings),
    )


@dataclass(frozen=True)
class _KnownShapes:
    """The shapes that the update knows; the packages' own CRDs are read for the first kind that nobody else knows."""

    reading: _Reading

    def of(self, entry: Entry) -> Shape:
        """Return the shape of a resource."""
        shapes = self.reading.options.shapes
        kind = (entry.api_version, entry.kind)
        return (shapes if kind in shapes.known else self._with_crds).of(*kind)

    @cached_property
    def _with_crds(self) -> Shapes:
        options, sides = self.reading.options, self.reading.sides
        of_sides = (sides.updated, sides.local, sides.origin) if options.crds_of_all_sides else (sides.local,)
        crds = [entry.data for side in of_sides for path in side for entry in _crds(path, side[path].data)]
        return options.shapes.with_crds(*crds, compat=options.profile == "compat")


def _crds(path: str, content: bytes) -> Iterator[Entry]:
    if _CRD.encode() in content:
        yield from (entry for entry in _entries(path, content) if entry.kind == _CRD)


@dataclass(frozen=True)
class _Outcome:
    placed: Placed | None = None
    conflicts: tuple[Conflict, ...] = ()
    findings: tuple[Finding, ...] = ()


def _resource(group: Group, shapes: _KnownShapes, options: MergeOptions) -> _Outcome:
    """Return what becomes of one resource (kpt.md 6.2)."""
    match group:
        case Group(updated=None, local=None):
            return _Outcome()
        case Group(origin=None, updated=None, local=Entry() as local):
            return _Outcome(Placed(group, local.path, local.document))
        case Group(origin=None, updated=Entry() as updated, local=None):
            return _Outcome(Placed(group, updated.path, updated.document))
        case Group(origin=Entry() as origin, updated=None, local=Entry() as local):
            return _gone_upstream(group, origin, local)
        case Group(origin=Entry() as origin, updated=Entry() as updated, local=None):
            return _gone_here(origin, updated)
        case _:
            return _changed(group, shapes, options)


def _gone_upstream(group: Group, origin: Entry, local: Entry) -> _Outcome:
    if is_same_resource(origin.document, local.document):
        return _Outcome()
    conflict = Conflict("resource", "", origin.data, local.data, ABSENT, "local", DELETED_UPSTREAM)
    return _Outcome(Placed(group, local.path, local.document), (_told(conflict, local),))


def _gone_here(origin: Entry, updated: Entry) -> _Outcome:
    if is_same_resource(origin.document, updated.document):
        return _Outcome()
    conflict = Conflict("resource", "", origin.data, ABSENT, updated.data, "local", DELETED_HERE)
    return _Outcome(None, (_told(conflict, origin),))


def _changed(group: Group, shapes: _KnownShapes, options: MergeOptions) -> _Outcome:
    entry = group.first
    origin, updated, local = (_document(each) for each in (group.origin, group.updated, group.local))
    try:
        merged = merge3(origin, updated, local, shapes.of(entry), options.rules)
    except (MergeError, YamlError) as error:
        finding = Finding("MergeImpossible", str(error), entry.where)
        return _Outcome(Placed(group, entry.path, entry.document), (), (finding,))
    path = _path(group)
    told = tuple(replace(_told(conflict, entry), file=path) for conflict in merged.conflicts)
    return _Outcome(Placed(group, path, merged.document) if merged.document else None, told)


def _path(group: Group) -> str:
    """Return where a resource stands: where it was moved to locally, else where upstream has it (D10)."""
    origin, updated, local = group.origin, group.updated, group.local
    assert updated is not None
    assert local is not None
    return updated.path if origin and local.path == origin.path else local.path


def _document(entry: Entry | None) -> Document | None:
    return entry.document if entry else None


def _told(conflict: Conflict, entry: Entry) -> Conflict:
    return replace(conflict, file=entry.path, resource=str(entry.key) if entry.kind else "")
