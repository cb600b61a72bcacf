"""Finds a program that builds Kustomize overlays: `kustomize`, or `kubectl`, which contains Kustomize."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from reconciler.packages.source_codes import SourceCodes
from reconciler.sources.engine_programs import EngineProblem, EngineProgram, EngineVersion, ProgramKind

KUBECTL: Final = "kubectl"
KUSTOMIZE: Final = "kustomize"
_INSTALL_COMMAND = "CGO_ENABLED=0 GOBIN=/usr/local/bin go install sigs.k8s.io/kustomize/kustomize/v5@v5.8.2"
PROGRAM_KINDS: Final = {
    KUSTOMIZE: ProgramKind(
        KUSTOMIZE, "build", ("version",), re.compile(r"v([0-9]+)\.([0-9]+)"), _INSTALL_COMMAND,
        SourceCodes.KUSTOMIZE_UNAVAILABLE,
    ),
    KUBECTL: ProgramKind(
        KUSTOMIZE, KUSTOMIZE, ("version", "--client", "--output", "json"),
        re.compile(r'"kustomizeVersion": *"v([0-9]+)\.([0-9]+)'), _INSTALL_COMMAND, SourceCodes.KUSTOMIZE_UNAVAILABLE,
    ),
}  # fmt: skip
"""The interfaces of the programs, by file name and in the order in which they are searched."""


def get_program_name(path: Path) -> str:
    """Return the name of the program at a path that the user set: `kubectl` or `kustomize`."""
    return KUBECTL if path.name.startswith(KUBECTL) else KUSTOMIZE


class KustomizeProgram:
    """Finds the first program that is available.

    Args:
        programs: The programs in the order of their precedence.
    """

    def __init__(self, programs: tuple[EngineProgram, ...]) -> None:
        self._programs = programs

    def find(self) -> EngineVersion | EngineProblem:
        """Return the first program that can be used. If there is none, return the reason.

        The reason that a version is not supported has precedence over the reason that a program is missing.
        """
        problems: list[EngineProblem] = []
        for program in self._programs:
            found = program.find()
            if isinstance(found, EngineVersion):
                return found
            problems.append(found)
        # Prefer the error about an unsupported version to the error about a missing program.
        return next((problem for problem in problems if problem.code == SourceCodes.ENGINE_UNSUPPORTED), problems[0])


def build_kustomize_program(
    path: Path | None, build_program: Callable[[str, ProgramKind], EngineProgram]
) -> KustomizeProgram:
    """Return the program at a path, or the programs in the usual folders if there is no path.

    Args:
        build_program: Function that returns the program with a file name.
    """
    names = (get_program_name(path),) if path else tuple(PROGRAM_KINDS)
    return KustomizeProgram(tuple(build_program(name, PROGRAM_KINDS[name]) for name in names))
