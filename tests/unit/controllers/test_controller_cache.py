"""Tests of the cache of a controller: which results the next pass uses again."""

from __future__ import annotations

import pytest

from reconciler.controllers.keyed_cache import ControllerCache, IdentityCache, KeyedCache


class CountingReader:
    """Counts the calls of a reader."""

    def __init__(self) -> None:
        self.call_count = 0

    def __call__(self, manifest: str, *, limit: int = 0) -> str:
        self.call_count += 1
        return f"{manifest} {limit}"


@pytest.mark.parametrize(
    ("settings", "skipped_passes", "call_count"),
    [
        pytest.param("a", 0, 1, id="unchanged-settings"),
        pytest.param("b", 0, 2, id="changed-settings"),
        pytest.param("a", 1, 2, id="not-requested-in-the-previous-pass"),
    ],
)
def test_result_of_a_reader_is_used_again(settings: str, skipped_passes: int, call_count: int) -> None:
    cache, reader = ControllerCache(), CountingReader()
    cache.clear_if_changed("a")
    results = [cache.read(reader, "web", limit=3), cache.read(reader, "web", limit=3)]
    cache.end_pass()
    for _ in range(skipped_passes):
        cache.end_pass()
    cache.clear_if_changed(settings)

    assert [*results, cache.read(reader, "web", limit=3)] == ["web 3"] * 3
    assert reader.call_count == call_count


def test_created_caches_end_their_pass_with_the_controller() -> None:
    cache, part = ControllerCache(), object()
    keyed, identities = cache.create(KeyedCache[int]), cache.create(IdentityCache[int])
    keyed.get_or_create("a", lambda: 1)
    identities.get_or_create((part,), lambda: 1)
    cache.end_pass()

    assert (keyed.get_or_create("a", lambda: 2), identities.get_or_create((part,), lambda: 2)) == (1, 1)

    cache.end_pass()
    cache.end_pass()

    assert (len(keyed), len(identities)) == (0, 0)
