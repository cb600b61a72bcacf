"""Conversion of the output of `helm template` to the files of a package, with one resource per file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import Finding, SourceLocation, select_errors
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import Document, YamlError, YamlLimits, normalize_document
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.packages.charts.hooks import is_left_out, is_ordinary, read_hooks
from reconciler.packages.charts.request import ChartRequest, RenderedSource
from reconciler.packages.codes import PackageCodes
from reconciler.packages.file_names import MAX_FILE_NAME_LENGTH, assign_rendered_file_names
from reconciler.packages.functions.field_specs import get_resource_scope
from reconciler.packages.resource import KrmResource
from reconciler.packages.sops import SopsMacError, check_sops_edit
from reconciler.packages.sops_files import create_mac_finding
from reconciler.packages.source_codes import SourceCodes

_SEPARATOR = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_SOURCE_LINE = re.compile(r"\s*^# Source: (\S[^\r\n]*)\r?\n?", re.MULTILINE)
_MAX_NAMED_HOOKS = 5
_NO_TEMPLATE = "(no template)"


@dataclass(frozen=True)
class OutputRules:
    """The rules for rendered output, which settings define.

    Attributes:
        max_bytes: Maximum size of the output.
        max_resources: Maximum number of resources.
        is_strict: Whether a key that a mapping contains twice is an error.
    """

    max_bytes: int
    max_resources: int
    is_strict: bool

    @property
    def yaml_limits(self) -> YamlLimits:
        """The limits of one document."""
        return YamlLimits(file_bytes=self.max_bytes)


@dataclass(frozen=True)
class OutputText:
    """The text of one document of the output.

    Attributes:
        template: Path of the template file, relative to the folder of the chart.
        index: Number of the document among the documents of this template file, from 1.
        text: The text of the document without `---` and without the line `# Source`.
        has_stable_name: Whether the name of the resource is equal in each render.
        rewrite_reason: The reason why the text was written again from its data, or "".
    """

    template: str
    index: int
    text: str
    has_stable_name: bool = True
    rewrite_reason: str = ""

    @property
    def place(self) -> str:
        """The template file and the number of the document for messages."""
        return f"{self.template}, document {self.index}"


@dataclass(frozen=True)
class RenderedResource(KrmResource):
    """One rendered resource, and the place in the output that contains it.

    `rewrite_reasons` contains the reasons why its text was written again from its data.
    """

    source: OutputText
    document: Document
    rewrite_reasons: tuple[str, ...] = ()

    @property
    def data(self) -> Any:
        """The content of the resource."""
        return self.document.data

    @cached_property
    def label(self) -> str:
        """The kind, namespace and name for messages, e.g. "Secret/shop/db"."""
        return "/".join(filter(None, (self.kind, self.namespace, self._stable_name)))

    @cached_property
    def _stable_name(self) -> str:
        return self.name if self.source.has_stable_name else ""

    @property
    def location(self) -> SourceLocation:
        """The location of the resource in findings."""
        return SourceLocation(object=str(self.key._replace(name=self._stable_name)))


@dataclass
class RenderedPackage:
    """The resources of the output that are part of the package, and the findings about the output."""

    resources: list[RenderedResource] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def split_output(output: str, chart_name: str) -> tuple[OutputText, ...]:
    """Return the documents of the output of `helm template`, without empty texts.

    A document without a line `# Source` has the template of the document before it, because a file of a folder `crds`
    can contain several documents.
    """
    texts: list[OutputText] = []
    counts: dict[str, int] = {}
    template = _NO_TEMPLATE
    for text in _SEPARATOR.split(output):
        match = _SOURCE_LINE.match(text)
        if match:
            template = match[1].removeprefix(f"{chart_name}/")
        content = (text[match.end() :] if match else text).lstrip("\r\n")
        if content.strip():
            counts[template] = counts.get(template, 0) + 1
            texts.append(OutputText(template, counts[template], content))
    return tuple(texts)


def read_output(texts: Iterable[OutputText], chart: str, request: ChartRequest, rules: OutputRules) -> RenderedPackage:
    """Return the resources of the output that are part of the package, and the findings.

    Args:
        texts: The documents of the output.
        chart: Name and version of the chart for messages.
    """
    package = RenderedPackage()
    hooks: list[str] = []
    for text in texts:
        try:
            parsed = list(parse_output_text(text, rules.yaml_limits, is_strict=rules.is_strict))
        except YamlError as error:
            package.findings.append(_create_invalid_finding(chart, text, str(error)))
            continue
        for resource in parsed:
            _add_resource(package, hooks, resource, chart, request)
    package.findings += _find_duplicates(package.resources, chart)
    package.findings += _summarize_hooks(hooks, chart)
    if len(package.resources) > rules.max_resources:
        message = (
            f"{chart} renders {len(package.resources)} resources, and the setting `sources.helm.resources` allows"
            f" {rules.max_resources}"
        )
        package.findings.append(SourceCodes.SOURCE_TOO_LARGE.finding(message))
    return package


def build_rendered_source(package: RenderedPackage, request: ChartRequest) -> RenderedSource:
    """Return the files of a package. If a finding is an error, return only the findings."""
    findings = tuple(sorted(package.findings, key=lambda finding: (finding.code, finding.location, finding.message)))
    if select_errors(findings):
        return RenderedSource(findings=findings)
    names = assign_rendered_file_names(resource.key for resource in package.resources)
    files = {names[resource.key]: File(resource.document.text.encode()) for resource in package.resources}
    templates = {names[resource.key]: resource.source.template for resource in package.resources}
    if request.create_namespace and ObjectKey("", "Namespace", "", request.namespace) not in names:
        files |= _create_namespace_file(request.namespace)
    return RenderedSource(FileTree(files), findings, templates)


def parse_output_text(text: OutputText, limits: YamlLimits, *, is_strict: bool) -> Iterator[RenderedResource]:
    """Yield the resources of a document. Raises YamlError."""
    normalized = normalize_document(text.text, limits, allow_duplicate_keys=not is_strict)
    if normalized is None:
        return
    reasons = (*normalized.reasons, *filter(None, (text.rewrite_reason,)))
    resource = RenderedResource(text, normalized.document, reasons)
    items = resource.data.get("items") if resource.kind == "List" else None
    if not isinstance(items, list):
        yield resource
        return
    for item in items:
        yield RenderedResource(text, Document.from_data(item), (*reasons, "an item of a List"))


def _add_resource(
    package: RenderedPackage, hooks: list[str], resource: RenderedResource, chart: str, request: ChartRequest
) -> None:
    resource_hooks = read_hooks(resource)
    if is_left_out(resource_hooks, request.hooks, skip_tests=request.skip_tests):
        message = f"{chart}: {resource.label} ({resource.source.template}) is left out: hook {','.join(resource_hooks)}"
        package.findings.append(SourceCodes.HOOK_LEFT_OUT.finding(message, resource.location))
        return
    finding = _check_identity(resource, chart)
    if finding:
        package.findings.append(finding)
        return
    if not is_ordinary(resource_hooks):
        hooks.append(f"{resource.label} ({','.join(resource_hooks)})")
    try:
        resource = _set_namespace(resource, request)
    except SopsMacError as error:
        rule = f"{chart}: {resource.source.template}: the option setNamespace"
        package.findings.append(create_mac_finding(error, resource.location, rule))
        return
    package.resources.append(resource)
    reasons = " and ".join(resource.rewrite_reasons)
    if reasons and resource.is_sops:
        message = (
            f"{chart}: {resource.label} ({resource.source.template}) is a SOPS document that cannot be written"
            f" unchanged, because of {reasons}"
        )
        package.findings.append(SourceCodes.SOPS_MAC_BROKEN.finding(message, resource.location))
    elif reasons:
        message = f"{chart}: {resource.label} ({resource.source.template}) was written again because of {reasons}"
        package.findings.append(SourceCodes.RENDERED_TEXT_NORMALIZED.finding(message, resource.location))


def _check_identity(resource: RenderedResource, chart: str) -> Finding | None:
    if not isinstance(resource.data, dict):
        return _create_invalid_finding(chart, resource.source, "a resource must be a mapping")
    missing = [name for name in ("apiVersion", "kind") if not resource.data.get(name)]
    if missing:
        return _create_invalid_finding(chart, resource.source, f"{' and '.join(missing)} of a resource is missing")
    if not (resource.api_version and resource.kind):
        return _create_invalid_finding(chart, resource.source, "apiVersion and kind must be strings")
    if resource.metadata.get("generateName") and not resource.name:
        message = (
            f"{chart}: {resource.source.place}: {resource.kind} has metadata.generateName and no metadata.name: a file"
            " in Git needs a fixed name; set values that leave out this resource"
        )
        return SourceCodes.GENERATE_NAME_NOT_SUPPORTED.finding(message)
    if not resource.name:
        return _create_invalid_finding(
            chart, resource.source, f"metadata.name of {resource.kind} must be a string that is not empty"
        )
    return _check_file_name(resource, chart)


def _check_file_name(resource: RenderedResource, chart: str) -> Finding | None:
    name = assign_rendered_file_names([resource.key])[resource.key].rpartition("/")[2]
    # Other resources can require a longer form of the name with the namespace and the API group.
    length = len(name) + len(resource.namespace) + len(resource.group) + len("-.")
    if length <= MAX_FILE_NAME_LENGTH:
        return None
    problem = f"metadata.name of {resource.kind} is too long for a file name"
    return _create_invalid_finding(chart, resource.source, problem)


def _set_namespace(resource: RenderedResource, request: ChartRequest) -> RenderedResource:
    """Return the resource with a namespace. Raises SopsMacError if SOPS could not decrypt the result."""
    is_missing = not resource.namespace and get_resource_scope(resource) == "namespaced"
    # A new field would break the MAC of a SOPS document.
    if request.set_namespace == "none" or not is_missing:
        return resource
    metadata: dict[str, Any] = {}
    for name, value in resource.metadata.items():
        if name != "namespace":
            metadata[name] = value
        if name == "name":
            metadata["namespace"] = request.namespace
    data = {**resource.data, "metadata": metadata}
    check_sops_edit(resource.document, data)
    return replace(resource, document=resource.document.with_data(data))


def _find_duplicates(resources: list[RenderedResource], chart: str) -> Iterator[Finding]:
    first: dict[ObjectKey, RenderedResource] = {}
    for resource in resources:
        other = first.setdefault(resource.key, resource)
        if other is not resource:
            message = (
                f"{chart} renders {resource.label} twice, in {other.source.place}, and in {resource.source.place}:"
                " set values that leave out one of them"
            )
            yield PackageCodes.DUPLICATE_RESOURCE.finding(message, resource.location)


def _summarize_hooks(hooks: list[str], chart: str) -> Iterator[Finding]:
    if hooks:
        named = ", ".join(sorted(hooks)[:_MAX_NAMED_HOOKS])
        more = f" and {len(hooks) - _MAX_NAMED_HOOKS} more" if len(hooks) > _MAX_NAMED_HOOKS else ""
        yield SourceCodes.HELM_HOOKS_PRESENT.finding(
            f"{chart} has Helm hooks: {named}{more}. Argo CD runs them as hooks. Other agents, such as Flux, apply them"
            " as ordinary resources. `hooks: drop` leaves them out"
        )


def _create_invalid_finding(chart: str, text: OutputText, problem: str) -> Finding:
    return SourceCodes.RENDERED_OUTPUT_INVALID.finding(f"{chart}: {text.place}: {problem}")


def _create_namespace_file(namespace: str) -> dict[str, File]:
    data = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    key = ObjectKey("", "Namespace", "", namespace)
    return {assign_rendered_file_names([key])[key]: File(Document.from_data(data).text.encode())}
