"""YAML files with several documents, and a parser for single values with the core schema of YAML 1.2.

A file consists of documents, the text between the documents, and an optional byte order mark.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from reconciler.krm.yaml.compose import LINE_BREAK, YamlBudget, compose
from reconciler.krm.yaml.document import Document, read_document
from reconciler.krm.yaml.errors import DEFAULT_YAML_LIMITS, YamlError, YamlLimits
from reconciler.lazy_dataclasses import dataclass

_BOM = "\ufeff"
_MARKER = re.compile("(?:---|\\.\\.\\.)(?=[ \t\r\n\x85\u2028\u2029]|\\Z)")
_LINE_FEED = re.compile("\r?\n")
_BREAKS = "\n\r\x85\u2028\u2029"
_SEPARATE_MARKER = re.compile(r"(?:---|\.\.\.)[ \t]*(?:[ \t]#.*)?\Z")
_ONLY_DIRECTIVES = re.compile(r"(?:[ \t]*(?:#.*)?\r?\n)*(?:%.*\r?\n(?:[ \t]*(?:#.*)?\r?\n)*)+\Z")


@dataclass(frozen=True)
class YamlFile:
    """A parsed YAML file.

    `gaps[i]` is the text between document `i - 1` and document `i`. The first gap and the last gap are the start and
    the end of the file. A gap contains `---` and `...` lines, comments, and documents without content. `bom` is true if
    the file begins with a byte order mark.
    """

    documents: tuple[Document, ...]
    gaps: tuple[str, ...]
    bom: bool = False

    def to_bytes(self) -> bytes:
        """Return the content of the file. If nothing was changed, the bytes are the same as before parsing."""
        return "".join([_BOM if self.bom else "", *self._iterate_texts()]).encode()

    def replace(self, index: int, document: Document) -> YamlFile:
        """Return a copy of the file in which `document` replaces the document at `index`."""
        if document is self.documents[index]:
            return self
        index = range(len(self.documents))[index]
        documents = (*self.documents[:index], document, *self.documents[index + 1 :])
        return _join_documents(documents, self.gaps, self._detect_newline(), bom=self.bom)

    def remove(self, index: int) -> YamlFile:
        """Return a copy of the file without the document at `index` and without the `---` line of this document.

        Keep the comments between documents.
        """
        index = range(len(self.documents))[index]
        before, after = self.gaps[index], self.gaps[index + 1]
        gap = _remove_marker(before, last=True) + after if index else before + _remove_marker(after, last=False)
        documents = self.documents[:index] + self.documents[index + 1 :]
        return _join_documents(
            documents, (*self.gaps[:index], gap, *self.gaps[index + 2 :]), self._detect_newline(), bom=self.bom
        )

    def append(self, document_text: str) -> YamlFile:
        """Return a copy of the file to which the documents in `document_text` are appended.

        The appended text gets the same line ends as the file.

        Raises:
            YamlError: The text is not valid YAML.
        """
        newline = self._detect_newline()
        added = parse_yaml(_LINE_FEED.sub(newline, document_text))
        last = _end_gap(self.gaps[-1], newline)
        gaps = (*self.gaps[:-1], last + added.gaps[0], *added.gaps[1:])
        return _join_documents(self.documents + added.documents, gaps, newline, bom=self.bom)

    def with_documents(self, order: Sequence[tuple[int | None, Document]]) -> YamlFile:
        """Return a copy of the file that contains these documents in this order.

        If a new document replaces an old document, the `---` line before the old document is kept. The text above the
        first document, below the last document, and between removed documents is kept.

        Args:
            order: For each new document, the index of the old document that it replaces, and the new document. The
                index is None for an additional document.
        """
        newline, kept_indexes = self._detect_newline(), {index for index, _ in order}
        separators, orphaned = [""], ""
        for index, gap in enumerate(self.gaps[1:-1], 1):
            separators.append(orphaned + gap)
            orphaned = "" if index in kept_indexes else orphaned + _remove_marker(gap, last=True)
        gaps = ["" if index is None else separators[index] for index, _ in order]
        gaps[:1] = [_end_gap(self.gaps[0], newline) + _remove_marker(gap, last=False) for gap in gaps[:1]]
        last = self.gaps[-1] if self.documents else ""
        end = orphaned + last if order else self.gaps[0] + orphaned + last
        documents = (_convert_line_ends(document, newline) if index is None else document for index, document in order)
        return _join_documents(tuple(documents), (*gaps, end), newline, bom=self.bom)

    def comment_lines(self) -> tuple[str, ...]:
        """Return the comments outside of the documents, in order, without spaces before and after each comment."""
        lines = (line.strip() for gap in self.gaps for line in gap.splitlines())
        return tuple(line for line in lines if line.startswith("#"))

    def with_comments_at_end(self, lines: Sequence[str]) -> YamlFile:
        """Return a copy of the file to which comment lines are appended."""
        if not lines:
            return self
        newline = self._detect_newline()
        gap = _end_gap(self.gaps[-1], newline) + "".join(line + newline for line in lines)
        return _join_documents(self.documents, (*self.gaps[:-1], gap), newline, bom=self.bom)

    def _detect_newline(self) -> str:
        first = next(filter(None, map(LINE_BREAK.search, self._iterate_texts())), None)
        return "\r\n" if first and first[0] == "\r\n" else "\n"

    def _iterate_texts(self) -> Iterator[str]:
        for gap, document in zip(self.gaps, self.documents, strict=False):
            yield from (gap, document.text)
        yield self.gaps[-1]


def parse_yaml(source: bytes | str, limits: YamlLimits = DEFAULT_YAML_LIMITS) -> YamlFile:
    """Parse a file that contains YAML or JSON documents.

    Raises:
        YamlError: The file is not UTF-8, is not valid YAML, or exceeds `limits`. The error contains the line number.
    """
    text, bom = _decode(source, limits)
    documents: list[Document] = []
    gaps: list[str] = []
    gap, line, budget = "", 1, YamlBudget(limits)
    for number, (piece, is_marker) in enumerate(_split(text)):
        if number > 2 * limits.documents:
            raise YamlError("YamlDocuments", f"at most {limits.documents} documents are allowed in one file", line, 1)
        document = None if is_marker else read_document(piece, line, budget)
        if document:
            documents.append(document)
            gaps.append(gap)
        gap = "" if document else gap + piece
        line += _count_line_breaks(piece)
    return YamlFile(tuple(documents), (*gaps, gap), bom)


def _count_line_breaks(text: str) -> int:
    if text.isascii() and "\r" not in text:
        return text.count("\n")
    return len(LINE_BREAK.findall(text))


def _decode(source: bytes | str, limits: YamlLimits) -> tuple[str, bool]:
    if len(source) > limits.file_bytes:
        raise YamlError("YamlTooLarge", f"a file must not be larger than {limits.file_bytes} bytes")
    try:
        text = source if isinstance(source, str) else source.decode()
    except UnicodeDecodeError as error:
        line = source[: error.start].count(b"\n") + 1 if isinstance(source, bytes) else 0
        raise YamlError("YamlEncoding", "a file must be UTF-8 text", line, 1) from error
    return text.removeprefix(_BOM), text.startswith(_BOM)


def _split(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of the text in order, with true for a separate `---` or `...` line, and false for other parts.

    It is safe to split at these lines, because no YAML value contains a line that begins with `---` or `...`.
    """
    begin = 0
    for start, end in _find_markers(text):
        if start > begin:
            if text[start : start + 3] == "---" and _ONLY_DIRECTIVES.match(text, begin, start):
                # Do not split the text here, because directives such as `%YAML 1.2` belong to the next document.
                continue
            yield text[begin:start], False
        is_separate = _SEPARATE_MARKER.match(text[start:end].rstrip(_BREAKS))
        if is_separate:
            yield text[start:end], True
        begin = end if is_separate else start
    if begin < len(text):
        yield text[begin:], False


def _find_markers(text: str) -> Iterator[tuple[int, int]]:
    """Yield start offset and end offset of each line that begins with `---` or `...`. The line end is included."""
    if "---" not in text and "..." not in text:
        return
    for match in _MARKER.finditer(text):
        start = match.start()
        if start == 0 or text[start - 1] in _BREAKS:
            ending = LINE_BREAK.search(text, start)
            yield start, ending.end() if ending else len(text)


def _convert_line_ends(document: Document, newline: str) -> Document:
    text = _LINE_FEED.sub(newline, document.text)
    return document if text == document.text else parse_yaml(text).documents[0]


def _remove_marker(gap: str, *, last: bool) -> str:
    markers = list(_find_markers(gap))
    if not markers:
        return gap
    start, end = markers[-1 if last else 0]
    return gap[:start] + gap[end:]


def _end_line(text: str, newline: str) -> str:
    return text if text[-1:] in _BREAKS else text + newline


def _join_documents(documents: tuple[Document, ...], gaps: tuple[str, ...], newline: str, *, bom: bool) -> YamlFile:
    """Join documents and gaps into a file.

    Add missing `---` lines and line ends, and set the line number of each document.
    """
    positioned: list[Document] = []
    texts: list[str] = []
    line = 1
    for document, gap in zip(documents, gaps, strict=False):
        texts.append(_add_marker(gap, document.text, newline, first=not positioned))
        is_followed = len(texts) < len(documents) or gaps[-1]
        ended = document.with_final_newline(newline) if is_followed else document
        positioned.append(ended.at_line(line + _count_line_breaks(texts[-1])))
        line = positioned[-1].line + _count_line_breaks(ended.text)
    return YamlFile(tuple(positioned), (*texts, gaps[-1]), bom)


def _add_marker(gap: str, text: str, newline: str, *, first: bool) -> str:
    markers = [gap[start : start + 3] for start, _ in _find_markers(gap)]
    if any(_ONLY_DIRECTIVES.match(text, 0, start) for start, _ in _find_markers(text)):
        # Add a line `...` before a directive, because a directive is valid only after the end of a document.
        return gap if markers[-1:] == ["..."] or (first and not markers) else _end_gap(gap, newline) + "..." + newline
    if first or markers or _MARKER.match(text):
        return gap
    return _end_gap(gap, newline) + "---" + newline


def _end_gap(gap: str, newline: str) -> str:
    return _end_line(gap, newline) if gap else gap


_WORDS: dict[str, Any] = (
    dict.fromkeys(("", "~", "null", "Null", "NULL"))
    | dict.fromkeys(("true", "True", "TRUE"), True)
    | dict.fromkeys(("false", "False", "FALSE"), False)
    | {sign + word: math.inf for sign in ("", "+") for word in (".inf", ".Inf", ".INF")}
    | dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf)
    | dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan)
)
_NUMBER = re.compile(
    r"(?P<decimal>[-+]?[0-9]+)|0o(?P<octal>[0-7]+)|0x(?P<hexadecimal>[0-9a-fA-F]+)"
    r"|(?P<float>[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)"
)
_BASES = {"decimal": 10, "octal": 8, "hexadecimal": 16}
# Python rejects numbers with more than 4,000 digits. Read such a text as a string.
_MAX_DIGITS = 4_000


# A text such as `my-app` is read without the parser, because it has no YAML syntax. Most results of CEL expressions
# match this pattern.
_PLAIN_WORD = re.compile("[A-Za-z0-9](?:[A-Za-z0-9_./:-]{,254}[A-Za-z0-9_./-])?")


def read_core_yaml(text: str, limits: YamlLimits = DEFAULT_YAML_LIMITS) -> Any:
    """Parse a text with at most one document, with the core schema of YAML 1.2. Return None if there is no document.

    Use this function for texts that are not Kubernetes files. Merge keys `<<` are supported.

    Raises:
        YamlError: The text is not valid YAML, exceeds `limits`, or contains several documents. Keys that Kubernetes
            would convert to the same string, such as `yes` and `true`, are an error too.
    """
    if _PLAIN_WORD.fullmatch(text) and len(text) <= limits.file_bytes:
        return resolve_core_scalar(text)
    documents = parse_yaml(text, limits).documents
    if len(documents) > 1:
        raise YamlError("YamlDocuments", "the text must be one document, not several", documents[1].line, 1)
    root = compose(documents[0].text, YamlBudget(limits), resolve_core_scalar) if documents else None
    return None if root is None else root.data


def resolve_core_scalar(text: str) -> Any:
    """Convert a scalar without quotes to its value in the core schema (YAML 1.2.2, section 10.3)."""
    if text in _WORDS:
        return _WORDS[text]
    match = _NUMBER.fullmatch(text)
    if match is None or len(text) > _MAX_DIGITS:
        return text
    kind = match.lastgroup or ""
    if kind in _BASES:
        return int(match[kind], _BASES[kind])
    number = float(text)
    # Keep the text of a number that is too large for a float, because JSON does not support infinity.
    return text if math.isinf(number) else number
