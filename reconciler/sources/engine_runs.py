"""Runs the programs that render sources, and converts exceeded limits to findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore
from typing import TypeVar

from reconciler.catalog.files import FileTree
from reconciler.krm.findings import FindingCode
from reconciler.packages.charts.helm_errors import is_out_of_memory
from reconciler.packages.charts.request import RenderFailedError
from reconciler.packages.source_codes import SourceCodes
from reconciler.processes.cores import count_available_cores
from reconciler.processes.process import ProcessLimits, ProcessResult, ProcessTimeoutError
from reconciler.sources.engine_programs import EngineVersion
from reconciler.sources.programs import ProgramRunner, SandboxUnavailableError

_T = TypeVar("_T")
_R = TypeVar("_R")


class EngineRuns:
    """The runs of one engine, with at most one program per core at the same time."""

    def __init__(self, runner: ProgramRunner, limits: ProcessLimits) -> None:
        self._runner = runner
        self._limits = limits
        self._slots = BoundedSemaphore(count_available_cores())

    def run(
        self, engine: EngineVersion, arguments: Sequence[str], inputs: Mapping[str, FileTree | bytes], label: str
    ) -> ProcessResult:
        """Return the result of a program that ended within its limits. The exit code can be greater than 0.

        Args:
            label: The source for messages, e.g. the name and version of a chart.

        Raises:
            RenderFailedError: The program exceeded a limit or cannot be started.
        """
        name, path = engine.kind.engine, engine.program.path
        try:
            with self._slots:
                result = self._runner.run(path, arguments, inputs, self._limits)
        except ProcessTimeoutError as error:
            message = (
                f"{label}: {name} took longer than {self._limits.seconds:g} seconds and was killed. The render is tried"
                f" again later. To change the limit, set `sources.{name}.timeout_seconds`"
            )
            raise _create_error(SourceCodes.RENDER_TIMEOUT, message, is_temporary=True) from error
        except (OSError, SandboxUnavailableError) as error:
            reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
            message = f"{label} cannot be rendered with {path}. Reason: {reason}"
            raise _create_error(engine.kind.unavailable, message, is_temporary=True) from error
        self._check_limits(name, result, label)
        return result

    def _check_limits(self, name: str, result: ProcessResult, label: str) -> None:
        if result.is_too_large:
            message = (
                f"{label} renders more than {self._limits.output_bytes} bytes. To change the limit,"
                f" set `sources.{name}.output_bytes`"
            )
            raise _create_error(SourceCodes.SOURCE_TOO_LARGE, message)
        if result.exit_code < 0 or is_out_of_memory(result.stderr):
            message = (
                f"{label}: {name} used more than {self._limits.memory_bytes} bytes of memory, or another process killed"
                f" {name}. The render is tried again later. To change the limit, set `sources.{name}.memory_bytes`"
            )
            raise _create_error(SourceCodes.RENDER_OUT_OF_MEMORY, message, is_temporary=True)


def call_in_threads(function: Callable[[_T], _R], arguments: Sequence[_T]) -> list[_R]:
    """Call a function once for each argument, in one thread per core, and return the results.

    After an error, calls that have not started are skipped.
    """
    pool = ThreadPoolExecutor(count_available_cores(), thread_name_prefix="render")
    try:
        return list(pool.map(function, arguments))
    finally:
        pool.shutdown(cancel_futures=True)


def decode_output(result: ProcessResult, engine: EngineVersion, label: str) -> str:
    """Return the output as text. Raises RenderFailedError if it is not UTF-8."""
    try:
        return result.output.decode()
    except UnicodeDecodeError as error:
        message = f"{label}: the output of {engine.kind.engine} is not UTF-8 text"
        raise _create_error(SourceCodes.RENDERED_OUTPUT_INVALID, message) from error


def _create_error(code: FindingCode, message: str, *, is_temporary: bool = False) -> RenderFailedError:
    return RenderFailedError((code.finding(message),), is_temporary=is_temporary)
