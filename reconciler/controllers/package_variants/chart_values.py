"""The chart values that a PackageVariant requests: its own values, config objects, and values files of the config.

The values of `valuesFiles` in the chart and in other sources are read when the chart is rendered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from reconciler.api.helm_options import (
    CONFIG_SOURCE,
    HelmOptions,
    ValuesReference,
    is_key_value_kind,
    split_values_file,
)
from reconciler.api.porch.upstream import UpstreamSpec
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.manifests import DEFAULT_NAMESPACE
from reconciler.catalog.trace import ABSENT_FINGERPRINT
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.nested_values import get_value
from reconciler.krm.field_text import format_path, quote_value, suggest_name
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.helm_paths import check_option_name, parse_option_name
from reconciler.krm.json_pointer import PointerError, parse_pointer, resolve_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey, split_api_version
from reconciler.krm.yaml import DataPath, YamlError, read_core_yaml
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.packages.charts.helm_release import SecretValues, check_reference, find_overlaps, find_shadowed_secrets
from reconciler.packages.charts.value_sources import (
    ENCRYPTED_VALUES,
    ChartValues,
    DocumentLines,
    SourceValuesFile,
    create_not_found_finding,
    read_values_document,
)
from reconciler.packages.charts.values import ValuesLayer, merge_layers
from reconciler.packages.parsing import ParseFailure
from reconciler.packages.sops import is_sops_document
from reconciler.packages.source_codes import SourceCodes

_EXPRESSION_LISTS = {"parameters": "parameterExprs", "valuesFiles": "valuesFilesExprs"}
_REFUSAL = (
    "would be written to the branch in plain text; use output: helmRelease, where the cluster resolves the reference, "
    "or the chart's existingSecret value"
)


@dataclass(frozen=True)
class OptionSource:
    """The config object that contains the options of a chart.

    Attributes:
        manifest: The PackageVariant, or the PackageVariantSet that generated it.
        paths: The paths at which the object can contain options. The path with the highest precedence comes first. In a
            set, the template of the upstream takes precedence over the template of the target.
    """

    manifest: ConfigObject
    paths: tuple[DataPath, ...]

    def find_path(self, option: DataPath) -> DataPath:
        """Convert a path in the options of the PackageVariant to a path in `manifest`.

        If a set generates the PackageVariant, the paths can differ: the set appends the results of `parameterExprs` to
        the list `parameters`, and the results of `valuesFilesExprs` to the list `valuesFiles`.
        """
        name, *rest = option
        expressions = _EXPRESSION_LISTS.get(str(name))
        if expressions and rest and isinstance(rest[0], int):
            literals = get_value(self.manifest.data, (*self._find_base(name), name))
            count = len(literals) if isinstance(literals, list) else 0
            if rest[0] >= count:
                return (*self._find_base(expressions), expressions, rest[0] - count)
        return (*self._find_base(name), *option)

    def _find_base(self, name: str | int) -> DataPath:
        """Return the first of `paths` at which the manifest has the option `name`. Return the last path by default."""
        bases = (path for path in self.paths if get_value(self.manifest.data, (*path, name)) is not ABSENT)
        return next(bases, self.paths[-1])

    def locate(self, option: DataPath) -> SourceLocation:
        """Return the location of an option in the config."""
        return self.manifest.location_of(self.find_path(option))

    def get_expression(self, option: DataPath) -> str:
        """Return the CEL expression of a parameter. Return "" for a literal value."""
        text = get_value(self.manifest.data, (*self.find_path(option), "valueExpr"))
        return text if isinstance(text, str) else ""


def find_option_source(manifest: ConfigObject, upstream: UpstreamSpec, target_indexes: tuple[int, ...]) -> OptionSource:
    """Return the location of the chart options of a PackageVariant.

    Args:
        manifest: The PackageVariant, or the PackageVariantSet that generated it.
        target_indexes: The indexes of those targets in the set that request the package. () for a PackageVariant in the
            config.
    """
    if not target_indexes:
        return OptionSource(manifest, (("spec", "helm"),))
    upstreams = get_value(manifest.data, ("spec", "upstreams"))
    overrides: list[DataPath] = [
        ("spec", "upstreams", index, "template", "helm")
        for index, entry in enumerate(upstreams if isinstance(upstreams, list) else ())
        if entry.get("repo") == upstream.repo and upstream.package_name in (entry.get("package"), entry.get("chart"))
    ]
    return OptionSource(manifest, (*overrides, ("spec", "targets", target_indexes[0], "template", "helm")))


@dataclass(frozen=True)
class CollectedValues:
    """The values of a chart, the dependencies that were read, and the findings about missing values.

    Attributes:
        dependencies: The fingerprints of the objects and files that were read, by name. The absence of an object or a
            file is a dependency too.
        objects: The config objects that were read.
        secrets: The references to Secrets, for a HelmRelease.
    """

    values: ChartValues
    dependencies: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    objects: tuple[ConfigObject, ...] = ()
    secrets: tuple[SecretValues, ...] = ()


def collect_values(
    options: HelmOptions,
    source: OptionSource,
    catalog: Catalog,
    namespace: str,
    source_names: Collection[str] = frozenset(),
) -> CollectedValues:
    """Return the values that the options of a chart request.

    Args:
        catalog: The objects that the PackageVariant may use.
        namespace: The namespace of the PackageVariant.
        source_names: The names of all sources of the package. Values files can be in these sources.
    """
    collector = _Collector(options, source, catalog, namespace or DEFAULT_NAMESPACE, source_names)
    values = ChartValues(tuple(collector.iterate_entries()))
    findings = (*collector.findings, *collector.check_secrets(), *collector.find_shadowed_secrets(values))
    return CollectedValues(
        values, collector.dependencies, findings, tuple(collector.objects), tuple(collector.secrets.values())
    )


@dataclass
class _Collector:
    options: HelmOptions
    source: OptionSource
    catalog: Catalog
    namespace: str
    source_names: Collection[str]
    dependencies: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    objects: list[ConfigObject] = field(default_factory=list)
    secrets: dict[DataPath, SecretValues] = field(default_factory=dict)

    def iterate_entries(self) -> Iterator[ValuesLayer | SourceValuesFile]:
        """Yield all layers, from the lowest to the highest precedence."""
        for index, path in enumerate(self.options.values_files):
            yield from self._read_values_file(path, ("valuesFiles", index))
        for index, reference in enumerate(self.options.values_from):
            yield from self._read_reference(reference, ("valuesFrom", index))
        if self.options.values:
            yield self._build_layer("values", self.options.values, ("values",), ("values",))
        for index, parameter in enumerate(self.options.parameters):
            option: DataPath = ("parameters", index)
            target = parse_option_name(parameter.name)
            yield self._build_layer("parameter", parameter.value, option, (*option, "value"), target)

    def _build_layer(
        self, kind: Any, values: Any, option: DataPath, value_option: DataPath, target: tuple[str | int, ...] = ()
    ) -> ValuesLayer:
        manifest, path = self.source.manifest, self.source.find_path(option)
        value_path = (*path, *value_option[len(option) :])
        return ValuesLayer(
            kind, manifest.key.reference, values, target, manifest.file, format_path(path), "",
            self.source.get_expression(option), DocumentLines(manifest.document, (*manifest.path, *value_path)),
        )  # fmt: skip

    def _read_values_file(self, path: str, option: DataPath) -> Iterator[ValuesLayer | SourceValuesFile]:
        source, file = split_values_file(path)
        is_optional = self.options.ignore_missing_values_files
        field_path, location = self._describe(option)
        if source not in ("", CONFIG_SOURCE, *self.source_names):
            names = (CONFIG_SOURCE, *self.source_names)
            message = f"{field_path}: the package has no source {quote_value(source)}{suggest_name(source, names)}"
            self.findings.append(SourceCodes.VALUES_NOT_FOUND.finding(message, location))
            return
        if source != CONFIG_SOURCE:
            yield SourceValuesFile(source, file, field_path, location, is_optional)
            return
        documents = self.catalog.documents(file) if self._may_read(file) else None
        fingerprint = self.catalog.get_file_id(file) if documents is not None else None
        self.dependencies[path] = fingerprint or ABSENT_FINGERPRINT
        if documents is None:
            message = f"{field_path}: the config contains no YAML file {quote_value(file)} that this object may use"
            self.findings.append(create_not_found_finding(message, location, is_optional))
            return
        if len(documents) > 1 or not all(isinstance(document.data, dict) for document in documents):
            message = (
                f"{field_path}: the file {quote_value(file)} must contain exactly one document, and it must be a map"
            )
            self.findings.append(SourceCodes.VALUES_INVALID.finding(message, SourceLocation(file)))
            return
        if any(is_sops_document(document.data) for document in documents):
            message = f"{field_path}: the file {quote_value(file)} {ENCRYPTED_VALUES}"
            self.findings.append(SourceCodes.VALUES_INVALID.finding(message, SourceLocation(file)))
            return
        for document in documents:
            yield ValuesLayer("values-file", path, document.data, file=file, find_line=DocumentLines(document))

    def _may_read(self, file: str) -> bool:
        """Return whether a config file belongs to the platform team or to the tenant of the object."""
        find_owner = self.catalog.tenants.find_owner
        return find_owner(file) in ("", find_owner(self.source.manifest.file))

    def _describe(self, option: DataPath) -> tuple[str, SourceLocation]:
        """Return an option as text for messages, and its location."""
        return format_path(self.source.find_path(option)), self.source.locate(option)

    def _read_reference(self, reference: ValuesReference, option: DataPath) -> Iterator[ValuesLayer]:
        field_path, location = self._describe(option)
        group, _ = split_api_version(reference.api_version)
        named = ObjectKey(group, reference.kind, self.namespace, reference.name)
        if reference.kind == "Secret":
            if self.options.output == "manifests":
                message = f"{field_path}: values of {named} {_REFUSAL}"
                self.findings.append(SourceCodes.SECRET_VALUES_REFUSED.finding(message, location))
            self.secrets[option] = SecretValues(
                reference.name, reference.values_key, reference.target_path, reference.optional
            )
            return
        key = (reference.api_version, reference.kind, self.namespace, reference.name)
        found = self.catalog.objects_by_name.get(key)
        self.dependencies[named.reference] = found.digest if found else ABSENT_FINGERPRINT
        if found is None:
            message = f"{field_path}: the config contains no {named}{self._suggest_object(reference, key)}"
            self.findings.append(create_not_found_finding(message, location, reference.optional))
            return
        self.objects.append(found)
        try:
            yield _read_object(found, reference)
        except _ValuesError as error:
            message = f"{field_path}: {named} {error}"
            if error.is_missing:
                self.findings.append(create_not_found_finding(message, location, reference.optional))
            else:
                self.findings.append(SourceCodes.VALUES_INVALID.finding(message, found.location_of(error.path)))

    def _suggest_object(self, reference: ValuesReference, key: tuple[str, str, str, str]) -> str:
        if reference.optional:
            # Do not suggest a similar name, because optional objects are missing for most clusters.
            return ""
        names = [known for *kind, known in self.catalog.objects_by_name if kind == [*key[:3]]]
        return suggest_name(reference.name, names)

    def check_secrets(self) -> Iterator[Finding]:
        """Yield an error for each reference to a Secret that Flux would reject."""
        overlaps = dict(find_overlaps(tuple(self.secrets.values())))
        for option, secret in self.secrets.items():
            field_path, location = self._describe(option)
            for name, value, requirement in check_reference(secret):
                message = (
                    f"{field_path}.{name} is written to a HelmRelease, so {quote_value(value)} must have {requirement}"
                )
                yield SourceCodes.VALUES_INVALID.finding(message, location)
            if secret in overlaps:
                yield SourceCodes.VALUES_INVALID.finding(f"{field_path}: {overlaps[secret]}", location)

    def find_shadowed_secrets(self, values: ChartValues) -> Iterator[Finding]:
        """Yield a warning for each Secret whose value another value of the HelmRelease replaces."""
        shadowed = set(find_shadowed_secrets(merge_layers(values.config_layers).values, tuple(self.secrets.values())))
        for option, secret in self.secrets.items():
            if secret in shadowed:
                field_path, location = self._describe(option)
                message = (
                    f"{field_path}: Flux replaces the value of Secret/{self.namespace}/{secret.name} at "
                    f"{secret.target_path}, because another value is at the same path, or above or below it"
                )
                yield ControllerCodes.SECRET_PATH_SHADOWED.finding(message, location)


class _ValuesError(ValueError):
    """Raised if an object does not contain the requested values. The message is the end of a sentence."""

    def __init__(self, message: str, path: DataPath = (), *, is_missing: bool = False) -> None:
        super().__init__(message)
        self.path = path
        self.is_missing = is_missing


def _read_object(found: ConfigObject, reference: ValuesReference) -> ValuesLayer:
    if is_sops_document(found.data):
        raise _ValuesError(ENCRYPTED_VALUES)
    if is_key_value_kind(reference.api_version, reference.kind):
        path: DataPath = ("data", reference.values_key)
        values, lines = _read_key(found, reference)
    else:
        path = _parse_field_path(found, reference.field_path)
        values, lines = get_value(found.data, path), DocumentLines(found.document, (*found.path, *path))
    if not reference.target_path and not isinstance(values, dict):
        raise _ValuesError(f"must have a map at {format_path(path)}, because targetPath is not set", path)
    return ValuesLayer(
        "values-from", found.key.reference, values, parse_option_name(reference.target_path), found.file,
        format_path(path), find_line=lines,
    )  # fmt: skip


def _read_key(found: ConfigObject, reference: ValuesReference) -> tuple[Any, DocumentLines]:
    path: DataPath = ("data", reference.values_key)
    text = get_value(found.data, path)
    if text is ABSENT:
        keys = get_value(found.data, ("data",))
        names = [str(key) for key in keys] if isinstance(keys, dict) else []
        hint = suggest_name(reference.values_key, names)
        raise _ValuesError(f"has no key {quote_value(reference.values_key)} in data{hint}", is_missing=True)
    if not isinstance(text, str):
        raise _ValuesError(f"must have a text at {format_path(path)}; put the value in quotes", path)
    whole_path = (*found.path, *path)
    if reference.target_path:
        try:
            return read_core_yaml(text), DocumentLines(found.document, whole_path)
        except YamlError as error:
            raise _ValuesError(
                f"has a text at {format_path(path)} that cannot be parsed: {error.message}", path
            ) from None
    document = read_values_document(text.encode())
    if isinstance(document, ParseFailure):
        raise _ValuesError(
            f"has invalid values at {format_path(path)}, because {document.message} (line {document.line} of the text)",
            path,
        )
    if document is None:
        return {}, DocumentLines(found.document, whole_path)
    offset = found.document.find_text_offset(whole_path)
    lines = DocumentLines(document, (), offset) if offset else DocumentLines(found.document, whole_path)
    return document.data, lines


def _parse_field_path(found: ConfigObject, text: str) -> DataPath:
    if not text.startswith("/") and (reason := check_option_name(text)):
        raise _ValuesError(f"cannot be read, because fieldPath {reason}")
    try:
        steps = parse_pointer(text) if text.startswith("/") else parse_option_name(text)
        resolve_pointer(found.data, steps)
    except PointerError as error:
        raise _ValuesError(f"has no field {text}, because {error}", is_missing=True) from None
    data: Any = found.data
    path: list[str | int] = []
    for step in steps:
        path.append(int(step) if isinstance(data, list) else step)
        data = data[path[-1]]
    return tuple(path)
