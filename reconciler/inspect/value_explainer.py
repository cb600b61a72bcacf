"""Explains a value of a package with the command `reconciler explain` in a process of its own.

A process can be stopped after a time limit, and its work does not delay the passes of the service.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from shlex import quote
from threading import BoundedSemaphore
from typing import Any, Literal

from reconciler.lazy_dataclasses import dataclass, field
from reconciler.processes.process import ProcessLimits, ProcessSpec, ProcessTimeoutError, run_process

_MAX_PROCESSES = 2
# The exit statuses of a command that has printed a result.
_EXIT_STATUSES = (0, 1)
_LIMITS = ProcessLimits(seconds=10.0, memory_bytes=0, output_bytes=8 * 1024 * 1024)


@dataclass(frozen=True)
class ValueExplanation:
    """The result of `reconciler explain -o json`, or the reason why there is none.

    Attributes:
        command: The command that prints the explanation.
        values: The explained values, in the form of the JSON output.
        summary: The package, in the form of the JSON output.
        error: The reason why the value cannot be explained. "" if it was explained.
        config: The ID of the config.
        findings: The findings about the package, in the form of the JSON output.
    """

    command: str
    values: tuple[Mapping[str, Any], ...] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    config: str = ""
    findings: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class ExplanationOutput:
    """The output of `reconciler explain`.

    Attributes:
        command: The command that prints the output.
        error: The reason why there is no output. "" if there is one.
    """

    command: str
    text: str = ""
    error: str = ""
    exit_status: int = 0


class ValueExplainer:
    """Runs the command for several threads. At most two processes run at the same time.

    Args:
        options: The command-line options that locate the config, the settings and the repositories.
    """

    def __init__(self, options: Sequence[str], limits: ProcessLimits = _LIMITS) -> None:
        self._options = tuple(options)
        self._limits = limits
        self._processes = BoundedSemaphore(_MAX_PROCESSES)

    def explain(self, target: str, package: str, resource: str, pointer: str) -> ValueExplanation:
        """Return the explanation of a value.

        Args:
            resource: The resource as `Kind/name` or `Kind/namespace/name`. "" selects all resources.
            pointer: The JSON pointer of the value. "" selects all values.
        """
        output = self.run(target, package, resource, pointer, "json")
        if output.error:
            return ValueExplanation(output.command, error=output.error)
        data = json.loads(output.text)
        return ValueExplanation(
            output.command, tuple(data["items"]), data["summary"], config=data["metadata"].get("config", ""),
            findings=tuple(data["findings"]),
        )  # fmt: skip

    def run(
        self, target: str, package: str, resource: str, pointer: str, form: Literal["json", "text"]
    ) -> ExplanationOutput:
        """Return the output of the command in a form. The arguments are those of `explain`."""
        arguments = (f"{target}/{package}", *filter(None, (resource, pointer)))
        command = " ".join(("reconciler explain", *map(quote, (*self._options, *arguments))))
        options = ("explain", "--offline", "-o", form, *self._options)
        spec = ProcessSpec((sys.executable, "-m", "reconciler", *options, "--", *arguments))
        if any("\0" in argument for argument in arguments):
            return ExplanationOutput(command, error="the resource and the pointer must not contain the character NUL")
        if not self._processes.acquire(timeout=self._limits.seconds):
            return ExplanationOutput(command, error="too many values are being explained; try again in a minute")
        try:
            result = run_process(spec, b"", self._limits)
        except ProcessTimeoutError:
            seconds = round(self._limits.seconds)
            return ExplanationOutput(command, error=f"the explanation takes longer than {seconds} seconds")
        finally:
            self._processes.release()
        if result.is_too_large:
            return ExplanationOutput(command, error="the explanation is too large")
        text = result.output.decode(errors="replace")
        if result.exit_code not in _EXIT_STATUSES or not text.strip():
            error = result.stderr.strip() or f"the command ended with status {result.exit_code}"
            return ExplanationOutput(command, error=error)
        return ExplanationOutput(command, text, exit_status=result.exit_code)
