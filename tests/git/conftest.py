"""Fixture that runs the tests of a module with Git and with the Git in the test process."""

from collections.abc import Iterator

import pytest

from tests.support.in_process_git.program import in_process_git


@pytest.fixture(scope="module", params=["git", "in-process-git"])
def each_git(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run the tests of the module with each implementation, because scenario tests use both."""
    with in_process_git(enabled=request.param == "in-process-git"):
        yield
