"""Diffs: the lines of a file before and after, for people; secrets masked, long ones cut."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

from reconciler.krm.secrets import holds_secret, writes_secret
from reconciler.krm.yaml import Document, emit
from reconciler.packages.nesting import is_krm_file
from reconciler.packages.package import documents_of, join
from reconciler.packages.parsing import Unparsable
from reconciler.redaction import redact_urls
from reconciler.reporting.file_objects import Standing
from reconciler.reporting.secrets import mask
from reconciler.snapshot.files import File, FileTree

MAX_LINES = 200
# difflib's time grows with the square of the lines; whoever changes more reads the branch itself
_MAX_BYTES = 500_000
_MAX_FILE_LINES = 5_000
_NOTHING = File(b"")


def file_diffs(
    before: FileTree, after: FileTree, folder: str = "", max_lines: int = MAX_LINES
) -> Iterator[tuple[str, str]]:
    """Yield (path, unified diff) for each file whose content differs, by path; a diff ends in a line break.

    `folder` is where the package stands on its branch, without a slash at the end.
    Of a diff longer than `max_lines` the rest is counted. Binary and huge files are only named, as are
    files that may hold a Secret but cannot be read.
    """
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if (old or _NOTHING).data != (new or _NOTHING).data:
            yield path, _cut(_diff(join(folder, path), old, new), max_lines)


def _diff(path: str, old: File | None, new: File | None) -> list[str]:
    header = [f"--- {f'a/{path}' if old else '/dev/null'}", f"+++ {f'b/{path}' if new else '/dev/null'}"]
    contents = (old or _NOTHING).data, (new or _NOTHING).data
    if reason := _not_shown(*contents):
        return [*map(_printable, header), f"({reason})"]
    before, after = _texts(path, *contents)
    if before is None or after is None:
        return [*map(_printable, header), "(not shown: it may hold a Secret)"]
    lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm=""))[2:]
    return [*map(_printable, [*header, *lines]), *([] if lines else ["(only line ends differ)"])]


def _not_shown(old: bytes, new: bytes) -> str:
    if b"\0" in old or b"\0" in new:
        return "binary, not shown"
    too_large = max(len(old), len(new)) > _MAX_BYTES or max(old.count(b"\n"), new.count(b"\n")) > _MAX_FILE_LINES
    return "too large to show" if too_large else ""


def _texts(path: str, old: bytes, new: bytes) -> tuple[str | None, str | None]:
    """Return both contents as they may be shown; None for one that may not."""
    before, after = _documents(path, old), _documents(path, new)
    known = {_identity(one.data): one.data for one in before or ()}
    return _text(old, before, None), _text(new, after, known)


def _documents(path: str, content: bytes) -> tuple[Document, ...] | None:
    documents = documents_of(path, content) if is_krm_file(path) and content else ()
    return None if isinstance(documents, Unparsable) else documents


def _text(content: bytes, documents: tuple[Document, ...] | None, known: dict[str, Any] | None) -> str | None:
    text = content.decode("utf-8", "replace")
    if not writes_secret(text) and not any(holds_secret(one.data) for one in documents or ()):
        return text
    return "---\n".join(_masked(one, known) for one in documents) if documents else None


def _masked(document: Document, known: dict[str, Any] | None) -> str:
    if not writes_secret(document.text) and not holds_secret(document.data):
        return document.text
    # a comment in a Secret may tell what it held before: only the data is shown
    other = (known or {}).get(_identity(document.data))
    return emit(mask(document.data, other, compared=known is not None))


def _identity(data: Any) -> str:
    return str(Standing("", data).key)


def _cut(lines: list[str], limit: int) -> str:
    rest = len(lines) - limit
    return "\n".join((*lines[:limit], f"({rest} more lines)") if rest > 0 else lines) + "\n"


def _printable(line: str) -> str:
    # an escape sequence in a file must not reach the terminal; tabs are harmless
    shown = redact_urls(line)
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode("ascii") for c in shown)
