"""Runs functions that are commands of this machine (`exec`). The settings must list the allowed commands."""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from reconciler.api.kpt import FunctionSpec
from reconciler.catalog.trace import ABSENT_FINGERPRINT
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.functions.function import (
    FunctionConfig,
    FunctionContext,
    FunctionOutput,
    InterruptedFunctionError,
    Item,
)
from reconciler.packages.functions.registry import FunctionMatch, FunctionUnavailable
from reconciler.packages.functions.resource_list import (
    ProcessResponse,
    clean_log,
    format_request,
    read_response,
    reject_response,
)
from reconciler.processes.process import (
    ProcessLimits,
    ProcessResult,
    ProcessSpec,
    ProcessTimeoutError,
    compute_program_digest,
    limit_resources,
    run_process,
)
from reconciler.runners.interrupted_calls import InterruptedCalls

# If one of these signals ended a function, another process sent the signal, and the function is called again later. Any
# other signal means that the function crashed.
KILL_SIGNALS = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
# The only environment variables of a function, so that scripts find their interpreter and write the same text on every
# machine.
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}


class CommandFunctions:
    """Finds functions that are commands, if the program of the command matches a pattern in the settings.

    A pattern is an absolute path. The characters `*` and `?` match characters in one folder or file name. A command
    must begin with the absolute path of its program, without `.` and `..`.
    """

    def __init__(self, patterns: Sequence[str], limits: ProcessLimits, interrupted_calls: InterruptedCalls) -> None:
        self._patterns = tuple(patterns)
        self._limits = limits
        self._interrupted_calls = interrupted_calls
        self._digests: dict[str, str] = {}

    def find(self, spec: FunctionSpec) -> FunctionMatch | FunctionUnavailable:
        """Return the function for a command. If the command is not available, return the reason."""
        try:
            command = tuple(shlex.split(spec.exec))
        except ValueError as error:
            return FunctionUnavailable(f"the command cannot be split into shell words: {error}")
        if not command or not self._is_allowed(command[0]):
            return FunctionUnavailable(
                f'the program "{"".join(command[:1])}" is not allowed; add its absolute path to the setting'
                " `functions.exec`"
            )
        if not (Path(command[0]).is_file() and os.access(command[0], os.X_OK)):
            return FunctionUnavailable(f"{command[0]} is not an executable file", ABSENT_FINGERPRINT)
        identity = f"{self._compute_digest(command[0])} {self._limits.memory_bytes} {self._limits.output_bytes}"
        return FunctionMatch(_Command(command, self._limits, self._interrupted_calls), (0, 0, 0), identity=identity)

    def refresh(self) -> None:
        """Delete the cached digests of programs, so that each digest is computed again when it is needed."""
        self._digests.clear()

    def _is_allowed(self, program: str) -> bool:
        path = PurePosixPath(program)
        is_plain_path = path.is_absolute() and str(path) == program and ".." not in path.parts
        return is_plain_path and any(path.match(pattern) for pattern in self._patterns)

    def _compute_digest(self, program: str) -> str:
        if program not in self._digests:
            try:
                self._digests[program] = compute_program_digest(Path(program))
            except OSError as error:
                raise InterruptedFunctionError(f"{program} cannot be read: {error.strerror}") from error
        return self._digests[program]


@dataclass(frozen=True)
class _Command:
    """A function that runs one command."""

    arguments: tuple[str, ...]
    limits: ProcessLimits
    interrupted_calls: InterruptedCalls

    def __call__(
        self, items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext
    ) -> FunctionOutput:
        """Run the command. Raises InterruptedFunctionError."""
        stdin = format_request(items, config).encode()
        key = f"{shlex.join(self.arguments)} {hashlib.sha256(stdin).hexdigest()}"
        return self.interrupted_calls.call(
            key, lambda: read_function_output(self.arguments[0], items, self._run(stdin), self.limits)
        )

    def _run(self, stdin: bytes) -> ProcessResult:
        with _create_empty_folder() as directory:
            environment = {**_ENVIRONMENT, "HOME": directory, "TMPDIR": directory}
            spec = ProcessSpec(limit_resources(self.arguments, self.limits), Path(directory), environment)
            result = run_limited(self.arguments[0], spec, stdin, self.limits)
        return ProcessResult(result.exit_code, result.output, clean_log(result.stderr, directory), result.is_too_large)


def _create_empty_folder() -> TemporaryDirectory[str]:
    try:
        return TemporaryDirectory(prefix="reconciler-function-", ignore_cleanup_errors=True)
    except OSError as error:
        raise InterruptedFunctionError(f"a temporary folder cannot be created: {error.strerror}") from error


def run_limited(name: str, spec: ProcessSpec, stdin: bytes, limits: ProcessLimits) -> ProcessResult:
    """Run a process. If the process cannot start or exceeds the time limit, raise InterruptedFunctionError."""
    try:
        return run_process(spec, stdin, limits)
    except ProcessTimeoutError as error:
        raise InterruptedFunctionError(f"{name} took longer than {limits.seconds:g} seconds and was killed") from error
    except OSError as error:
        raise InterruptedFunctionError(f"{name} cannot be started: {error.strerror}") from error


def read_function_output(
    name: str, items: Sequence[Item], result: ProcessResult, limits: ProcessLimits
) -> FunctionOutput:
    """Return the function output that an ended process wrote.

    If a signal with the number N ended the process, the exit code is 128 + N, as in a shell.

    Raises:
        InterruptedFunctionError: Another process killed the function.
    """
    if result.is_too_large:
        return reject_response(
            items, result.stderr, f"the output of the function must not be larger than {limits.output_bytes} bytes"
        )
    code = result.exit_code if result.exit_code >= 0 else 128 - result.exit_code
    if -result.exit_code in KILL_SIGNALS:
        raise InterruptedFunctionError(f"{name} was killed by {signal.Signals(-result.exit_code).name}")
    return read_response(items, ProcessResponse(code, result.output, result.stderr), limits.output_bytes)
