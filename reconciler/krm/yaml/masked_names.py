"""Placeholders for names, so that the same YAML work for many clusters is done once.

The files of two clusters often differ only in the name of the cluster. `NameMask` replaces each name by a placeholder.
The texts of both clusters are then equal, and the second cluster uses the cached result of the first cluster. Then
`NameMask` writes the names into this result, which is faster than another parse or edit.

A placeholder has the same length as its name, so that the replacement moves no other character. `NameMask` returns None
for each text for which the result could depend on the characters of a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

from reconciler.krm.yaml.document import Document
from reconciler.krm.yaml.emit import is_ambiguous
from reconciler.krm.yaml.file import YamlFile
from reconciler.krm.yaml.nodes import AliasNode, MappingNode, ScalarNode, SequenceNode, YamlNode
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached

# A placeholder must be as long as the name that it replaces, and contain `_MARK` and a number, e.g. "zqx0qq".
# Therefore, shorter names get no placeholder.
_MIN_NAME_LENGTH = 6
_MAX_NAMES = 10
_MARK = "zqx"
_LABEL = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
# `NameMask` does not support a text that contains `_MARK`, or that can contain an anchor (&), an alias (*) or a tag
# (!).
_UNSUPPORTED = (_MARK, "&", "*", "!")
_MAX_CACHED_PATHS = 2048
# Maximum number of cached documents. A render reads a document soon after the edit that created the document.
_MAX_CACHED_DOCUMENTS = 256

# The paths from a node to all scalars with placeholders, as a tree. Each pair contains the index of a child, and the
# paths below this child. For a scalar with a placeholder, the tree is ().
_Paths: TypeAlias = tuple[tuple[int, "_Paths"], ...]


class _AmbiguousScalarError(Exception):
    """Raised if a parser may read a scalar with a name or placeholder as a number, boolean, date or null."""


@dataclass(frozen=True)
class NameMask:
    """Replaces names by placeholders, and placeholders by names. `pairs` contains each name with its placeholder."""

    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def from_names(cls, names: Iterable[str]) -> NameMask:
        """Create placeholders for the names of objects. Omit a name that is short, or that contains another name."""
        selected: list[str] = []
        for name in sorted({*names}, key=len):
            is_supported = len(name) >= _MIN_NAME_LENGTH and _NAME.fullmatch(name) and _MARK not in name
            if is_supported and len(selected) < _MAX_NAMES and not any(other in name for other in selected):
                selected.append(name)
        return cls(tuple((name, f"{_MARK}{index}".ljust(len(name), "q")) for index, name in enumerate(selected)))

    def mask(self, text: str) -> str | None:
        """Return the text with placeholders. Return None if this text is not supported."""
        if any(part in text for part in _UNSUPPORTED):
            return None
        masked = text
        for name, placeholder in self.pairs:
            masked = masked.replace(name, placeholder)
        # Reject a text in which a placeholder and the characters next to it form a different name or placeholder.
        return masked if self.unmask(masked) == text else None

    def is_used_in(self, text: str) -> bool:
        """Return whether the text contains a name or a placeholder."""
        return _MARK in text or any(name in text for name, _ in self.pairs)

    def mask_data(self, data: Any) -> Any:
        """Return YAML data with placeholders in its keys and values."""
        if isinstance(data, dict):
            return {self.mask_data(key): self.mask_data(value) for key, value in data.items()}
        if isinstance(data, list):
            return [self.mask_data(value) for value in data]
        return self.mask(data) if isinstance(data, str) else data

    def unmask(self, text: str) -> str:
        """Return the text with the names instead of the placeholders."""
        for name, placeholder in self.pairs:
            text = text.replace(placeholder, name)
        return text

    def unmask_file(self, file: YamlFile) -> YamlFile | None:
        """Replace the placeholders in a parsed file by the names.

        Return None if this is not possible. The caller must then replace the placeholders in the text, and parse it.
        """
        documents = [unmasked for document in file.documents if (unmasked := self.unmask_document(document))]
        if len(documents) < len(file.documents):
            return None
        return YamlFile(tuple(documents), tuple(map(self.unmask, file.gaps)), file.bom)

    def unmask_document(self, document: Document) -> Document | None:
        """Replace the placeholders in a parsed document by the names.

        Return None if this is not possible. The caller must then replace the placeholders in the text, and parse it.
        """
        return _unmask_document(self, document) if _MARK in document.text else document

    def unmask_node(self, node: YamlNode, paths: _Paths) -> YamlNode:
        """Replace each placeholder in a node by its name. Only the children at `paths` contain placeholders."""
        if isinstance(node, ScalarNode):
            return self._unmask_scalar(node)
        assert not isinstance(node, AliasNode), "a masked text contains no aliases"
        children = list(node.children)
        for index, inner in paths:
            children[index] = self.unmask_node(children[index], inner)
        if isinstance(node, SequenceNode):
            items = [child.data for child in children]
            return SequenceNode(node.start, node.end, node.flow, node.tag, node.anchor, children, items)
        values = zip(map(self.unmask, node.data), (child.data for child in children[1::2]), strict=True)
        return MappingNode(node.start, node.end, node.flow, node.tag, node.anchor, children, dict(values))

    def _unmask_scalar(self, node: ScalarNode) -> ScalarNode:
        value = self.unmask(node.value)
        if node.data.__class__ is not str or is_ambiguous(node.value) or is_ambiguous(value):
            raise _AmbiguousScalarError
        return ScalarNode(node.start, node.end, value, node.style, node.tag, node.anchor, value)


@cached(_MAX_CACHED_DOCUMENTS)
def _unmask_document(mask: NameMask, document: Document) -> Document | None:
    paths = _find_placeholders(document)
    try:
        root = document.root if paths is None else mask.unmask_node(document.root, paths)
    except _AmbiguousScalarError:
        return None
    return Document(mask.unmask(document.text), document.line, root)


@cached(_MAX_CACHED_PATHS)
def _find_placeholders(document: Document) -> _Paths | None:
    """Return the paths to the scalars that contain placeholders. Return None if no scalar contains a placeholder."""
    return _find_paths(document.root)


def _find_paths(node: YamlNode) -> _Paths | None:
    if isinstance(node, ScalarNode):
        return () if _MARK in node.value else None
    assert not isinstance(node, AliasNode), "a masked text contains no aliases"
    found = ((index, _find_paths(child)) for index, child in enumerate(node.children))
    return tuple((index, paths) for index, paths in found if paths is not None) or None
