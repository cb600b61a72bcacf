"""Field names of built-in Kubernetes kinds, from data that scripts/make_schema_data.py writes.

The data contains names and nesting only. Types and allowed values are in the schemas of the extra `k8s-schemas`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

_LIST = "[]"


@dataclass(frozen=True)
class UnknownField:
    """The first step of a path that is not a field; `number` counts steps from 0, `allowed` are the fields there."""

    number: int
    allowed: tuple[str, ...]


def unknown_field(api_version: str, kind: str, path: Sequence[str]) -> UnknownField | None:
    """Return the first step of a path that no release of Kubernetes has as a field of this kind.

    None also where anything may be: kinds and API versions without a schema, and below maps with free keys such as
    labels. A step into a list is an index, a filter or `-`, and is not checked.
    """
    where = _kinds().get(api_version, {}).get(kind, "")
    for number, step in enumerate(path):
        if where.startswith(_LIST):
            where = where.removeprefix(_LIST)
            continue
        if not where:
            return None
        fields = _fields(where)
        if step not in fields:
            return UnknownField(number, tuple(fields))
        where = fields[step]
    return None


@cache
def _data() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    data: Mapping[str, Mapping[str, Mapping[str, str]]]
    data = json.loads(resources.files(__package__).joinpath("field_names.json").read_bytes())
    return data


def _kinds() -> Mapping[str, Mapping[str, str]]:
    return _data()["kinds"]


@cache
def _fields(definition: str) -> Mapping[str, str]:
    """Return the fields of a definition with their type: another definition, `[]` and one, or "" for anything."""
    text = str(_data()["fields"][definition])
    return {name: kind for name, _, kind in (one.partition(":") for one in text.split())}
