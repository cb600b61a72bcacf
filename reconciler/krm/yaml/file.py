"""A file: its documents, what stands between them, its byte order mark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reconciler.krm.yaml.compose import BREAK, Budget
from reconciler.krm.yaml.document import Document, read_document
from reconciler.krm.yaml.error import YamlError
from reconciler.krm.yaml.limits import DEFAULT_LIMITS, YamlLimits

_BOM = "\ufeff"
_MARKER = re.compile("(?:---|\\.\\.\\.)(?=[ \t\r\n\x85\u2028\u2029]|\\Z)")
_LINE_FEED = re.compile("\r?\n")
_BREAKS = "\n\r\x85\u2028\u2029"
_BARE_MARKER = re.compile(r"(?:---|\.\.\.)[ \t]*(?:[ \t]#.*)?\Z")
_ONLY_DIRECTIVES = re.compile(r"(?:[ \t]*(?:#.*)?\r?\n)*(?:%.*\r?\n(?:[ \t]*(?:#.*)?\r?\n)*)+\Z")


@dataclass(frozen=True)
class YamlFile:
    """A file as it was read: `gaps[i]` is the text before `documents[i]`, the last gap what follows the last one.

    Gaps hold `---` and `...` lines and documents that are empty or nothing but comments (kpt 3.1.2).
    """

    documents: tuple[Document, ...]
    gaps: tuple[str, ...]
    bom: bool = False

    def to_bytes(self) -> bytes:
        """Return the file; what nobody changed is what was read, to the byte."""
        return "".join([_BOM if self.bom else "", *self._texts()]).encode()

    def replace(self, index: int, document: Document) -> YamlFile:
        """Return the file with another document in place of number `index` (from 0)."""
        if document is self.documents[index]:
            return self
        index = range(len(self.documents))[index]
        documents = (*self.documents[:index], document, *self.documents[index + 1 :])
        return _joined(documents, self.gaps, self._newline(), bom=self.bom)

    def remove(self, index: int) -> YamlFile:
        """Return the file without document `index` and its separator; comments that stood between documents stay."""
        index = range(len(self.documents))[index]
        before, after = self.gaps[index], self.gaps[index + 1]
        gap = _without_marker(before, last=True) + after if index else before + _without_marker(after, last=False)
        documents = self.documents[:index] + self.documents[index + 1 :]
        return _joined(documents, (*self.gaps[:index], gap, *self.gaps[index + 2 :]), self._newline(), bom=self.bom)

    def append(self, document_text: str) -> YamlFile:
        """Return the file with the documents of `document_text` at the end, in the file's line endings.

        Raises YamlError when the text is not YAML.
        """
        newline = self._newline()
        added = parse(_LINE_FEED.sub(newline, document_text))
        last = _ended_gap(self.gaps[-1], newline)
        gaps = (*self.gaps[:-1], last + added.gaps[0], *added.gaps[1:])
        return _joined(self.documents + added.documents, gaps, newline, bom=self.bom)

    def arranged(self, order: Sequence[tuple[int | None, Document]]) -> YamlFile:
        """Return the file with these documents in this order, each in place of the one of that number, or new (None).

        A document brings the text that separated the one it replaces from the one before. What stands above the first
        document, below the last, and between others that are gone, stays in the file.
        """
        newline, kept = self._newline(), {number for number, _ in order}
        separators, loose = [""], ""
        for number, gap in enumerate(self.gaps[1:-1], 1):
            separators.append(loose + gap)
            loose = "" if number in kept else loose + _without_marker(gap, last=True)
        gaps = ["" if number is None else separators[number] for number, _ in order]
        gaps[:1] = [_ended_gap(self.gaps[0], newline) + _without_marker(gap, last=False) for gap in gaps[:1]]
        last = self.gaps[-1] if self.documents else ""
        end = loose + last if order else self.gaps[0] + loose + last
        documents = (_with_line_ends(document, newline) if number is None else document for number, document in order)
        return _joined(tuple(documents), (*gaps, end), newline, bom=self.bom)

    def comment_lines(self) -> tuple[str, ...]:
        """Return the comments that belong to no document, in order, without blanks around them."""
        lines = (line.strip() for gap in self.gaps for line in gap.splitlines())
        return tuple(line for line in lines if line.startswith("#"))

    def with_comments_at_end(self, lines: Sequence[str]) -> YamlFile:
        """Return the file with more comments below everything."""
        if not lines:
            return self
        newline = self._newline()
        gap = _ended_gap(self.gaps[-1], newline) + "".join(line + newline for line in lines)
        return _joined(self.documents, (*self.gaps[:-1], gap), newline, bom=self.bom)

    def _newline(self) -> str:
        first = next(filter(None, map(BREAK.search, self._texts())), None)
        return "\r\n" if first and first[0] == "\r\n" else "\n"

    def _texts(self) -> Iterator[str]:
        for gap, document in zip(self.gaps, self.documents, strict=False):
            yield from (gap, document.text)
        yield self.gaps[-1]


def parse(source: bytes | str, limits: YamlLimits = DEFAULT_LIMITS) -> YamlFile:
    """Read a file of YAML (or JSON) documents.

    Raises YamlError, with the line in the file, for what is not UTF-8, not YAML of our profile, or beyond `limits`.
    """
    text, bom = _decode(source, limits)
    documents: list[Document] = []
    gaps: list[str] = []
    gap, line, budget = "", 1, Budget(limits)
    for number, (piece, is_marker) in enumerate(_pieces(text)):
        if number > 2 * limits.documents:
            raise YamlError("YamlDocuments", f"at most {limits.documents} documents are read from one file", line, 1)
        document = None if is_marker else read_document(piece, line, budget)
        if document:
            documents.append(document)
            gaps.append(gap)
        gap = "" if document else gap + piece
        line += count_breaks(piece)
    return YamlFile(tuple(documents), (*gaps, gap), bom)


def count_breaks(text: str) -> int:
    """Return the number of line ends in `text`, as YAML counts them."""
    return len(BREAK.findall(text))


def _decode(source: bytes | str, limits: YamlLimits) -> tuple[str, bool]:
    if len(source) > limits.file_bytes:
        raise YamlError("YamlTooLarge", f"a file must not be larger than {limits.file_bytes} bytes")
    try:
        text = source if isinstance(source, str) else source.decode()
    except UnicodeDecodeError as error:
        line = source[: error.start].count(b"\n") + 1 if isinstance(source, bytes) else 0
        raise YamlError("YamlEncoding", "a file must be UTF-8 text", line, 1) from error
    return text.removeprefix(_BOM), text.startswith(_BOM)


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yield (text, is it a bare `---` or `...` line), in order, nothing left out.

    A line that begins with a marker ends every YAML construct but a comment, which cannot begin with one.
    """
    begin = 0
    for start, end in _markers(text):
        if start > begin:
            if text[start : start + 3] == "---" and _ONLY_DIRECTIVES.match(text, begin, start):
                continue  # directives belong to the document that follows, its `---` included
            yield text[begin:start], False
        bare = _BARE_MARKER.match(text[start:end].rstrip(_BREAKS))
        if bare:
            yield text[start:end], True
        begin = end if bare else start
    if begin < len(text):
        yield text[begin:], False


def _markers(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end, its line end included, of every line that begins with `---` or `...`."""
    if "---" not in text and "..." not in text:
        return
    for match in _MARKER.finditer(text):
        start = match.start()
        if start == 0 or text[start - 1] in _BREAKS:
            ending = BREAK.search(text, start)
            yield start, ending.end() if ending else len(text)


def _with_line_ends(document: Document, newline: str) -> Document:
    text = _LINE_FEED.sub(newline, document.text)
    return document if text == document.text else parse(text).documents[0]


def _without_marker(gap: str, *, last: bool) -> str:
    markers = list(_markers(gap))
    if not markers:
        return gap
    start, end = markers[-1 if last else 0]
    return gap[:start] + gap[end:]


def _ended(text: str, newline: str) -> str:
    return text if text[-1:] in _BREAKS else text + newline


def _joined(documents: tuple[Document, ...], gaps: tuple[str, ...], newline: str, *, bom: bool) -> YamlFile:
    """Return the file with markers where they are needed and every document told its line."""
    placed: list[Document] = []
    texts: list[str] = []
    line = 1
    for document, gap in zip(documents, gaps, strict=False):
        texts.append(_with_marker(gap, document.text, newline, first=not placed))
        something_follows = len(texts) < len(documents) or gaps[-1]
        ended = document.ended(newline) if something_follows else document
        placed.append(ended.at_line(line + count_breaks(texts[-1])))
        line = placed[-1].line + count_breaks(ended.text)
    return YamlFile(tuple(placed), (*texts, gaps[-1]), bom)


def _with_marker(gap: str, text: str, newline: str, *, first: bool) -> str:
    markers = [gap[start : start + 3] for start, _ in _markers(gap)]
    if any(_ONLY_DIRECTIVES.match(text, 0, start) for start, _ in _markers(text)):
        # a directive may only follow the end of a document
        return gap if markers[-1:] == ["..."] or (first and not markers) else _ended_gap(gap, newline) + "..." + newline
    if first or markers or _MARKER.match(text):
        return gap
    return _ended_gap(gap, newline) + "---" + newline


def _ended_gap(gap: str, newline: str) -> str:
    return _ended(gap, newline) if gap else gap
