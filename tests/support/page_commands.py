"""Commands of pages: the blocks of the language `sh` run as they are written, in the platform of `reconciler demo`.

The comment `<!-- no-test: reason -->` above a block excludes it. The comment `<!-- exit: 1 -->` gives the exit status of
its last command. The comment `<!-- output -->` above the next `text` block requires that the last command prints these
lines. `…` at the end of a line is a placeholder. The comment `<!-- after: event -->` names an event, which the test
of the page causes before the block.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.support.command_line import run_in

PROJECT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>sh|bash|console)\n(?P<text>.*?)^ *```", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!-- (?P<key>no-test|exit|after): (?P<value>.+?) -->\s*\Z")
_OUTPUT = re.compile(r"(?:(?!```).)*<!-- output -->\n```text\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE)
# Differences are the result of these commands, not a failure.
_REPORTS_DIFFERENCES = re.compile(r"reconciler (?:plan|verify|impact|pkg diff)\b")
# A call of the program without other features of the shell.
_PROGRAM_CALL = re.compile(r"reconciler [^|&;<>$`*?~()#!]*")
# The test runs in the folder of the demo, with the program on its path.
_IGNORED = re.compile(r"#|cd demo\Z|export PATH=")
_FORBIDDEN = re.compile(r"\b(?:pip install|kubectl|curl|docker|podman|apt-get|helm|systemctl)\b")


class CommandOutcome(Protocol):
    """The result of a command: that of `subprocess.run`, or of a command in the test process."""

    @property
    def returncode(self) -> int: ...

    @property
    def stdout(self) -> str: ...

    @property
    def stderr(self) -> str: ...


@dataclass(frozen=True)
class Block:
    """A block of commands, with the line where it begins, and the exit status and output lines of its last command."""

    line: int
    commands: tuple[str, ...]
    status: int | None
    output: tuple[str, ...]
    event: str = ""


def list_blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page that the tests run."""
    text = page.read_text()
    for match in _BLOCK.finditer(text):
        comment = _COMMENT.search(text[: match.start()].rstrip())
        key, value = (comment["key"], comment["value"]) if comment else ("", "")
        if key == "no-test":
            continue
        commands = re.sub(r"\\\n\s*", "", match["text"]).splitlines()
        listed = tuple(line.strip() for line in commands if line.strip() and not _IGNORED.match(line.strip()))
        output = _OUTPUT.match(text, match.end())
        yield Block(
            text[: match.start()].count("\n") + 1,
            listed,
            int(value) if key == "exit" else None,
            tuple(output["text"].splitlines()) if output else (),
            value if key == "after" else "",
        )


def run_command(command: str, folder: Path, variables: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:
    """Run a command of a page in a shell, with a fixed environment."""
    shell = ["bash", "-euc", command]
    environment = {**build_environment(folder), **variables}
    return subprocess.run(shell, cwd=folder, env=environment, text=True, capture_output=True, timeout=120, check=False)


def run_command_fast(command: str, folder: Path, variables: Mapping[str, str] = {}) -> CommandOutcome:
    """Run the program in the test process, and any other command in a shell with these environment variables."""
    if not _PROGRAM_CALL.fullmatch(command):
        return run_command(command, folder, variables)
    return run_in(folder, build_environment(folder), *shlex.split(command)[1:])


def build_environment(folder: Path) -> dict[str, str]:
    """Return the environment of a command in a folder: a fixed identity, and a cache in the folder."""
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "RECONCILER_CACHE": str(folder / ".cache"),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.com",
        "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.com",
        "GIT_EDITOR": "true", "GIT_PAGER": "cat", "PYTHONPATH": str(PROJECT),
    }  # fmt: skip


def check_block(page: Path, block: Block, run: Callable[[str], CommandOutcome]) -> None:
    """Run the commands of a block, and check their exit statuses and the output of the last one."""
    for index, command in enumerate(block.commands):
        place = f"{page.relative_to(PROJECT)}:{block.line}: {command}"
        assert not _FORBIDDEN.search(command), f"{place}: mark the block with <!-- no-test: reason -->"
        process = run(command)
        allowed = {0, 2} if _REPORTS_DIFFERENCES.search(command) else {0}
        is_last = index == len(block.commands) - 1
        if block.status is not None and is_last:
            allowed = {block.status}
        assert process.returncode in allowed, f"{place}\n{process.stdout}{process.stderr}"
        if is_last:
            assert not [line for line in block.output if line.removesuffix("…") not in process.stdout], place
