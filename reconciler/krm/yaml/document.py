"""A YAML document with its text, data and comments. An edit changes only the necessary parts of the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from reconciler.krm.yaml.comments import (
    DataPath,
    LeadingComments,
    create_leading_comments_edit,
    create_line_comment_edit,
    find_comment_offset,
    find_comments,
    find_leading_comments,
    find_node,
    get_key_name,
    index_values,
)
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.krm.yaml.compose import LINE_BREAK, YamlBudget, compose
from reconciler.krm.yaml.edit import edit_text
from reconciler.krm.yaml.emit import emit
from reconciler.krm.yaml.errors import YamlError, YamlLimits
from reconciler.krm.yaml.layout import TextLayout, TextSpan, detect_indent_style
from reconciler.krm.yaml.nodes import AliasNode, MappingNode, ScalarNode, SequenceNode, YamlNode, is_merge_key
from reconciler.krm.yaml.reuse_formatting import FormattingSource, ReusedFormatting
from reconciler.krm.yaml.ruamel_fallback import rewrite_with_ruamel
from reconciler.krm.yaml.text_edits import TextSplices, UnsupportedEditError
from reconciler.lazy_dataclasses import dataclass, field, replace

# Use higher limits for written documents, because an edit can make a document larger than the limits for user input.
_LIMITS_OF_WRITTEN_DOCUMENTS = YamlLimits(file_bytes=64 * 1024 * 1024, aliases=10_000, expanded_nodes=1_000_000)
# Match a line that contains only a comment. A text without such a line has no leading comments.
_HAS_COMMENT_LINE = re.compile("(?:\\A|[\n\r\x85\u2028\u2029])[ \t]*#")
_LARGE_MAPPING = 40
_LINE_ENDS = ("\n", "\r", "\x85", "\u2028", "\u2029")
# Match directives and comment lines, and then the line `---`.
_DOCUMENT_START = re.compile(r"((?:%[^\n]*\n|[ \t]*(?:#[^\n]*)?\r?\n)*)---(?=[ \t\r\n])[ \t]*(?:\r?\n)?")


@dataclass(frozen=True)
class Document:
    """One document of a YAML file.

    Attributes:
        text: The text of the document without `---` and `...` lines.
        line: Line number in the file, from 1, where `text` begins.

    Do not change `data` in place. Copy the changed parts. The copy can share all other parts with `data`.
    """

    text: str
    line: int
    root: YamlNode = field(repr=False, compare=False)

    @classmethod
    def from_data(cls, data: Any) -> Document:
        """Create a document that contains `data`.

        Raises:
            YamlError: YAML does not support the data (code YamlValue), or `data` has more than 100 levels (code
                YamlTooDeep).
        """
        return _parse_written(emit(data))

    @property
    def data(self) -> Any:
        """The content of the document, with the types dict, list, str, int, float, bool and None."""
        return self.root.data

    @property
    def data_without_aliases(self) -> Any:
        """The content of the document without the fields whose value is an alias. kpt removes these fields."""
        return _remove_aliases(self.root) if "*" in self.text else self.data

    @cached_property
    def _layout(self) -> TextLayout:
        return TextLayout(self.text)

    @cached_property
    def _comments(self) -> Mapping[DataPath, TextSpan]:
        return find_comments(self._layout, self.root)

    @cached_property
    def _leading_comments(self) -> Mapping[DataPath, LeadingComments]:
        return find_leading_comments(self._layout, self.root)

    def find_line(self, path: DataPath) -> int:
        """Return the line number in the file of the key or item at `path`.

        If `path` does not exist, return the line number of the last existing key or item on the path.
        """
        return self.find_line_and_column(path)[0]

    def find_line_and_column(self, path: DataPath) -> tuple[int, int]:
        """Return line number and column number, both from 1, of the key or item at `path` in the file.

        If `path` does not exist, return the position of the last existing key or item on the path.
        """
        node, offset = self.root, self.root.start
        for segment in path:
            step = _find_child(node, segment)
            if step is None:
                break
            offset, node = step
        return self.line + self._layout.line(offset), self._layout.column(offset) + 1

    def find_text_offset(self, path: DataPath) -> int:
        """Return the number of lines in the file before the first line of the literal block scalar (`|`) at `path`.

        Return 0 for any other value, because only the lines of a literal block scalar are also lines of the file.
        """
        try:
            node, _ = find_node(self.root, path)
        except KeyError:
            return 0
        is_literal = isinstance(node, ScalarNode) and node.style == "|"
        return self.line + self._layout.line(node.start) if is_literal else 0

    def comments(self) -> Mapping[DataPath, str]:
        """Return a mapping from the path of a value to its line comment, with the leading "#".

        A line comment follows a scalar or flow collection on the same line. A line comment after a key or dash belongs
        to the block collection below the key or dash. Comments on separate lines are not line comments.
        """
        return {path: self.text[start:end] for path, (start, end) in self._comments.items()}

    def comment(self, path: DataPath) -> str | None:
        """Return the line comment of the value at `path`, with the leading "#".

        Return None if there is no line comment.
        """
        span = self._comments.get(path)
        return self.text[slice(*span)] if span else None

    def leading_comments(self) -> Mapping[DataPath, tuple[str, ...]]:
        """Return the comments on the lines directly above each entry and item, by the path of the entry or item.

        Comments above the whole document, such as a license, have the path (). They include the blank lines between the
        comments and the first entry.
        """
        if not _HAS_COMMENT_LINE.search(self.text):
            return {}
        return {
            path: lines for path, block in self._leading_comments.items() if any(lines := block.lines(self._layout))
        }

    def reuse_formatting(self, sources: Mapping[DataPath, FormattingSource]) -> ReusedFormatting:
        """Return the formatting of values in this document for use in another document.

        Pass the result to `with_data` of the other document.

        Args:
            sources: Maps the path of a new value in the other document to the value in this document whose formatting
                is copied.
        """
        return ReusedFormatting(self._layout, self.root, self.comments() if sources else {}, sources)

    def with_data(self, data: Any, formatting: ReusedFormatting | None = None) -> Document:
        """Return a copy of the document that contains `data`. Change as little text as possible.

        Other lines, comments, quotes and the order of keys are kept. A new key is inserted after the key that precedes
        it in `data`. If `formatting` is set, new values copy their formatting from another document.

        Raises:
            YamlError: YAML does not support the data (code YamlValue), or `data` has more than 100 levels (code
                YamlTooDeep).
        """
        if is_equal_data(self.data, data):
            return self
        # Try again with a line end at the end of the text, because no text can follow a block scalar without a final
        # line end.
        attempts = (self, self._end_last_line()) if not self.text.endswith(_LINE_ENDS) else (self,)
        for source in (formatting, None) if formatting and formatting.sources else (None,):
            for attempt in attempts:
                if edited := attempt._edit(data, source or attempt.reuse_formatting({})):
                    return edited
        return self._rewrite(data) or replace(
            _parse_written(_keep_top_comments(self.text, self.root, emit(data))), line=self.line
        )

    def _edit(self, data: Any, formatting: ReusedFormatting) -> Document | None:
        try:
            text = edit_text(self._layout, self.root, data, formatting, has_aliases="*" in self.text)
            return self._parse_checked(text, data)
        except UnsupportedEditError:
            return None

    def _rewrite(self, data: Any) -> Document | None:
        text = rewrite_with_ruamel(self.text, data, detect_indent_style(self._layout, self.root))
        return self._parse_checked(text, data) if text is not None else None

    def _parse_checked(self, text: str, data: Any) -> Document | None:
        """Parse `text`. Return None if the text is invalid or does not contain `data`."""
        try:
            root = compose(text, YamlBudget(_LIMITS_OF_WRITTEN_DOCUMENTS))
        except YamlError:
            return None
        return Document(text, self.line, root) if root is not None and is_equal_data(root.data, data) else None

    def with_comment(self, path: DataPath, comment: str | None) -> Document:
        """Return a copy of the document in which the value at `path` has this line comment.

        Remove the line comment if `comment` is None.

        Raises:
            YamlError: There is no value at `path`, or other text follows the value on its line (code YamlComment).
        """
        if comment == self.comment(path):
            return self
        if comment is not None and (not comment.startswith("#") or LINE_BREAK.search(comment)):
            raise YamlError(
                "YamlComment", f'a comment must begin with # and must not contain a line end, but is "{comment[:80]}"'
            )
        edited = self._set_comments({path: comment}, {})
        if edited is None:
            raise YamlError("YamlComment", f"the value at {path!r} does not allow a line comment")
        return edited

    def with_comments(
        self,
        line_comments: Mapping[DataPath, str | None],
        above: Mapping[DataPath, tuple[str, ...]],
        before_parse: Callable[[int], None] | None = None,
    ) -> Document:
        """Return a copy of the document with new line comments and leading comments at the given paths.

        A comment that YAML does not allow at its path is skipped.

        Args:
            line_comments: Maps paths to line comments with the leading "#". None removes a line comment.
            above: Maps paths of fields or list items to the comment lines above them. () removes these lines.
            before_parse: Receives the text length before each parse. It can raise an exception to stop.
        """
        if not line_comments and not above:
            return self
        if before_parse:
            before_parse(len(self.text))
        try:
            edited = self._set_comments(line_comments, above)
        except YamlError:
            edited = None
        if edited is not None or len(line_comments) + len(above) < 2:
            return edited or self
        # Use bisection to find the comments that cannot be written, because each attempt parses the whole document.
        first_line_comments, second_line_comments = _split_in_half(line_comments)
        first_above, second_above = _split_in_half(above)
        if not (line_comments and above):
            first = self.with_comments(first_line_comments, first_above, before_parse)
            return first.with_comments(second_line_comments, second_above, before_parse)
        return self.with_comments(line_comments, {}, before_parse).with_comments({}, above, before_parse)

    def _set_comments(
        self, line_comments: Mapping[DataPath, str | None], above: Mapping[DataPath, tuple[str, ...]]
    ) -> Document | None:
        """Return a copy of the document with new comments. Return None if one of them cannot be written.

        Raises:
            YamlError: There is no value at a path, or other text follows the value on its line (code YamlComment).
        """
        splices = TextSplices(self.text)
        for path, comment in line_comments.items():
            span = self._comments.get(path) or (find_comment_offset(self._layout, self.root, path),) * 2
            splices.add(*create_line_comment_edit(self.text, span, comment))
        for path, lines in above.items():
            if path in self._leading_comments:
                splices.add(*create_leading_comments_edit(self._layout, self._leading_comments[path], lines))
        try:
            edited = self._parse_checked(splices.text(), self.data)
        except UnsupportedEditError:
            return None
        has_comments = edited is not None and all(edited.comment(path) == line_comments[path] for path in line_comments)
        return edited if has_comments and edited and _has_leading_comments(edited, above) else None

    def with_data_of(self, other: Document, text: str) -> Document | None:
        """Parse `text`, and edit the result so that it contains the data of `other`.

        Return None if `text` is not valid YAML.
        """
        try:
            document = replace(_parse_written(text), line=self.line)
            return document.with_data(other.data)
        except YamlError:
            return None

    def at_line(self, line: int) -> Document:
        """Return a copy of the document whose text begins at line `line` of its file."""
        return self if line == self.line else replace(self, line=line)

    def with_final_newline(self, newline: str) -> Document:
        """Return a copy of the document whose text ends with a line end, so that other text can follow."""
        return self if self.text.endswith(_LINE_ENDS) else self._end_last_line(newline)

    def as_only_document(self) -> Document:
        """Return a copy of the document for a file without other documents.

        Remove the line `---` before the document, but keep directives that define tags. End the text with exactly one
        line end, unless this would change the data: line ends can be part of a block scalar.
        """
        document = self.with_equal_text(_remove_document_start(self.text)) or self
        return (document.with_equal_text(_end_with_one_newline(document.text)) or document).at_line(1)

    def with_equal_text(self, text: str) -> Document | None:
        """Return a copy of the document with this text. Return None if `text` does not contain the same data."""
        return self if text == self.text else self._parse_checked(text, self.data)

    def _end_last_line(self, newline: str = "\n") -> Document:
        document = _parse_written(self.text + newline)
        return replace(document, line=self.line).with_data(self.data)


def read_document(text: str, line: int, budget: YamlBudget) -> Document | None:
    """Parse the document in `text`. Return None if the document is empty.

    `line` is the line number in the file where `text` begins.

    Raises:
        YamlError: The text is invalid or exceeds a limit. The line number is relative to the start of the file.
    """
    try:
        root = compose(text, budget)
    except YamlError as error:
        raise error.with_line_offset(line - 1) from error.__cause__
    return None if root is None else Document(text, line, root)


def _parse_written(text: str) -> Document:
    document = read_document(text, 1, YamlBudget(_LIMITS_OF_WRITTEN_DOCUMENTS))
    if document is None:
        raise YamlError("YamlEdit", "the written document is empty")
    return document


def _remove_aliases(node: YamlNode) -> Any:
    if isinstance(node, MappingNode):
        entries = ((key, value) for key, value in node.entries() if not isinstance(value, AliasNode))
        return {name: _remove_aliases(value) for key, value in entries if (name := get_key_name(key)) is not None}
    return list(map(_remove_aliases, node.children)) if isinstance(node, SequenceNode) else node.data


def _remove_document_start(text: str) -> str:
    match = _DOCUMENT_START.match(text) if text[:1] in "%-# \t\r\n" else None
    if match is None:
        return text
    comments = (line for line in match[1].splitlines(keepends=True) if not line.startswith("%"))
    return "".join(comments) + text[match.end() :]


def _end_with_one_newline(text: str) -> str:
    content = text.rstrip(" \t\r\n")
    first, newline, _ = text[len(content) :].partition("\n")
    return content + first + (newline or ("\r\n" if "\r\n" in content else "\n"))


def _split_in_half(mapping: Mapping[DataPath, Any]) -> tuple[dict[DataPath, Any], dict[DataPath, Any]]:
    entries = list(mapping.items())
    return dict(entries[: len(entries) // 2]), dict(entries[len(entries) // 2 :])


def _has_leading_comments(document: Document, above: Mapping[DataPath, tuple[str, ...]]) -> bool:
    comments = document.leading_comments()
    return all(comments.get(path, ()) == lines for path, lines in above.items())


def _keep_top_comments(text: str, root: YamlNode, new_text: str) -> str:
    """Return `new_text`, preceded by the comments at the top of the old text, such as a license."""
    lines = text[: root.start].splitlines(keepends=True)
    return "".join(line for line in lines if line.endswith("\n") and not line.strip().startswith(("-", "%"))) + new_text


def _find_child(node: YamlNode, segment: str | int) -> tuple[int, YamlNode] | None:
    match node, segment:
        case SequenceNode(), int() if 0 <= segment < len(node.children):
            return node.children[segment].start, node.children[segment]
        case MappingNode(), str():
            if len(node.children) > _LARGE_MAPPING:
                # Use an index for large mappings. Otherwise a caller that looks up every entry would need quadratic
                # time.
                node.value_indexes = node.value_indexes or index_values(node)
                index = node.value_indexes.get(segment)
                if index is not None:
                    return node.children[index - 1].start, node.children[index]
            merge: tuple[int, YamlNode] | None = None
            for key, value in node.entries():
                if is_merge_key(key):
                    merge = key.start, key
                elif get_key_name(key) == segment:
                    return key.start, value
            return merge if segment in node.data else None
    return None
