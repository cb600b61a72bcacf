"""Paths of fields in the words of people."""

from __future__ import annotations

from collections.abc import Sequence


def field_path(path: Sequence[str | int]) -> str:
    """Return a path as people write it: `pipeline.mutators[0].configPath`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")
