"""Edits through ruamel.yaml, for what the splicer declines: comments and order stay, the layout roughly so."""

from __future__ import annotations

import io
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from reconciler.krm.yaml.align import align
from reconciler.krm.yaml.emit import Style
from reconciler.krm.yaml.same import same
from reconciler.krm.yaml.scalar import is_ambiguous


def rewrite(text: str, data: Any, style: Style) -> str | None:
    """Return the document `text` changed to mean `data`, None when ruamel.yaml cannot read it or write it.

    Whether the result means `data` is for the caller to check: ruamel.yaml reads YAML 1.2, and we do not.
    """
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    yaml.indent(mapping=style.step, sequence=2 if style.compact else 4, offset=0 if style.compact else 2)
    target = io.StringIO()
    try:
        yaml.dump(_changed(yaml.load(text), data), target)
    except (YAMLError, ValueError, AttributeError, TypeError, KeyError, IndexError, NotImplementedError):
        # its round trip has many ways to fail on odd input, none of which concern our caller
        return None
    return target.getvalue()


def _changed(node: Any, data: Any) -> Any:
    """Return `node` changed to hold `data`, in place as far as its kind allows."""
    if isinstance(node, CommentedMap) and isinstance(data, dict):
        return _changed_map(node, data)
    if isinstance(node, CommentedSeq) and isinstance(data, list):
        return _changed_seq(node, data)
    return node if same(node, data) else _fresh(data)


def _changed_map(node: CommentedMap, data: dict[str, Any]) -> CommentedMap:
    for key in [key for key in node if key not in data]:
        del node[key]
    for key, value in data.items():
        node[key] = _changed(node[key], value) if key in node else _fresh(value)
    return node


def _changed_seq(node: CommentedSeq, data: list[Any]) -> CommentedSeq:
    for old, new in reversed(align(list(node), data)):
        if old is not None and new is not None:
            node[old] = _changed(node[old], data[new])
        elif old is not None:
            del node[old]
    for old, new in align(list(node), data):
        if old is None and new is not None:
            node.insert(new, _fresh(data[new]))
    return node


def _fresh(value: Any) -> Any:
    match value:
        case dict():
            return {key: _fresh(child) for key, child in value.items()}
        case list():
            return [_fresh(child) for child in value]
        case str() if is_ambiguous(value):
            return DoubleQuotedScalarString(value)
        case _:
            return value
