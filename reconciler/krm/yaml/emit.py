"""Fresh text from data: block style, keys in their order, nothing that two readers would read differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.caching import cached
from reconciler.krm.yaml.error import YamlError
from reconciler.krm.yaml.scalar import LONGEST_SIMPLE_KEY, block_scalar, double_quoted, inline_text


@dataclass(frozen=True)
class Style:
    """How a document indents: `step` columns per mapping, sequences at their key's column when `compact`."""

    step: int = 2
    compact: bool = True


DEFAULT_STYLE = Style()
WIDE_STYLE = Style(compact=False)
"""Sequences to the right of their key, as in most Kubernetes examples."""

_REMEMBERED_KEYS = 4_096
_REMEMBERED_TEXTS = 8_192


def emit(data: object, style: Style = DEFAULT_STYLE) -> str:
    """Return `data` as the text of one document in a style; it ends in a newline.

    Raises YamlError (YamlValue) for what is not dict, list, str, int, float, bool or None, and for keys that are no
    strings.
    """
    head, body = value_lines(data, style)
    return "\n".join([head, *indented(body, 2)] if head else body) + "\n"


def value_lines(value: Any, style: Style, scalar: str = "") -> tuple[str, list[str]]:
    """Return (what stands on the line of the key or dash, the lines below, not yet indented).

    `scalar` is the style a string is to keep: "", "'", '"', "|" or ">".
    """
    lines: list[str] = []
    match value:
        case dict() if value:
            _add_entries(lines, "", value, style)
        case list() if value:
            _add_items(lines, "", value, style)
        case str() if scalar in ("|", ">") or ("\n" in value and not scalar):
            return _text_lines(value, scalar)
        case str():
            return inline_text(value, flow=False, style=scalar), []
        case _:
            return _empty_or_other(value), []
    return "", lines


# the same few keys stand in every document
@cached(_REMEMBERED_KEYS)
def key_line(key: Any) -> str:
    """Return a mapping's key with its colon; a key too long for one line's lookahead gets `?`."""
    text = inline_text(_key(key), flow=False)
    return f"{text}:" if len(text) <= LONGEST_SIMPLE_KEY else f"? {double_quoted(key)}\n:"


def indented(lines: Sequence[str], columns: int) -> Iterator[str]:
    """Yield the lines moved right; empty lines stay empty."""
    prefix = " " * columns
    return (prefix + line if line else "" for line in lines)


def entry_lines(key: Any, value: Any, style: Style) -> list[str]:
    """Return the lines of one entry of a block mapping, beginning in column 0."""
    lines: list[str] = []
    _add_entries(lines, "", {key: value}, style)
    return lines


def item_lines(value: Any, style: Style) -> list[str]:
    """Return the lines of one item of a block sequence, beginning with its dash in column 0."""
    lines: list[str] = []
    _add_items(lines, "", [value], style)
    return lines


# one list for all lines, each indented once: the whole status branch is written to memory in every pass


def _add_entries(lines: list[str], indent: str, entries: dict[Any, Any], style: Style) -> None:
    inner = indent + " " * style.step
    for key, value in entries.items():
        name, compact = key_line(key), style.compact
        if "\n" in name:
            question, name = name.split("\n")
            lines.append(indent + question)
            compact = False
        if isinstance(value, str):
            _add_text(lines, f"{indent}{name} ", inner, value)
        elif value and isinstance(value, dict):
            lines.append(indent + name)
            _add_entries(lines, inner, value, style)
        elif value and isinstance(value, list):
            lines.append(indent + name)
            _add_items(lines, indent if compact else inner, value, style)
        else:
            lines.append(f"{indent}{name} {_empty_or_other(value)}")


def _add_items(lines: list[str], indent: str, items: list[Any], style: Style) -> None:
    inner = indent + "  "
    for value in items:
        start = len(lines)
        if isinstance(value, str):
            _add_text(lines, inner, inner, value)
        elif value and isinstance(value, dict):
            _add_entries(lines, inner, value, style)
        elif value and isinstance(value, list):
            _add_items(lines, inner, value, style)
        else:
            lines.append(inner + _empty_or_other(value))
        lines[start] = f"{indent}- {lines[start][len(inner) :]}"


def _add_text(lines: list[str], before: str, inner: str, text: str) -> None:
    if "\n" not in text:
        lines.append(before + _one_line(text))
        return
    head, body = _text_lines(text)
    lines.append(before + head)
    lines += indented(body, len(inner))


def _text_lines(text: str, scalar: str = "") -> tuple[str, list[str]]:
    return block_scalar(text, scalar or "|") or (inline_text(text, flow=False), [])


@cached(_REMEMBERED_TEXTS)
def _one_line(text: str) -> str:
    return inline_text(text, flow=False)


def _empty_or_other(value: Any) -> str:
    match value:
        case dict():
            return "{}"
        case list():
            return "[]"
        case _:
            return inline_text(value, flow=False)


def flow_text(value: Any) -> str:
    """Return `value` on one line, in flow style."""
    match value:
        case dict():
            return "{" + ", ".join(f"{inline_text(_key(k), flow=True)}: {flow_text(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(flow_text, value)) + "]"
        case _:
            return inline_text(value, flow=True)


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise YamlError("YamlValue", f"a mapping's keys must be strings, not {type(key).__name__}")
    return key
