"""Finds the program `helm` and its version."""

from __future__ import annotations

import re
from threading import Lock
from typing import Final

from reconciler.krm.findings import Finding, FindingCode
from reconciler.krm.version_ranges import VersionRange, parse_version
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.source_codes import SourceCodes
from reconciler.processes.process import ProcessLimits, ProcessTimeoutError
from reconciler.sources.programs import Program, ProgramFinder, ProgramRunner, SandboxUnavailableError
from reconciler.sources.render_cache import RenderCache

INSTALL_COMMAND: Final = (
    "CGO_ENABLED=0 GOBIN=/usr/local/bin go install -ldflags '-s -w' helm.sh/helm/v3/cmd/helm@v3.22.0"
)
_VERSION = re.compile(r"v?([0-9]+)\.([0-9]+)")


@dataclass(frozen=True)
class HelmVersion:
    """The program helm, and its major and minor version, e.g. "3.22"."""

    program: Program
    version: str

    @property
    def identity(self) -> str:
        """The name, version and digest of the program. Equal identities give equal output."""
        return f"helm/{self.version} {self.program.digest}"


@dataclass(frozen=True)
class HelmProblem:
    """The reason why helm cannot run. `text` is the end of a sentence that begins with the name of a chart."""

    code: FindingCode
    text: str

    def create_finding(self, chart: str) -> Finding:
        """Return the finding about a chart that needs the program."""
        return self.code.finding(f"{chart} {self.text}")


class HelmProgram:
    """Finds helm. The version is requested from the program once per digest of the program file.

    Args:
        supported: The versions of helm that can be used.
    """

    def __init__(
        self,
        supported: VersionRange,
        finder: ProgramFinder,
        runner: ProgramRunner,
        cache: RenderCache,
        limits: ProcessLimits,
    ) -> None:
        self._supported = supported
        self._finder = finder
        self._runner = runner
        self._cache = cache
        self._limits = limits
        self._lock = Lock()
        self._versions: dict[str, str] = {}

    def find(self) -> HelmVersion | HelmProblem:
        """Return the program. If it is not available, return the reason."""
        program = self._finder.find()
        if program is None:
            return HelmProblem(SourceCodes.HELM_UNAVAILABLE, self._describe_missing_program())
        with self._lock:
            if program.digest not in self._versions:
                self._versions[program.digest] = self._read_version(program)
            version = self._versions[program.digest]
        parsed = parse_version(version)
        if parsed and self._supported.matches(parsed):
            return HelmVersion(program, version)
        found = f"version {version}" if version else "a program that does not print its version"
        text = f"needs helm {self._supported.text}, and {program.path} is {found}: {_format_next_step()}"
        return HelmProblem(SourceCodes.ENGINE_UNSUPPORTED, text)

    def _read_version(self, program: Program) -> str:
        version = self._cache.read_version(program.digest)
        if not version and (version := self._request_version(program)):
            self._cache.write_version(program.digest, version)
        return version

    def _request_version(self, program: Program) -> str:
        try:
            result = self._runner.run(program.path, ("version", "--template", "{{.Version}}"), {}, self._limits)
        except (OSError, ProcessTimeoutError, SandboxUnavailableError):
            return ""
        match = _VERSION.match(result.output.decode(errors="replace"))
        return f"{match[1]}.{match[2]}" if match and result.exit_code == 0 else ""

    def _describe_missing_program(self) -> str:
        paths = " or ".join(map(str, self._finder.list_candidates()))
        return f"needs the program helm ({self._supported.text}), which is not at {paths}: {_format_next_step()}"


def _format_next_step() -> str:
    return f"install it with `{INSTALL_COMMAND}` or a package manager, or set `sources.helm.program`"
