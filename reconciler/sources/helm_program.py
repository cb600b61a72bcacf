"""Finds the program `helm` and its version."""

from __future__ import annotations

import re
from typing import Final

from reconciler.krm.version_ranges import VersionRange
from reconciler.packages.source_codes import SourceCodes
from reconciler.processes.backoff import CallBackoff
from reconciler.processes.process import ProcessLimits
from reconciler.sources.engine_programs import EngineProgram, ProgramKind
from reconciler.sources.programs import ProgramFinder, ProgramRunner
from reconciler.sources.render_cache import RenderCache

_HELM: Final = ProgramKind(
    "helm",
    "template",
    ("version", "--template", "{{.Version}}"),
    re.compile(r"\Av?([0-9]+)\.([0-9]+)"),
    "CGO_ENABLED=0 GOBIN=/usr/local/bin go install -ldflags '-s -w' helm.sh/helm/v3/cmd/helm@v3.22.0",
    SourceCodes.HELM_UNAVAILABLE,
)


class HelmProgram(EngineProgram):
    """Finds helm.

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
        backoff: CallBackoff,
    ) -> None:
        super().__init__(_HELM, supported, finder, runner, cache, limits, backoff)
