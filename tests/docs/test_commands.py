"""The commands of the documentation run as they are written, in the platform of `reconciler demo`.

A page's blocks of the language `sh` run in order, in one folder per page. The comment `<!-- no-test: reason -->` above a
block excludes it. The comment `<!-- exit: 1 -->` gives the exit status of its last command. The comment `<!-- output -->`
above the next `text` block requires that the last command prints these lines. `…` at the end of a line is a placeholder.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
TUTORIAL = PROJECT / "docs" / "tutorial" / "first-steps.md"
_BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>sh|bash|console)\n(?P<text>.*?)^ *```", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!-- (?P<key>no-test|exit): (?P<value>.+?) -->\s*\Z")
_OUTPUT = re.compile(r"(?:(?!```).)*<!-- output -->\n```text\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE)
# Differences are the result of these commands, not a failure.
_REPORTS_DIFFERENCES = re.compile(r"reconciler (?:plan|verify|impact|pkg diff)\b")
# The test runs in the folder of the demo, with the program on its path.
_IGNORED = re.compile(r"#|cd demo\Z|export PATH=")
_FORBIDDEN = re.compile(r"\b(?:pip install|kubectl|curl|docker|podman|apt-get|helm)\b")


@dataclass(frozen=True)
class Block:
    """A block of commands, with the line where it begins, and the exit status and output lines of its last command."""

    line: int
    commands: tuple[str, ...]
    status: int | None
    output: tuple[str, ...]


def blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for match in _BLOCK.finditer(text):
        comment = _COMMENT.search(text[: match.start()].rstrip())
        if comment and comment["key"] == "no-test":
            continue
        commands = re.sub(r"\\\n\s*", "", match["text"]).splitlines()
        listed = tuple(line.strip() for line in commands if line.strip() and not _IGNORED.match(line.strip()))
        status = int(comment["value"]) if comment else None
        output = _OUTPUT.match(text, match.end())
        line = text[: match.start()].count("\n") + 1
        yield Block(line, listed, status, tuple(output["text"].splitlines()) if output else ())


def pages_with_commands() -> Iterator[object]:
    for page in PAGES:
        if any(blocks_of(page)):
            marks = [] if page == TUTORIAL else [pytest.mark.slow]
            yield pytest.param(page, id=str(page.relative_to(PROJECT)), marks=marks)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    run("reconciler demo", folder)
    return folder / "demo"


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "RECONCILER_CACHE": str(folder / ".cache"),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.com",
        "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.com",
        "GIT_EDITOR": "true", "GIT_PAGER": "cat", "PYTHONPATH": str(PROJECT),
    }  # fmt: skip
    return subprocess.run(
        ["bash", "-euc", command], cwd=folder, env=environment, text=True, capture_output=True, timeout=120, check=False
    )


def test_commands_are_found_on_pages() -> None:
    assert len([*pages_with_commands()]) > 5


@pytest.mark.parametrize("page", [*pages_with_commands()])
def test_the_commands_of_a_page_succeed(page: Path, demo: Path, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    subprocess.run(["cp", "-r", demo, folder], check=True)
    for block in blocks_of(page):
        for index, command in enumerate(block.commands):
            place = f"{page.relative_to(PROJECT)}:{block.line}: {command}"
            assert not _FORBIDDEN.search(command), f"{place}: mark the block with <!-- no-test: reason -->"
            process = run(command, folder)
            allowed = {0, 2} if _REPORTS_DIFFERENCES.search(command) else {0}
            is_last = index == len(block.commands) - 1
            if block.status is not None and is_last:
                allowed = {block.status}
            assert process.returncode in allowed, f"{place}\n{process.stdout}{process.stderr}"
            if is_last:
                assert not [line for line in block.output if line.removesuffix("…") not in process.stdout], place
