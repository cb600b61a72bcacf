"""Runs a read-only command of the reconciler in a separate process.

A process can be stopped after a time limit, and its work does not delay the passes of the service.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from shlex import quote
from typing import Literal

from reconciler.lazy_dataclasses import dataclass
from reconciler.processes.process import (
    ProcessCanceledError,
    ProcessLimits,
    ProcessSpec,
    ProcessTimeoutError,
    run_process,
)

OutputForm = Literal["json", "text"]
MAX_OUTPUT_BYTES = 8 * 1024 * 1024
# The exit statuses of a command that has printed a result.
_EXIT_STATUSES = (0, 1)


@dataclass(frozen=True)
class CommandOutput:
    """The output of a command, or the reason why there is none.

    Attributes:
        error: The reason why there is no output. "" if there is output.
    """

    text: str = ""
    error: str = ""
    exit_status: int = 0


@dataclass(frozen=True)
class ReconcilerCommand:
    """A read-only command.

    Attributes:
        name: The name of the command, such as `explain`.
        options: The options that locate the config, the settings and the repositories.
    """

    name: str
    options: Sequence[str]

    def format_line(self, arguments: Sequence[str]) -> str:
        """Return the command line with which a person can run the command."""
        return " ".join((f"reconciler {self.name}", *map(quote, (*self.options, *arguments))))

    def run(
        self,
        arguments: Sequence[str],
        seconds: float,
        form: OutputForm = "json",
        is_canceled: Callable[[], bool] = lambda: False,
    ) -> CommandOutput:
        """Run the command without requests to remotes. Return its output, or the reason why there is none.

        Args:
            arguments: The arguments, which can start with a dash.
            seconds: The time limit.
            is_canceled: Returns whether the command must be stopped.
        """
        if any("\0" in argument for argument in (*self.options, *arguments)):
            return CommandOutput(error="the arguments must not contain the character NUL")
        options = (self.name, "--offline", "-o", form, *self.options)
        spec = ProcessSpec((sys.executable, "-m", "reconciler", *options, "--", *arguments))
        limits = ProcessLimits(seconds=seconds, memory_bytes=0, output_bytes=MAX_OUTPUT_BYTES)
        try:
            result = run_process(spec, b"", limits, is_canceled)
        except ProcessTimeoutError:
            return CommandOutput(error=f"the command took longer than {round(seconds)} seconds and was stopped")
        except ProcessCanceledError:
            return CommandOutput(error="the command was canceled")
        except OSError as failure:
            return CommandOutput(error=f"the command cannot be started: {failure}")
        if result.is_too_large:
            return CommandOutput(error=f"the output of the command is larger than {MAX_OUTPUT_BYTES} bytes")
        text = result.output.decode(errors="replace")
        if result.exit_code not in _EXIT_STATUSES or not text.strip():
            return CommandOutput(error=result.stderr.strip() or f"the command ended with status {result.exit_code}")
        return CommandOutput(text, exit_status=result.exit_code)
