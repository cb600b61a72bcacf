"""Edits as splices: the difference between a document's nodes and the data it should mean, in spans of its text.

Everything not named by a splice keeps its characters. What has no safe splice raises Declined; whether the spliced text
means what it should is for the caller to check (document.py), who reads it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from reconciler.krm.yaml.align import Pair, align
from reconciler.krm.yaml.comments import key_name
from reconciler.krm.yaml.emit import Style, entry_lines, flow_text, indented, item_lines, key_line, value_lines
from reconciler.krm.yaml.layout import PROPERTIES, REST, Layout
from reconciler.krm.yaml.nodes import TAG_PREFIX, AliasNode, MapNode, Node, ScalarNode, SeqNode, is_block, is_merge
from reconciler.krm.yaml.same import same
from reconciler.krm.yaml.scalar import inline_text, json_text

_MISSING = object()
_FLOW_REST = re.compile(r"[ \t]*(,?)[ \t]*#")


class Declined(Exception):  # noqa: N818 - nothing is wrong; another way is taken
    """The splicer has no safe edit for this; the caller takes the next way."""


def splice(layout: Layout, root: Node, data: Any, *, has_aliases: bool) -> str:
    """Return the text with the smallest edits that make it mean `data`.

    Raises Declined where no splice is known to be safe.
    """
    editor = Editor(layout, root, has_aliases=has_aliases)
    editor.edit(root, data, Slot(0, -1, "root"))
    return editor.text()


class Slot:
    """Where a value stands: behind which character, in a collection of which column."""

    __slots__ = ("after", "column", "kind")

    def __init__(self, after: int, column: int, kind: str) -> None:
        self.after = after
        self.column = column
        self.kind = kind


class Editor:
    """Gathers the splices of one edit."""

    def __init__(self, layout: Layout, root: Node, *, has_aliases: bool) -> None:
        self.layout = layout
        self.source = layout.text
        self.has_aliases = has_aliases
        self.json = _is_json(root, layout.text)
        self.style = find_style(layout, root)
        self.splices: list[tuple[int, int, str]] = []
        self.now: dict[int, Any] = {}

    def text(self) -> str:
        """Return the text with all splices made."""
        parts: list[str] = []
        position = 0
        for start, end, text in sorted(self.splices, key=lambda it: it[0]):
            if start < position:
                raise Declined("two edits overlap")
            parts += (self.source[position:start], text)
            position = end
        return "".join([*parts, self.source[position:]])

    # -- values

    def edit(self, node: Node, new: Any, slot: Slot) -> None:
        """Make `node` mean `new`."""
        if isinstance(node, AliasNode):
            if not same(self.now.get(id(node.target), _MISSING), new):
                self.replace(node, new, slot)
            return
        if not self.has_aliases and same(node.data, new):
            return
        if isinstance(node, MapNode) and isinstance(new, dict) and new and node.children:
            self._edit_map(node, new, slot)
        elif isinstance(node, SeqNode) and isinstance(new, list) and new and node.children:
            self._edit_seq(node, new, slot)
        elif not same(node.data, new):
            self.replace(node, new, slot)
        if node.anchor is not None:
            self.now[id(node)] = new

    def replace(self, node: Node, new: Any, slot: Slot) -> None:
        """Write `new` in place of the whole of `node`."""
        if slot.kind == "flow" or self.json:
            self.splices.append((self._replaced_start(node), node.end, self._inline(node, new)))
            return
        head, body = value_lines(new, self.style, node.style if isinstance(node, ScalarNode) else "")
        if slot.kind == "root":
            self._replace_root(node, head, body)
        elif not body and not is_block(node) and not (isinstance(node, ScalarNode) and node.style in ("|", ">")):
            start = self._replaced_start(node)
            space = "" if start < node.end or self.source[start - 1 : start] in (" ", "\t") else " "
            self.splices.append((start, node.end, space + head))
        else:
            self._replace_lines(node, new, head, body, slot)

    def _replaced_start(self, node: Node) -> int:
        """Return where the replaced text begins; anchors and tags of other makes stay (kpt keeps them)."""
        if isinstance(node, AliasNode) or (node.anchor is None and node.tag is None):
            return node.start
        if node.tag is not None and (node.tag.startswith(TAG_PREFIX) or node.tag == "!"):
            if node.anchor is not None:
                raise Declined("a core tag beside an anchor")
            return node.start
        return self.layout.content(node)

    def _inline(self, node: Node, new: Any) -> str:
        if self.json:
            return json_text(new, None)
        if isinstance(new, dict | list):
            return flow_text(new)
        style = node.style if isinstance(node, ScalarNode) else ""
        text = inline_text(new, flow=True, style=style)
        return text if node.end > node.start or self.source[node.start - 1] in " \t" else f" {text}"

    def _replace_root(self, node: Node, head: str, body: list[str]) -> None:
        if not self.layout.begins_line(node.start) or node.start != self.layout.content(node):
            raise Declined("the root shares its line")
        lines = [head, *indented(body, 2)] if head else body
        self.splices.append((node.start, self.layout.tail(node), self._lines(lines, 0).lstrip("\r\n")))

    def _replace_lines(self, node: Node, new: Any, head: str, body: list[str], slot: Slot) -> None:
        """Replace everything between the indicator and the end of the node's last line, but for the line comment."""
        end = self.layout.line_end(self.layout.tail(node))
        comment = self._line_comment(node, slot)
        kept = self._kept_properties(node)
        first = "".join(f" {part}" for part in (kept, head) if part)
        if head or slot.kind == "map":
            inner = self._inner_column(new, slot)
            self.splices.append((slot.after, end, first + comment + self._lines(body, inner)))
        elif kept or comment:
            self.splices.append((slot.after, end, first + comment + self._lines(body, slot.column + 2)))
        else:
            lines = self._lines(body, slot.column + 2)
            self.splices.append((slot.after, end, " " + lines.lstrip("\r\n ")))

    def _inner_column(self, new: Any, slot: Slot) -> int:
        if slot.kind == "seq":
            return slot.column + 2
        return slot.column + (0 if isinstance(new, list) and self.style.compact else self.style.step)

    def _kept_properties(self, node: Node) -> str:
        start = self._replaced_start(node)
        if isinstance(node, AliasNode) or start == node.start:
            return ""
        return self.source[node.start : self.layout.properties_end(node)]

    def _line_comment(self, node: Node, slot: Slot) -> str:
        """Return the line comment of a value that is about to be rewritten, with the blanks before it."""
        offset = node.end
        if is_block(node):
            line_end = self.layout.line_end(slot.after)
            offset = slot.after if node.start > line_end else self.layout.properties_end(node)
            if self.layout.content(node) < line_end and not self.source[offset:line_end].strip().startswith("#"):
                return ""
        elif isinstance(node, ScalarNode) and node.style in ("|", ">"):
            header = re.compile(r"[|>][0-9+-]*").match(self.source, self.layout.content(node))
            offset = header.end() if header else node.end
        rest = REST.match(self.source, offset)
        if rest is None:
            raise Declined("something stands behind the value")
        return rest[0].rstrip(" \t\r\n") if rest[1] else ""

    def _lines(self, lines: Iterable[str], column: int) -> str:
        return "".join(self.layout.newline + line for line in indented(list(lines), column))

    # -- mappings

    def _edit_map(self, node: MapNode, new: dict[str, Any], slot: Slot) -> None:
        entries = list(node.entries())
        names = [key_name(key) for key, _ in entries]
        kept = [name in new if name is not None else self._merge_holds(value, new, names) for (_, value), name in zip(entries, names, strict=True)]
        if not any(kept):
            self.replace(node, new, slot)
            return
        column = self.layout.column(self._first_start(node))
        for (key, value), name, keep in zip(entries, names, kept, strict=True):
            if keep and name is not None:
                self.edit(value, new[name], self._value_slot(node, key, value, column))
                if key.anchor is not None:
                    self.now[id(key)] = key.data
            elif keep:
                self.edit(value, value.data, Slot(0, 0, "flow"))
        added = self._added(node, new, names, kept)
        if node.flow:
            self._splice_flow(node, [(k.start, max(k.end, v.end)) for k, v in entries], kept, [(i, [self._flow_entry(name, new[name]) for name in group]) for i, group in added])
        else:
            self._remove(node, [(key.start, self.layout.tail(value)) for key, value in entries], kept, column)
            for index, group in added:
                lines = [line for name in group for line in entry_lines(name, new[name], self.style)]
                self._insert_after(self.layout.tail(entries[index][1]), lines, column)

    def _value_slot(self, node: MapNode, key: Node, value: Node, column: int) -> Slot:
        if node.flow:
            return Slot(0, 0, "flow")
        after = self.layout.after_colon(key)
        if after is None:
            if isinstance(value, ScalarNode | AliasNode) or value.flow:
                return Slot(0, 0, "flow")
            raise Declined("a key with a question mark")
        return Slot(after, column, "map")

    def _merge_holds(self, value: Node, new: dict[str, Any], names: list[str | None]) -> bool:
        """Tell whether what the merge key brings is all still wanted, if only under other values."""
        sources = value.children if isinstance(value, SeqNode) else [value]
        for source in sources:
            now = self.now.get(id(source.target), {}) if isinstance(source, AliasNode) else source.data
            if not isinstance(now, dict) or any(name not in new and name not in names for name in now):
                return False
        return True

    def _merged_now(self, node: MapNode) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for key, value in node.entries():
            if is_merge(key):
                for source in value.children if isinstance(value, SeqNode) else [value]:
                    now = self.now.get(id(source.target), {}) if isinstance(source, AliasNode) else source.data
                    merged = now | merged
        return merged

    def _added(self, node: MapNode, new: dict[str, Any], names: list[str | None], kept: list[bool]) -> list[tuple[int, list[str]]]:
        """Return (number of the entry to stand behind, names), for the names that need an entry of their own."""
        merges = any(keep and name is None for name, keep in zip(names, kept, strict=True))
        merged = self._merged_now(node) if merges else {}
        places = {name: index for index, name in enumerate(names) if name is not None and kept[index]}
        last = max(index for index, keep in enumerate(kept) if keep)
        added: dict[int, list[str]] = {}
        place = last
        for name in new:
            if name in places:
                place = places[name]
            elif name not in merged or not same(merged[name], new[name]):
                added.setdefault(place, []).append(name)
        return list(added.items())

    def _flow_entry(self, name: str, value: Any) -> str:
        if self.json:
            return f"{json_text(name, None)}: {json_text(value, None)}"
        return flow_text({name: value})[1:-1]

    def _first_start(self, node: MapNode | SeqNode) -> int:
        return node.children[0].start if isinstance(node, MapNode) else self.layout.content(node)

    # -- sequences

    def _edit_seq(self, node: SeqNode, new: list[Any], slot: Slot) -> None:
        pairs = align(node.data, new)
        kept = [False] * len(node.children)
        for old, wanted in pairs:
            if old is not None:
                kept[old] = wanted is not None
        if not any(kept):
            self.replace(node, new, slot)
            return
        if node.flow:
            self._edit_flow_seq(node, new, pairs, kept)
        else:
            self._edit_block_seq(node, new, pairs, kept)

    def _edit_flow_seq(self, node: SeqNode, new: list[Any], pairs: list[Pair], kept: list[bool]) -> None:
        for old, wanted in pairs:
            if old is not None and wanted is not None:
                self.edit(node.children[old], new[wanted], Slot(0, 0, "flow"))
        write = (lambda value: json_text(value, None)) if self.json else flow_text
        groups = [(index, [write(new[j]) for j in wanted]) for index, wanted in _groups(pairs)]
        self._splice_flow(node, [(child.start, child.end) for child in node.children], kept, groups)

    def _edit_block_seq(self, node: SeqNode, new: list[Any], pairs: list[Pair], kept: list[bool]) -> None:
        after = [self.layout.after_dash(node, index) for index in range(len(node.children))]
        dashes = [offset - 1 for offset in after if offset is not None]
        if len(dashes) < len(after):
            raise Declined("a dash that was not found")
        column = self.layout.column(dashes[0])
        for old, wanted in pairs:
            if old is not None and wanted is not None:
                self.edit(node.children[old], new[wanted], Slot(dashes[old] + 1, column, "seq"))
        spans = [(dash, self.layout.tail(child)) for dash, child in zip(dashes, node.children, strict=True)]
        self._remove(node, spans, kept, column)
        for index, wanted in _groups(pairs):
            lines = [line for j in wanted for line in item_lines(new[j], self.style)]
            if index >= 0:
                self._insert_after(spans[index][1], lines, column)
            else:
                self._insert_before(spans[kept.index(True)][0], lines, column)

    # -- lines

    def _remove(self, node: Node, spans: list[tuple[int, int]], kept: list[bool], column: int) -> None:
        """Take out the lines of the entries or items that are not kept, with the comments right above them."""
        index = 0
        while index < len(spans):
            stop = index + 1
            if not kept[index]:
                if not self.layout.begins_line(spans[index][0]):
                    while not kept[stop]:
                        stop += 1
                    self._pull_up(spans[index][0], spans[stop - 1][1], spans[stop][0])
                else:
                    self._remove_lines(*spans[index], column, keep_head=index == 0 and column == 0)
            index = stop

    def _pull_up(self, start: int, tail: int, following: int) -> None:
        """Take out the first entry of a mapping that shares the line of its dash."""
        line_end = self.layout.line_end(tail)
        if self.source[line_end:following].strip():
            while self.source[start - 1] in " \t":
                start -= 1
            self.splices.append((start, line_end, ""))
        else:
            self.splices.append((start, following, ""))

    def _remove_lines(self, start: int, tail: int, column: int, *, keep_head: bool) -> None:
        first, last = self.layout.line(start), self.layout.line(tail)
        while not keep_head and first > 0 and self._is_comment(first - 1, column, column):
            first -= 1
        last = self._feet(last, column)
        starts, ends = self.layout.starts, self.layout.ends
        if first > 0:
            self.splices.append((ends[first - 1], ends[last], ""))
        else:
            self.splices.append((0, starts[last + 1] if last + 1 < len(starts) else ends[last], ""))

    def _is_comment(self, number: int, least: int, most: int) -> bool:
        text = self.layout.line_text(number)
        stripped = text.lstrip(" ")
        return stripped.startswith("#") and least <= len(text) - len(stripped) <= most

    def _feet(self, last: int, column: int) -> int:
        """Return the last of the comment lines below line `last` that are indented deeper than `column`."""
        while last + 1 < len(self.layout.starts) and self._is_comment(last + 1, column + 1, 1_000_000):
            last += 1
        return last

    def _insert_after(self, tail: int, lines: list[str], column: int) -> None:
        offset = self.layout.ends[self._feet(self.layout.line(tail), column)]
        self.splices.append((offset, offset, self._lines(lines, column)))

    def _insert_before(self, start: int, lines: list[str], column: int) -> None:
        if not self.layout.begins_line(start):
            raise Declined("a first item on its parent's line")
        first = self.layout.line(start)
        while first > 0 and self._is_comment(first - 1, column, column) and column > 0:
            first -= 1
        text = self._lines(lines, column)
        if first > 0:
            self.splices.append((self.layout.ends[first - 1], self.layout.ends[first - 1], text))
        else:
            self.splices.append((0, 0, text.lstrip("\r\n") + self.layout.newline))

    # -- flow collections

    def _splice_flow(self, node: MapNode | SeqNode, spans: list[tuple[int, int]], kept: list[bool], added: list[tuple[int, list[str]]]) -> None:
        if added or not all(kept):
            if self.source[self.layout.content(node)] not in "[{":
                raise Declined("a pair without braces")
            self._remove_flow(spans, kept)
        for index, texts in added:
            self._insert_flow(spans, kept, index, texts)

    def _remove_flow(self, spans: list[tuple[int, int]], kept: list[bool]) -> None:
        first = kept.index(True)
        if first:
            self._cut(spans[0][0], spans[first][0], spans[:first])
        for index in range(first, len(spans)):
            if not kept[index]:
                self._cut(spans[index - 1][1], spans[index][1], [spans[index]])

    def _cut(self, start: int, end: int, spans: list[tuple[int, int]]) -> None:
        rest, position = "", start
        for span in spans:
            rest += self.source[position : max(position, span[0])]
            position = span[1]
        if "#" in rest + self.source[position:end]:
            raise Declined("a comment among the items of a flow collection")
        self.splices.append((start, end, ""))

    def _insert_flow(self, spans: list[tuple[int, int]], kept: list[bool], index: int, texts: list[str]) -> None:
        if index < 0:
            start = spans[kept.index(True)][0]
            gap = self._flow_gap(start)
            self.splices.append((start, start, "".join(f"{text},{gap}" for text in texts)))
            return
        self._insert_behind(spans[index][1], self._flow_gap(spans[index][0]), texts)

    def _insert_behind(self, end: int, gap: str, texts: list[str]) -> None:
        rest = _FLOW_REST.match(self.source, end)
        if rest is None:
            self.splices.append((end, end, "".join(f",{gap}{text}" for text in texts)))
            return
        # a comment ends the line: it stays with its item
        comma, line_end = "" if rest[1] else ",", self.layout.line_end(end)
        below = self.layout.newline + "  " if gap == " " else gap
        text = f",{below}".join(texts) + ("," if rest[1] else "")
        self.splices += [(end, end, comma), (line_end, line_end, below + text)]

    def _flow_gap(self, start: int) -> str:
        """Return what stands between two items: a blank, or a line end where items have lines of their own."""
        if not self.layout.begins_line(start):
            return " "
        return self.layout.newline + self.source[self.layout.line_start(start) : start]


def _groups(pairs: list[Pair]) -> list[tuple[int, list[int]]]:
    """Return (old index to stand behind, or -1, new indexes) of the added items."""
    groups: dict[int, list[int]] = {}
    last = -1
    for old, wanted in pairs:
        if old is None and wanted is not None:
            groups.setdefault(last, []).append(wanted)
        elif old is not None and wanted is not None:
            last = old
    return list(groups.items())


def _is_json(root: Node, text: str) -> bool:
    """Tell whether the document is written as JSON, so that it must stay JSON."""
    if isinstance(root, MapNode) and root.flow and root.children:
        return isinstance(key := root.children[0], ScalarNode) and key.style == '"'
    return isinstance(root, SeqNode) and root.flow and any(_is_json(child, text) for child in root.children)


def find_style(layout: Layout, root: Node) -> Style:
    """Return how the document indents, after the first nested mapping and the first sequence in a mapping."""
    step: int | None = None
    compact: bool | None = None
    stack: list[Node] = [root]
    while stack and (step is None or compact is None):
        node = stack.pop()
        if isinstance(node, MapNode) and not node.flow:
            for key, value in node.entries():
                inner = _inner(layout, key, value)
                if inner is not None and isinstance(value, MapNode) and step is None:
                    step = inner
                elif inner is not None and isinstance(value, SeqNode) and compact is None:
                    compact = inner == 0
        stack += reversed(getattr(node, "children", ()))
    return Style(step or 2, compact is not False)


def _inner(layout: Layout, key: Node, value: Node) -> int | None:
    if not is_block(value) or isinstance(value, ScalarNode | AliasNode):
        return None
    first = value.children[0].start if isinstance(value, MapNode) else layout.properties_end(value)
    while isinstance(value, SeqNode) and layout.text[first] != "-":
        if not (match := PROPERTIES.match(layout.text, first + 1)):
            return None
        first = match.end()
    return layout.column(first) - layout.column(key.start)
