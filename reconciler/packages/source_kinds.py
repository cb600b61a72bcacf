"""Detection of the kind of a package source: kpt package, Helm chart, Kustomize overlay, or plain manifests.

The kind determines how the files of a source become the files of a package. The kind depends only on the names and
contents of the files, and not on their origin.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from reconciler.api.package_sources import SourceKind
from reconciler.catalog.files import FileTree
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.package import KUSTOMIZATION_FILES, Package

CHART_FILE = "Chart.yaml"
_MARKERS = frozenset({KPTFILE, CHART_FILE, *KUSTOMIZATION_FILES})


@dataclass(frozen=True)
class UnknownSourceKind:
    """The reason why the files of a source have no kind. `code` is the name of a finding code.

    `message` continues a sentence that starts with the source, such as "folder x of Repository y".
    """

    code: Literal["SourceKindAmbiguous", "UpstreamEmpty"]
    message: str


def detect_source_kind(files: FileTree) -> SourceKind | UnknownSourceKind:
    """Return the kind of a source whose config does not state the kind."""
    if KPTFILE in files:
        return "kpt"
    kustomization = _find_kustomization(files)
    if CHART_FILE in files and kustomization:
        return UnknownSourceKind(
            "SourceKindAmbiguous",
            f'contains {CHART_FILE} and {kustomization}. Next step: set the field kind to "helm" or "kustomize"',
        )
    if CHART_FILE in files:
        return "helm"
    if kustomization:
        return "kustomize"
    if marker := _find_nested_marker(files):
        return UnknownSourceKind(
            "SourceKindAmbiguous",
            f"has no package at its top level, but contains {marker} in a subfolder. Next step: use this subfolder as "
            'the package, or set the field kind to "manifests"',
        )
    return detect_manifests(files)


def detect_manifests(files: FileTree) -> SourceKind | UnknownSourceKind:
    """Return `manifests` if at least one file contains a Kubernetes resource."""
    if any(resource.api_version and resource.kind for resource in Package(files).resources):
        return "manifests"
    return UnknownSourceKind("UpstreamEmpty", "contains no Kubernetes resource")


def list_missing_markers(kind: SourceKind, files: Collection[str]) -> tuple[str, ...]:
    """Return the marker files of this kind if the source contains none of them. Otherwise return ().

    A source must contain one marker file of its kind, e.g. `Chart.yaml`. For an overlay, the file can be in a
    subfolder.
    """
    markers = {"kpt": (KPTFILE,), "helm": (CHART_FILE,), "kustomize": KUSTOMIZATION_FILES}.get(kind, ())
    names = {path.rpartition("/")[2] for path in files} if kind == "kustomize" else files
    return () if any(marker in names for marker in markers) else markers


def _find_kustomization(files: Collection[str]) -> str:
    return next((name for name in KUSTOMIZATION_FILES if name in files), "")


def _find_nested_marker(files: Collection[str]) -> str:
    return next((path for path in sorted(files) if path.rpartition("/")[2] in _MARKERS), "")
