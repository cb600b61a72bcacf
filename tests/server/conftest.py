"""Consoles for the tests of several modules."""

from __future__ import annotations

import pytest

from tests.support.console import ConsoleClient, open_console
from tests.support.in_process_git.program import git_of_the_module
from tests.support.prepared_worlds import begin, drafted, published, tmp_path

__all__ = ["git_of_the_module", "tmp_path"]


@pytest.fixture(scope="session")
def drafted_console(tmp_path_factory: pytest.TempPathFactory) -> ConsoleClient:
    """The console of a fleet that no test changes. All packages are drafted, and no package is published."""
    client = open_console(begin(tmp_path_factory.mktemp("fleet"), drafted))
    client.update()
    return client


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> ConsoleClient:
    """The console of a fleet with drafts of all packages. The tests of a module change only its people and sessions."""
    client = open_console(begin(tmp_path_factory.mktemp("fleet"), drafted))
    client.update()
    return client


@pytest.fixture(scope="module")
def published_fleet(tmp_path_factory: pytest.TempPathFactory) -> ConsoleClient:
    """The console of a fleet with published packages. A module restores its context and index after each test."""
    client = open_console(begin(tmp_path_factory.mktemp("fleet"), published))
    client.update()
    return client
