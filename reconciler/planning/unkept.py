"""Local changes that a rendered package does not contain and that no conflict names: each becomes a conflict record.

Merges and rules record the values that they overrule. They do not see everything that an edit can be: a comment that
belongs to no value, quotes, blank lines, line ends, an executable bit, or the deletion of a file that a rule writes
again. This module compares bytes instead, after the render, so that no such edit is dropped without a record.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from reconciler.krm.conflicts import ABSENT, Conflict
from reconciler.planning.source import NOT_KEPT, Ingredients, Standing
from reconciler.snapshot.files import File, FileTree

_BOM = b"\xef\xbb\xbf"
_WORD = re.compile(r"[^\s,:\[\]{}]+")
# a comment begins at the start of a line or behind a blank
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")


@dataclass(frozen=True)
class Unkept:
    """Conflicts of edits on the cluster branch, and of those on the draft, which must be remembered."""

    published: tuple[Conflict, ...] = ()
    drafted: tuple[Conflict, ...] = ()


def find_unkept(made: Ingredients, files: FileTree, known: Sequence[Conflict]) -> Unkept:
    """Return a conflict for each file with a local change that `files` lacks and no `known` conflict names.

    Where a file was edited on the draft as well, that edit is the newer one and counts alone. Conflicts of earlier
    edits on the draft are repeated until the file is edited again, because no branch contains such an edit any more.
    """
    drafted = _changed(made.put) if made.put else {}
    published = {path: one for path, one in _changed(made.ours).items() if path not in drafted} if made.ours else {}
    remembered = (one for one in (made.put.conflicts if made.put else ()) if one.rule == NOT_KEPT)
    return Unkept(
        (*_deletion(made, files), *_conflicts(published, files, known)),
        (
            *_conflicts(drafted, files, known),
            *(one for one in remembered if one.file not in drafted and _still_applies(one, files)),
        ),
    )


def _deletion(made: Ingredients, files: FileTree) -> Iterator[Conflict]:
    """Yield a conflict for a package that people deleted from the cluster branch and that the draft contains again."""
    if made.deleted:
        yield Conflict("package", "", made.deleted, ABSENT, files.id, "upstream", NOT_KEPT)


def _still_applies(conflict: Conflict, files: FileTree) -> bool:
    return (conflict.file in files) == (conflict.upstream is not ABSENT)


@dataclass(frozen=True)
class _Edit:
    """A file as we wrote it, and as a branch has it; None where it is absent. `written` are all files that differ."""

    before: File | None
    now: File | None
    written: File


def _changed(side: Standing) -> dict[str, _Edit]:
    if not side.is_edited:
        return {}
    before, now = side.rendered, side.files
    changed = {path for path in {*before, *now} if before.get(path) != now.get(path)}
    # lines of another edited file, such as one that was renamed, were not written by hand
    written = File(b"".join(before[path].data for path in sorted(changed) if path in before))
    return {path: _Edit(before.get(path), now.get(path), written) for path in changed}


def _conflicts(edits: dict[str, _Edit], files: FileTree, known: Sequence[Conflict]) -> Iterator[Conflict]:
    for path, edit in sorted(edits.items()):
        recorded = [one for one in known if one.file == path or one.file.startswith(f"{path}/")]
        if any(one.kind in ("file", "package", "resource") for one in recorded) or _is_kept(
            path, edit, files, recorded
        ):
            continue
        sides = (_shown(edit.before), _shown(edit.now), _shown(files.get(path)))
        yield Conflict("file", "", *sides, "upstream", NOT_KEPT, file=path)


def _shown(file: File | None) -> object:
    return ABSENT if file is None else file.id


def _is_kept(path: str, edit: _Edit, files: FileTree, recorded: Collection[Conflict]) -> bool:
    before, now, result = edit.before, edit.now, files.get(path)
    if now is None or now == result:
        return now == result
    if before is not None and now.executable != before.executable and result and result.executable != now.executable:
        return False
    if result is None:
        # its resources may have moved to another file
        return all(_has_parts(one, files) for one in _lost_parts(edit.written, now, File(b""), recorded))
    if _has_lost_form(before, now, result):
        return False
    return all(_has_parts(one, files) for one in _lost_parts(before or edit.written, now, result, recorded))


def _has_parts(part: str, files: FileTree) -> bool:
    return any(part in _parts(file) for file in files.values())


def _lost_parts(before: File, now: File, result: File, recorded: Collection[Conflict]) -> Iterator[str]:
    """Yield the contents and comments of lines that an edit put into a file and that the result lacks."""
    values = [str(one.local) for one in recorded if not isinstance(one.local, dict | list)]
    added, replaced = _parts(now) - _parts(before), _parts(before) - _parts(now)
    missing = added - _parts(result)
    yield from (
        part
        for part in missing
        if not any(value in part for value in values) and not _is_merged(part, replaced, _parts(result))
    )


def _is_merged(part: str, replaced: Iterable[str], result: Iterable[str]) -> bool:
    """Return whether a line of the result has all words of an edited line and none that the edit removed from it.

    A list in one line is merged by its items, such as `[one, two]`, edited to `[two, three]`, to `[two, three, four]`.
    """
    words = _WORD.findall(part)
    if part.startswith("#") or not words:
        return False
    before = {word for line in replaced if (found := _WORD.findall(line))[:1] == words[:1] for word in found}
    return any(
        found[:1] == words[:1] and {*words} <= {*found} and not (before - {*words}) & {*found}
        for found in map(_WORD.findall, result)
    )


def _parts(file: File) -> Counter[str]:
    """Return what each line consists of: its content, without blanks around it, and its comment."""
    found: Counter[str] = Counter()
    for line in _text(file).splitlines():
        comment = _COMMENT.search(line)
        found[line[: comment.start()].strip() if comment else line.strip()] += 1
        if comment:
            found[comment[0].strip()] += 1
    del found[""]
    return found


def _text(file: File) -> str:
    return file.data.removeprefix(_BOM).decode(errors="backslashreplace")


def _has_lost_form(before: File | None, now: File, result: File) -> bool:
    """Return whether an edit of nothing but form is gone: byte order mark, line ends, blank lines, order of lines."""
    was = before or File(b"")
    for has in (_has_bom, _has_crlf):
        if has(now) and not has(was) and not has(result):
            return True
    if _blank_lines(now) > _blank_lines(was) >= _blank_lines(result):
        return True
    return _parts(now) == _parts(was) and not _has_order_of(now, result) and _has_order_of(was, result)


def _has_bom(file: File) -> bool:
    return file.data.startswith(_BOM)


def _has_crlf(file: File) -> bool:
    return b"\r\n" in file.data


def _blank_lines(file: File) -> int:
    return sum(not line.strip() for line in _text(file).splitlines())


def _has_order_of(one: File, other: File) -> bool:
    wanted, found = ([line.strip() for line in _text(file).splitlines() if line.strip()] for file in (one, other))
    common = {*wanted} & {*found}
    return [line for line in wanted if line in common] == [line for line in found if line in common]
