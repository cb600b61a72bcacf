"""Limit for tests that block in a C library, where the signal of pytest-timeout cannot interrupt them."""

from __future__ import annotations

import faulthandler
import os
import sys
import time

import pytest

LIMIT = 420
RENEWAL = 60


class StallGuard:
    """Plugin that ends the process with the stacks of all threads if no test starts for `LIMIT` seconds.

    If the marker `timeout` of a test permits more, the limit of this test is higher.

    The option `faulthandler_timeout` of pytest has the same effect, but it starts and joins a thread for each test.
    This plugin starts a thread at most once in `RENEWAL` seconds.
    """

    def __init__(self) -> None:
        # Create the plugin in `pytest_configure`, when pytest does not capture the output.
        self._output = os.dup(sys.__stderr__.fileno())
        self._renewed: float | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        now, marker = time.monotonic(), item.get_closest_marker("timeout")
        limit = max(LIMIT, marker.args[0] + RENEWAL) if marker and marker.args else LIMIT
        if self._renewed is None or limit > LIMIT or now - self._renewed > RENEWAL:
            faulthandler.dump_traceback_later(limit, file=self._output, exit=True)
            # After a test with a higher limit, the next test must restore the usual limit.
            self._renewed = now if limit == LIMIT else None

    def pytest_exception_interact(self) -> None:
        # pytest has stopped the thread, because a debugger may follow. The next test starts it again.
        self._renewed = None

    def pytest_unconfigure(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        os.close(self._output)
