"""Texts from tests of other projects, which are raw strings in Go."""

from __future__ import annotations


def raw_string(text: str | None) -> str:
    """Return a text without the indentation of its closing quote: tabs, which no YAML parser accepts."""
    return (text or "").rstrip(" \t")
