"""A document: its text, its data, its line comments, and edits that leave everything else as it was."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from reconciler.krm.yaml.borrowed import Borrowed, Original
from reconciler.krm.yaml.comments import Path, Span, beside_value, comment_place, find_comments, key_name, places_of
from reconciler.krm.yaml.compose import BREAK, Budget, compose
from reconciler.krm.yaml.edit import splice
from reconciler.krm.yaml.emit import emit
from reconciler.krm.yaml.error import YamlError
from reconciler.krm.yaml.heads import Head, above_entry, find_heads
from reconciler.krm.yaml.layout import Layout
from reconciler.krm.yaml.limits import YamlLimits
from reconciler.krm.yaml.nodes import AliasNode, MapNode, Node, SeqNode, is_merge
from reconciler.krm.yaml.rich import rewrite
from reconciler.krm.yaml.same import same
from reconciler.krm.yaml.splices import Declined, Splices
from reconciler.krm.yaml.style import find_style

# what we wrote ourselves grew from what was read within its limits
_OWN_LIMITS = YamlLimits(file_bytes=64 * 1024 * 1024, aliases=10_000, expanded_nodes=1_000_000)
# blanks at most before it: no other comment stands above an entry
_HAS_COMMENT_LINE = re.compile("(?:\\A|[\n\r\x85\u2028\u2029])[ \t]*#")
_LARGE_MAPPING = 40
_ENDS = ("\n", "\r", "\x85", "\u2028", "\u2029")
# directives with what stands between them, and the separator that ends them or stands beside the content
_OPENING = re.compile(r"((?:%[^\n]*\n|[ \t]*(?:#[^\n]*)?\r?\n)*)---(?=[ \t\r\n])[ \t]*(?:\r?\n)?")


@dataclass(frozen=True)
class Document:
    """One document of a file.

    `text` is its own text, without separators; `line` the number, from 1, of the line where that text begins in its
    file. `data` must not be changed in place: copy what you change, and share the rest.
    """

    text: str
    line: int
    root: Node = field(repr=False, compare=False)

    @classmethod
    def fresh(cls, data: Any) -> Document:
        """Return a new document for `data`; raises YamlError (YamlValue) as `emit` does."""
        return _own(emit(data))

    @property
    def data(self) -> Any:
        """The document as dict, list, str, int, float, bool and None."""
        return self.root.data

    @property
    def data_without_aliases(self) -> Any:
        """The document as a reader sees it that drops every field whose value is an alias (kpt.md D12)."""
        return _without_aliases(self.root) if "*" in self.text else self.data

    @cached_property
    def _layout(self) -> Layout:
        return Layout(self.text)

    @cached_property
    def _comments(self) -> Mapping[Path, Span]:
        return find_comments(self._layout, self.root)

    @cached_property
    def _heads(self) -> Mapping[Path, Head]:
        return find_heads(self._layout, self.root)

    def line_of(self, path: Path) -> int:
        """Return the line in the file of the key or item at `path`, or of the nearest thing around it that exists."""
        return self.place_of(path)[0]

    def place_of(self, path: Path) -> tuple[int, int]:
        """Return that line, and the column in it, counted from 1 by characters."""
        node, offset = self.root, self.root.start
        for segment in path:
            step = _step(node, segment)
            if step is None:
                break
            offset, node = step
        return self.line + self._layout.line(offset), self._layout.column(offset) + 1

    def comments(self) -> Mapping[Path, str]:
        """Return the line comments, `# …`, by the path of the value they belong to.

        That is the value they stand beside: a scalar, an alias, a closed flow collection; or the block collection that
        begins below the key or dash they follow. Comments on lines of their own are not line comments.
        """
        return {path: self.text[start:end] for path, (start, end) in self._comments.items()}

    def comment(self, path: Path) -> str | None:
        """Return the line comment of the value at `path`."""
        span = self._comments.get(path)
        return self.text[slice(*span)] if span else None

    def heads(self) -> Mapping[Path, tuple[str, ...]]:
        """Return the comments that have lines of their own right above an entry or item, by its path.

        Those above everything, such as a licence, are at path (), with the blank lines that set them apart.
        """
        if not _HAS_COMMENT_LINE.search(self.text):
            return {}
        return {path: lines for path, head in self._heads.items() if any(lines := head.lines(self._layout))}

    def lending(self, places: Mapping[Path, Original]) -> Borrowed:
        """Return what another document's edit may take over from this one; `places` are paths in the other's new data.

        New keys at these paths stand where they stand in the new data, even in front.
        """
        return Borrowed(self._layout, self.root, self.comments() if places else {}, places)

    def with_data(self, data: Any, borrowed: Borrowed | None = None) -> Document:
        """Return the document with the smallest edit that makes it mean `data`.

        Untouched lines, comments, quotes and the order of keys stay. New keys follow the key before them in `data`.
        Raises YamlError (YamlValue) for data that YAML cannot hold, (YamlTooDeep) for more than 100 levels.
        """
        if same(self.data, data):
            return self
        # the second try closes a last line without an end: nothing can be put behind a block scalar that has none
        attempts = (self, self._closed()) if not self.text.endswith(_ENDS) else (self,)
        for lender in (borrowed, None) if borrowed and borrowed.places else (None,):
            for attempt in attempts:
                if edited := attempt._spliced(data, lender or attempt.lending({})):
                    return edited
        return self._rewritten(data) or replace(_own(_with_head(self.text, self.root, emit(data))), line=self.line)

    def _spliced(self, data: Any, borrowed: Borrowed) -> Document | None:
        try:
            text = splice(self._layout, self.root, data, borrowed, has_aliases="*" in self.text)
            return self._checked(text, data)
        except Declined:
            return None

    def _rewritten(self, data: Any) -> Document | None:
        text = rewrite(self.text, data, find_style(self._layout, self.root))
        return self._checked(text, data) if text is not None else None

    def _checked(self, text: str, data: Any) -> Document | None:
        """Return the document for `text`, if that means `data`."""
        try:
            root = compose(text, Budget(_OWN_LIMITS))
        except YamlError:
            return None
        return Document(text, self.line, root) if root is not None and same(root.data, data) else None

    def with_comment(self, path: Path, comment: str | None) -> Document:
        """Return the document with another line comment, `# …`, at `path`, or with none; nothing else changes.

        Raises YamlError (YamlComment) when the path does not exist, or its value does not end its line.
        """
        if comment == self.comment(path):
            return self
        if comment is not None and (not comment.startswith("#") or BREAK.search(comment)):
            raise YamlError("YamlComment", f'a comment must begin with # and stay on its line, not "{comment[:80]}"')
        edited = self._commented({path: comment}, {})
        if edited is None:
            raise YamlError("YamlComment", f"the value at {path!r} has no place for a comment")
        return edited

    def with_comments(
        self,
        line_comments: Mapping[Path, str | None],
        above: Mapping[Path, tuple[str, ...]],
        charge: Callable[[int], None] | None = None,
    ) -> Document:
        """Return the document with other comments beside values and above entries, wherever there is room for them.

        `line_comments` is as of `comments`, None for none; `above` as of `heads`, () for none. `charge` is called with
        the number of characters before each parse of the text, and may raise.
        """
        if not line_comments and not above:
            return self
        if charge:
            charge(len(self.text))
        try:
            edited = self._commented(line_comments, above)
        except YamlError:
            edited = None
        if edited is not None or len(line_comments) + len(above) < 2:
            return edited or self
        # few have no room: they are found by halves, for every look is one at the whole document
        one, other = _halves(line_comments)
        first, second = _halves(above)
        if not (line_comments and above):
            return self.with_comments(one, first, charge).with_comments(other, second, charge)
        return self.with_comments(line_comments, {}, charge).with_comments({}, above, charge)

    def _commented(self, beside: Mapping[Path, str | None], above: Mapping[Path, tuple[str, ...]]) -> Document | None:
        """Return the document with these comments, None if it did not take them all.

        Raises YamlError (YamlComment) for paths that do not exist or have no place for a comment.
        """
        splices = Splices(self.text)
        for path, comment in beside.items():
            place = self._comments.get(path) or (comment_place(self._layout, self.root, path),) * 2
            splices.add(*beside_value(self.text, place, comment))
        for path, lines in above.items():
            if path in self._heads:
                splices.add(*above_entry(self._layout, self._heads[path], lines))
        try:
            edited = self._checked(splices.text(), self.data)
        except Declined:
            return None
        has_them = edited is not None and all(edited.comment(path) == beside[path] for path in beside)
        return edited if has_them and edited and _has_heads(edited, above) else None

    def with_meaning_of(self, other: Document, text: str) -> Document | None:
        """Return a document of this text with the meaning of `other`; None if the text is not YAML."""
        try:
            document = replace(_own(text), line=self.line)
            return document.with_data(other.data)
        except YamlError:
            return None

    def at_line(self, line: int) -> Document:
        """Return the same document as it stands further up or down in its file."""
        return self if line == self.line else replace(self, line=line)

    def ended(self, newline: str) -> Document:
        """Return the document with an end to its last line, so that something can follow."""
        return self if self.text.endswith(_ENDS) else self._closed(newline)

    def alone(self) -> Document:
        """Return the document as the whole of a file: without a separator, and with one line end at its end.

        What the text needs to mean the same stays: blank lines that are content, no line end where a block scalar has
        none, directives that tags need.
        """
        bare = self._with_text(_without_opening(self.text)) or self
        return (bare._with_text(_ended_once(bare.text)) or bare).at_line(1)

    def _with_text(self, text: str) -> Document | None:
        return self if text == self.text else self._checked(text, self.data)

    def _closed(self, newline: str = "\n") -> Document:
        document = _own(self.text + newline)
        return replace(document, line=self.line).with_data(self.data)


def read_document(text: str, line: int, budget: Budget) -> Document | None:
    """Return the document in `text`, which begins at `line` of its file; None when there is none.

    Raises YamlError with its line in the file.
    """
    try:
        root = compose(text, budget)
    except YamlError as error:
        raise error.below(line - 1) from error.__cause__
    return None if root is None else Document(text, line, root)


def _own(text: str) -> Document:
    document = read_document(text, 1, Budget(_OWN_LIMITS))
    if document is None:
        raise YamlError("YamlEdit", "the written document came out empty")
    return document


def _without_aliases(node: Node) -> Any:
    if isinstance(node, MapNode):
        own = ((key, value) for key, value in node.entries() if not isinstance(value, AliasNode))
        return {name: _without_aliases(value) for key, value in own if (name := key_name(key)) is not None}
    return list(map(_without_aliases, node.children)) if isinstance(node, SeqNode) else node.data


def _without_opening(text: str) -> str:
    opening = _OPENING.match(text) if text[:1] in "%-# \t\r\n" else None
    if opening is None:
        return text
    comments = (line for line in opening[1].splitlines(keepends=True) if not line.startswith("%"))
    return "".join(comments) + text[opening.end() :]


def _ended_once(text: str) -> str:
    content = text.rstrip(" \t\r\n")
    first, newline, _ = text[len(content) :].partition("\n")
    return content + first + (newline or ("\r\n" if "\r\n" in content else "\n"))


def _halves(mapping: Mapping[Path, Any]) -> tuple[dict[Path, Any], dict[Path, Any]]:
    entries = list(mapping.items())
    return dict(entries[: len(entries) // 2]), dict(entries[len(entries) // 2 :])


def _has_heads(document: Document, above: Mapping[Path, tuple[str, ...]]) -> bool:
    heads = document.heads()
    return all(heads.get(path, ()) == lines for path, lines in above.items())


def _with_head(text: str, root: Node, fresh: str) -> str:
    """Return the fresh text below the comments that stood above everything, such as a licence."""
    head = text[: root.start]
    lines = head.splitlines(keepends=True)
    return "".join(line for line in lines if line.endswith("\n") and not line.strip().startswith(("-", "%"))) + fresh


def _step(node: Node, segment: str | int) -> tuple[int, Node] | None:
    match node, segment:
        case SeqNode(), int() if 0 <= segment < len(node.children):
            return node.children[segment].start, node.children[segment]
        case MapNode(), str():
            if len(node.children) > _LARGE_MAPPING:
                # a caller may look up every entry of a large mapping, which must not take quadratic time
                node.places = node.places or places_of(node)
                place = node.places.get(segment)
                if place is not None:
                    return node.children[place - 1].start, node.children[place]
            merge: tuple[int, Node] | None = None
            for key, value in node.entries():
                if is_merge(key):
                    merge = key.start, key
                elif key_name(key) == segment:
                    return key.start, value
            return merge if segment in node.data else None
    return None
