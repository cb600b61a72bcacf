"""The starlark language as scripts and modules have it: its dialect and its built-in names."""

from __future__ import annotations

import starlark


def dialect() -> starlark.Dialect:
    """Return the dialect of scripts and modules: top-level statements, functions, load, f-strings."""
    chosen = starlark.Dialect.extended()
    chosen.enable_top_level_stmt = True
    chosen.enable_f_strings = True
    return chosen


def language() -> starlark.Globals:
    """Return the built-in names of the language; printing is left to the caller."""
    extension = starlark.LibraryExtension
    return starlark.Globals.extended_by([extension.StructType, extension.Json, extension.Map, extension.Filter])
