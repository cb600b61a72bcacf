"""Resource files: which of them must be read, and what becomes of every resource in them (kpt.md 6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from reconciler.krm.conflicts import ABSENT, Conflict
from reconciler.krm.findings import Finding
from reconciler.krm.merge3 import MergeError, merge3
from reconciler.krm.schema import Shapes
from reconciler.krm.shapes import Shape
from reconciler.krm.yaml import Document, YamlError
from reconciler.packages.codes import MERGE_IMPOSSIBLE
from reconciler.packages.merge_comments import MERGE_COMMENT, with_comments
from reconciler.packages.parsing import Unparsable
from reconciler.packages.update.difference import is_same_resource, is_same_text
from reconciler.packages.update.matching import Entry, Group
from reconciler.packages.update.opaque import DELETED_HERE, DELETED_UPSTREAM, only, settle
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.reading import Reading, entries_of, followed
from reconciler.packages.update.result import Updated, combined
from reconciler.packages.update.sides import Sides
from reconciler.packages.update.writing import Placed, left_over, write_file
from reconciler.snapshot.files import File, FileTree

_CRD = "CustomResourceDefinition"


def merge_resource_files(sides: Sides, options: MergeOptions) -> Updated:
    """Return the resource files of one package after the update; a file that only one side changed is never read."""
    settled = {path: file for path in sides.paths if (file := _settled(sides, path, options)) is not None}
    opened = [path for path in sides.paths if path not in settled]
    opened += followed(sides, opened, options) if options.follow_moves or options.match_identifiers else []
    reading = Reading(sides, tuple(sorted(opened)), options)
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


def _merged(reading: Reading) -> Updated:
    shapes = _KnownShapes(reading)
    outcomes = [_resource(group, shapes, reading.options) for group in reading.groups]
    placed = [outcome.placed for outcome in outcomes if outcome.placed]
    if not placed and reading.options.profile == "compat":
        # upstream's tool writes nothing when nothing remains, so that the last resources cannot be removed
        placed = [Placed(group, group.local.path, group.local.document) for group in reading.groups if group.local]
    paths = sorted({*reading.merged_paths, *(each.path for each in placed)})
    files = {path: write_file(reading.sides, path, placed, reading.options) for path in paths}
    gone = [path for path, file in files.items() if file is None]
    kept = {path: left for path in gone if (left := left_over(reading.sides, path, placed, reading.options))}
    files |= {path: left.file for path, left in kept.items()}
    return Updated(
        FileTree({path: file for path, file in files.items() if file}),
        (
            *(conflict for outcome in outcomes for conflict in outcome.conflicts),
            *(left.conflict for left in kept.values()),
        ),
        tuple(finding for outcome in outcomes for finding in outcome.findings),
    )


@dataclass(frozen=True)
class _KnownShapes:
    """The shapes that the update knows; the packages' own CRDs are read for the first kind that nobody else knows."""

    reading: Reading

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
        yield from (entry for entry in entries_of(path, content) if entry.kind == _CRD)


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
            return _gone_upstream(group, origin, local, options)
        case Group(origin=Entry() as origin, updated=Entry() as updated, local=None):
            return _gone_here(origin, updated, options)
        case _:
            return _changed(group, shapes, options)


def _gone_upstream(group: Group, origin: Entry, local: Entry, options: MergeOptions) -> _Outcome:
    is_untouched = is_same_resource(origin.document, local.document, options.profile)
    # upstream's tool takes formatting for nothing; here it is an edit like any other
    if is_untouched and (options.profile == "compat" or is_same_text(origin.document, local.document)):
        return _Outcome()
    conflict = Conflict("resource", "", origin.data, local.data, ABSENT, "local", DELETED_UPSTREAM)
    return _Outcome(Placed(group, local.path, local.document), (_told(conflict, local),))


def _gone_here(origin: Entry, updated: Entry, options: MergeOptions) -> _Outcome:
    if is_same_resource(origin.document, updated.document, options.profile):
        return _Outcome()
    conflict = Conflict("resource", "", origin.data, ABSENT, updated.data, "local", DELETED_HERE)
    return _Outcome(None, (_told(conflict, origin),))


def _changed(group: Group, shapes: _KnownShapes, options: MergeOptions) -> _Outcome:
    entry = group.first
    origin, updated, local = (_document(each) for each in (group.origin, group.updated, group.local))
    try:
        merged = merge3(origin, updated, local, shapes.of(entry), options.rules)
    except (MergeError, YamlError) as error:
        finding = MERGE_IMPOSSIBLE.finding(str(error), entry.where)
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
