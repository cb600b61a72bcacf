"""Composition of the nodes of a YAML document from the events of the libyaml parser.

The composer is not recursive, and it counts nodes while it reads them. Deep nesting and aliases can therefore not
exhaust the memory or the stack.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml
from yaml._yaml import CParser

from reconciler.krm.yaml.errors import DEFAULT_YAML_LIMITS, YamlError, YamlLimits
from reconciler.krm.yaml.nodes import AliasNode, MappingNode, ScalarNode, SequenceNode, YamlNode, is_merge_key
from reconciler.krm.yaml.resolve import convert_key_to_text, resolve_plain, resolve_tagged
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.memory import cached

# The line ends that libyaml recognizes.
LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# Cache nodes, because each edited text is parsed twice: once to check the edit, and once as a part of its file. Cache
# only short texts, because nodes need ten times the memory of the text.
_MAX_CACHED_TEXTS = 2048
_MAX_CACHED_CHARACTERS = 8 * 1024
# The error with which libyaml 0.2.6 and later refuse a text with more than `_MAX_SCANNER_DEPTH` levels of nesting.
_SCANNER_DEPTH_ERROR = "exceeded maximum nesting depth"
_MAX_SCANNER_DEPTH = 1_000
_INVALID_CHARACTER = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(slots=True)
class YamlBudget:
    """The number of aliases and nodes that a file can still use. All documents of the file share one budget.

    Each alias reduces the budget by one alias and by the number of nodes that it represents.
    """

    limits: YamlLimits = DEFAULT_YAML_LIMITS
    aliases: int = field(init=False)
    nodes: int = field(init=False)

    def __post_init__(self) -> None:
        self.aliases = self.limits.aliases
        self.nodes = self.limits.expanded_nodes


def find_line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return the line number and the column number of `offset`, both from 1."""
    line, start = 1, 0
    for match in LINE_BREAK.finditer(text, 0, offset):
        line, start = line + 1, match.end()
    return line, offset - start + 1


def compose(
    text: str,
    budget: YamlBudget,
    resolve: Callable[[str], Any] = resolve_plain,
    *,
    use_last_duplicate: bool = False,
) -> YamlNode | None:
    """Parse a text with one YAML document, and return its root node. Return None if the document is empty.

    Args:
        budget: The remaining limits of the file.
        resolve: Function that converts a scalar without quotes and tag to its value.
        use_last_duplicate: Whether to use the last value of a key that a mapping contains twice. By default, such a key
            is an error.

    Raises:
        YamlError: The text is invalid or exceeds a limit. The line number is relative to the start of `text`.
    """
    # Cache only texts without aliases, because each parse of an alias must reduce the budget.
    is_usual = resolve is resolve_plain and not use_last_duplicate
    if is_usual and len(text) <= _MAX_CACHED_CHARACTERS and "*" not in text:
        return _compose_cached(text, budget.limits.depth)
    return _compose_uncached(text, budget, resolve, use_last_duplicate=use_last_duplicate)


@cached(_MAX_CACHED_TEXTS)
def _compose_cached(text: str, depth: int) -> YamlNode | None:
    return _compose_uncached(text, YamlBudget(YamlLimits(depth=depth)), resolve_plain)


def _compose_uncached(
    text: str, budget: YamlBudget, resolve: Callable[[str], Any], *, use_last_duplicate: bool = False
) -> YamlNode | None:
    if match := _INVALID_CHARACTER.search(text):
        raise _create_error(
            text, match.start(), "YamlSyntax", f"the character U+{ord(match[0]):04X} is not allowed in YAML"
        )
    composer = _Composer(text, budget, resolve, use_last_duplicate=use_last_duplicate)
    try:
        return composer.run()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        if _SCANNER_DEPTH_ERROR in reason:
            depth = min(budget.limits.depth, _MAX_SCANNER_DEPTH)
            raise YamlError("YamlTooDeep", _format_depth_message(depth), line, column) from error
        is_tab = mark is not None and text[mark.index : mark.index + 1] == "\t"
        hint = ". The character is a tab; indent with spaces instead" if is_tab else ""
        message = f'the text is not valid YAML; the parser reports: "{reason}"{hint}'
        raise YamlError("YamlSyntax", message, line, column) from error


def _format_depth_message(depth: int) -> str:
    return f"at most {depth} levels of nesting are allowed"


def _create_error(text: str, offset: int, code: str, message: str) -> YamlError:
    return YamlError(code, message, *find_line_and_column(text, offset))


class _Composer:
    """Parser state for one document. It creates nodes from the events of libyaml."""

    def __init__(
        self, text: str, budget: YamlBudget, resolve: Callable[[str], Any], *, use_last_duplicate: bool
    ) -> None:
        self.text = text
        self.budget = budget
        self.resolve = resolve
        self.use_last_duplicate = use_last_duplicate
        self.anchors: dict[str, YamlNode] = {}
        self.stack: list[MappingNode | SequenceNode] = []
        self.roots: list[YamlNode] = []
        self.current = self.roots
        self.measures: dict[int, tuple[int, int]] = {}

    def run(self) -> YamlNode | None:
        """Read all events, and return the root node of the document. Return None if the document is empty."""
        get_event: Callable[[], Any] = CParser(self.text).get_event
        while True:
            event = get_event()
            kind = event.__class__
            if kind is yaml.ScalarEvent:
                self.current.append(self._create_scalar(event))
            elif kind is yaml.MappingStartEvent:
                self._open(MappingNode, event)
            elif kind is yaml.SequenceStartEvent:
                self._open(SequenceNode, event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._close(event)
            elif kind is yaml.AliasEvent:
                self.current.append(self._create_alias(event))
            elif kind is yaml.StreamEndEvent:
                return self._find_root()

    def _open(self, kind: type[MappingNode] | type[SequenceNode], event: Any) -> None:
        node = kind(event.start_mark.index, 0, event.flow_style, event.tag, event.anchor, [], None)
        if node.anchor is not None:
            self.anchors[node.anchor] = node
        self.current.append(node)
        self.current = node.children
        self.stack.append(node)
        if len(self.stack) > self.budget.limits.depth:
            raise self._create_depth_error(node.start)

    def _close(self, event: Any) -> None:
        node = self.stack.pop()
        node.end = event.end_mark.index
        node.data = (
            self._read_mapping(node) if isinstance(node, MappingNode) else [child.data for child in node.children]
        )
        self.current = self.stack[-1].children if self.stack else self.roots

    def _find_root(self) -> YamlNode | None:
        if len(self.roots) > 1:
            # The file was already split at each line `---` or `...`, so that the text contains no such line. If the
            # text contains a second document, the line `---` before this document is missing.
            raise self._create_node_error(self.roots[1], "YamlSyntax", "a second document must begin with a line ---")
        root = self.roots[0] if self.roots else None
        return None if isinstance(root, ScalarNode) and root.start == root.end else root

    def _create_scalar(self, event: Any) -> ScalarNode:
        value, tag, style = event.value, event.tag, event.style or ""
        data = value if style or tag is not None else self.resolve(value)
        node = ScalarNode(event.start_mark.index, event.end_mark.index, value, style, tag, event.anchor, data)
        if tag is not None:
            node.data = self._resolve_tagged(node, tag)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def _resolve_tagged(self, node: ScalarNode, tag: str) -> Any:
        try:
            return resolve_tagged(tag, node.value, self.resolve)
        except ValueError as error:
            raise self._create_node_error(node, "YamlTag", str(error)) from error

    def _create_alias(self, event: Any) -> AliasNode:
        start = event.start_mark.index
        target = self.anchors.get(event.anchor)
        if target is None:
            raise _create_error(self.text, start, "YamlAliases", f"the alias *{event.anchor} has no anchor before it")
        if any(open_node is target for open_node in self.stack):
            raise _create_error(self.text, start, "YamlAliases", f"the alias *{event.anchor} must not contain itself")
        self._count_alias(target, start)
        return AliasNode(start, event.end_mark.index, target, target.data)

    def _count_alias(self, target: YamlNode, offset: int) -> None:
        size, height = self._measure(target)
        self.budget.aliases -= 1
        self.budget.nodes -= size
        if self.budget.aliases < 0 or self.budget.nodes < 0:
            limits = self.budget.limits
            message = (
                f"a file can contain at most {limits.aliases} aliases, and all its aliases together can represent"
                f" at most {limits.expanded_nodes} nodes"
            )
            raise _create_error(self.text, offset, "YamlAliases", message)
        if len(self.stack) + height > self.budget.limits.depth:
            raise self._create_depth_error(offset)

    def _measure(self, node: YamlNode) -> tuple[int, int]:
        """Return the number of nodes and the depth of a node after all aliases in it are expanded."""
        if isinstance(node, AliasNode):
            return self._measure(node.target)
        if isinstance(node, ScalarNode):
            return 1, 0
        if id(node) not in self.measures:
            inner = [self._measure(child) for child in node.children]
            size, height = sum(size for size, _ in inner), max((height for _, height in inner), default=0)
            self.measures[id(node)] = size + 1, height + 1
        return self.measures[id(node)]

    def _read_mapping(self, node: MappingNode) -> dict[str, Any]:
        data: dict[str, Any] = {}
        merged: YamlNode | None = None
        children = iter(node.children)
        for key, value in zip(children, children, strict=True):
            name = key.data if key.data.__class__ is str else self._read_key(key)
            if name == "<<" and is_merge_key(key):
                merged = value if merged is None or self.use_last_duplicate else self._raise_duplicate(key, name)
            elif name in data and not self.use_last_duplicate:
                self._raise_duplicate(key, name)
            else:
                data[name] = value.data
        if merged is not None:
            for name, value in self._read_merge_key(merged).items():
                data.setdefault(name, value)
        return data

    def _read_key(self, key: YamlNode) -> str:
        try:
            return convert_key_to_text(key.data)
        except ValueError as error:
            raise self._create_node_error(key, "YamlKey", str(error)) from error

    def _raise_duplicate(self, key: YamlNode, name: str) -> Any:
        raise self._create_node_error(key, "YamlDuplicateKey", f'the key "{name[:80]}" occurs twice in one mapping')

    def _read_merge_key(self, value: YamlNode) -> dict[str, Any]:
        """Return the entries that the merge key `<<` adds to its mapping.

        If `value` is a list of mappings, and several mappings contain the same key, the first mapping takes precedence.
        """
        sources = value.data if isinstance(value.data, list) else [value.data]
        data: dict[str, Any] = {}
        for source in sources:
            if not isinstance(source, dict):
                raise self._create_node_error(
                    value, "YamlMerge", "the value of a merge key << must be a mapping or a list of mappings"
                )
            data = source | data
        return data

    def _create_depth_error(self, offset: int) -> YamlError:
        return _create_error(self.text, offset, "YamlTooDeep", _format_depth_message(self.budget.limits.depth))

    def _create_node_error(self, node: YamlNode, code: str, message: str) -> YamlError:
        return _create_error(self.text, node.start, code, message)
