"""The switch of the golden cases and journeys, and how many workers there are."""

import os

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-expected", action="store_true", help="write fixtures/**/expected anew; review it as a diff"
    )


def pytest_xdist_auto_num_workers() -> int:
    # a worker mostly waits for git, or git for the disk: with one for each core a fifth of the machine stands idle
    return (os.cpu_count() or 1) + 1
