"""Markdown around what people wrote: code that it cannot end, diffs that fold away."""

from __future__ import annotations

import re
from collections.abc import Iterable


def folded(diffs: Iterable[tuple[str, str]]) -> list[str]:
    """Return the lines that show diffs on request; none without a diff."""
    text = "".join(diff for _, diff in diffs)
    return folded_block("Diff", text, "diff") if text else []


def folded_block(title: str, text: str, language: str) -> list[str]:
    """Return the lines that show a text on request; the title is ours."""
    return ["", f"<details><summary>{title}</summary>", "", _fenced(text, language), "", "</details>"]


def code(text: str) -> str:
    """Return a code span that the text cannot end (CommonMark 6.1)."""
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _fenced(text: str, language: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}{fence}"
