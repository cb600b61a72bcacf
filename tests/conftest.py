"""The switch of the golden cases and journeys."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-expected", action="store_true", help="write fixtures/**/expected anew; review it as a diff"
    )
