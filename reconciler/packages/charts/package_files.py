"""Conversion of the resources of a chart or overlay to the files of a package, with one resource per file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import Finding, SourceLocation, select_errors
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import Document, YamlError
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.packages.charts.documents import OutputText, RenderedResource, parse_output_text
from reconciler.packages.charts.hooks import is_left_out, is_ordinary, read_hooks
from reconciler.packages.charts.request import ChartRequest, RenderedSource
from reconciler.packages.charts.secrets import Engine, check_secret, mask_secret
from reconciler.packages.codes import PackageCodes
from reconciler.packages.file_names import MAX_FILE_NAME_LENGTH, assign_rendered_file_names
from reconciler.packages.functions.field_specs import get_resource_scope
from reconciler.packages.kustomize.request import KustomizeRequest
from reconciler.packages.sops import SopsMacError, check_sops_edit
from reconciler.packages.sops_files import create_mac_finding
from reconciler.packages.source_codes import SourceCodes

_MAX_NAMED_HOOKS = 5


@dataclass(frozen=True)
class OutputRules:
    """The rules for rendered output. The settings define these rules.

    Attributes:
        max_resources: Maximum number of resources.
        is_strict: Whether a duplicate key in a mapping is an error.
        engine: The engine that writes the output, which is also the name of its settings group.
    """

    max_resources: int
    is_strict: bool
    engine: Engine = "helm"


@dataclass(frozen=True)
class PackageFile:
    """One resource of the package. The parsed document is not kept, because it needs much more memory than its text."""

    key: ObjectKey
    label: str
    location: SourceLocation
    source: OutputText
    data: bytes


@dataclass
class RenderedPackage:
    """The resources of the output that are part of the package, and the findings about the output.

    Attributes:
        label: Name and version of the chart, or path of the overlay, for messages.
        request: The request to render a chart or to build an overlay. The resources of an overlay stay unchanged.
    """

    label: str
    request: ChartRequest | KustomizeRequest
    rules: OutputRules
    findings: list[Finding] = field(default_factory=list)
    files: list[PackageFile] = field(default_factory=list)
    hooks: list[str] = field(default_factory=list)

    def add(self, resource: RenderedResource) -> None:
        """Add a resource, or a finding if it is left out or invalid."""
        chart = self.request if isinstance(self.request, ChartRequest) else self.request.charts
        hooks, template = read_hooks(resource) if chart else (), resource.source.template
        if chart and is_left_out(hooks, chart.hooks, skip_tests=chart.skip_tests):
            names = ", ".join(hooks)
            message = (
                f"{resource.label} in {template} of {self.label} is not part of the package, because it is a Helm hook"
                f" ({names})"
            )
            self.findings.append(SourceCodes.HOOK_LEFT_OUT.finding(message, resource.location))
            return
        if problem := _check_identity(resource, self.label):
            self.findings.append(problem)
            return
        if not is_ordinary(hooks):
            self.hooks.append(f"{resource.label} ({','.join(hooks)})")
        try:
            resource = _set_namespace(resource, chart) if chart else resource
        except SopsMacError as error:
            rule = f"the option setNamespace for {template} of {self.label}"
            self.findings.append(create_mac_finding(error, resource.location, rule))
            return
        if isinstance(self.request, ChartRequest) and self.request.is_preview:
            resource = mask_secret(resource)
        elif secret := check_secret(resource, self.label, self.request.allowed_secrets, self.rules.engine):
            self.findings.append(secret)
        if resource.rewrite_reasons:
            self.findings.append(_report_rewrite(resource, self.label))
        data = resource.document.text.encode()
        self.files.append(PackageFile(resource.key, resource.label, resource.location, resource.source, data))


def read_output(
    texts: Iterable[OutputText], label: str, request: ChartRequest | KustomizeRequest, rules: OutputRules
) -> RenderedPackage:
    """Return the resources of the output that are part of the package, and the findings.

    Args:
        texts: The documents of the output.
        label: Name and version of the chart, or path of the overlay, for messages.
    """
    package = RenderedPackage(label, request, rules)
    for text in texts:
        try:
            for resource in parse_output_text(text, is_strict=rules.is_strict):
                package.add(resource)
        except YamlError as error:
            package.findings.append(_create_yaml_finding(label, text, error))
        if len(package.files) > rules.max_resources:
            message = (
                f"{label} renders more than {rules.max_resources} resources. Next step: set values that render fewer"
                f" resources, or raise the setting `sources.{rules.engine}.resources`"
            )
            package.findings.append(SourceCodes.SOURCE_TOO_LARGE.finding(message))
            break
    package.findings += _find_duplicates(package)
    package.findings += _summarize_hooks(package.hooks, label)
    return package


def build_rendered_source(package: RenderedPackage) -> RenderedSource:
    """Return the files of a package. If a finding is an error, return only the findings."""
    findings = tuple(sorted(package.findings, key=lambda finding: (finding.code, finding.location, finding.message)))
    if select_errors(findings):
        return RenderedSource(findings=findings)
    names = assign_rendered_file_names(file.key for file in package.files)
    files = {names[file.key]: File(file.data) for file in package.files}
    request = package.request
    if not isinstance(request, ChartRequest):
        return RenderedSource(FileTree(files), findings)
    templates = {names[file.key]: file.source.template for file in package.files}
    if request.create_namespace and ObjectKey("", "Namespace", "", request.namespace) not in names:
        files |= create_namespace_file(request.namespace)
    return RenderedSource(FileTree(files), findings, templates)


def _report_rewrite(resource: RenderedResource, chart: str) -> Finding:
    reasons = " and ".join(resource.rewrite_reasons)
    subject = f"{resource.label} in {resource.source.template} of {chart}"
    if resource.is_sops:
        message = f"{subject} is a SOPS document that cannot be written unchanged, because it contains {reasons}"
        return SourceCodes.SOPS_MAC_BROKEN.finding(message, resource.location)
    message = f"the formatting of {subject} changes in the package, because the output of Helm contains {reasons}"
    return SourceCodes.RENDERED_TEXT_NORMALIZED.finding(message, resource.location)


def _check_identity(resource: RenderedResource, chart: str) -> Finding | None:
    if not isinstance(resource.data, dict):
        return _create_invalid_finding(chart, resource.source, "a resource must be a mapping")
    missing = [name for name in ("apiVersion", "kind") if not resource.data.get(name)]
    if missing:
        return _create_invalid_finding(chart, resource.source, f"a resource must have {' and '.join(missing)}")
    if not (resource.api_version and resource.kind):
        return _create_invalid_finding(chart, resource.source, "apiVersion and kind of a resource must be strings")
    if resource.metadata.get("generateName") and not resource.name:
        message = (
            f"{resource.kind} in {resource.source.place} of {chart} has metadata.generateName, but no metadata.name. A"
            " file in Git needs a fixed name. Next step: set values that omit this resource"
        )
        return SourceCodes.GENERATE_NAME_NOT_SUPPORTED.finding(message)
    if not resource.name:
        return _create_invalid_finding(
            chart, resource.source, f"metadata.name of {resource.kind} must be a string that is not empty"
        )
    return _check_file_name(resource, chart)


def _check_file_name(resource: RenderedResource, chart: str) -> Finding | None:
    name = assign_rendered_file_names([resource.key])[resource.key].rpartition("/")[2]
    # Check the length of the file name with the namespace and the API group, because both are added if several
    # resources would have the same file name.
    length = len(name) + len(resource.namespace) + len(resource.group) + len("-.")
    if length <= MAX_FILE_NAME_LENGTH:
        return None
    problem = f"metadata.name of {resource.kind} is too long for a file name"
    return _create_invalid_finding(chart, resource.source, problem)


def _set_namespace(resource: RenderedResource, request: ChartRequest) -> RenderedResource:
    """Return the resource with a namespace. Raises SopsMacError if SOPS could not decrypt the result."""
    is_missing = not resource.namespace and get_resource_scope(resource) == "namespaced"
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


def _find_duplicates(package: RenderedPackage) -> Iterator[Finding]:
    first: dict[ObjectKey, PackageFile] = {}
    for file in package.files:
        other = first.setdefault(file.key, file)
        if other is not file:
            message = (
                f"{package.label} renders {file.label} twice: in {other.source.place}, and in {file.source.place}. Next"
                " step: set values that omit one of them"
            )
            yield PackageCodes.DUPLICATE_RESOURCE.finding(message, file.location)


def _summarize_hooks(hooks: list[str], chart: str) -> Iterator[Finding]:
    if hooks:
        named = ", ".join(sorted(hooks)[:_MAX_NAMED_HOOKS])
        more = f" and {len(hooks) - _MAX_NAMED_HOOKS} more" if len(hooks) > _MAX_NAMED_HOOKS else ""
        yield SourceCodes.HELM_HOOKS_PRESENT.finding(
            f"{chart} has Helm hooks: {named}{more}. Argo CD runs them as hooks. Other agents, such as Flux, apply them"
            " as ordinary resources. To omit the hooks from the package, set `hooks: drop`"
        )


def _create_yaml_finding(chart: str, text: OutputText, error: YamlError) -> Finding:
    if error.code == "YamlTooLarge":
        return SourceCodes.SOURCE_TOO_LARGE.finding(f"{chart} renders too much data in {text.place}: {error}")
    message = f"{chart} renders a text in {text.place} that cannot be parsed: {error}"
    return SourceCodes.RENDERED_OUTPUT_INVALID.finding(message)


def _create_invalid_finding(chart: str, text: OutputText, problem: str) -> Finding:
    return SourceCodes.RENDERED_OUTPUT_INVALID.finding(
        f"{chart} renders an invalid resource in {text.place}: {problem}"
    )


def create_namespace_file(namespace: str) -> dict[str, File]:
    """Return the file with the Namespace of a release."""
    data = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    key = ObjectKey("", "Namespace", "", namespace)
    return {assign_rendered_file_names([key])[key]: File(Document.from_data(data).text.encode())}
