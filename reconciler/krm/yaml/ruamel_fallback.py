"""Edits of a document with ruamel.yaml. Use it only if no safe text edit is known.

Comments and the order of keys are kept, but the formatting of other lines can change.
"""

from __future__ import annotations

import io
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from reconciler.krm.yaml.compare import align_items, is_equal_data
from reconciler.krm.yaml.emit import IndentStyle, is_ambiguous


def rewrite_with_ruamel(text: str, data: Any, style: IndentStyle) -> str | None:
    """Edit the document `text` so that it contains `data`. Return None if ruamel.yaml fails.

    The caller must parse the result and compare it with `data`, because ruamel.yaml reads YAML 1.2, and this package
    reads YAML 1.1.
    """
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    yaml.indent(mapping=style.step, sequence=2 if style.compact else 4, offset=0 if style.compact else 2)
    target = io.StringIO()
    try:
        yaml.dump(_change(yaml.load(text), data), target)
    except (YAMLError, ValueError, AttributeError, TypeError, KeyError, IndexError, NotImplementedError):
        # Catch many types of exceptions, because ruamel.yaml raises different exceptions on unusual input.
        return None
    return target.getvalue()


def _change(node: Any, data: Any) -> Any:
    """Return a node that contains `data`. Change `node` in place if it has the same type as `data`."""
    if isinstance(node, CommentedMap) and isinstance(data, dict):
        return _change_mapping(node, data)
    if isinstance(node, CommentedSeq) and isinstance(data, list):
        return _change_sequence(node, data)
    return node if is_equal_data(node, data) else _create_node(data)


def _change_mapping(node: CommentedMap, data: dict[str, Any]) -> CommentedMap:
    for key in [key for key in node if key not in data]:
        del node[key]
    for key, value in data.items():
        node[key] = _change(node[key], value) if key in node else _create_node(value)
    return node


def _change_sequence(node: CommentedSeq, data: list[Any]) -> CommentedSeq:
    for old, new in reversed(align_items(list(node), data)):
        if old is not None and new is not None:
            node[old] = _change(node[old], data[new])
        elif old is not None:
            del node[old]
    for old, new in align_items(list(node), data):
        if old is None and new is not None:
            node.insert(new, _create_node(data[new]))
    return node


def _create_node(value: Any) -> Any:
    match value:
        case dict():
            return {key: _create_node(child) for key, child in value.items()}
        case list():
            return [_create_node(child) for child in value]
        case str() if is_ambiguous(value):
            return DoubleQuotedScalarString(value)
        case _:
            return value
