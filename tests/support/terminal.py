"""Runs the program on a pseudo-terminal, with answers to its questions."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import Popen


def run_on_terminal(
    folder: Path, environment: Mapping[str, str], arguments: Sequence[str], answers: Sequence[tuple[str, str]]
) -> tuple[int, str]:
    """Run the program with a terminal as its input and output. Return the exit status and the output.

    Args:
        answers: Pairs of the start of a question and its answer, in the order of the questions.
    """
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "reconciler", *arguments]
    with Popen(command, cwd=folder, env=environment, stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        output = ""
        for question, answer in answers:
            asked_from = len(output)
            while question not in output[asked_from:]:
                if not (chunk := _read(controller)):
                    raise AssertionError(f"the program ended before the question {question!r}:\n{output}")
                output += chunk
            os.write(controller, f"{answer}\n".encode())
        while chunk := _read(controller):
            output += chunk
    os.close(controller)
    return process.returncode, output.replace("\r\n", "\n")


def _read(controller: int) -> str:
    try:
        return os.read(controller, 4096).decode(errors="replace")
    except OSError:
        # Linux reports the end of the output of a pseudo-terminal as an error.
        return ""
