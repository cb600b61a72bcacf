"""The schema of a definition or an addon: its two sections, and both together (openchoreo 3.4-3.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from reconciler.krm.yaml import Path
from reconciler.rules.composition import codes
from reconciler.rules.composition.faults import Fault
from reconciler.rules.composition.marks import OWN
from reconciler.rules.composition.schema.dialect import Schema, object_of
from reconciler.rules.composition.schema.shorthand import Shorthand
from reconciler.rules.composition.schema.union import united
from reconciler.rules.fields import dotted, named

_TYPES, _PARAMETERS, _ENV_OVERRIDES, _REQUIRED = "types", "parameters", "envOverrides", "requiredByDefault"
_KNOWN = (_TYPES, _PARAMETERS, _ENV_OVERRIDES, _REQUIRED)


@dataclass(frozen=True)
class ComponentSchema:
    """What can be set, and where: a section with an error has no fields, and `full` has those of both."""

    parameters: Schema
    env_overrides: Schema
    full: Schema
    faults: tuple[Fault, ...] = ()
    """Errors and infos, in the order of reading."""


def read_schema(data: Any, path: Path) -> ComponentSchema:
    """Return the schema that `spec.schema` says in shorthand, absent or not, with all its faults (openchoreo 3)."""
    faults = list(_shape_faults(data, path))
    given = data if isinstance(data, Mapping) else {}
    types, parameters, env_overrides = (_mapping(given.get(name)) for name in (_TYPES, _PARAMETERS, _ENV_OVERRIDES))
    reader = Shorthand(types, (*path, _TYPES), required_by_default=given.get(_REQUIRED) is True)
    reader.check_types()
    first = reader.section(parameters, (*path, _PARAMETERS)) or object_of({}, [])
    second = reader.section(env_overrides, (*path, _ENV_OVERRIDES)) or object_of({}, [])
    full, collisions = united(first, second, (*path, _ENV_OVERRIDES))
    return ComponentSchema(first, second, full, (*faults, *reader.faults, *collisions))


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _shape_faults(data: Any, path: Path) -> Iterator[Fault]:
    if data is not None and not isinstance(data, Mapping):
        yield Fault(codes.SHORTHAND_FIELD_TYPE, path, f"{dotted(path)} must be a mapping, not {named(data)}")
        return
    for name, value in (data or {}).items():
        place = (*path, str(name))
        if name == _REQUIRED:
            if not isinstance(value, bool):
                message = f"{dotted(place)} must be true or false, not {named(value)}"
                yield Fault(codes.SHORTHAND_FIELD_TYPE, place, message)
        elif name in _KNOWN:
            if value is not None and not isinstance(value, Mapping):
                message = f"{dotted(place)} must be a mapping of names to types, not {named(value)}"
                yield Fault(codes.SHORTHAND_FIELD_TYPE, place, message)
        elif not str(name).startswith(OWN):
            yield Fault(codes.UNKNOWN_FIELD, place, f"{dotted(place)} is unknown; {_allowed(str(name))}")


def _allowed(name: str) -> str:
    meant = get_close_matches(name, _KNOWN, 1)
    return f"allowed are {', '.join(_KNOWN)}" + (f"; did you mean {meant[0]}?" if meant else "")
