"""The program `helm`."""

from __future__ import annotations

import re
from typing import Final

from reconciler.packages.source_codes import SourceCodes
from reconciler.sources.engine_programs import ProgramKind

HELM: Final = ProgramKind(
    "helm",
    "template",
    ("version", "--template", "{{.Version}}"),
    re.compile(r"\Av?([0-9]+)\.([0-9]+)"),
    "CGO_ENABLED=0 GOBIN=/usr/local/bin go install -ldflags '-s -w' helm.sh/helm/v3/cmd/helm@v3.22.0",
    SourceCodes.HELM_UNAVAILABLE,
)
"""The interface of helm."""
