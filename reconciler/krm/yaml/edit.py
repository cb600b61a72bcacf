"""Edits as splices: the difference between a document's nodes and the data it should mean, in spans of its text.

Everything not named by a splice keeps its characters. What has no safe splice raises Declined; whether the spliced text
means what it should is for the caller to check (document.py), who reads it again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Literal

from reconciler.krm.yaml.align import Pair, align, fingerprint
from reconciler.krm.yaml.borrowed import Borrowed, without_blank_head
from reconciler.krm.yaml.comments import Path, Span, key_name
from reconciler.krm.yaml.emit import DEFAULT_STYLE, Style, flow_text
from reconciler.krm.yaml.flow import FlowItems
from reconciler.krm.yaml.layout import REST, Layout
from reconciler.krm.yaml.nodes import TAG_PREFIX, AliasNode, MapNode, Node, ScalarNode, SeqNode, is_block, is_merge
from reconciler.krm.yaml.rows import Rows
from reconciler.krm.yaml.same import same
from reconciler.krm.yaml.scalar import inline_text, json_text
from reconciler.krm.yaml.splices import Declined, Splices
from reconciler.krm.yaml.standing import standing_lines
from reconciler.krm.yaml.style import find_style, is_json

_MISSING = object()
_BLOCK_HEADER = re.compile(r"[|>][0-9+-]*")


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a value stands: behind the colon or dash that ends at `after`, in a collection of that column.

    A flow slot is anywhere a value can be replaced on the spot; a bare one is behind a flow key without a colon; a
    hidden one is below a key with a question mark, where a value can be edited but not replaced. `path` is known where
    lines may be written.
    """

    kind: Literal["root", "map", "seq", "flow", "bare", "hidden"]
    after: int = 0
    column: int = 0
    path: Path = ()


_IN_FLOW = Slot("flow")


def splice(layout: Layout, root: Node, data: Any, borrowed: Borrowed, *, has_aliases: bool) -> str:
    """Return the text with the smallest edits that make it mean `data`; what is new is written as `borrowed` has it.

    Raises Declined where no splice is known to be safe, YamlError (YamlValue) for data that YAML cannot hold.
    """
    editor = _Editor(layout, root, borrowed, has_aliases=has_aliases)
    editor.edit(root, data, Slot("root"))
    return editor.splices.text()


class _Editor:
    """One walk over nodes and data side by side."""

    def __init__(self, layout: Layout, root: Node, borrowed: Borrowed, *, has_aliases: bool) -> None:
        self.layout = layout
        self.borrowed = borrowed
        self.source = layout.text
        self.has_aliases = has_aliases
        self.json = is_json(root)
        self.root = root
        self.splices = Splices(layout.text)
        self.rows = Rows(layout, self.splices)
        self.flow = FlowItems(layout, self.splices)
        # what the anchored nodes that stay will mean, by their id: aliases follow only if that is what they should mean
        self.now: dict[int, Any] = {}

    @cached_property
    def style(self) -> Style:
        """How the document indents; most edits never ask."""
        return find_style(self.layout, self.root)

    def edit(self, node: Node, new: Any, slot: Slot) -> None:
        """Make `node` mean `new`."""
        if isinstance(node, AliasNode):
            if not same(self.now.get(id(node.target), _MISSING), new):
                self._replace(node, new, slot)
            return
        if not self._differs(node, new):
            return
        if isinstance(node, MapNode) and isinstance(new, dict) and new and node.children:
            self._edit_map(node, new, slot)
        elif isinstance(node, SeqNode) and isinstance(new, list) and new and node.children:
            self._edit_seq(node, new, slot)
        elif not same(node.data, new):
            self._replace(node, new, slot)
        if node.anchor is not None:
            self.now[id(node)] = new

    def _differs(self, node: Node, new: Any) -> bool:
        # where there are aliases, equal data may still have to change: its anchor may mean something else by now
        return self.has_aliases or not same(node.data, new)

    # whole values

    def _replace(self, node: Node, new: Any, slot: Slot) -> None:
        if slot.kind == "hidden":
            raise Declined("a key with a question mark")
        if self.json or slot.kind in ("flow", "bare"):
            self._replace_on_the_spot(node, new, self._flow_text(new, node), bare=slot.kind == "bare")
            return
        style = self.style if isinstance(new, dict | list) else DEFAULT_STYLE
        scalar = node.style if isinstance(node, ScalarNode) else ""
        head, body = self.borrowed.value_lines(slot.path, new, style, scalar)
        if slot.kind == "root":
            self._replace_root(node, head, body)
        elif body or is_block(node) or _is_block_scalar(node):
            self._replace_lines(node, new, head, body, slot)
        else:
            self._replace_on_the_spot(node, new, head, bare=False)

    def _flow_text(self, value: Any, node: Node | None = None) -> str:
        if self.json:
            return json_text(value)
        if isinstance(value, str) and isinstance(node, ScalarNode):
            return inline_text(value, flow=True, style=node.style)
        return flow_text(value)

    def _replace_on_the_spot(self, node: Node, new: Any, text: str, *, bare: bool) -> None:
        start = self._replaced_start(node, new)
        needs_blank = start == node.end and self.source[start - 1 : start] not in (" ", "\t")
        self.splices.add(start, node.end, ("" if not bare else ":") + (" " if needs_blank else "") + text)

    def _replaced_start(self, node: Node, new: Any) -> int:
        """Return where the replaced text begins: anchors stay, and foreign tags that may stand before `new`."""
        if isinstance(node, AliasNode) or (node.anchor is None and node.tag is None):
            return node.start
        if node.tag is None or (_is_foreign(node.tag) and isinstance(new, str | dict | list)):
            return self.layout.content(node)
        if node.anchor is not None:
            raise Declined("a tag that has to go, beside an anchor")
        return node.start

    def _replace_root(self, node: Node, head: str, body: list[str]) -> None:
        if not self.layout.begins_line(node.start) or node.start != self.layout.content(node):
            raise Declined("the root shares its line")
        text = head + self.rows.below(body, 2) if head else self.rows.below(body, 0).lstrip("\r\n")
        self.splices.add(node.start, self.layout.tail(node), text)

    def _replace_lines(self, node: Node, new: Any, head: str, body: list[str], slot: Slot) -> None:
        """Rewrite everything from the colon or dash to the end of the node's last line, but for its line comment."""
        end = self.layout.line_end(self.layout.tail(node))
        words = [part for part in (self._kept_properties(node, new), head) if part]
        first = "".join(f" {word}" for word in words) + self._line_comment(node, slot)
        inner = 2
        if slot.kind == "map":
            inner = 0 if isinstance(new, list) and self.style.compact and not head else self.style.step
        if first or slot.kind == "map":
            self.splices.add(slot.after, end, first + self.rows.below(body, slot.column + inner))
        else:
            # a collection begins on the line of its dash
            self.splices.add(slot.after, end, " " + self.rows.below(body, slot.column + 2).lstrip("\r\n "))

    def _kept_properties(self, node: Node, new: Any) -> str:
        if self._replaced_start(node, new) == node.start:
            return ""
        return self.source[node.start : self.layout.properties_end(node)]

    def _line_comment(self, node: Node, slot: Slot) -> str:
        """Return the line comment of a value that is about to be rewritten, with the blanks before it."""
        offset = node.end
        if is_block(node):
            line_end = self.layout.line_end(slot.after)
            offset = slot.after if node.start > line_end else self.layout.properties_end(node)
            if not self.source[offset:line_end].lstrip(" \t").startswith("#"):
                return ""
        elif _is_block_scalar(node) and (header := _BLOCK_HEADER.match(self.source, self.layout.content(node))):
            offset = header.end()
        rest = REST.match(self.source, offset)
        if rest is None:
            raise Declined("something stands behind the value")
        return rest[0].rstrip(" \t") if rest[1] else ""

    # mappings

    def _edit_map(self, node: MapNode, new: dict[str, Any], slot: Slot) -> None:
        entries = list(node.entries())
        names = [key_name(key) for key, _ in entries]
        kept = [self._is_kept(name, value, new) for name, (_, value) in zip(names, entries, strict=True)]
        if not any(kept) or (self._lacks_braces(node) and new.keys() != node.data.keys()):
            self._replace(node, new, slot)
            return
        column = self.layout.column(entries[0][0].start)
        for (key, value), name, keep in zip(entries, names, kept, strict=True):
            if keep and name is not None:
                if self._differs(value, new[name]):
                    self.edit(value, new[name], self._value_slot(node, key, value, column, (*slot.path, name)))
                self.now[id(key)] = key.data
        added = self._added(node, new, names, kept)
        if all(kept) and not added:
            return
        if node.flow:
            self._change_flow_entries(node, new, kept, added)
        else:
            self._change_block_entries(entries, new, kept, added, slot.path)

    def _lacks_braces(self, node: MapNode) -> bool:
        # [a: b] is a list of one mapping
        return node.flow and self.source[self.layout.content(node)] != "{"

    def _is_kept(self, name: str | None, value: Node, new: dict[str, Any]) -> bool:
        if name is not None:
            return name in new
        # a merge key stays as long as nothing it brings is to go; other values stand beside it and win
        return all(isinstance(it, dict) and it.keys() <= new.keys() for it in self._merge_sources(value))

    def _merge_sources(self, value: Node) -> list[Any]:
        sources = value.children if isinstance(value, SeqNode) else [value]
        return [self.now.get(id(it.target)) if isinstance(it, AliasNode) else it.data for it in sources]

    def _value_slot(self, node: MapNode, key: Node, value: Node, column: int, path: Path) -> Slot:
        if node.flow:
            return Slot("bare") if value.start == value.end == key.end else _IN_FLOW
        after = self.layout.after_colon(key)
        if after is not None:
            return Slot("map", after, column, path)
        return Slot("hidden", path=path) if is_block(value) or _is_block_scalar(value) else _IN_FLOW

    def _added(
        self, node: MapNode, new: dict[str, Any], names: list[str | None], kept: list[bool]
    ) -> list[tuple[int | None, list[str]]]:
        """Return (number of the entry to stand behind, names), for the names that need an entry of their own.

        None is the front, where only what has its place from another document is put.
        """
        merged: dict[str, Any] = {}
        for key, value in node.entries():
            if is_merge(key) and kept[names.index(None)]:
                for source in self._merge_sources(value):
                    merged = source | merged
        places = {name: index for index, name in enumerate(names) if name is not None and kept[index]}
        place = None if self.borrowed.places else max(index for index, keep in enumerate(kept) if keep)
        added: dict[int | None, list[str]] = {}
        for name in new:
            place = places.get(name, place)
            if name not in places and not (name in merged and same(merged[name], new[name])):
                added.setdefault(place, []).append(name)
        return list(added.items())

    def _change_flow_entries(
        self, node: MapNode, new: dict[str, Any], kept: list[bool], added: list[tuple[int | None, list[str]]]
    ) -> None:
        spans = [(key.start, max(key.end, value.end)) for key, value in node.entries()]
        self.flow.remove(spans, kept)
        for index, names in added:
            self._add_to_flow(spans, kept, index, [self._flow_text({name: new[name]})[1:-1] for name in names])

    def _add_to_flow(self, spans: list[Span], kept: list[bool], index: int | None, texts: list[str]) -> None:
        if index is None:
            self.flow.insert_first(spans[kept.index(True)], texts)
        else:
            self.flow.insert_after(spans[index], texts)

    def _change_block_entries(
        self,
        entries: list[tuple[Node, Node]],
        new: dict[str, Any],
        kept: list[bool],
        added: list[tuple[int | None, list[str]]],
        path: Path,
    ) -> None:
        spans = [(key.start, self.layout.tail(value)) for key, value in entries]
        column = self.layout.column(spans[0][0])
        self.rows.remove(spans, kept, column)
        for index, names in added:
            texts = [self.borrowed.entry_lines((*path, name), name, new[name], self.style) for name in names]
            self._add_rows(spans, kept, index, list(chain(*texts)), column)

    def _add_rows(self, spans: list[Span], kept: list[bool], index: int | None, lines: list[str], column: int) -> None:
        if index is None:
            self.rows.insert_before(spans[kept.index(True)][0], without_blank_head(lines), column)
        else:
            self.rows.insert_after(spans[index][1], lines, column)

    # sequences

    def _edit_seq(self, node: SeqNode, new: list[Any], slot: Slot) -> None:
        pairs = align(node.data, new)
        kept = [False] * len(node.children)
        for old, wanted in pairs:
            if old is not None:
                kept[old] = wanted is not None
        if not any(kept):
            self._replace(node, new, slot)
        elif node.flow:
            self._edit_flow_seq(node, new, pairs, kept)
        else:
            self._edit_block_seq(node, new, pairs, kept, slot.path)

    def _edit_flow_seq(self, node: SeqNode, new: list[Any], pairs: list[Pair], kept: list[bool]) -> None:
        for old, wanted in _both(pairs):
            self.edit(node.children[old], new[wanted], _IN_FLOW)
        spans = [(child.start, child.end) for child in node.children]
        self.flow.remove(spans, kept)
        for index, wanted_items in _added_items(pairs):
            self._add_to_flow(spans, kept, index, [self._flow_text(new[wanted]) for wanted in wanted_items])

    def _dash(self, node: SeqNode, index: int) -> int:
        after = self.layout.after_dash(node, index)
        if after is None:
            raise Declined("a dash that was not found")
        return after - 1

    def _edit_block_seq(self, node: SeqNode, new: list[Any], pairs: list[Pair], kept: list[bool], path: Path) -> None:
        column = self.layout.column(self._dash(node, 0))
        for old, wanted in _both(pairs):
            if self._differs(node.children[old], new[wanted]):
                slot = Slot("seq", self._dash(node, old) + 1, column, (*path, wanted))
                self.edit(node.children[old], new[wanted], slot)
        added = _added_items(pairs)
        if all(kept) and not added:
            return
        spans = [(self._dash(node, index), self.layout.tail(child)) for index, child in enumerate(node.children)]
        self.rows.remove(spans, kept, column)
        moved = self._moved(node, kept)
        for index, wanted_items in added:
            texts = [self._item_lines(node, moved, (*path, wanted), new[wanted]) for wanted in wanted_items]
            self._add_rows(spans, kept, index, list(chain(*texts)), column)

    def _moved(self, node: SeqNode, kept: list[bool]) -> dict[str, int]:
        """Return the items that lose their place, by what they are: those that only move keep their lines."""
        return {fingerprint(node.data[index]): index for index, keep in enumerate(kept) if not keep}

    def _item_lines(self, node: SeqNode, moved: dict[str, int], path: Path, value: Any) -> list[str]:
        index = moved.get(fingerprint(value)) if moved else None
        lines = None if index is None else standing_lines(self.layout, (node, index))
        # the blank lines above it have stayed where they were
        return without_blank_head(lines) if lines else self.borrowed.item_lines(path, value, self.style)


def _is_foreign(tag: str) -> bool:
    return tag != "!" and not tag.startswith(TAG_PREFIX)


def _is_block_scalar(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.style in ("|", ">")


def _both(pairs: list[Pair]) -> list[tuple[int, int]]:
    return [(old, wanted) for old, wanted in pairs if old is not None and wanted is not None]


def _added_items(pairs: list[Pair]) -> list[tuple[int | None, list[int]]]:
    """Return (old index to stand behind, None for the front; new indexes) of the added items."""
    added: dict[int | None, list[int]] = {}
    last: int | None = None
    for old, wanted in pairs:
        if old is None and wanted is not None:
            added.setdefault(last, []).append(wanted)
        elif wanted is not None:
            last = old
    return list(added.items())
