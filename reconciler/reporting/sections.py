"""Sections: parts of documents that people may have made anything of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def section(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a field that is to be a mapping; {} when it is absent or something else."""
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}


def items(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the mappings in a field that is to be a list of them; [] when it is absent or something else."""
    value = data.get(name)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
