"""The words of kubeconform and kubeval: one violation of a schema as each of them says it (kpt.md 16)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from reconciler.krm.schema.validation import Violation
from reconciler.packages.kptfile import Profile

Said = tuple[str, str]
"""The field's path, and what is wrong with it."""


def kubeconform_words(violations: Sequence[Violation], profile: Profile) -> Iterator[Said]:
    """Yield what kubeconform says; in `compat` it hides all but the outermost of several violations in one value."""
    if not violations:
        return
    whole = _part(violations, 0)
    for part in whole.parts if isinstance(whole, _Group) else (whole,):
        if isinstance(part, Violation):
            yield _dotted(part.path), _conform_message(part)
        elif profile == "compat":
            yield _dotted(part.path), "validation failed"
        else:
            yield from ((_dotted(leaf.path), _conform_message(leaf)) for leaf in part.leaves)


def kubeval_words(violations: Sequence[Violation], profile: Profile) -> Iterator[Said]:
    """Yield what kubeval says; in `compat` a missing or unknown field stands alone, without the way to it."""
    for violation in violations:
        for path, message in _kubeval_messages(violation):
            field = path[-1:] if violation.rule in ("required", "unknown") and profile == "compat" else path
            yield _dotted(field) or "(root)", message


@dataclass(frozen=True)
class _Group:
    path: tuple[str | int, ...]
    parts: tuple[Violation | _Group, ...]

    @property
    def leaves(self) -> Iterator[Violation]:
        for part in self.parts:
            yield from part.leaves if isinstance(part, _Group) else (part,)


def _part(violations: Sequence[Violation], depth: int) -> Violation | _Group:
    """Return the violations within one value as upstream nests them: unknown fields after what is in the known ones."""
    own = [violation for violation in violations if len(violation.path) == depth]
    deeper = (violation for violation in violations if len(violation.path) > depth)
    children = [_part(list(group), depth + 1) for _, group in groupby(deeper, key=lambda one: one.path[depth])]
    known = [violation for violation in own if violation.rule != "unknown"]
    unknown = [violation for violation in own if violation.rule == "unknown"]
    parts = (*known, *children, *unknown)
    return parts[0] if len(parts) == 1 else _Group(violations[0].path[:depth], parts)


def _conform_message(violation: Violation) -> str:
    names = [_single_quoted(name) for name in violation.names]
    match violation.rule:
        case "type":
            return f"got {_type_name(violation.value, 'number')}, want {' or '.join(violation.names)}"
        case "required":
            return f"missing {'property' if len(names) == 1 else 'properties'} {', '.join(names)}"
        case "unknown":
            return f"additional properties {', '.join(names)} not allowed"
        case "enum":
            values = [_shown(json.loads(name)) for name in violation.names]
            return f"value must be {'one of ' if len(values) > 1 else ''}{', '.join(values)}"
        case "one-of":
            return "'oneOf' failed, none matched"
        case "format":
            return f"{_shown(violation.value)} is not valid {violation.names[0]}"
        case "other":
            return violation.names[0]


def _kubeval_messages(violation: Violation) -> Iterator[tuple[tuple[str | int, ...], str]]:
    path, names = violation.path, violation.names
    match violation.rule:
        case "type":
            types = sorted(names, key=lambda name: name == "null")
            expected = types[0] if len(types) == 1 else f"[{','.join(types)}]"
            yield path, f"Invalid type. Expected: {expected}, given: {_type_name(violation.value, 'integer')}"
        case "required":
            yield from (((*path, name), f"{name} is required") for name in names)
        case "unknown":
            yield from (((*path, name), f"Additional property {name} is not allowed") for name in names)
        case "enum":
            yield path, f"{_dotted(path)} must be one of the following: {', '.join(names)}"
        case "one-of":
            yield path, "Must validate one and only one schema (oneOf)"
            for below in violation.alternative:
                yield from _kubeval_messages(below)
        case "format":
            yield path, f"Does not match format '{names[0]}'"
        case "other":
            yield path, names[0]


def _type_name(value: Any, integer: str) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return integer
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _shown(value: Any) -> str:
    return _single_quoted(value) if isinstance(value, str) else json.dumps(value)


def _single_quoted(text: str) -> str:
    inner = json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"'{inner}'"


def _dotted(path: tuple[str | int, ...]) -> str:
    return ".".join(map(str, path))
