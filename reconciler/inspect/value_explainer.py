"""Explains a value of a package with the command `reconciler explain` in a separate process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from threading import BoundedSemaphore
from typing import Any

from reconciler.inspect.command_process import CommandOutput, OutputForm, ReconcilerCommand
from reconciler.lazy_dataclasses import dataclass, field, replace

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


@dataclass(frozen=True)
class ExplainOptions:
    """The options of the command.

    Attributes:
        at: The commit at which the package is explained. "" selects the current config.
        values_path: A path in the values of charts. "" selects all of them. None selects the resources.
        source_name: The source whose chart is explained. "" selects all charts.
    """

    at: str = ""
    values_path: str | None = None
    source_name: str = ""

    def list_arguments(self) -> tuple[str, ...]:
        """Return the options as arguments. Each argument contains its value, which can start with a dash."""
        values = {"at": self.at or None, "values": self.values_path, "source": self.source_name or None}
        return tuple(f"--{name}={value}" for name, value in values.items() if value is not None)


_NO_OPTIONS = ExplainOptions()


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

    def explain(
        self, target: str, package: str, resource: str, pointer: str, options: ExplainOptions = _NO_OPTIONS
    ) -> ValueExplanation:
        """Return the explanation of a value.

        Args:
            resource: The resource as `Kind/name` or `Kind/namespace/name`. "" selects all resources.
            pointer: The JSON pointer of the value. "" selects all values.
        """
        command, output = self.run(target, package, resource, pointer, "json", options)
        if output.error:
            return ValueExplanation(command, error=output.error)
        data = json.loads(output.text)
        return ValueExplanation(
            command, tuple(data["items"]), data["summary"], config=data["metadata"].get("config", ""),
            findings=tuple(data["findings"]),
        )  # fmt: skip

    def run(
        self,
        target: str,
        package: str,
        resource: str,
        pointer: str,
        form: OutputForm,
        options: ExplainOptions = _NO_OPTIONS,
    ) -> tuple[str, CommandOutput]:
        """Run the command with the output form `form`, and return the command line and its output.

        The method `explain` describes the other arguments.
        """
        arguments = (f"{target}/{package}", *filter(None, (resource, pointer)))
        command = replace(self._command, options=(*self._command.options, *options.list_arguments()))
        line = command.format_line(arguments)
        if not self._processes.acquire(timeout=self._seconds):
            return line, CommandOutput(error="too many values are being explained; try again in a minute")
        try:
            return line, command.run(arguments, self._seconds, form)
        finally:
            self._processes.release()
