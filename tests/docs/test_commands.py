"""The commands of the documentation run as they are written, in the platform of `reconciler demo`.

The blocks of a page run in order, in one folder per page. tests/operation runs the runbooks.

The fast test of the tutorial runs the program in the test process. The slow tests run all commands in a shell.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.page_commands import (
    PROJECT,
    CommandOutcome,
    check_block,
    list_blocks,
    run_command,
    run_command_fast,
)

RUNBOOKS = PROJECT / "docs/how-to/runbooks"
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
TUTORIAL = PROJECT / "docs" / "tutorial" / "first-steps.md"


def pages_with_commands() -> Iterator[object]:
    for page in PAGES:
        if page.parent != RUNBOOKS and any(list_blocks(page)):
            name = str(page.relative_to(PROJECT))
            if page == TUTORIAL:
                yield pytest.param(page, run_command_fast, id=name)
            yield pytest.param(page, run_command, id=f"{name}-in-a-shell", marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    assert run_command_fast("reconciler demo", folder).returncode == 0
    return folder / "demo"


def test_commands_are_found_on_pages() -> None:
    assert len([*pages_with_commands()]) > 5


@pytest.mark.slow
@pytest.mark.parametrize(("page", "run"), [*pages_with_commands()])
def test_the_commands_of_a_page_succeed(
    page: Path, run: Callable[..., CommandOutcome], demo: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "demo"
    subprocess.run(["cp", "-r", demo, folder], check=True)
    for block in list_blocks(page):
        check_block(page, block, partial(run, folder=folder))
