"""Schemas as files: one for each kind and version, and an index that picks among them by apiVersion and kind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reconciler.krm.identity import split_api_version
from reconciler.reporting.schemas.kinds import DIALECT, Kind, kind_schema

INDEX = "all.json"
_SETTINGS = "settings.json"


def schema_files(kinds: Sequence[Kind], settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each file by its path: `<group>/<kind>_<version>.json`, the index, and that of the settings.

    Validators of Kubernetes objects know this layout from collections of CRDs.
    """
    files = {path_of(kind, version): schema_text(kind_schema(kind)) for kind in kinds for version in kind.api_versions}
    return {INDEX: schema_text(index_schema(kinds)), _SETTINGS: schema_text(settings), **dict(sorted(files.items()))}


def path_of(kind: Kind, api_version: str) -> str:
    """Return where the schema of a kind stands."""
    group, version = split_api_version(api_version)
    return f"{group}/{kind.name.lower()}_{version}.json"


def index_schema(kinds: Iterable[Kind]) -> dict[str, Any]:
    """Return one schema for all objects: each is held to its kind's, and any other may say what it likes."""
    listed = tuple(kinds)
    versions = sorted({version for kind in listed for version in kind.api_versions})
    return {
        "$schema": DIALECT,
        "description": "Each object is held to the schema of its kind; of other kinds nothing is asked.",
        "properties": {"apiVersion": _proposed(versions), "kind": _proposed(sorted({kind.name for kind in listed}))},
        "allOf": [{"if": _is_of(kind), "then": dict(kind.body)} for kind in listed],
    }


def schema_text(schema: Mapping[str, Any]) -> str:
    """Return a schema as it is written to files."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _proposed(words: Sequence[str]) -> dict[str, Any]:
    # others are allowed; what they mean is for the kinds to say
    return {"anyOf": [{"enum": [*words]}, {"type": "string"}]}


def _is_of(kind: Kind) -> dict[str, Any]:
    # whatever the version: of another one editors are to tell that it is none
    begins = kind.group.replace(".", "\\.")
    told = {"apiVersion": {"type": "string", "pattern": f"^{begins}/"}, "kind": {"const": kind.name}}
    return {"required": ["apiVersion", "kind"], "properties": told}
