"""A variant's functions in the package's own pipeline: first, under derived names, its older ones gone (porch 8.2)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.rules.variants.model import Function

_PREFIX = "PackageVariant"


def prepend_functions(
    existing: Sequence[Mapping[str, Any]], own: Sequence[Function], variant: str
) -> list[dict[str, Any]]:
    """Return a pipeline list with the variant's functions first and everyone else's as they stood."""
    foreign = [copy.deepcopy(dict(entry)) for entry in existing if not is_owned(entry.get("name"), variant)]
    return [_named(function, variant, index) for index, function in enumerate(own)] + foreign


def is_owned(name: object, variant: str) -> bool:
    """Tell whether a function of this name was put there by the PackageVariant called `variant`.

    Read from the right, because the name of a variant may hold dots and that of a function may not: IMPL
    splits into four parts and so never recognises the functions of a variant with a dot in its name.
    """
    if not isinstance(name, str):
        return False
    start, _, index = name.rpartition(".")
    owner, _, _function = start.rpartition(".")
    return owner == f"{_PREFIX}.{variant}" and index.isascii() and index.isdecimal()


def _named(function: Function, variant: str, index: int) -> dict[str, Any]:
    renamed = replace(function, name=f"{_PREFIX}.{variant}.{function.name}.{index}")
    return copy.deepcopy(renamed.as_data())
