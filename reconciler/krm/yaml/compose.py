"""From the text of one document to its nodes, by libyaml's event stream.

The stream is walked without recursion and counted as it goes (see limits), so that neither depth nor aliases can hurt.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml._yaml import CParser

from reconciler.caching import cached
from reconciler.krm.yaml.error import YamlError
from reconciler.krm.yaml.limits import DEFAULT_LIMITS, YamlLimits
from reconciler.krm.yaml.nodes import AliasNode, MapNode, Node, ScalarNode, SeqNode, is_merge
from reconciler.krm.yaml.resolve import key_text, resolve_plain, resolve_tagged

# what libyaml takes for the end of a line
BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# what was written is read again to be sure, and then once more as a part of its file; nodes take ten times their text
_REMEMBERED_TEXTS = 2048
_REMEMBERED_CHARACTERS = 8 * 1024
_UNREADABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(slots=True)
class Budget:
    """What is left of a file's limits; shared by its documents, spent by aliases."""

    limits: YamlLimits = DEFAULT_LIMITS
    aliases: int = field(init=False)
    nodes: int = field(init=False)

    def __post_init__(self) -> None:
        self.aliases = self.limits.aliases
        self.nodes = self.limits.expanded_nodes


def place(text: str, offset: int) -> tuple[int, int]:
    """Return line and column of `offset`, both counted from 1."""
    line, start = 1, 0
    for match in BREAK.finditer(text, 0, offset):
        line, start = line + 1, match.end()
    return line, offset - start + 1


def compose(text: str, budget: Budget, resolve: Callable[[str], Any] = resolve_plain) -> Node | None:
    """Return the root node of the one document in `text`, None when it holds nothing but comments.

    `resolve` says what a plain scalar means. Raises YamlError; its line counts from the first line of `text`.
    """
    # without aliases nothing of a budget is spent
    if resolve is resolve_plain and len(text) <= _REMEMBERED_CHARACTERS and "*" not in text:
        return _remembered(text, budget.limits.depth)
    return _compose(text, budget, resolve)


@cached(_REMEMBERED_TEXTS)
def _remembered(text: str, depth: int) -> Node | None:
    return _compose(text, Budget(YamlLimits(depth=depth)), resolve_plain)


def _compose(text: str, budget: Budget, resolve: Callable[[str], Any]) -> Node | None:
    if match := _UNREADABLE.search(text):
        raise _error(text, match.start(), "YamlSyntax", f"the character U+{ord(match[0]):04X} must not stand in YAML")
    composer = _Composer(text, budget, resolve)
    try:
        return composer.run()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = " ".join(part for part in (error.context, error.problem) if part)
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise YamlError("YamlSyntax", f"this is not YAML: {reason}", line, column) from error


def _error(text: str, offset: int, code: str, message: str) -> YamlError:
    return YamlError(code, message, *place(text, offset))


class _Composer:
    """One walk over the events of one document."""

    def __init__(self, text: str, budget: Budget, resolve: Callable[[str], Any]) -> None:
        self.text = text
        self.budget = budget
        self.resolve = resolve
        self.anchors: dict[str, Node] = {}
        self.stack: list[MapNode | SeqNode] = []
        self.roots: list[Node] = []
        self.current = self.roots
        self.measures: dict[int, tuple[int, int]] = {}

    def run(self) -> Node | None:
        """Return the root."""
        get_event: Callable[[], Any] = CParser(self.text).get_event
        while True:
            event = get_event()
            kind = event.__class__
            if kind is yaml.ScalarEvent:
                self.current.append(self._scalar(event))
            elif kind is yaml.MappingStartEvent:
                self._open(MapNode, event)
            elif kind is yaml.SequenceStartEvent:
                self._open(SeqNode, event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._close(event)
            elif kind is yaml.AliasEvent:
                self.current.append(self._alias(event))
            elif kind is yaml.StreamEndEvent:
                return self._root()

    def _open(self, kind: type[MapNode] | type[SeqNode], event: Any) -> None:
        node = kind(event.start_mark.index, 0, event.flow_style, event.tag, event.anchor, [], None)
        if node.anchor is not None:
            self.anchors[node.anchor] = node
        self.current.append(node)
        self.current = node.children
        self.stack.append(node)
        if len(self.stack) > self.budget.limits.depth:
            raise self._too_deep(node.start)

    def _close(self, event: Any) -> None:
        node = self.stack.pop()
        node.end = event.end_mark.index
        node.data = self._map_data(node) if isinstance(node, MapNode) else [child.data for child in node.children]
        self.current = self.stack[-1].children if self.stack else self.roots

    def _root(self) -> Node | None:
        if len(self.roots) > 1:
            # file.py cuts at every line that can begin a document
            raise self._fail(self.roots[1], "YamlSyntax", "a new document must begin with a line ---")
        root = self.roots[0] if self.roots else None
        return None if isinstance(root, ScalarNode) and root.start == root.end else root

    def _scalar(self, event: Any) -> ScalarNode:
        value, tag, style = event.value, event.tag, event.style or ""
        data = value if style or tag is not None else self.resolve(value)
        node = ScalarNode(event.start_mark.index, event.end_mark.index, value, style, tag, event.anchor, data)
        if tag is not None:
            node.data = self._tagged(node, tag)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def _tagged(self, node: ScalarNode, tag: str) -> Any:
        try:
            return resolve_tagged(tag, node.value, self.resolve)
        except ValueError as error:
            raise self._fail(node, "YamlTag", str(error)) from error

    def _alias(self, event: Any) -> AliasNode:
        start = event.start_mark.index
        target = self.anchors.get(event.anchor)
        if target is None:
            raise _error(self.text, start, "YamlAliases", f"the alias *{event.anchor} has no anchor before it")
        if any(open_node is target for open_node in self.stack):
            raise _error(self.text, start, "YamlAliases", f"the alias *{event.anchor} must not contain itself")
        self._spend(target, start)
        return AliasNode(start, event.end_mark.index, target, target.data)

    def _spend(self, target: Node, offset: int) -> None:
        size, height = self._measure(target)
        self.budget.aliases -= 1
        self.budget.nodes -= size
        if self.budget.aliases < 0 or self.budget.nodes < 0:
            limits = self.budget.limits
            message = f"at most {limits.aliases} aliases that stand for {limits.expanded_nodes} nodes are read"
            raise _error(self.text, offset, "YamlAliases", message)
        if len(self.stack) + height > self.budget.limits.depth:
            raise self._too_deep(offset)

    def _measure(self, node: Node) -> tuple[int, int]:
        """Return (nodes, levels of collections) of what the node would be if written out."""
        if isinstance(node, AliasNode):
            return self._measure(node.target)
        if isinstance(node, ScalarNode):
            return 1, 0
        if id(node) not in self.measures:
            inner = [self._measure(child) for child in node.children]
            size, height = sum(size for size, _ in inner), max((height for _, height in inner), default=0)
            self.measures[id(node)] = size + 1, height + 1
        return self.measures[id(node)]

    def _map_data(self, node: MapNode) -> dict[str, Any]:
        data: dict[str, Any] = {}
        merged: Node | None = None
        children = iter(node.children)
        for key, value in zip(children, children, strict=True):
            name = key.data if key.data.__class__ is str else self._key(key)
            if name == "<<" and is_merge(key):
                merged = value if merged is None else self._duplicate(key, name)
            elif name in data:
                self._duplicate(key, name)
            else:
                data[name] = value.data
        if merged is not None:
            for name, value in self._merged(merged).items():
                data.setdefault(name, value)
        return data

    def _key(self, key: Node) -> str:
        try:
            return key_text(key.data)
        except ValueError as error:
            raise self._fail(key, "YamlKey", str(error)) from error

    def _duplicate(self, key: Node, name: str) -> Any:
        raise self._fail(key, "YamlDuplicateKey", f'the key "{name[:80]}" stands twice in one mapping')

    def _merged(self, value: Node) -> dict[str, Any]:
        """Return what a merge key brings, the first of several mappings winning."""
        sources = value.data if isinstance(value.data, list) else [value.data]
        data: dict[str, Any] = {}
        for source in sources:
            if not isinstance(source, dict):
                raise self._fail(value, "YamlMerge", "a merge key << must name a mapping or a list of mappings")
            data = source | data
        return data

    def _too_deep(self, offset: int) -> YamlError:
        limit = self.budget.limits.depth
        return _error(self.text, offset, "YamlTooDeep", f"at most {limit} levels of nesting are read")

    def _fail(self, node: Node, code: str, message: str) -> YamlError:
        return _error(self.text, node.start, code, message)
