"""Explains a value of a package with the command `reconciler explain` in a separate process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from threading import BoundedSemaphore
from typing import Any

from reconciler.inspect.command_process import CommandOutput, OutputForm, ReconcilerCommand
from reconciler.lazy_dataclasses import dataclass, field

_MAX_PROCESSES = 2
_SECONDS = 10.0


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


class ValueExplainer:
    """Runs the command `reconciler explain` for several threads. At most two processes run at the same time.

    Args:
        options: The command-line options that locate the config, the settings and the repositories.
        seconds: The time limit of one explanation.
    """

    def __init__(self, options: Sequence[str], seconds: float = _SECONDS) -> None:
        self._command = ReconcilerCommand("explain", tuple(options))
        self._seconds = seconds
        self._processes = BoundedSemaphore(_MAX_PROCESSES)

    def explain(self, target: str, package: str, resource: str, pointer: str) -> ValueExplanation:
        """Return the explanation of a value.

        Args:
            resource: The resource as `Kind/name` or `Kind/namespace/name`. "" selects all resources.
            pointer: The JSON pointer of the value. "" selects all values.
        """
        command, output = self.run(target, package, resource, pointer, "json")
        if output.error:
            return ValueExplanation(command, error=output.error)
        data = json.loads(output.text)
        return ValueExplanation(
            command, tuple(data["items"]), data["summary"], config=data["metadata"].get("config", ""),
            findings=tuple(data["findings"]),
        )  # fmt: skip

    def run(
        self, target: str, package: str, resource: str, pointer: str, form: OutputForm
    ) -> tuple[str, CommandOutput]:
        """Return the command line, and its output in the output form `form`. For the other arguments, see `explain`."""
        arguments = (f"{target}/{package}", *filter(None, (resource, pointer)))
        line = self._command.format_line(arguments)
        if not self._processes.acquire(timeout=self._seconds):
            return line, CommandOutput(error="too many values are being explained; try again in a minute")
        try:
            return line, self._command.run(arguments, self._seconds, form)
        finally:
            self._processes.release()
