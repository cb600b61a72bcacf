"""Unified diffs of files for people. Secret values are masked, and long diffs are shortened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import unified_diff
from types import MappingProxyType
from typing import Any

from reconciler.catalog.files import File, FileTree
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import Document, emit
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.output.changes.objects import FileObject
from reconciler.output.json_data import mask_secrets
from reconciler.output.text import MAX_DIFF_LINES
from reconciler.packages.package import is_krm_file, join_path, parse_documents
from reconciler.packages.parsing import ParseFailure
from reconciler.redaction import (
    contains_secret,
    hide_ciphertexts,
    is_secret_manifest_text,
    list_secret_options,
    mask_options,
    redact_urls,
)

# Do not show diffs of larger files, because the run time of difflib is quadratic in the number of lines. A person can
# read such changes on the branch.
_MAX_BYTES = 500_000
_MAX_FILE_LINES = 5_000
_EMPTY_FILE = File(b"")


def format_file_diffs(
    before: FileTree, after: FileTree, folder: str = "", max_lines: int = MAX_DIFF_LINES
) -> Iterator[tuple[str, str]]:
    """Yield the path and the unified diff of each file whose content differs, sorted by path.

    The diff omits the content of binary and very large files, and of unparsable files that may contain a Secret.

    Args:
        folder: The path of the package on its branch, without a slash at the end.
        max_lines: The maximum number of lines per diff. A shortened diff ends with the number of omitted lines.
    """
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if (old or _EMPTY_FILE).data != (new or _EMPTY_FILE).data:
            yield path, _limit_lines(_diff(join_path(folder, path), old, new), max_lines)


def _diff(path: str, old: File | None, new: File | None) -> list[str]:
    header = [f"--- {f'a/{path}' if old else '/dev/null'}", f"+++ {f'b/{path}' if new else '/dev/null'}"]
    contents = (old or _EMPTY_FILE).data, (new or _EMPTY_FILE).data
    if reason := _get_hidden_reason(*contents):
        return [*map(_escape_line, header), f"({reason})"]
    before, after = _mask_contents(path, *contents)
    if before is None or after is None:
        return [*map(_escape_line, header), "(not shown, because the file may contain a Secret)"]
    lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm=""))[2:]
    return [*map(_escape_line, [*header, *lines]), *([] if lines else ["(only line endings differ)"])]


def _get_hidden_reason(old: bytes, new: bytes) -> str:
    if b"\0" in old or b"\0" in new:
        return "binary, not shown"
    is_too_large = max(len(old), len(new)) > _MAX_BYTES or max(old.count(b"\n"), new.count(b"\n")) > _MAX_FILE_LINES
    return "too large to show" if is_too_large else ""


def _mask_contents(path: str, old: bytes, new: bytes) -> tuple[str | None, str | None]:
    """Return both contents with masked Secrets. An item is None if its content must not be shown."""
    before, after = _parse(path, old), _parse(path, new)
    previous = _index_data(before or ())
    options = find_secret_options(previous, _index_data(after or ()))
    return _mask_content(old, before, None, options), _mask_content(new, after, previous, options)


SecretOptions = Mapping[str, frozenset[str]]
"""The names of the secret options of Plugins, by the identity of the Plugin."""
NO_SECRET_OPTIONS: SecretOptions = MappingProxyType({})


def find_secret_options(before: Mapping[str, Any], after: Mapping[str, Any]) -> SecretOptions:
    """Map each changed object to its options that refer to a Secret before or after the change.

    Args:
        before: Maps the identity of each object to its data before the change.
        after: Maps the identity of each object to its data after the change.
    """
    names = {key: list_secret_options(before.get(key), after.get(key)) for key in {*before, *after}}
    return {key: options for key, options in names.items() if options}


def _index_data(documents: Iterable[Document]) -> dict[str, Any]:
    return {_identify(document.data): document.data for document in documents}


def _parse(path: str, content: bytes) -> tuple[Document, ...] | None:
    documents = parse_documents(path, content) if is_krm_file(path) and content else ()
    return None if isinstance(documents, ParseFailure) else documents


def _mask_content(
    content: bytes, documents: tuple[Document, ...] | None, previous: Mapping[str, Any] | None, options: SecretOptions
) -> str | None:
    text = content.decode("utf-8", "replace")
    has_secret = any(_contains_secret(document, options) for document in documents or ())
    if not is_secret_manifest_text(text) and not has_secret:
        return text
    return "---\n".join(_mask_document(document, previous, options) for document in documents) if documents else None


def _contains_secret(document: Document, options: SecretOptions) -> bool:
    return contains_secret(document.data) or _identify(document.data) in options


def _mask_document(document: Document, previous: Mapping[str, Any] | None, options: SecretOptions) -> str:
    if not is_secret_manifest_text(document.text) and not _contains_secret(document, options):
        return document.text
    # Write the Secret from its data, not from its text, because a comment in the text can contain an earlier secret
    # value.
    key = _identify(document.data)
    data, previous_data = (
        mask_options(side, options.get(key, ())) for side in (document.data, (previous or {}).get(key))
    )
    return emit(mask_secrets(data, previous_data, should_mark_changes=previous is not None))


@dataclass(frozen=True)
class MaskedDocument:
    """A KRM object of a file, with the text that people may see. Secrets in `data` are not masked."""

    object_key: ObjectKey
    file: str
    text: str
    data: Any = field(repr=False)

    @property
    def key(self) -> str:
        """The identity of the object as text."""
        return self.object_key.reference


def read_object_data(path: str, content: bytes) -> Mapping[str, Any]:
    """Return the data of the KRM objects of a file by their identity. Secrets in the data are not masked."""
    return _index_data(_parse(path, content) or ())


def mask_file_documents(
    path: str, content: bytes, previous: Mapping[str, Any] | None = None, options: SecretOptions = NO_SECRET_OPTIONS
) -> Iterator[MaskedDocument]:
    """Yield the KRM objects of a file with masked secrets. A file that cannot be parsed has no objects.

    Args:
        previous: Maps the identity of each object to its former data. Secret values that differ from the former data
            are marked as changed.
        options: The secret options of the Plugins in the file.
    """
    for document in _parse(path, content) or ():
        lines = _mask_document(document, previous, options).splitlines()
        key = FileObject(path, document.data).key
        yield MaskedDocument(key, path, "\n".join(map(_escape_line, lines)), document.data)


def _identify(data: Any) -> str:
    return FileObject("", data).key.reference


def _limit_lines(lines: list[str], limit: int) -> str:
    rest = len(lines) - limit
    return "\n".join((*lines[:limit], f"({rest} more lines)") if rest > 0 else lines) + "\n"


def _escape_line(line: str) -> str:
    # Escape control characters, because an escape sequence in a file must not reach the terminal. Keep tabs.
    text = redact_urls(hide_ciphertexts(line))
    return "".join(
        char if char.isprintable() or char == "\t" else char.encode("unicode_escape").decode("ascii") for char in text
    )
