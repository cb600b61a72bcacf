"""Where things that are new stand among those that were there (D14)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

K = TypeVar("K")


def woven(kept: Mapping[K, Any], new: Mapping[K, Any], order: Iterable[K]) -> dict[K, Any]:
    """Return `kept` and `new` in the order of `kept`, each new key right behind its neighbour in `order`.

    What has no neighbour before it stands in front of the first key they share; if they share none, at the end.
    """
    behind: dict[K | None, list[K]] = {}
    first: K | None = None
    neighbour: K | None = None
    for key in order:
        if key in kept:
            neighbour = key
            first = key if first is None else first
        elif key in new:
            behind.setdefault(neighbour, []).append(key)
    result: dict[K, Any] = {}
    leading = {key: new[key] for key in behind.pop(None, ())}
    for key, value in kept.items():
        if key == first:
            result |= leading
        result[key] = value
        result |= {follower: new[follower] for follower in behind.get(key, ())}
    return result | leading


def upstream_order(merged: Mapping[K, Any], local: Iterable[K], updated: Iterable[K]) -> list[K]:
    """Return the keys of `merged` as upstream has them; what upstream lacks stands behind its local neighbour."""
    kept = {key: merged[key] for key in updated if key in merged}
    rest = {key: value for key, value in merged.items() if key not in kept}
    return list(woven(kept, rest, local))


def local_order(merged: Mapping[K, Any], local: Iterable[K | None]) -> list[K | None]:
    """Return the keys of `merged` as the local list has them, its None first, and then those that are new.

    None is an element without a key, which cannot be told from its like: kpt moves it to the front.
    """
    order = list(local)
    known: list[K | None] = [key for key in order if key is not None and key in merged]
    there = set(known)
    return [None] * order.count(None) + known + [key for key in merged if key not in there]
