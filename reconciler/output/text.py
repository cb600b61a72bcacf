"""Formats values, names, field paths and counts on one line, and blocks of Markdown.

Every function returns text that is safe for a terminal or a Markdown page. The other modules of `reconciler.output`
compose longer texts, such as a plan, from these parts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence

from reconciler.redaction import redact_urls

# The default for the maximum number of diff lines per file.
MAX_DIFF_LINES = 200

MAX_VALUE_CHARACTERS = 60
_ID_LENGTH = 12
_CONTEXT_CHARACTERS = 12
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_OBJECT_REFERENCE = re.compile(r"([A-Z][A-Za-z0-9]*)/(?:_cluster/|/)?(.+)")


def to_one_line(text: str) -> str:
    """Return the text on one line. Replace line breaks by ⏎, and escape control and text direction characters.

    Otherwise, user input could move the cursor of a terminal or add a trailer to a commit message. Credentials in URLs
    are removed.
    """
    text = redact_urls(text)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def shorten(text: str, width: int = MAX_VALUE_CHARACTERS) -> str:
    """Return at most `width` characters of the text. Replace the end of a longer text by "…"."""
    return text if len(text) <= width else text[: max(width - 1, 0)].rstrip() + "…"


def format_names(names: Collection[str], limit: int) -> str:
    """Return the first `limit` names and the number of the remaining names, such as `a, b and 3 more`."""
    listed = [to_one_line(name) for name in names]
    more = f" and {len(listed) - limit} more" if len(listed) > limit else ""
    return ", ".join(listed[:limit]) + more


def list_first_lines(lines: Sequence[str], limit: int | None) -> tuple[str, ...]:
    """Return the first `limit` lines, and a line with the number of the remaining lines, such as `and 3 more`.

    Return all lines if `limit` is None.
    """
    more = [f"and {len(lines) - limit} more"] if limit is not None and len(lines) > limit else []
    return (*lines[:limit], *more)


def format_object_reference(reference: str) -> str:
    """Convert an object reference `Kind/namespace/name` to `Kind namespace/name`. Return any other text unchanged."""
    match = _OBJECT_REFERENCE.fullmatch(reference)
    return f"{match[1]} {match[2]}" if match else reference


def format_path_text(steps: Iterable[str | int]) -> str:
    """Return a field path as text, such as `spec.template.spec.containers[web].image`.

    Args:
        steps: The keys of mappings and the indexes of lists. A step such as `[web]` selects the list item named `web`.
    """
    return "".join(map(_format_step, steps)).removeprefix(".")


def _format_step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if step.startswith("["):
        return step
    return f".{step}" if _PLAIN_KEY.fullmatch(step) else f"[{step}]"


def format_pointer_path(pointer: str) -> str:
    """Convert a JSON pointer to a field path, e.g. `/spec/ports/0` to `spec.ports[0]`.

    A pointer can select a field of a YAML text in a field. The pointer `/data/config.yaml!/replicas` becomes `replicas
    in data[config.yaml]`.
    """
    outer, _, inner = pointer.partition("!")
    path = format_path_text(_split_pointer(outer))
    return f"{format_path_text(_split_pointer(inner))} in {path}" if inner else path


def _split_pointer(pointer: str) -> Iterable[str | int]:
    # Accept invalid pointers, because people can edit the conflicts in status files.
    segments = pointer.split("/")[1:] if pointer.startswith("/") else [pointer] if pointer else []
    for segment in segments:
        yield int(segment) if segment.isdecimal() else segment.replace("~1", "/").replace("~0", "~")


def format_value(value: object, width: int = MAX_VALUE_CHARACTERS) -> str:
    """Return a string unchanged, and any other value as JSON. Shorten the result to `width` characters."""
    return shorten(_to_text(value), width)


def format_both_values(before: object, after: object, width: int = MAX_VALUE_CHARACTERS) -> tuple[str, str]:
    """Return two values as two texts that show their difference.

    If only the types of the values differ, e.g. "1" and 1, both texts are JSON, because their plain texts would be
    equal. If a text is longer than `width`, both texts start a few characters before their first difference.
    """
    old, new = _to_text(before), _to_text(after)
    if old == new:
        old, new = _to_json(before), _to_json(after)
    if max(len(old), len(new)) > width:
        cut = max(_count_common_start(old, new) - _CONTEXT_CHARACTERS, 0)
        old, new = (f"…{text[cut:]}" if cut else text for text in (old, new))
    return shorten(old, width), shorten(new, width)


def _to_text(value: object) -> str:
    if isinstance(value, str) and value and value == value.strip():
        return to_one_line(value)
    return _to_json(value)


def _to_json(value: object) -> str:
    return to_one_line(json.dumps(value, ensure_ascii=False, default=str))


def _escape(char: str) -> str:
    return "⏎" if char == "\n" else char.encode("unicode_escape").decode("ascii")


def _count_common_start(text: str, other: str) -> int:
    pairs = zip(text, other, strict=False)
    return next((index for index, (left, right) in enumerate(pairs) if left != right), min(len(text), len(other)))


def shorten_id(name: str, length: int = _ID_LENGTH) -> str:
    """Return the first characters of a commit ID, tree ID or digest. Keep the prefix `tree:` or `sha256:`."""
    prefix = next((prefix for prefix in ("tree:", "sha256:") if name.startswith(prefix)), "")
    return prefix + name.removeprefix(prefix)[:length]


_DIFF_COLORS = {"@": "\x1b[36m", "-": "\x1b[31m", "+": "\x1b[32m"}
_HEADER_COLOR, _RESET_COLOR = "\x1b[1m", "\x1b[0m"
_HEADER_LINES = 2


def format_diffs(diffs: Iterable[str], *, has_color: bool) -> str:
    """Return unified diffs as one text. If `has_color` is true, lines have the colors of `git diff` on a terminal."""
    return "".join(map(_color_diff, diffs) if has_color else diffs)


def _color_diff(diff: str) -> str:
    lines = [
        (_HEADER_COLOR if index < _HEADER_LINES else _DIFF_COLORS.get(line[:1], ""), line)
        for index, line in enumerate(diff.splitlines())
    ]
    return "".join(f"{color}{line}{_RESET_COLOR}\n" if color else f"{line}\n" for color, line in lines)


def format_folded_diffs(diffs: Iterable[tuple[str, str]]) -> list[str]:
    """Return Markdown lines with a collapsed block that contains all diffs. Return [] if there are no diffs.

    Args:
        diffs: Pairs of file path and unified diff.
    """
    text = "".join(diff for _, diff in diffs)
    return format_folded_block("Diff", text, "diff") if text else []


def format_folded_block(title: str, text: str, language: str) -> list[str]:
    """Return Markdown lines with a collapsed code block. The caller must not pass user input as `title`."""
    return ["", f"<details><summary>{title}</summary>", "", _format_fenced(text, language), "", "</details>"]


def format_code(text: str) -> str:
    """Return a Markdown code span with enough backquotes that backquotes in the text do not end the span."""
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _format_fenced(text: str, language: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}{fence}"
