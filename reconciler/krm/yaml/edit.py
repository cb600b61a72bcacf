"""Edits the text of a YAML document so that it contains changed data.

The edits keep all text that does not belong to a changed value. If a change has no safe text edit, the editor raises
`UnsupportedEditError`. The caller must parse the edited text, and compare the result with the changed data.
"""

from __future__ import annotations

import re
from functools import cached_property
from itertools import chain
from typing import Any, Literal

from reconciler.krm.yaml.comments import DataPath, get_key_name
from reconciler.krm.yaml.compare import IndexPair, align_items, compute_fingerprint, is_equal_data
from reconciler.krm.yaml.emit import DEFAULT_INDENT_STYLE, IndentStyle, format_flow, format_json, format_scalar
from reconciler.krm.yaml.layout import REST_OF_LINE, TextLayout, TextSpan, detect_indent_style, is_json_document
from reconciler.krm.yaml.nodes import (
    TAG_PREFIX,
    AliasNode,
    MappingNode,
    ScalarNode,
    SequenceNode,
    YamlNode,
    is_block_collection,
    is_merge_key,
)
from reconciler.krm.yaml.reuse_formatting import ReusedFormatting, copy_lines, strip_leading_blank_lines
from reconciler.krm.yaml.text_edits import BlockLineEditor, FlowItemEditor, TextSplices, UnsupportedEditError
from reconciler.lazy_dataclasses import dataclass

_NO_DATA = object()
_BLOCK_HEADER = re.compile(r"[|>][0-9+-]*")


@dataclass(frozen=True, slots=True)
class ValueSlot:
    """The position of a value in the text.

    Attributes:
        kind: "root" is the value of the document. "map" and "seq" are values in block mappings and block sequences.
            "flow" is a value that can be replaced in place. "bare" is the missing value of a key in a flow mapping,
            e.g. `a` in `{a, b: 1}`. "hidden" is a value after a key with `?`, which can be edited but not replaced.
        after: Offset after the colon or dash before the value.
        column: Column of the block collection that contains the value.
        path: Path of the value. () if the value cannot be written on separate lines.
    """

    kind: Literal["root", "map", "seq", "flow", "bare", "hidden"]
    after: int = 0
    column: int = 0
    path: DataPath = ()


_IN_FLOW = ValueSlot("flow")


def edit_text(layout: TextLayout, root: YamlNode, data: Any, formatting: ReusedFormatting, *, has_aliases: bool) -> str:
    """Return the text of a document that is edited to contain `data`. Change as little text as possible.

    Args:
        layout: The lines of the old text.
        root: The root node of the old text.
        formatting: Writes new values.
        has_aliases: Whether the old text contains an alias.

    Raises:
        UnsupportedEditError: There is no safe text edit for the change.
        YamlError: YAML does not support the data (code YamlValue).
    """
    editor = _Editor(layout, root, formatting, has_aliases=has_aliases)
    editor.edit(root, data, ValueSlot("root"))
    return editor.splices.text()


class _Editor:
    """Editor that compares the nodes of a document with the new data, and collects the necessary text edits."""

    def __init__(self, layout: TextLayout, root: YamlNode, formatting: ReusedFormatting, *, has_aliases: bool) -> None:
        self.layout = layout
        self.formatting = formatting
        self.source = layout.text
        self.has_aliases = has_aliases
        self.is_json = is_json_document(root)
        self.root = root
        self.splices = TextSplices(layout.text)
        self.block_lines = BlockLineEditor(layout, self.splices)
        self.flow_items = FlowItemEditor(layout, self.splices)
        # Maps `id(node)` of each kept node with an anchor to the new data of this node. An alias of the anchor is kept
        # only if the new data at the position of the alias is equal to the new data of the node.
        self.new_data: dict[int, Any] = {}

    @cached_property
    def style(self) -> IndentStyle:
        """The indentation of the document. It is computed at the first use, because most edits do not need it."""
        return detect_indent_style(self.layout, self.root)

    def edit(self, node: YamlNode, new: Any, slot: ValueSlot) -> None:
        """Edit the text of `node` so that it contains `new`."""
        if isinstance(node, AliasNode):
            if not is_equal_data(self.new_data.get(id(node.target), _NO_DATA), new):
                self._replace(node, new, slot)
            return
        if not self._differs(node, new):
            return
        if isinstance(node, MappingNode) and isinstance(new, dict) and new and node.children:
            self._edit_map(node, new, slot)
        elif isinstance(node, SequenceNode) and isinstance(new, list) and new and node.children:
            self._edit_seq(node, new, slot)
        elif not is_equal_data(node.data, new):
            self._replace(node, new, slot)
        if node.anchor is not None:
            self.new_data[id(node)] = new

    def _differs(self, node: YamlNode, new: Any) -> bool:
        # Compare all nodes if the document has aliases, because the value of an anchor may have changed.
        return self.has_aliases or not is_equal_data(node.data, new)

    def _replace(self, node: YamlNode, new: Any, slot: ValueSlot) -> None:
        if slot.kind == "hidden":
            raise UnsupportedEditError("the value follows a key with `?`")
        if self.is_json or slot.kind in ("flow", "bare"):
            self._replace_in_place(node, new, self._format_flow(new, node), bare=slot.kind == "bare")
            return
        style = self.style if isinstance(new, dict | list) else DEFAULT_INDENT_STYLE
        scalar = node.style if isinstance(node, ScalarNode) else ""
        head, body = self.formatting.format_value_lines(slot.path, new, style, scalar)
        if slot.kind == "root":
            self._replace_root(node, head, body)
        elif body or is_block_collection(node) or _is_block_scalar(node):
            self._replace_lines(node, new, head, body, slot)
        else:
            self._replace_in_place(node, new, head, bare=False)

    def _format_flow(self, value: Any, node: YamlNode | None = None) -> str:
        if self.is_json:
            return format_json(value)
        if isinstance(value, str) and isinstance(node, ScalarNode):
            return format_scalar(value, flow=True, style=node.style)
        return format_flow(value)

    def _replace_in_place(self, node: YamlNode, new: Any, text: str, *, bare: bool) -> None:
        start = self._find_replacement_start(node, new)
        needs_blank = start == node.end and self.source[start - 1 : start] not in (" ", "\t")
        self.splices.add(start, node.end, ("" if not bare else ":") + (" " if needs_blank else "") + text)

    def _find_replacement_start(self, node: YamlNode, new: Any) -> int:
        """Return the start offset of the text that the new value replaces.

        The anchor of the node is kept. A custom tag is kept if it is valid for the new value.
        """
        if isinstance(node, AliasNode) or (node.anchor is None and node.tag is None):
            return node.start
        if node.tag is None or (_is_foreign(node.tag) and isinstance(new, str | dict | list)):
            return self.layout.find_content_start(node)
        if node.anchor is not None:
            raise UnsupportedEditError("a tag next to an anchor would have to be removed")
        return node.start

    def _replace_root(self, node: YamlNode, head: str, body: list[str]) -> None:
        if not self.layout.is_first_on_line(node.start) or node.start != self.layout.find_content_start(node):
            raise UnsupportedEditError("the root node shares its line with other text")
        text = (
            head + self.block_lines.format_below(body, 2)
            if head
            else self.block_lines.format_below(body, 0).lstrip("\r\n")
        )
        self.splices.add(node.start, self.layout.find_content_end(node), text)

    def _replace_lines(self, node: YamlNode, new: Any, head: str, body: list[str], slot: ValueSlot) -> None:
        """Replace the text from the colon or dash to the last line of the node. Keep the line comment of the node."""
        end = self.layout.line_end(self.layout.find_content_end(node))
        parts = [part for part in (self._copy_properties(node, new), head) if part]
        first = "".join(f" {part}" for part in parts) + self._copy_line_comment(node, slot)
        inner = 2
        if slot.kind == "map":
            inner = 0 if isinstance(new, list) and self.style.compact and not head else self.style.step
        if first or slot.kind == "map":
            self.splices.add(slot.after, end, first + self.block_lines.format_below(body, slot.column + inner))
        else:
            # Write the first line of a nested collection on the line of its dash, e.g. `- name: a`.
            self.splices.add(
                slot.after, end, " " + self.block_lines.format_below(body, slot.column + 2).lstrip("\r\n ")
            )

    def _copy_properties(self, node: YamlNode, new: Any) -> str:
        if self._find_replacement_start(node, new) == node.start:
            return ""
        return self.source[node.start : self.layout.find_properties_end(node)]

    def _copy_line_comment(self, node: YamlNode, slot: ValueSlot) -> str:
        """Return the line comment of a value that will be written again, including the spaces before the comment.

        Return "" if there is no line comment.
        """
        offset = node.end
        if is_block_collection(node):
            line_end = self.layout.line_end(slot.after)
            offset = slot.after if node.start > line_end else self.layout.find_properties_end(node)
            if not self.source[offset:line_end].lstrip(" \t").startswith("#"):
                return ""
        elif _is_block_scalar(node) and (
            header := _BLOCK_HEADER.match(self.source, self.layout.find_content_start(node))
        ):
            offset = header.end()
        rest_of_line = REST_OF_LINE.match(self.source, offset)
        if rest_of_line is None:
            raise UnsupportedEditError("other text follows the value on its line")
        return rest_of_line[0].rstrip(" \t") if rest_of_line[1] else ""

    def _edit_map(self, node: MappingNode, new: dict[str, Any], slot: ValueSlot) -> None:
        entries = list(node.entries())
        names = [get_key_name(key) for key, _ in entries]
        is_kept = [self._can_keep_entry(name, value, new) for name, (_, value) in zip(names, entries, strict=True)]
        if not any(is_kept) or (self._has_no_braces(node) and new.keys() != node.data.keys()):
            self._replace(node, new, slot)
            return
        column = self.layout.column(entries[0][0].start)
        for (key, value), name, keep in zip(entries, names, is_kept, strict=True):
            if keep and name is not None:
                if self._differs(value, new[name]):
                    self.edit(value, new[name], self._create_value_slot(node, key, value, column, (*slot.path, name)))
                self.new_data[id(key)] = key.data
        added = self._find_added_names(node, new, names, is_kept)
        if all(is_kept) and not added:
            return
        if node.flow:
            self._change_flow_entries(node, new, is_kept, added)
        else:
            self._change_block_entries(entries, new, is_kept, added, slot.path)

    def _has_no_braces(self, node: MappingNode) -> bool:
        # Check for a brace, because the item `a: b` in `[a: b]` is a mapping without braces.
        return node.flow and self.source[self.layout.find_content_start(node)] != "{"

    def _can_keep_entry(self, name: str | None, value: YamlNode, new: dict[str, Any]) -> bool:
        if name is not None:
            return name in new
        # Keep a merge key `<<` only if the new data contains all keys that the merge key adds. The values of these keys
        # can differ, because an entry of the mapping takes precedence over the merge key.
        return all(
            isinstance(source, dict) and source.keys() <= new.keys() for source in self._read_merge_sources(value)
        )

    def _read_merge_sources(self, value: YamlNode) -> list[Any]:
        sources = value.children if isinstance(value, SequenceNode) else [value]
        return [
            self.new_data.get(id(source.target)) if isinstance(source, AliasNode) else source.data for source in sources
        ]

    def _create_value_slot(
        self, node: MappingNode, key: YamlNode, value: YamlNode, column: int, path: DataPath
    ) -> ValueSlot:
        if node.flow:
            return ValueSlot("bare") if value.start == value.end == key.end else _IN_FLOW
        after = self.layout.find_colon_end(key)
        if after is not None:
            return ValueSlot("map", after, column, path)
        return ValueSlot("hidden", path=path) if is_block_collection(value) or _is_block_scalar(value) else _IN_FLOW

    def _find_added_names(
        self, node: MappingNode, new: dict[str, Any], names: list[str | None], is_kept: list[bool]
    ) -> list[tuple[int | None, list[str]]]:
        """Return the names of the entries to insert, grouped by the index of the existing entry that precedes them.

        The index None means the start of the mapping. A new entry that no existing entry precedes is inserted at the
        start if the formatting is copied from another document. Otherwise, it is appended to the mapping.
        """
        merged: dict[str, Any] = {}
        for key, value in node.entries():
            if is_merge_key(key) and is_kept[names.index(None)]:
                for source in self._read_merge_sources(value):
                    merged = source | merged
        positions = {name: index for index, name in enumerate(names) if name is not None and is_kept[index]}
        position = None if self.formatting.sources else max(index for index, keep in enumerate(is_kept) if keep)
        added: dict[int | None, list[str]] = {}
        for name in new:
            position = positions.get(name, position)
            if name not in positions and not (name in merged and is_equal_data(merged[name], new[name])):
                added.setdefault(position, []).append(name)
        return list(added.items())

    def _change_flow_entries(
        self, node: MappingNode, new: dict[str, Any], is_kept: list[bool], added: list[tuple[int | None, list[str]]]
    ) -> None:
        spans = [(key.start, max(key.end, value.end)) for key, value in node.entries()]
        self.flow_items.remove(spans, is_kept)
        for index, names in added:
            self._add_to_flow(spans, is_kept, index, [self._format_flow({name: new[name]})[1:-1] for name in names])

    def _add_to_flow(self, spans: list[TextSpan], is_kept: list[bool], index: int | None, texts: list[str]) -> None:
        if index is None:
            self.flow_items.insert_first(spans[is_kept.index(True)], texts)
        else:
            self.flow_items.insert_after(spans[index], texts)

    def _change_block_entries(
        self,
        entries: list[tuple[YamlNode, YamlNode]],
        new: dict[str, Any],
        is_kept: list[bool],
        added: list[tuple[int | None, list[str]]],
        path: DataPath,
    ) -> None:
        spans = [(key.start, self.layout.find_content_end(value)) for key, value in entries]
        column = self.layout.column(spans[0][0])
        self.block_lines.remove(spans, is_kept, column)
        for index, names in added:
            texts = [self.formatting.format_entry_lines((*path, name), name, new[name], self.style) for name in names]
            self._add_block_lines(spans, is_kept, index, list(chain(*texts)), column)

    def _add_block_lines(
        self, spans: list[TextSpan], is_kept: list[bool], index: int | None, lines: list[str], column: int
    ) -> None:
        if index is None:
            self.block_lines.insert_before(spans[is_kept.index(True)][0], strip_leading_blank_lines(lines), column)
        else:
            self.block_lines.insert_after(spans[index][1], lines, column)

    def _edit_seq(self, node: SequenceNode, new: list[Any], slot: ValueSlot) -> None:
        pairs = align_items(node.data, new)
        is_kept = [False] * len(node.children)
        for old_index, new_index in pairs:
            if old_index is not None:
                is_kept[old_index] = new_index is not None
        if not any(is_kept):
            self._replace(node, new, slot)
        elif node.flow:
            self._edit_flow_seq(node, new, pairs, is_kept)
        else:
            self._edit_block_seq(node, new, pairs, is_kept, slot.path)

    def _edit_flow_seq(self, node: SequenceNode, new: list[Any], pairs: list[IndexPair], is_kept: list[bool]) -> None:
        for old_index, new_index in _select_paired(pairs):
            self.edit(node.children[old_index], new[new_index], _IN_FLOW)
        spans = [(child.start, child.end) for child in node.children]
        self.flow_items.remove(spans, is_kept)
        for index, new_indexes in _group_added_items(pairs):
            self._add_to_flow(spans, is_kept, index, [self._format_flow(new[new_index]) for new_index in new_indexes])

    def _find_dash(self, node: SequenceNode, index: int) -> int:
        after = self.layout.find_dash_end(node, index)
        if after is None:
            raise UnsupportedEditError("the dash of an item was not found")
        return after - 1

    def _edit_block_seq(
        self, node: SequenceNode, new: list[Any], pairs: list[IndexPair], is_kept: list[bool], path: DataPath
    ) -> None:
        column = self.layout.column(self._find_dash(node, 0))
        for old_index, new_index in _select_paired(pairs):
            if self._differs(node.children[old_index], new[new_index]):
                slot = ValueSlot("seq", self._find_dash(node, old_index) + 1, column, (*path, new_index))
                self.edit(node.children[old_index], new[new_index], slot)
        added = _group_added_items(pairs)
        if all(is_kept) and not added:
            return
        spans = [
            (self._find_dash(node, index), self.layout.find_content_end(child))
            for index, child in enumerate(node.children)
        ]
        self.block_lines.remove(spans, is_kept, column)
        removed = self._index_removed_items(node, is_kept)
        for index, new_indexes in added:
            texts = [
                self._format_item_lines(node, removed, (*path, new_index), new[new_index]) for new_index in new_indexes
            ]
            self._add_block_lines(spans, is_kept, index, list(chain(*texts)), column)

    def _index_removed_items(self, node: SequenceNode, is_kept: list[bool]) -> dict[str, int]:
        """Return a mapping from the fingerprint of each removed item to its old index.

        An added item with the same fingerprint as a removed item is a moved item, and keeps its lines.
        """
        return {compute_fingerprint(node.data[index]): index for index, keep in enumerate(is_kept) if not keep}

    def _format_item_lines(self, node: SequenceNode, removed: dict[str, int], path: DataPath, value: Any) -> list[str]:
        index = removed.get(compute_fingerprint(value)) if removed else None
        lines = None if index is None else copy_lines(self.layout, (node, index))
        # Strip the blank lines above a moved item, because they stay at the old position of the item.
        return strip_leading_blank_lines(lines) if lines else self.formatting.format_item_lines(path, value, self.style)


def _is_foreign(tag: str) -> bool:
    return tag != "!" and not tag.startswith(TAG_PREFIX)


def _is_block_scalar(node: YamlNode) -> bool:
    return isinstance(node, ScalarNode) and node.style in ("|", ">")


def _select_paired(pairs: list[IndexPair]) -> list[tuple[int, int]]:
    return [(old_index, new_index) for old_index, new_index in pairs if old_index is not None and new_index is not None]


def _group_added_items(pairs: list[IndexPair]) -> list[tuple[int | None, list[int]]]:
    """Group the added items of a list by the existing item that precedes them.

    Each group contains the old index of the existing item, and the new indexes of the added items. The old index None
    means that the items are added at the start of the list.
    """
    added: dict[int | None, list[int]] = {}
    last: int | None = None
    for old_index, new_index in pairs:
        if old_index is None and new_index is not None:
            added.setdefault(last, []).append(new_index)
        elif new_index is not None:
            last = old_index
    return list(added.items())
