"""What the variants of a set are called (porch 11.5): by set, repository and package, in 63 characters."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

_LONGEST = 63
_KEPT = 54


class TargetKey(NamedTuple):
    """What makes two variants of one set the same: the downstream Repository and package, never the name."""

    repo: str
    package: str

    def __str__(self) -> str:
        return f"{self.repo}/{self.package}"


def name_variants(set_name: str, keys: Iterable[TargetKey]) -> dict[TargetKey, str]:
    """Return a name for each key; names differ, and do not depend on the order of the keys."""
    names: dict[TargetKey, str] = {}
    taken: set[str] = set()
    for key in sorted(set(keys)):
        name = variant_name(set_name, key)
        # `a-b` + `c` and `a` + `b-c` have one id: IMPL silently makes them one variant
        names[key] = name if name not in taken else _told_apart(set_name, key)
        taken.add(names[key])
    return names


def variant_name(set_name: str, key: TargetKey) -> str:
    """Return the name of a variant whose id is unambiguous."""
    display_id = _display_id(set_name, key)
    return display_id if len(display_id) <= _LONGEST else f"{display_id[:_KEPT]}-{_digest(display_id)}"


def _display_id(set_name: str, key: TargetKey) -> str:
    return f"{set_name}-{key.repo}-{key.package.replace('/', '.')}"


def _told_apart(set_name: str, key: TargetKey) -> str:
    exact = f"{key.repo}\0{key.package}"
    return f"{_display_id(set_name, key)[:_KEPT]}-{_digest(exact)}"


def _digest(text: str) -> str:
    # Porch names by SHA-1; nothing relies on it against an attacker
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:8]
