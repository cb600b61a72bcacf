"""Finds the programs that render sources, and their versions."""

from __future__ import annotations

import re
from threading import Lock

from reconciler.krm.findings import Finding, FindingCode
from reconciler.krm.version_ranges import VersionRange, parse_version
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.source_codes import SourceCodes
from reconciler.processes.backoff import CallBackoff
from reconciler.processes.process import ProcessLimits, ProcessTimeoutError
from reconciler.sources.programs import Program, ProgramFinder, ProgramRunner, SandboxUnavailableError
from reconciler.sources.render_cache import RenderCache


@dataclass(frozen=True)
class ProgramKind:
    """The interface of a program that renders sources.

    Attributes:
        engine: The name of the engine, which is also the name of its settings group, e.g. "helm".
        command: The first argument of a render.
        version_arguments: The arguments that print the version.
        version_pattern: Pattern with two groups: the major version and the minor version.
        install_command: A command that installs the program.
        unavailable: The finding code if the program cannot run.
    """

    engine: str
    command: str
    version_arguments: tuple[str, ...]
    version_pattern: re.Pattern[str]
    install_command: str
    unavailable: FindingCode

    @property
    def next_step(self) -> str:
        """The next step of the user if the program is missing, as the last sentence of a message."""
        return (
            f"Next step: install {self.engine} with `{self.install_command}` or with a package manager, or set"
            f" `sources.{self.engine}.program` to its path"
        )


@dataclass(frozen=True)
class EngineVersion:
    """A program that can render sources, and its major and minor version, e.g. "3.22"."""

    kind: ProgramKind
    program: Program
    version: str

    def is_older(self, version: str) -> bool:
        """Return whether the program is older than a version such as "5.4"."""
        return _parse_minor_version(self.version) < _parse_minor_version(version)

    @property
    def identity(self) -> str:
        """The name, version and digest of the program. Equal identities give equal output."""
        return f"{self.kind.engine}/{self.version} {self.program.digest}"


def _parse_minor_version(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


@dataclass(frozen=True)
class EngineProblem:
    """The reason why a program cannot run. `text` is the end of a sentence that begins with the name of a source."""

    code: FindingCode
    text: str

    @property
    def identity(self) -> str:
        """The empty text, because a program that cannot run has no identity."""
        return ""

    def create_finding(self, source: str) -> Finding:
        """Return the finding about a source that needs the program."""
        return self.code.finding(f"{source} {self.text}")


class EngineProgram:
    """Finds a program and its version. The program runs again to print its version only if its file has changed.

    Args:
        supported: The versions that can be used.
        backoff: Determines when the program is started again after it did not print its version.
    """

    def __init__(
        self,
        kind: ProgramKind,
        supported: VersionRange,
        finder: ProgramFinder,
        runner: ProgramRunner,
        cache: RenderCache,
        limits: ProcessLimits,
        backoff: CallBackoff,
    ) -> None:
        self._kind = kind
        self._supported = supported
        self._finder = finder
        self._runner = runner
        self._cache = cache
        self._limits = limits
        self._backoff = backoff
        self._lock = Lock()
        self._versions: dict[str, str] = {}

    def find(self) -> EngineVersion | EngineProblem:
        """Return the program. If it is not available, return the reason."""
        program = self._finder.find()
        if program is None:
            return EngineProblem(self._kind.unavailable, self._describe_missing_program())
        try:
            version = self._get_version(program)
        except SandboxUnavailableError as error:
            return EngineProblem(
                self._kind.unavailable, f"cannot be rendered with {self._kind.engine}, because {error}"
            )
        parsed = parse_version(version)
        if parsed and self._supported.matches(parsed):
            return EngineVersion(self._kind, program, version)
        found = f"is version {version}" if version else "does not print its version"
        needed = f"{self._kind.engine} {self._supported.text}"
        text = f"needs {needed}, but {program.path} {found}. {self._kind.next_step}"
        return EngineProblem(SourceCodes.ENGINE_UNSUPPORTED, text)

    def _get_version(self, program: Program) -> str:
        """Return the version, or "" if the program does not print it.

        After a failed request, the next request is made only after a wait time. Until then, the result is "".

        Raises:
            SandboxUnavailableError: The settings require a sandbox that this machine does not support.
        """
        with self._lock:
            version = self._versions.get(program.digest, "")
            if not version and not self._backoff.is_waiting(program.digest):
                version = self._read_version(program)
                if version:
                    self._versions[program.digest] = version
                else:
                    self._backoff.record_failure(program.digest)
            return version

    def _read_version(self, program: Program) -> str:
        version = self._cache.read_version(program.digest)
        if not version and (version := self._request_version(program)):
            self._cache.write_version(program.digest, version)
        return version

    def _request_version(self, program: Program) -> str:
        try:
            result = self._runner.run(program.path, self._kind.version_arguments, {}, self._limits)
        except (OSError, ProcessTimeoutError):
            return ""
        match = self._kind.version_pattern.search(result.output.decode(errors="replace"))
        return f"{match[1]}.{match[2]}" if match and result.exit_code == 0 else ""

    def _describe_missing_program(self) -> str:
        paths = " or ".join(map(str, self._finder.list_candidates()))
        name, versions = self._kind.engine, self._supported.text
        return f"needs the program {name} ({versions}), which is not at {paths}. {self._kind.next_step}"
