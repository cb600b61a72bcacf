"""Fresh text from data: block style, keys in their order, nothing that two readers would read differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.krm.yaml.error import YamlError
from reconciler.krm.yaml.scalar import LONGEST_SIMPLE_KEY, block_scalar, double_quoted, inline_text


@dataclass(frozen=True)
class Style:
    """How a document indents: `step` columns per mapping, sequences at their key's column when `compact`."""

    step: int = 2
    compact: bool = True


DEFAULT_STYLE = Style()


def emit(data: object) -> str:
    """Return `data` as the text of one document; it ends in a newline.

    Raises YamlError (YamlValue) for what is not dict, list, str, int, float, bool or None, and for keys that are no
    strings.
    """
    head, body = value_lines(data, DEFAULT_STYLE)
    return "\n".join([head, *indented(body, 2)] if head else body) + "\n"


def value_lines(value: Any, style: Style, scalar: str = "") -> tuple[str, list[str]]:
    """Return (what stands on the line of the key or dash, the lines below, not yet indented).

    `scalar` is the style a string is to keep: "", "'", '"', "|" or ">".
    """
    match value:
        case dict() if value:
            return "", list(_map_lines(value, style))
        case list() if value:
            return "", list(_seq_lines(value, style))
        case dict():
            return "{}", []
        case list():
            return "[]", []
        case str() if scalar in ("|", ">") or ("\n" in value and not scalar):
            return block_scalar(value, scalar or "|") or (inline_text(value, flow=False), [])
        case _:
            return inline_text(value, flow=False, style=scalar), []


def key_line(key: Any) -> str:
    """Return a mapping's key with its colon; a key too long for one line's lookahead gets `?`."""
    if not isinstance(key, str):
        raise YamlError("YamlValue", f"a mapping's keys must be strings, not {type(key).__name__}")
    text = inline_text(key, flow=False)
    return f"{text}:" if len(text) <= LONGEST_SIMPLE_KEY else f"? {double_quoted(key)}\n:"


def indented(lines: Sequence[str], columns: int) -> Iterator[str]:
    """Yield the lines moved right; empty lines stay empty."""
    prefix = " " * columns
    return (prefix + line if line else "" for line in lines)


def entry_lines(key: Any, value: Any, style: Style) -> list[str]:
    """Return the lines of one entry of a block mapping, beginning in column 0."""
    head, body = value_lines(value, style)
    first = [*key_line(key).split("\n")]
    if head:
        first[-1] += f" {head}"
    inner = 0 if isinstance(value, list) and style.compact and len(first) == 1 else style.step
    return [*first, *indented(body, inner)]


def item_lines(value: Any, style: Style) -> list[str]:
    """Return the lines of one item of a block sequence, beginning with its dash in column 0."""
    head, body = value_lines(value, style)
    if head:
        return [f"- {head}", *indented(body, 2)]
    return [f"- {body[0]}", *indented(body[1:], 2)]


def _map_lines(value: dict[Any, Any], style: Style) -> Iterator[str]:
    for key, child in value.items():
        yield from entry_lines(key, child, style)


def _seq_lines(value: list[Any], style: Style) -> Iterator[str]:
    for child in value:
        yield from item_lines(child, style)


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
