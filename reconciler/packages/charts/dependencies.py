"""Dependencies of a chart: which subcharts are not in its folder `charts`, and at which version they are locked."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from reconciler.api.base import read_model
from reconciler.api.helm import ChartDependency, ChartLock, ChartManifest
from reconciler.api.messages import MessageTemplates
from reconciler.api.porch.manifest import PORCH_API_VERSION
from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import Finding
from reconciler.krm.version_ranges import is_exact_version, parse_range, parse_version
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.charts.metadata import format_chart, read_chart_manifest
from reconciler.packages.parsing import ParseFailure, parse_cached
from reconciler.packages.source_codes import SourceCodes
from reconciler.packages.source_kinds import CHART_FILE

_SUBCHART = re.compile(rf"charts/[^/._][^/]*/{re.escape(CHART_FILE)}")
_LOCAL = "file://"
_NOT_IN_NAME = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class RequiredChart:
    """A chart that a source requires and does not contain.

    Attributes:
        name: The name of the chart.
        version: The exact version.
        repository: The URL of the repository: https://, oci:// or file://.
        folder: The folder of the source that receives the files of the chart.
        requester: The object that requires the chart, for messages.
        place: The name of the folder or package that should contain the chart, for messages.
    """

    name: str
    version: str
    repository: str
    folder: str
    requester: str
    place: str = "its folder `charts`"

    def is_in(self, files: FileTree) -> bool:
        """Return whether the files of the source contain the chart."""
        return f"{self.folder}/{CHART_FILE}" in files

    def create_finding(self) -> Finding:
        """Return the finding if no Repository object provides the chart."""
        start = (
            f'{self.requester} requires version "{self.version}" of the chart "{self.name}", but'
            f" {self.place} does not contain it"
        )
        url = self.repository
        if not url.startswith(("https://", "http://", "oci://")):
            origin = f"The repository {url} cannot be used" if url else "The chart has no repository"
            message = f"{start}. {origin}. Next step: add the chart to {self.place}"
        else:
            message = (
                f"{start}, and no Repository has the URL {url}. Next step: add this Repository to the config:"
                f" {self._format_repository()}"
            )
        return SourceCodes.DEPENDENCY_REPOSITORY_MISSING.finding(message)

    def _format_repository(self) -> str:
        """Return the manifest of a Repository on one line."""
        name = _NOT_IN_NAME.sub("-", self.name.lower()).strip("-")
        metadata, spec = f"{{name: {name}-charts}}", f'{{type: helm, helm: {{url: "{self.repository}"}}}}'
        return f"{{apiVersion: {PORCH_API_VERSION}, kind: Repository, metadata: {metadata}, spec: {spec}}}"


def add_local_charts(chart: FileTree, manifest: ChartManifest) -> FileTree:
    """Copy the dependencies with a `file://` repository to the folder `charts` of a chart. Return the changed chart.

    A dependency is not copied if its folder is outside of the chart, or contains a chart with a different name or
    version.
    """
    present = _read_subchart_names(chart)
    copies: dict[str, File] = {}
    for dependency in _read_dependencies(chart, manifest):
        folder = posixpath.normpath(dependency.repository.removeprefix(_LOCAL))
        is_local = dependency.repository.startswith(_LOCAL) and not folder.startswith((".", "/"))
        subchart = chart.subtree(folder) if is_local and dependency.name not in present else FileTree()
        if _is_required_chart(subchart, dependency):
            copies |= {f"charts/{dependency.name}/{path}": file for path, file in subchart.items()}
    return chart.with_files(copies) if copies else chart


def _is_required_chart(chart: FileTree, dependency: ChartDependency) -> bool:
    manifest = read_chart_manifest(chart)
    if isinstance(manifest, Finding) or manifest.name != dependency.name:
        return False
    required, version = parse_range(dependency.version), parse_version(manifest.version)
    return required is not None and version is not None and required.matches(version)


def find_missing_dependencies(chart: FileTree, manifest: ChartManifest) -> tuple[RequiredChart, ...] | Finding:
    """Return the required subcharts that the chart does not contain.

    If the exact version or the repository URL of a missing subchart is unknown, return a finding instead.
    """
    chart = add_local_charts(chart, manifest)
    label, locked = format_chart(manifest), _read_locked_versions(chart)
    missing: list[RequiredChart] = []
    for dependency, lock_key in _list_missing(chart, manifest):
        if dependency.repository.startswith(("@", "alias:")):
            message = (
                f'{label}: the repository "{dependency.repository}" of the dependency "{dependency.name}"'
                " is an alias in"
                f" the settings of helm. Next step: write the URL of the repository into {CHART_FILE}"
            )
            return SourceCodes.DEPENDENCY_REPOSITORY_MISSING.finding(message)
        version = dependency.version if locked is None else locked.get(lock_key, "")
        if not is_exact_version(version):
            return SourceCodes.CHART_NOT_LOCKED.finding(
                _describe_missing_lock(label, dependency, has_lock=locked is not None)
            )
        name = dependency.name
        missing.append(RequiredChart(name, version, dependency.repository, f"charts/{name}", label))
    return tuple(missing)


def _list_missing(chart: FileTree, manifest: ChartManifest) -> Iterator[tuple[ChartDependency, tuple[str, int]]]:
    """Yield each dependency that the chart does not contain, and its key: the name, and a number for equal names.

    The result of `_read_locked_versions` has the same keys.
    """
    present = _read_subchart_names(chart)
    occurrences: Counter[str] = Counter()
    for dependency in _read_dependencies(chart, manifest):
        key = dependency.name, occurrences[dependency.name]
        occurrences[dependency.name] += 1
        # As in helm, compare only the name of the dependency, and not its version.
        if dependency.name not in present:
            yield dependency, key


def _read_dependencies(chart: FileTree, manifest: ChartManifest) -> Sequence[ChartDependency]:
    """Return the dependencies in `Chart.yaml`, or in `requirements.yaml` of the chart format v1."""
    if manifest.dependencies:
        return manifest.dependencies
    requirements = _read_lock(chart, "requirements.yaml")
    return requirements.dependencies if requirements else ()


def _read_subchart_names(chart: FileTree) -> frozenset[str]:
    manifests = (
        read_chart_manifest(chart.subtree(path.removesuffix(f"/{CHART_FILE}")))
        for path in chart
        if _SUBCHART.fullmatch(path)
    )
    return frozenset(manifest.name for manifest in manifests if isinstance(manifest, ChartManifest))


def _read_locked_versions(chart: FileTree) -> dict[tuple[str, int], str] | None:
    """Return the versions in the lock file of a chart. Return None if the chart has no lock file.

    A key contains the name of a dependency, and the number of earlier dependencies with this name in the lock file.
    """
    lock = _read_lock(chart, "Chart.lock") or _read_lock(chart, "requirements.lock")
    if lock is None:
        return None
    occurrences: Counter[str] = Counter()
    versions: dict[tuple[str, int], str] = {}
    for dependency in lock.dependencies:
        versions[dependency.name, occurrences[dependency.name]] = dependency.version
        occurrences[dependency.name] += 1
    return versions


def _read_lock(chart: FileTree, path: str) -> ChartLock | None:
    file = chart.get(path)
    parsed = parse_cached(file.data) if file else None
    if parsed is None or isinstance(parsed, ParseFailure) or len(parsed.documents) != 1:
        return None
    return read_model(ChartLock, parsed.documents[0].data, MessageTemplates()).model


def _describe_missing_lock(label: str, dependency: ChartDependency, *, has_lock: bool) -> str:
    reason = (
        f'Chart.lock contains no version of "{dependency.name}"'
        if has_lock
        else f'The version "{dependency.version}" is not exact, and there is no Chart.lock'
    )
    return (
        f'{label} requires the chart "{dependency.name}", but its folder `charts` does not contain it. {reason}. Next'
        " step: run `helm dependency update` and commit Chart.lock, or write an exact version into"
        f" {CHART_FILE}"
    )
