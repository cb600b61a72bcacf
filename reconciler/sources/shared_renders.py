"""Starts each render once: threads share a running render, and results and failures are stored."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock

from reconciler.krm.findings import select_errors
from reconciler.packages.charts.request import RenderedSource, RenderFailedError
from reconciler.processes.backoff import CallBackoff, RecordedFailures
from reconciler.sources.render_cache import RenderCache


class SharedRenders:
    """The renders of one engine. The object is thread-safe.

    Args:
        backoff: The back-off of renders that were interrupted, e.g. because the memory was not sufficient.
    """

    def __init__(self, cache: RenderCache, backoff: CallBackoff) -> None:
        self._cache = cache
        self._interrupted: RecordedFailures[RenderedSource] = RecordedFailures(backoff)
        self._lock = Lock()
        self._running: dict[str, Future[RenderedSource]] = {}

    def render(self, key: str, render: Callable[[], RenderedSource]) -> RenderedSource:
        """Return the stored result for a key, or the result of `render`, which can raise RenderFailedError."""
        return self._cache.read(key) or self._render_once(key, render)

    def _render_once(self, key: str, render: Callable[[], RenderedSource]) -> RenderedSource:
        with self._lock:
            running = self._running.get(key)
            future = running or self._running.setdefault(key, Future())
        if running:
            return running.result()
        try:
            # Read the cache again, because another thread can have completed the same render since the last read.
            result = self._cache.read(key) or self._render(key, render)
            future.set_result(result)
        except BaseException as error:
            future.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._running[key]
        return result

    def _render(self, key: str, render: Callable[[], RenderedSource]) -> RenderedSource:
        if interrupted := self._interrupted.find(key):
            return interrupted
        try:
            result = render()
        except RenderFailedError as error:
            result = RenderedSource(findings=error.findings)
            if error.is_temporary:
                self._interrupted.add(key, result)
                return result
        self._interrupted.remove(key)
        if select_errors(result.findings):
            # Do not store errors in files, because an error message can contain confidential values.
            self._cache.keep_in_memory(key, result)
        else:
            self._cache.write(key, result)
        return result
