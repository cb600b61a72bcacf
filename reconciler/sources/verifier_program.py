"""A program that verifies signatures. It receives only files, and has no network access."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.source_codes import SourceCodes
from reconciler.processes.process import ProcessLimits, ProcessResult, ProcessTimeoutError
from reconciler.sources.errors import SourceError
from reconciler.sources.programs import ProgramFinder, ProgramRunner, SandboxUnavailableError

_LIMITS = ProcessLimits(seconds=30.0, memory_bytes=1024 * 1024 * 1024, output_bytes=2 * 1024 * 1024)


@dataclass(frozen=True)
class VerifierProgram:
    """A program and the command that installs it."""

    name: str
    finder: ProgramFinder
    runner: ProgramRunner
    install_command: str

    def run(self, arguments: Sequence[str], files: Mapping[str, bytes]) -> ProcessResult:
        """Run the program in a folder with these files. If its output is too large, the exit code is at least 1.

        Raises:
            SourceError: `VerifierUnavailable` if the program is missing or cannot be used.
        """
        program = self.finder.find()
        if program is None:
            places = " or ".join(map(str, self.finder.list_candidates()[:2]))
            raise create_unavailable_error(
                f"the signature can only be verified by the program {self.name}, which is not at {places}. "
                f"Install it: {self.install_command}"
            )
        try:
            result = self.runner.run(program.path, arguments, files, _LIMITS)
        except (ProcessTimeoutError, SandboxUnavailableError, OSError) as error:
            raise create_unavailable_error(f"the program {self.name} cannot be used: {error}") from None
        return ProcessResult(result.exit_code or int(result.is_too_large), result.output, result.stderr)


def create_unavailable_error(message: str) -> SourceError:
    """Return the error of a verification that cannot use a program, a file or a Python package."""
    return SourceError(SourceCodes.VERIFIER_UNAVAILABLE.name, message)
