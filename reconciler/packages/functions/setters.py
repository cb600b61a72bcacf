"""Setters: the names in `# kpt-set:` comments, and the values that fields show for them (kpt.md 15.5)."""

from __future__ import annotations

import re2

from reconciler.packages.functions.function import scalar_text
from reconciler.packages.parsing import Unparsable, parse_cached

SETTER_COMMENT = "# kpt-set: "
_PLACEHOLDER = re2.compile(r"\$\{([^}]*)\}")


def setter_pattern(comment: str | None) -> str:
    """Return the pattern of a setter comment, as `nginx:${tag}`; "" for any other comment."""
    return comment.removeprefix(SETTER_COMMENT).strip() if comment and comment.startswith(SETTER_COMMENT) else ""


def setter_names(pattern: str) -> list[str]:
    """Return the setters that a pattern names, in order."""
    return [match.group(1) for match in _PLACEHOLDER.finditer(pattern)]


def only_setter(pattern: str) -> str | None:
    """Return the setter that a pattern consists of, None when there is more to it."""
    match = _PLACEHOLDER.fullmatch(pattern)
    return match.group(1) if match else None


def shown_values(pattern: str, text: str) -> dict[str, str]:
    """Return what a field's text shows for the setters of its pattern; nothing unless it shows a value for each."""
    names, parts = setter_names(pattern), _PLACEHOLDER.split(pattern)[::2]
    match = re2.search("(.*)".join(re2.escape(part) for part in parts), text)
    values = match.groups() if match else ()
    return dict(zip(names, values, strict=True)) if values and all(values) else {}


def list_values(text: str) -> list[str] | None:
    """Return the elements, as text, of a setter's value that is a YAML list; None for any other value."""
    parsed = parse_cached(text.encode())
    values = None if isinstance(parsed, Unparsable) or len(parsed.documents) != 1 else parsed.documents[0].data
    return [scalar_text(value) or "" for value in values] if isinstance(values, list) else None
