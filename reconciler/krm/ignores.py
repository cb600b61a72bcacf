"""Ignore files: a .krmignore, in the syntax of .gitignore (kpt.md 1.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


def read_ignores(content: bytes) -> GitIgnoreSpec:
    """Return the patterns of an ignore file; what reads them is loaded with the first one."""
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(content.decode("utf-8", "replace").splitlines())
