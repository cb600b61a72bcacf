"""The field `helmCharts` of a kustomization: the chart of an entry, and the folder of the chart during a build.

Kustomize downloads a chart only if its folder does not exist. Before a build, the reconciler writes the files of the
chart into this folder, so that Kustomize downloads nothing.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from reconciler.catalog.files import FileTree
from reconciler.krm.findings import FindingCode
from reconciler.krm.version_ranges import is_exact_version
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.charts.dependencies import RequiredChart
from reconciler.packages.charts.value_sources import read_values_document
from reconciler.packages.kustomize.references import is_remote, resolve_path
from reconciler.packages.parsing import ParseFailure
from reconciler.packages.source_codes import SourceCodes
from reconciler.redaction import redact_urls

_DEFAULT_HOME: Final = "charts"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OUTSIDE = "is outside of the upstream package"


@dataclass(frozen=True)
class EntryProblem:
    """An error in a field of a kustomization."""

    code: FindingCode
    path: DataPath
    reason: str


def read_chart_entries(
    field: str,
    kustomization: Mapping[str, Any],
    folder: str,
    files: FileTree,
    describe: Callable[[DataPath], str],
) -> Iterator[RequiredChart | EntryProblem]:
    """Yield the charts of repositories in a kustomization, and the errors in its entries.

    Args:
        field: The field `helmCharts` as it is written, because Kustomize ignores the case of field names.
        folder: The folder of the kustomization, relative to the upstream package.
        files: The files of the upstream package.
        describe: Function that returns the place of an entry, for messages.
    """
    entries, home = kustomization[field], _DEFAULT_HOME
    for name, value in kustomization.items():
        if name.lower() == "helmglobals" and isinstance(value, Mapping):
            options = _lower_names(value)
            home = options.get("charthome") or home
            if options.get("confighome"):
                yield EntryProblem(
                    SourceCodes.KUSTOMIZE_FAILED, (name,), "must not set configHome, which is not supported"
                )
    if not isinstance(entries, list) or not isinstance(home, str):
        yield EntryProblem(
            SourceCodes.KUSTOMIZE_FAILED, (field,), "must be a list, and chartHome of helmGlobals must be a text"
        )
        return
    for index, entry in enumerate(entries):
        path = (field, index)
        yield from _EntryReader(path, _lower_names(entry), home, folder, files, describe(path)).read()


def _lower_names(data: Any) -> dict[str, Any]:
    return {str(name).lower(): value for name, value in data.items()} if isinstance(data, Mapping) else {}


@dataclass(frozen=True)
class _EntryReader:
    path: DataPath
    entry: Mapping[str, Any]
    home: str
    folder: str
    files: FileTree
    place: str

    def read(self) -> Iterator[RequiredChart | EntryProblem]:
        name, version, repository = (self.entry.get(field) or "" for field in ("name", "version", "repo"))
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            yield self._create_problem("name", "must be the name of a chart, such as web")
            return
        if not isinstance(repository, str):
            yield self._create_problem("repo", "must be the URL of a chart repository")
            return
        if repository and not (isinstance(version, str) and is_exact_version(version)):
            reason = f'must be an exact version, such as "1.2.3", but is "{version}"'
            yield self._create_problem("version", reason, SourceCodes.CHART_NOT_LOCKED)
            return
        # Kustomize uses the folder `<name>-<version>` if the fields `repo` and `version` are set.
        home = posixpath.join(self.home, f"{name}-{version}") if repository and version else self.home
        folder = resolve_path(self.folder, posixpath.join(home, name))
        if folder is None:
            yield self._create_problem(
                "name", f'refers to the chart folder "{home}/{name}", which {_OUTSIDE}', SourceCodes.PATH_INVALID
            )
            return
        chart = RequiredChart(name, str(version), repository, folder, self.place, "the upstream package")
        if repository:
            yield chart
        elif not chart.is_in(self.files):
            yield self._create_problem(
                "name",
                f'refers to the chart "{folder}", which the upstream package does not contain. Next step: add its'
                " files, or set repo",
            )
        yield from self._check_values_files()

    def _check_values_files(self) -> Iterator[EntryProblem]:
        additional = self.entry.get("additionalvaluesfiles")
        paths = [self.entry.get("valuesfile"), *(additional if isinstance(additional, list) else ())]
        for text in paths:
            if isinstance(text, str) and (problem := self._check_values_file(text)):
                yield problem

    def _check_values_file(self, text: str) -> EntryProblem | None:
        if is_remote(text):
            reason = f'refers to the URL "{redact_urls(text)}". Next step: copy the file into the upstream package'
            return self._create_problem("", reason, SourceCodes.REMOTE_BASE_REFUSED)
        path = resolve_path(self.folder, text)
        if path is None:
            return self._create_problem("", f'refers to "{text}", which {_OUTSIDE}', SourceCodes.PATH_INVALID)
        document = read_values_document(self.files[path].data) if path in self.files else None
        if isinstance(document, ParseFailure):
            reason = f"refers to {path}, which is not valid at line {document.line}: {document.message}"
            return self._create_problem("", reason, SourceCodes.VALUES_INVALID)
        return None

    def _create_problem(
        self, field: str, reason: str, code: FindingCode = SourceCodes.KUSTOMIZE_FAILED
    ) -> EntryProblem:
        return EntryProblem(code, (*self.path, field) if field else self.path, reason)
