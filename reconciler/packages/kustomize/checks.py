"""Checks before the build of an overlay: it must refer only to files of the package, and must start no function.

Kustomize downloads URLs, reads bases outside of the package, and can start programs. The checks read each kustomization
file that a build can reach.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from reconciler.catalog.files import FileTree
from reconciler.krm.field_text import format_path
from reconciler.krm.findings import Finding, FindingCode
from reconciler.krm.yaml import DataPath, Document, YamlError, parse_yaml
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.packages.charts.dependencies import RequiredChart
from reconciler.packages.kustomize.charts import EntryProblem, read_chart_entries
from reconciler.packages.kustomize.references import is_remote, resolve_path
from reconciler.packages.kustomize.request import KustomizeRequest
from reconciler.packages.package import KUSTOMIZATION_FILES
from reconciler.packages.source_codes import SourceCodes
from reconciler.redaction import redact_urls

# Match paths that are probably URLs if no file with this path exists. Old versions of Kustomize accept URLs without a
# scheme.
_LIKE_REMOTE = re.compile(r"\?|\.git(?:$|/)|//|^[\w-]+(?:\.[\w-]+)+/.*/")
_RESOURCE_FIELDS: Final = ("resources", "bases", "components")
_FUNCTION_FIELDS: Final = ("generators", "transformers", "validators")
_CHARTS_FIELD: Final = "helmcharts"
_CHART_GENERATOR: Final = "helmchartinflationgenerator"
# Fields whose texts are data. All other texts can be the path or URL of a file.
_DATA_FIELDS: Final = frozenset(
    {
        "annotations", "annotationselector", "commonannotations", "commonlabels", "images", "labels", "labelselector",
        "literals", "metadata", "patch", "replicas", _CHARTS_FIELD, _CHART_GENERATOR,
    }
)  # fmt: skip
_BUILTIN = "builtin"
_CHARTS_REFUSED = (
    "must not be set, because charts of an overlay are not rendered. Next step: set spec.kustomize.helmCharts to"
    ' "render", or use the chart as the upstream of its own PackageVariant, with spec.helm'
)
_GENERATOR_REFUSED = (
    "uses HelmChartInflationGenerator, which is not supported. Next step: use the field helmCharts of the kustomization"
)
_MAX_NAMED = 10


def check_overlay(files: FileTree, request: KustomizeRequest) -> tuple[Finding, ...]:
    """Return the errors of all kustomization files that a build of the overlay reads."""
    checks = _run_checks(files, request)
    missing = (chart.create_finding() for chart in checks.charts if not chart.is_in(files))
    return tuple(dict.fromkeys((*checks.findings, *missing)))


def find_missing_charts(files: FileTree, request: KustomizeRequest) -> tuple[RequiredChart, ...]:
    """Return the charts that a build of the overlay needs, and that the files do not contain.

    Errors in kustomization files are not reported here. `check_overlay` reports them before the build.
    """
    charts = _run_checks(files, request).charts if request.charts else ()
    return tuple(dict.fromkeys(chart for chart in charts if not chart.is_in(files)))


def _run_checks(files: FileTree, request: KustomizeRequest) -> _OverlayChecks:
    checks = _OverlayChecks(files, has_charts=request.charts is not None)
    for path in (request.path, *request.components):
        if checks.find_kustomizations(path):
            checks.add_folder(_Folder(path))
        else:
            checks.findings.append(_create_missing_finding(files, path))
    while checks.pending:
        checks.check_folder(checks.pending.pop())
    return checks


@dataclass(frozen=True)
class _Folder:
    """A folder that the build reads. `has_functions` is True if its resources are configurations of functions."""

    path: str
    has_functions: bool = False


@dataclass
class _OverlayChecks:
    """The state of the checks: the folders to check, the findings, and the required charts from chart repositories.

    `has_charts` is True if the overlay may contain charts.
    """

    files: FileTree
    has_charts: bool
    charts: list[RequiredChart] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    pending: list[_Folder] = field(default_factory=list)
    visited: set[_Folder] = field(default_factory=set)

    def find_kustomizations(self, folder: str) -> tuple[str, ...]:
        """Return the paths of the kustomization files in a folder."""
        paths = (posixpath.join(folder, name) for name in KUSTOMIZATION_FILES)
        return tuple(path for path in paths if path in self.files)

    def add_folder(self, folder: _Folder) -> None:
        """Add a folder that the build reads. Skip a folder that was added before, because folders can form a cycle."""
        if folder not in self.visited:
            self.visited.add(folder)
            self.pending.append(folder)

    def check_folder(self, folder: _Folder) -> None:
        """Check the kustomization file of a folder."""
        for path in self.find_kustomizations(folder.path):
            for document in self._read(path):
                place = _Place(path, document)
                self._check_texts(place, document.data)
                self._check_references(place, folder)

    def _read(self, path: str) -> tuple[Document, ...]:
        try:
            return parse_yaml(self.files[path].data).documents
        except YamlError as error:
            self.findings.append(SourceCodes.KUSTOMIZE_FAILED.finding(f"{path} cannot be parsed: {error}"))
            return ()

    def _check_texts(self, place: _Place, data: Any) -> None:
        for path, text in _iterate_texts(data, ()):
            # Check the text after "=" too, because the list `files` of a generator can contain entries of the form
            # `key=path`.
            if any(map(is_remote, (text, text.partition("=")[2]))):
                self._refuse_url(place, path, text)

    def _check_references(self, place: _Place, folder: _Folder) -> None:
        for name, value in place.iterate_fields():
            self._check_charts(place, folder, name, value)
            is_function_field = name.lower() in _FUNCTION_FIELDS
            if not (is_function_field or name.lower() in _RESOURCE_FIELDS) or not isinstance(value, list):
                continue
            for index, text in enumerate(value):
                if not isinstance(text, str) or is_remote(text):
                    continue  # Skip a URL, because the check of all texts has already reported it.
                if is_function_field and "\n" in text:
                    self._check_function(place, (name, index), text)
                else:
                    entry = _Folder(folder.path, folder.has_functions or is_function_field)
                    self._check_reference(place, entry, (name, index), text)

    def _check_charts(self, place: _Place, folder: _Folder, name: str, value: Any) -> None:
        """Check the field `helmCharts`, and collect its charts."""
        if name.lower() == _CHART_GENERATOR and value:
            self._add(place, SourceCodes.KUSTOMIZE_FAILED, (name,), _GENERATOR_REFUSED)
        if name.lower() != _CHARTS_FIELD or not value:
            return
        if not self.has_charts:
            self._add(place, SourceCodes.KUSTOMIZE_FAILED, (name,), _CHARTS_REFUSED)
            return
        fields = dict(place.iterate_fields())
        for entry in read_chart_entries(name, fields, folder.path, self.files, place.format):
            if isinstance(entry, EntryProblem):
                self._add(place, entry.code, entry.path, entry.reason)
            else:
                self.charts.append(entry)

    def _check_reference(self, place: _Place, folder: _Folder, path: DataPath, text: str) -> None:
        target = resolve_path(folder.path, text)
        if target is None:
            self._add(
                place, SourceCodes.PATH_INVALID, path, f'refers to "{text}", which is outside of the upstream package'
            )
        elif target in self.files:
            if folder.has_functions:
                self._check_function(_Place(target), (), self.files[target].data)
        elif self.find_kustomizations(target):
            self.add_folder(_Folder(target, folder.has_functions))
        elif _LIKE_REMOTE.search(text):
            self._refuse_url(place, path, text)
        else:
            reason = (
                f'refers to "{text}", which is neither a file of the upstream package nor a folder with a'
                " kustomization.yaml"
            )
            self._add(place, SourceCodes.KUSTOMIZE_FAILED, path, reason)

    def _check_function(self, place: _Place, path: DataPath, content: bytes | str) -> None:
        """Refuse functions that are not part of Kustomize: programs, containers and scripts."""
        try:
            documents = parse_yaml(content).documents
        except YamlError as error:
            self._add(place, SourceCodes.KUSTOMIZE_FAILED, path, f"cannot be parsed: {error}")
            return
        for document in documents:
            self._check_texts(place, document.data)
            data = document.data if isinstance(document.data, dict) else {}
            if str(data.get("kind")).lower() == _CHART_GENERATOR:
                self._add(place, SourceCodes.KUSTOMIZE_FAILED, path, _GENERATOR_REFUSED)
            elif data.get("apiVersion") != _BUILTIN or _has_function_annotation(data):
                reason = (
                    f"uses {data.get('kind')}, which is not a built-in function of Kustomize. The reconciler does not"
                    " start other functions in overlays. Next step: use spec.pipeline.mutators of the PackageVariant"
                )
                self._add(place, SourceCodes.KUSTOMIZE_FAILED, path, reason)

    def _refuse_url(self, place: _Place, path: DataPath, text: str) -> None:
        reason = f'refers to the URL "{redact_urls(text)}". Next step: copy the files into the upstream package'
        self._add(place, SourceCodes.REMOTE_BASE_REFUSED, path, reason)

    def _add(self, place: _Place, code: FindingCode, path: DataPath, reason: str) -> None:
        self.findings.append(code.finding(f"{place.format(path)} {reason}"))


@dataclass(frozen=True)
class _Place:
    """The file that a message refers to. `document` is the content of a kustomization, or None for any other file."""

    file: str
    document: Document | None = None

    def iterate_fields(self) -> Iterator[tuple[str, Any]]:
        data = self.document.data if self.document else None
        return iter(data.items() if isinstance(data, dict) else ())

    def format(self, path: DataPath) -> str:
        """Return the file, line and field as the subject of a sentence."""
        line = f":{self.document.find_line(path)}" if self.document else ""
        field_path = format_path(path) if self.document and path else ""
        return f"{self.file}{line}: {field_path}" if field_path else f"{self.file}{line}"


def _iterate_texts(data: Any, path: DataPath) -> Iterator[tuple[DataPath, str]]:
    """Yield each text that can be the path or URL of a file. Kustomize ignores the case of field names."""
    if isinstance(data, Mapping):
        for name, value in data.items():
            if str(name).lower() not in _DATA_FIELDS:
                yield from _iterate_texts(value, (*path, name))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _iterate_texts(value, (*path, index))
    elif isinstance(data, str):
        yield path, data


def _has_function_annotation(data: Mapping[str, Any]) -> bool:
    metadata = data.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    names = annotations if isinstance(annotations, Mapping) else ()
    return any(str(name).startswith("config.") and str(name).endswith("/function") for name in names)


def _create_missing_finding(files: FileTree, path: str) -> Finding:
    kustomizations = (file for file in files if posixpath.basename(file) in KUSTOMIZATION_FILES)
    folders = sorted({posixpath.dirname(file) or "." for file in kustomizations})
    named = ", ".join(folders[:_MAX_NAMED]) + (", …" if len(folders) > _MAX_NAMED else "")
    return SourceCodes.KUSTOMIZE_FAILED.finding(
        f'folder "{path or "."}" of the upstream package has no kustomization.yaml; folders with this file: {named}'
    )
