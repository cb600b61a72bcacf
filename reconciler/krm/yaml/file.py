"""YAML files: documents, the text between them, and the byte order mark. Also texts in the core schema of YAML 1.2."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.krm.yaml.compose import LINE_BREAK, YamlBudget, compose
from reconciler.krm.yaml.document import Document, read_document
from reconciler.krm.yaml.errors import DEFAULT_YAML_LIMITS, YamlError, YamlLimits

_BOM = "\ufeff"
_MARKER = re.compile("(?:---|\\.\\.\\.)(?=[ \t\r\n\x85\u2028\u2029]|\\Z)")
_LINE_FEED = re.compile("\r?\n")
_BREAKS = "\n\r\x85\u2028\u2029"
_SEPARATE_MARKER = re.compile(r"(?:---|\.\.\.)[ \t]*(?:[ \t]#.*)?\Z")
_ONLY_DIRECTIVES = re.compile(r"(?:[ \t]*(?:#.*)?\r?\n)*(?:%.*\r?\n(?:[ \t]*(?:#.*)?\r?\n)*)+\Z")


@dataclass(frozen=True)
class YamlFile:
    """A parsed file.

    `gaps[i]` is the text before `documents[i]`; the last gap follows the last document. Gaps contain `---` and `...`
    lines, and documents that are empty or contain only comments.
    """

    documents: tuple[Document, ...]
    gaps: tuple[str, ...]
    bom: bool = False

    def to_bytes(self) -> bytes:
        """Return the file as bytes. An unchanged file is returned byte for byte."""
        return "".join([_BOM if self.bom else "", *self._iterate_texts()]).encode()

    def replace(self, index: int, document: Document) -> YamlFile:
        """Return the file with the document at `index` (from 0) replaced."""
        if document is self.documents[index]:
            return self
        index = range(len(self.documents))[index]
        documents = (*self.documents[:index], document, *self.documents[index + 1 :])
        return _join_documents(documents, self.gaps, self._detect_newline(), bom=self.bom)

    def remove(self, index: int) -> YamlFile:
        """Return the file without the document at `index` and its separator. Comments between documents are kept."""
        index = range(len(self.documents))[index]
        before, after = self.gaps[index], self.gaps[index + 1]
        gap = _remove_marker(before, last=True) + after if index else before + _remove_marker(after, last=False)
        documents = self.documents[:index] + self.documents[index + 1 :]
        return _join_documents(
            documents, (*self.gaps[:index], gap, *self.gaps[index + 2 :]), self._detect_newline(), bom=self.bom
        )

    def append(self, document_text: str) -> YamlFile:
        """Return the file with the documents of `document_text` appended, with the line ends of the file.

        Raises:
            YamlError: The text is not YAML.
        """
        newline = self._detect_newline()
        added = parse_yaml(_LINE_FEED.sub(newline, document_text))
        last = _end_gap(self.gaps[-1], newline)
        gaps = (*self.gaps[:-1], last + added.gaps[0], *added.gaps[1:])
        return _join_documents(self.documents + added.documents, gaps, newline, bom=self.bom)

    def with_documents(self, order: Sequence[tuple[int | None, Document]]) -> YamlFile:
        """Return the file with these documents in this order.

        Each document replaces the one with the given index, or is new (None). It keeps the separator before the
        replaced document. The text above the first document, below the last one, and between removed documents is kept.
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
        """Return the comments outside of documents, in order, without surrounding blanks."""
        lines = (line.strip() for gap in self.gaps for line in gap.splitlines())
        return tuple(line for line in lines if line.startswith("#"))

    def with_comments_at_end(self, lines: Sequence[str]) -> YamlFile:
        """Return the file with comment lines appended at the end."""
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
    """Parse a file of YAML or JSON documents.

    Raises:
        YamlError: The file is not UTF-8, not valid YAML, or exceeds `limits`. The error has the line in the file.
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
    """Return the number of line ends, as YAML counts them."""
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
    """Yield all parts of the text in order, and whether each is a separate `---` or `...` line.

    A line that begins with such a marker ends every YAML construct except a comment, which cannot begin with one.
    """
    begin = 0
    for start, end in _find_markers(text):
        if start > begin:
            if text[start : start + 3] == "---" and _ONLY_DIRECTIVES.match(text, begin, start):
                continue  # Directives belong to the following document, including its `---` line.
            yield text[begin:start], False
        is_separate = _SEPARATE_MARKER.match(text[start:end].rstrip(_BREAKS))
        if is_separate:
            yield text[start:end], True
        begin = end if is_separate else start
    if begin < len(text):
        yield text[begin:], False


def _find_markers(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end (after the line end) of every line that begins with `---` or `...`."""
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
    """Return the file with the necessary separators, and with the line number of each document."""
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
        # A directive is valid only after the end of a document.
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
# Python rejects longer decimal numbers. A text of this length is not meant as a number.
_MAX_DIGITS = 4_000


# A word without YAML syntax. Most results of expressions match this pattern, and need no parser.
_PLAIN_WORD = re.compile("[A-Za-z0-9](?:[A-Za-z0-9_./:-]{,254}[A-Za-z0-9_./-])?")


def read_core_yaml(text: str, limits: YamlLimits = DEFAULT_YAML_LIMITS) -> Any:
    """Return the data of the only document in `text`, read with the core schema of YAML 1.2.

    None is returned if there is no document. The core schema is used for texts that are not Kubernetes files. Merge
    keys are supported.

    Raises:
        YamlError: There are several documents, the text is not YAML, exceeds `limits`, or has keys that are equal for
            Kubernetes (`yes` and `true`).
    """
    if _PLAIN_WORD.fullmatch(text) and len(text) <= limits.file_bytes:
        return resolve_core_scalar(text)
    documents = parse_yaml(text, limits).documents
    if len(documents) > 1:
        raise YamlError("YamlDocuments", "the text must be one document, not several", documents[1].line, 1)
    root = compose(documents[0].text, YamlBudget(limits), resolve_core_scalar) if documents else None
    return None if root is None else root.data


def resolve_core_scalar(text: str) -> Any:
    """Return the value of a plain scalar in the core schema (YAML 1.2.2, section 10.3)."""
    if text in _WORDS:
        return _WORDS[text]
    match = _NUMBER.fullmatch(text)
    if match is None or len(text) > _MAX_DIGITS:
        return text
    kind = match.lastgroup or ""
    if kind in _BASES:
        return int(match[kind], _BASES[kind])
    number = float(text)
    # JSON has no infinity. A number of this size is not meant as infinity.
    return text if math.isinf(number) else number
