"""Which schemas there are, and one of them by its name, in whatever case it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reconciler.reporting.schemas.kinds import Kind, kind_schema

ALL, SETTINGS = "all", "settings"
_OTHERS = {
    SETTINGS: "The settings file of this program.",
    ALL: "One schema that picks among these by apiVersion and kind.",
}


def kind_lines(kinds: Sequence[Kind]) -> list[str]:
    """Return the kinds by their API groups, each with its sentence."""
    width = max(len(kind.name) for kind in kinds) + 2
    lines: list[str] = []
    for group in dict.fromkeys(kind.api_versions for kind in kinds):
        lines += ["", ", ".join(group)] if lines else [", ".join(group)]
        lines += [f"  {kind.name:{width}}{kind.description}" for kind in kinds if kind.api_versions == group]
    return [*lines, "", *(f"{name:{width + 2}}{what}" for name, what in _OTHERS.items())]


def kinds_data(kinds: Sequence[Kind]) -> list[dict[str, Any]]:
    """Return the kinds as data."""
    return [{"kind": kind.name, "apiVersions": [*kind.api_versions], "description": kind.description} for kind in kinds]


def schema_named(name: str, kinds: Sequence[Kind]) -> dict[str, Any] | None:
    """Return the schema of the kind of this name, in whatever case, None where there is none."""
    found = next((kind for kind in kinds if kind.name.lower() == name.lower()), None)
    return kind_schema(found) if found else None
