"""Fewer messages between the workers of pytest-xdist and the process that controls them."""

from __future__ import annotations

from typing import Literal

import pytest
from _pytest.runner import runtestprotocol


class WorkerMessages:
    """Plugin of a worker that reports each test with one message.

    pytest-xdist sends six messages per test, which takes longer than most tests. This plugin omits the reports about
    fixtures without errors, and the messages about the start and the end of a test.
    """

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Literal[True]:
        for report in runtestprotocol(item, nextitem=nextitem, log=False):
            if report.when == "call" or not report.passed:
                item.ihook.pytest_runtest_logreport(report=report)
        return True


def can_omit_reports(config: pytest.Config) -> bool:
    """Return whether no option of this run needs the reports about fixtures, or needs each report at once."""
    return not any(config.getoption(name, None) for name in ("durations", "xmlpath", "setupshow", "maxfail"))
