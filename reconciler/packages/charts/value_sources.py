"""The sources of the values of a chart: layers from the config, and values files that are read with the chart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.catalog.files import FileTree
from reconciler.krm.findings import Finding, Severity, SourceLocation
from reconciler.krm.json_pointer import PointerError, parse_pointer
from reconciler.krm.json_text import compute_digest
from reconciler.krm.yaml import DataPath, Document
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.charts.values import (
    LayerProblem,
    ValuesLayer,
    find_imprecise_integers,
    find_layer,
    format_values_path,
    merge_layers,
)
from reconciler.packages.package import join_path
from reconciler.packages.parsing import ParseFailure, parse_cached
from reconciler.packages.sops import is_sops_document
from reconciler.packages.source_codes import SourceCodes

ENCRYPTED_VALUES = (
    "must not be encrypted with SOPS, because values are written into resources and never decrypted; use the chart's"
    " existingSecret value, and put an encrypted Secret or an ExternalSecret into a package"
)
CHART = ""
"""The source name of a values file that is in the chart itself, and not in another source of the package."""


@dataclass(frozen=True)
class DocumentLines:
    """Function that returns the line of a path in the values of a YAML document.

    Attributes:
        prefix: The path of the values in the document.
        line_offset: The number of lines in the file before the document, e.g. before a text in a ConfigMap.
    """

    document: Document
    prefix: DataPath = ()
    line_offset: int = 0

    def __call__(self, path: DataPath) -> int:
        """Return the line of a value in the file. For an absent value, return the line of its nearest parent."""
        return self.line_offset + self.document.find_line((*self.prefix, *path))


@dataclass(frozen=True)
class SourceValuesFile:
    """A values file in the chart or in another source of the package. It is read when the chart is rendered.

    Attributes:
        source: The name of the source in `spec.sources`. "" for the chart.
        field_path: The field of the PackageVariant that names the file, for messages.
        location: The location of this field.
    """

    source: str
    path: str
    field_path: str
    location: SourceLocation
    is_optional: bool = False

    @property
    def name(self) -> str:
        """The file in the notation of the field `valuesFiles`."""
        return f"${self.source}/{self.path}" if self.source else self.path


@dataclass(frozen=True)
class ValuesSource:
    """The files of one source, and its commit or digest.

    Attributes:
        directory: The folder of the files in their repository, for the file names of layers. "" for relative names.
    """

    files: FileTree
    revision: str
    directory: str = ""


@dataclass(frozen=True)
class ResolvedValues:
    """All layers of values that override the defaults of the chart, the merged text, and findings about the layers."""

    layers: tuple[ValuesLayer, ...]
    text: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class ChartValues:
    """The values of one chart, from the lowest to the highest precedence, without the defaults of the chart."""

    entries: tuple[ValuesLayer | SourceValuesFile, ...] = ()

    @property
    def config_layers(self) -> tuple[ValuesLayer, ...]:
        """The layers whose values are in the config. Values files in the chart or in another source are omitted."""
        return tuple(entry for entry in self.entries if isinstance(entry, ValuesLayer))

    @property
    def has_source_files(self) -> bool:
        """Whether the values include values files of the chart or of other sources."""
        return not all(isinstance(entry, ValuesLayer) for entry in self.entries)

    @property
    def config_text(self) -> str:
        """The merged layers from the config."""
        return merge_layers(self.config_layers).text

    @property
    def fingerprint(self) -> str:
        """A digest of all entries that does not require reading the values files of the chart and of other sources.

        The digest depends on the layers from the config, the names of these files, and the order of the entries. "" if
        the entries contain no such file.
        """
        return compute_digest([_describe_entry(entry) for entry in self.entries]) if self.has_source_files else ""

    @property
    def digest(self) -> str:
        """The value of `fingerprint`. If it is "", the digest of the merged layers from the config."""
        return self.fingerprint or compute_digest(self.config_text)

    def resolve(self, sources: Mapping[str, ValuesSource]) -> ResolvedValues:
        """Read the values files of other sources, and merge all layers.

        Args:
            sources: Maps the name of each source to the source. The name "" selects the chart itself.
        """
        layers: list[ValuesLayer] = []
        findings: list[Finding] = []
        for entry in self.entries:
            result = entry if isinstance(entry, ValuesLayer) else _read_source_file(entry, sources)
            if isinstance(result, Finding):
                findings.append(result)
                continue
            layers.append(result)
            findings += find_precision_warnings(result)
        merged = merge_layers(layers)
        findings += map(_create_merge_finding, merged.problems)
        return ResolvedValues(tuple(layers), merged.text, tuple(findings))


def _describe_entry(entry: ValuesLayer | SourceValuesFile) -> list[Any]:
    if isinstance(entry, ValuesLayer):
        return [entry.kind, [*entry.target], entry.values]
    return [entry.source, entry.path, entry.is_optional]


def _read_source_file(entry: SourceValuesFile, sources: Mapping[str, ValuesSource]) -> ValuesLayer | Finding:
    source = sources.get(entry.source)
    if source is None:
        names = ", ".join(f"${name}" for name in ("config", *filter(None, sources)))
        message = f'{entry.field_path}: there is no source "${entry.source}"; the sources are {names} and the chart'
        return SourceCodes.VALUES_NOT_FOUND.finding(message, entry.location)
    file = source.files.get(entry.path)
    if file is None:
        owner = f'source "{entry.source}"' if entry.source else "chart"
        return create_not_found_finding(
            f'{entry.field_path}: the {owner} contains no file "{entry.path}"', entry.location, entry.is_optional
        )
    document = read_values_document(file.data)
    if isinstance(document, ParseFailure):
        message = (
            f"{entry.field_path} refers to {entry.name}, which is not valid at line {document.line}: {document.message}"
        )
        return SourceCodes.VALUES_INVALID.finding(message, entry.location)
    layer = ValuesLayer(
        "values-file", entry.name, {}, file=join_path(source.directory, entry.path), revision=source.revision
    )
    return replace(layer, values=document.data, find_line=DocumentLines(document)) if document else layer


def read_values_document(content: bytes) -> Document | ParseFailure | None:
    """Parse a values file, and return its only document. Return None if the file contains no data.

    Return a `ParseFailure` if the file contains several documents, or if the document is not a map or is encrypted.
    """
    parsed = parse_cached(content)
    if isinstance(parsed, ParseFailure):
        return parsed
    documents = parsed.documents
    if len(documents) > 1:
        return ParseFailure("a values file must contain one document", documents[1].line)
    if not documents or documents[0].data is None:
        return None
    if not isinstance(documents[0].data, dict):
        return ParseFailure("a values file must contain a map", documents[0].line)
    if is_sops_document(documents[0].data):
        return ParseFailure(f"a values file {ENCRYPTED_VALUES}", documents[0].line)
    return documents[0]


def create_not_found_finding(message: str, location: SourceLocation, is_optional: bool) -> Finding:
    """Return the finding about missing values. It is an info for optional values."""
    finding = SourceCodes.VALUES_NOT_FOUND.finding(message, location)
    return replace(finding, severity=Severity.INFO) if is_optional else finding


def _create_merge_finding(problem: LayerProblem) -> Finding:
    layer = problem.layer
    location = SourceLocation(layer.file, layer.find_line(()))
    return SourceCodes.VALUES_INVALID.finding(f"{layer.name}: {problem.message}", location)


def find_precision_warnings(layer: ValuesLayer) -> Iterator[Finding]:
    """Yield a warning for each integer that loses digits in Helm."""
    for path, value in find_imprecise_integers(layer):
        place = format_values_path((*layer.target, *path))
        message = (
            f"Helm changes the last digits of the number {value} at {place} in {layer.name}, because it reads numbers"
            " with 53 bits. Next step: put the value in quotes"
        )
        yield SourceCodes.VALUES_PRECISION.finding(message, SourceLocation(layer.file, layer.find_line(path)))


def locate_values_finding(finding: Finding, layers: tuple[ValuesLayer, ...]) -> Finding:
    """Add the layer, the file and the line of an invalid value to a finding that Helm reported about this value.

    If no layer sets the value, it is a default of the chart, or it is missing. The finding then stays unchanged.
    """
    if finding.code != SourceCodes.VALUES_INVALID.name:
        return finding
    try:
        path = parse_pointer(finding.location.pointer)
    except PointerError:
        return finding
    found = find_layer(layers, path)
    if found is None:
        return finding
    layer, inner_path = found
    line = layer.find_line(inner_path)
    place = f"{layer.file}:{line}" if line else layer.file
    details = ", ".join(filter(None, (layer.name, place)))
    location = replace(finding.location, file=layer.file, line=line)
    return replace(finding, message=f"{finding.message} (set by {details})", location=location)
