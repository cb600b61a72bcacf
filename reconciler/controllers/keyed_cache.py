"""Caches for values that the next pass can use again.

The key of a value contains all data from which the value is calculated.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import is_
from typing import Any, Generic, TypeVar, cast

from reconciler.lazy_dataclasses import dataclass

Key = TypeVar("Key")
Entry = TypeVar("Entry")
Value = TypeVar("Value")


class _TwoPassCache(Generic[Key, Entry]):
    """Cache of the entries that the previous pass or the current pass requested. Other entries are removed."""

    def __init__(self) -> None:
        self._previous: dict[Key, Entry] = {}
        self._current: dict[Key, Entry] = {}

    def __len__(self) -> int:
        return len(self._previous.keys() | self._current.keys())

    def end_pass(self) -> None:
        """End the current pass and start the next one."""
        self._previous, self._current = self._current, {}

    def clear(self) -> None:
        """Remove all entries."""
        self._previous, self._current = {}, {}


class KeyedCache(_TwoPassCache[Hashable, Value]):
    """Cache of the values that the previous pass or the current pass requested. Other values are removed.

    A key contains all data from which the value is calculated. Keys may compare objects by `id`. Python can give the ID
    of a deleted object to a new object. Therefore, the cache keeps the keys in memory.
    """

    def get_or_create(self, key: Hashable, create: Callable[[], Value]) -> Value:
        """Return the value for a key. Create the value if neither this pass nor the previous pass requested it."""
        if key not in self._current:
            self._current[key] = self._previous[key] if key in self._previous else create()
        return self._current[key]


def are_identical(first: Sequence[object], second: Sequence[object]) -> bool:
    """Return whether two sequences contain the same objects. The objects are compared by identity, which is fast."""
    return len(first) == len(second) and all(map(is_, first, second))


@dataclass(frozen=True, eq=False)
class IdentityKey:
    """Key that compares an object by identity. Two keys are equal only if they contain the same object."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class IdentityCache(_TwoPassCache[tuple[int, ...], tuple[tuple[object, ...], Value]], Generic[Value]):
    """Cache of values by the identity of the objects from which the values are calculated.

    This cache is faster than `KeyedCache`, because it neither compares nor hashes the objects. If no code requests a
    value during a whole pass, the value is removed.
    """

    def get_or_create(self, parts: tuple[object, ...], create: Callable[[], Value]) -> Value:
        """Return the value for these objects. Create it if it was not requested in this pass or the previous pass."""
        key = tuple(map(id, parts))
        entry = self._current.get(key) or self._previous.get(key)
        if entry is None:
            # Keep the objects in memory with the value, because Python can give the ID of a deleted object to a new
            # object.
            entry = (parts, create())
        self._current[key] = entry
        return entry[1]


Cache = TypeVar("Cache", bound=_TwoPassCache[Any, Any])


class ControllerCache:
    """Caches of results that the next pass of a controller can use again.

    The key of an entry contains all inputs of the result except the settings, for example config objects. The end of a
    pass removes the entries that the pass did not use.
    """

    def __init__(self) -> None:
        self._caches: list[_TwoPassCache[Any, Any]] = []
        self._settings: object = None
        self._read_objects = self.create(KeyedCache[Any])

    def create(self, cache_class: Callable[[], Cache]) -> Cache:
        """Return a new cache. The methods `clear_if_changed` and `end_pass` also apply to this cache."""
        cache = cache_class()
        self._caches.append(cache)
        return cache

    def clear_if_changed(self, settings: object) -> None:
        """Begin a pass. Remove all entries if the settings have changed since the previous pass."""
        if settings != self._settings:
            self._settings = settings
            for cache in self._caches:
                cache.clear()

    def end_pass(self) -> None:
        """End a pass. Remove the entries that the pass did not use."""
        for cache in self._caches:
            cache.end_pass()

    def read(self, reader: Callable[..., Value], manifest: Hashable, **options: Any) -> Value:
        """Return the result of `reader` for a config object. Each pair of a reader and an object has one cached result.

        The result must depend only on the object and the settings, because `options` are not part of the cache key.
        """
        result = self._read_objects.get_or_create((reader, manifest), lambda: reader(manifest, **options))
        return cast("Value", result)
