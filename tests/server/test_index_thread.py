"""Tests of the thread that builds the index of the console."""

from __future__ import annotations

import pytest

from reconciler.git.errors import UnreachableError
from reconciler.inspect.fleet_index import FleetIndexer, ObservedPass
from reconciler.output.fleet.model import FleetIndex
from reconciler.service.index_thread import IndexThread

OBSERVED = ObservedPass("41ab", 1_700_000_000, {})


class FailingIndexer(FleetIndexer):
    """Fails if `error` is set."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def update(self, observed: ObservedPass, report_progress: object) -> FleetIndex:
        if self.error:
            raise self.error
        return FleetIndex(1, observed.completed_at, observed.config)


@pytest.mark.emits("console_index_failed")
def test_the_last_index_remains_if_an_update_fails() -> None:
    indexer = FailingIndexer()
    thread = IndexThread(indexer)
    thread.build(OBSERVED)
    first = thread.index
    indexer.error = UnreachableError("the cache cannot be read")
    thread.build(OBSERVED)

    assert first is not None
    assert thread.index is first
    assert "the cache cannot be read" in thread.error
