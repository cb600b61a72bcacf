"""Provenance: what each item of a rule changed in a resource, leaf by leaf, as may be shown (design 10.28)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.digest import canonical_json, digest
from reconciler.krm.pointer import format_pointer
from reconciler.krm.secrets import MASK, holds_secret, is_secret_value
from reconciler.krm.yaml import Path
from reconciler.krm.yaml.same import same

SHOWN_BYTES = 1024
_SHORT = 12

Op = Literal["added", "replaced", "removed"]
Change = tuple[Path, Any, Any]


@dataclass(frozen=True)
class Inside:
    """What changed inside of a text: the path of the string, and what it held before and holds afterwards."""

    path: Path
    before: Any
    after: Any


@dataclass(frozen=True)
class Step:
    """One change of one leaf, or of one `inside` of what a string holds; `where` is the item in the policy `by`.

    ABSENT values were or are not there. Values are as they may be shown: those of Secrets are masked, long ones
    shortened.
    """

    path: Path
    by: str
    where: str
    op: Op
    before: Any = ABSENT
    after: Any = ABSENT
    inside: Path | None = None

    @property
    def pointer(self) -> str:
        """The leaf as a JSON pointer, as of this step; what is inside of a string has a pointer of its own behind !."""
        return format_pointer(self.path) + ("" if self.inside is None else f"!{format_pointer(self.inside)}")

    def as_data(self) -> dict[str, Any]:
        """Return the step as status files write it."""
        data = {"by": self.by, "where": self.where, "op": self.op, "before": self.before, "after": self.after}
        return {name: value for name, value in data.items() if value is not ABSENT}


def steps_of(before: Any, after: Any, by: str, where: str) -> tuple[Step, ...]:
    """Return what one item changed in a resource."""
    return tuple(
        Step(path, by, where, op_of(old, new), *as_both_shown(old, new, path, (before, after)))
        for path, old, new in changes(before, after, ())
    )


def steps_inside(resource: Any, inside: Inside, by: str, where: str) -> tuple[Step, ...]:
    """Return what one item changed inside of a string of a resource."""
    path, whole = inside.path, is_secret_value(resource, inside.path)
    # a text may be the manifest of a Secret
    return tuple(
        Step(path, by, where, op_of(old, new), *as_both_shown(old, new, at, (inside.before, inside.after), whole), at)
        for at, old, new in changes(inside.before, inside.after, ())
    )


def steps_data(file: str, resource: str, steps: Iterable[Step]) -> list[dict[str, Any]]:
    """Return the steps of a resource by pointer, each with its steps in their order, as status files write them."""
    by_pointer: dict[str, list[Step]] = {}
    for step in steps:
        by_pointer.setdefault(step.pointer, []).append(step)
    return [
        {
            "file": file,
            "resource": resource,
            "pointer": pointer,
            "steps": [step.as_data() for step in by_pointer[pointer]],
        }
        for pointer in sorted(by_pointer)
    ]


def changes(before: Any, after: Any, path: Path) -> Iterator[Change]:
    """Yield what differs between two values at a path, leaf by leaf."""
    if before is after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            yield from changes(before.get(key, ABSENT), after.get(key, ABSENT), (*path, key))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _list_changes(before, after, path)
    elif before is ABSENT or after is ABSENT:
        yield from _leaves(before, after, path)
    elif not same(before, after):
        yield path, before, after


def _leaves(before: Any, after: Any, path: Path) -> Iterator[Change]:
    """Yield what is in a value that is new or gone."""
    value = after if before is ABSENT else before
    if not isinstance(value, dict) or not value:
        yield path, before, after
        return
    for key, one in value.items():
        old, new = (ABSENT, one) if before is ABSENT else (one, ABSENT)
        yield from _leaves(old, new, (*path, key))


def _list_changes(before: list[Any], after: list[Any], path: Path) -> Iterator[Change]:
    shorter = min(len(before), len(after))
    start = next((index for index in range(shorter) if not same(before[index], after[index])), shorter)
    rest = shorter - start
    end = next((index for index in range(rest) if not same(before[-1 - index], after[-1 - index])), rest)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    for index in range(max(len(old), len(new))):
        was, will = (items[index] if index < len(items) else ABSENT for items in (old, new))
        yield from changes(was, will, (*path, start + index))


def op_of(before: Any, after: Any) -> Op:
    """Return what became of a value, by what there was and what there is."""
    return "added" if before is ABSENT else "removed" if after is ABSENT else "replaced"


def as_both_shown(old: Any, new: Any, path: Path, wholes: Iterable[Any], hides: bool = False) -> tuple[Any, Any]:
    """Return what was and what is at a path of what is changed, as people may see it.

    `wholes` are that before and afterwards; `hides`: no value of it may be seen.
    """
    hides = hides or any(is_secret_value(one, path) for one in wholes)
    return as_shown(old, hides=hides), as_shown(new, hides=hides)


def as_shown(value: Any, *, hides: bool) -> Any:
    """Return a value as people may see it: masked where it `hides` as a Secret's does, shortened where it is long."""
    if value is ABSENT or value is None:
        return value
    if hides or holds_secret(value):
        return MASK
    text = canonical_json(value)
    if len(text) <= SHOWN_BYTES:
        return value
    start = (value if isinstance(value, str) else text.decode(errors="replace"))[: SHOWN_BYTES // 4]
    return f"{start}… ({len(text)} bytes, {digest(value)[: len('sha256:') + _SHORT]})"
