"""Texts of upstream's tests, which are raw strings of Go."""

from __future__ import annotations


def raw_string(text: str | None) -> str:
    """Return a text without the indent of the quote that ends it: tabs that no YAML parser accepts."""
    return (text or "").rstrip(" \t")
