"""Setters: the names in `# kpt-set:` comments, and the values that fields show for them (kpt.md 15.5)."""

from __future__ import annotations

import re2

from reconciler.packages.functions.function import scalar_text
from reconciler.packages.functions.limits import Budget
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


def shown_values(pattern: str, text: str, budget: Budget) -> dict[str, str]:
    """Return what a field's text shows for the setters of its pattern; nothing unless it shows a value for each.

    The values are those of the regular expression that has a greedy group on one line in place of each placeholder.
    They are searched for directly: such an expression takes memory for the product of its length and its groups.
    Raises LimitError.
    """
    budget.require_few(pattern.count("${"), "the setter comment", pattern)
    names, parts = setter_names(pattern), _PLACEHOLDER.split(pattern)[::2]
    budget.scan(len(pattern) + len(text) * max(map(len, parts)))
    values = next((found for line in text.split("\n") if (found := _values_in(line, parts)) is not None), [])
    return dict(zip(names, values, strict=True)) if values and all(values) else {}


def _values_in(line: str, parts: list[str]) -> list[str] | None:
    """Return the texts between the parts in a line, the first one as long as possible, then the next; None for none."""
    start = line.find(parts[0])
    if start < 0:
        return None
    begin, end = start + len(parts[0]), len(line)
    spans = []
    # the last part is as far right as possible, and each other part as far right as the next one permits
    for part in reversed(parts[1:]):
        at = line.rfind(part, begin, end)
        if at < 0:
            return None
        spans.append((at, at + len(part)))
        end = at
    starts = [begin, *(after for _, after in reversed(spans))]
    return [line[left:right] for left, (right, _) in zip(starts, reversed(spans), strict=False)]


def list_values(text: str) -> list[str] | None:
    """Return the elements, as text, of a setter's value that is a YAML list; None for any other value."""
    parsed = parse_cached(text.encode())
    values = None if isinstance(parsed, Unparsable) or len(parsed.documents) != 1 else parsed.documents[0].data
    return [scalar_text(value) or "" for value in values] if isinstance(values, list) else None
