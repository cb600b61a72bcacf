"""Generated files of a Plugin's package, checks of its Helm release, and a mutation that reverts local changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from reconciler.api.greenhouse import CLUSTER_DEFINITION, IgnoredDifference
from reconciler.api.greenhouse_options import LiteralValue, SecretKeyReference
from reconciler.catalog.catalog import ConfigObject
from reconciler.catalog.files import FileTree
from reconciler.catalog.trace import CatalogView
from reconciler.controllers.plugin_presets.codes import PluginCodes
from reconciler.controllers.plugin_presets.config_objects import UsableDefinition
from reconciler.controllers.plugin_presets.helm_values import build_values
from reconciler.controllers.plugin_presets.option_layers import ResolvedOption
from reconciler.controllers.plugin_presets.option_paths import (
    create_conflict_findings,
    explain_conflict,
    list_effective_secrets,
    list_literal_values,
)
from reconciler.controllers.plugin_presets.plugin import PluginRelease
from reconciler.controllers.plugin_presets.plugin_outcomes import PluginRequest
from reconciler.controllers.results import MutationResult, PreviousRender
from reconciler.krm.field_text import quote_value
from reconciler.krm.findings import Finding
from reconciler.krm.json_text import compute_digest, has_finite_numbers
from reconciler.krm.yaml import emit, parse_yaml
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.packages.charts.helm_release import (
    HELM_RELEASE_KIND,
    ReleaseInputs,
    SecretValues,
    build_helm_release,
    check_reference,
)

CHARTS_NAMESPACE: Final = "greenhouse"
"""Namespace that contains the HelmCharts of ClusterPluginDefinitions."""

_KUBE_CONFIG_KEY: Final = "greenhousekubeconfig"
_MAX_NAME_LENGTH: Final = 253
_MAX_NAMESPACE_LENGTH: Final = 63
_REFERENCE_NOUNS: Final = {"name": "secret name", "valuesKey": "key", "targetPath": "option name"}
"""The terms for the values that become fields of a reference to a Secret, by field name."""

Secrets = Sequence[tuple[ResolvedOption, SecretKeyReference]]
"""Options that refer to Secrets and that no other option replaces, in the order in which Flux sets the values."""
PLUGIN_FILE, VALUES_FILE, RELEASE_FILE = "plugin.yaml", "values.yaml", "helmrelease.yaml"
VALUES: Final = "values"
HELM_RELEASE: Final = "helmrelease"


def build_plugin_release(
    request: PluginRequest,
    definition: UsableDefinition,
    release: PluginRelease,
    values: Mapping[str, Any],
    secrets: Secrets,
) -> dict[str, Any]:
    """Return the HelmRelease of a Plugin whose definition has a chart. Empty fields are omitted."""
    inputs = ReleaseInputs(request.key.name, request.key.namespace, release.name, release.namespace)
    references = [SecretValues(ref.name, ref.key, option.name) for option, ref in secrets]
    options = {
        "timeout": "5m",
        "maxHistory": 10,
        "chartRef": build_chart_ref(request, definition),
        "install": {"createNamespace": True, "remediation": {"retries": 3}},
        "upgrade": {"crds": "CreateReplace", "remediation": {"retries": 3}},
        "driftDetection": _build_drift_detection(request.plugin.ignore_differences),
        "suspend": False,
        "kubeConfig": _build_kube_config(request),
        "dependsOn": _build_dependencies(request),
    }
    return build_helm_release(inputs, values, references, options)


def build_chart_ref(request: PluginRequest, definition: UsableDefinition) -> dict[str, str]:
    """Return the reference to the HelmChart of a definition.

    The HelmChart of a ClusterPluginDefinition is in the namespace of Greenhouse. Any other HelmChart is in the
    namespace of the Plugin.
    """
    version = definition.spec.helm_chart.version if definition.spec.helm_chart else ""
    ref = request.plugin.definition
    namespace = CHARTS_NAMESPACE if ref.kind == CLUSTER_DEFINITION else request.key.namespace
    return {"kind": "HelmChart", "name": f"{ref.name}-{version}", "namespace": namespace}


def check_helm_release(
    request: PluginRequest, spec: Mapping[str, Any], options: Iterable[ResolvedOption], secrets: Secrets
) -> Iterator[Finding]:
    """Yield an error for each value that Flux would reject.

    Flux rejects values that violate the schema of the HelmRelease CRD, and secrets with overlapping paths.
    """
    yield from _check_lengths(request, spec)
    for option in options:
        if isinstance(option.source, LiteralValue) and not has_finite_numbers(option.source.value):
            message = (
                f"{option.winner} sets {quote_value(option.name)}, which must contain only finite numbers in the"
                f" {HELM_RELEASE_KIND}, but contains .inf or .nan"
            )
            yield PluginCodes.HELM_RELEASE_INVALID.finding(message, option.winner.location)
    for option, ref in secrets:
        for field_name, value, requirement in check_reference(SecretValues(ref.name, ref.key, option.name)):
            message = (
                f"{option.winner} sets {quote_value(option.name)} from a secret, but Flux rejects the"
                f" {_REFERENCE_NOUNS[field_name]} {quote_value(value)}, because {field_name} of a {HELM_RELEASE_KIND}"
                f" must have {requirement}"
            )
            yield PluginCodes.HELM_RELEASE_INVALID.finding(message, option.winner.location)
    yield from _check_secret_overlaps([option for option, _ in secrets])


def _check_lengths(request: PluginRequest, spec: Mapping[str, Any]) -> Iterator[Finding]:
    ref = spec["chartRef"]
    for field_path, value, max_length, source_field in (
        ("targetNamespace", spec["targetNamespace"], _MAX_NAMESPACE_LENGTH, "releaseNamespace"),
        ("chartRef.name", ref["name"], _MAX_NAME_LENGTH, "pluginDefinitionRef"),
        ("chartRef.namespace", ref["namespace"], _MAX_NAMESPACE_LENGTH, "pluginDefinitionRef"),
    ):
        if len(value) > max_length:
            message = (
                f"spec.{field_path} of the {HELM_RELEASE_KIND} must have at most {max_length} characters,"
                f" but {quote_value(value)} has {len(value)}"
            )
            location = request.manifest.location_of((*request.requester.plugin_path, source_field))
            yield PluginCodes.HELM_RELEASE_INVALID.finding(message, location)


def _check_secret_overlaps(secrets: Iterable[ResolvedOption]) -> Iterator[Finding]:
    """Yield an error for each secret whose path overlaps the path of another secret.

    Flux inserts each secret as a string, and rejects all values if a path continues below a string.
    """
    options_by_name = {option.name: option for option in secrets}
    for conflict in build_values((name, "") for name in options_by_name).conflicts:
        option, other = options_by_name[conflict.name], options_by_name.get(conflict.conflicting_name)
        message = (
            f'the options "{option.name}" and "{other.name}" cannot both come from secrets, because'
            f" {explain_conflict(conflict, option, other)}"
            if other
            else f'{option.winner} cannot set the option "{option.name}" from a secret, because the option'
            f" {conflict.message}"
        )
        yield PluginCodes.HELM_RELEASE_INVALID.finding(message, option.winner.location)


def _build_drift_detection(differences: Iterable[IgnoredDifference]) -> dict[str, Any]:
    rules = [_build_ignore_rule(difference.as_data()) for difference in differences]
    return {"mode": "enabled", **({"ignore": rules} if rules else {})}


def _build_ignore_rule(fields: dict[str, Any]) -> dict[str, Any]:
    paths = fields.pop("paths")
    return {**({"target": fields} if fields else {}), "paths": paths}


def _build_kube_config(request: PluginRequest) -> dict[str, Any]:
    return {"secretRef": {"name": request.cluster.name, "key": _KUBE_CONFIG_KEY}} if request.cluster else {}


def _build_dependencies(request: PluginRequest) -> list[dict[str, str]]:
    names = dict.fromkeys(entry.get_plugin_name(request.target.repository) for entry in request.requester.spec.wait_for)
    return [{"name": name} for name in names]


@dataclass(frozen=True)
class OwnedObject:
    """A generated object of a Plugin's package: its file, kind and spec, and the labels and annotations to remove."""

    file: str
    kind: str
    spec: Mapping[str, Any]
    removed_labels: frozenset[str] = frozenset()
    removed_annotations: frozenset[str] = frozenset()


@dataclass(frozen=True)
class PluginMutation:
    """Mutation that restores the specs of a Plugin's objects, and removes obsolete labels and annotations.

    Local changes of a spec are overwritten. Labels and annotations that users added are kept. `values` is the content
    of `values.yaml`. It is None if the package does not contain this file.
    """

    name: str
    objects: tuple[OwnedObject, ...]
    values: bytes | None = None

    def __call__(self, files: FileTree, view: CatalogView, earlier: PreviousRender | None = None) -> MutationResult:
        """Return the package files with restored specs. Each object is found by its kind and name, not by position."""
        restored = {owned.file: _restore(files[owned.file].data, owned, self.name) for owned in self.objects}
        if self.values is not None:
            restored[VALUES_FILE] = self.values
        changed = {path: data for path, data in restored.items() if files[path].data != data}
        return MutationResult(files.with_files(changed) if changed else files)


def _restore(content: bytes, owned: OwnedObject, name: str) -> bytes:
    source = parse_yaml(content)
    number = next(
        number for number, candidate in enumerate(source.documents) if _is_object(candidate.data, owned.kind, name)
    )
    document = source.documents[number]
    data = {**document.data, "metadata": _remove_metadata(document.data["metadata"], owned), "spec": dict(owned.spec)}
    return (
        content if is_equal_data(data, document.data) else source.replace(number, document.with_data(data)).to_bytes()
    )


def _is_object(data: Any, kind: str, name: str) -> bool:
    # The key `metadata` always exists, because planning restores missing and unreadable files before this mutation.
    return isinstance(data, dict) and data.get("kind") == kind and data["metadata"].get("name") == name


def _remove_metadata(metadata: Mapping[str, Any], owned: OwnedObject) -> dict[str, Any]:
    remaining = dict(metadata)
    for name, removed_keys in (("labels", owned.removed_labels), ("annotations", owned.removed_annotations)):
        entries = _remove_keys(remaining.pop(name, None), removed_keys)
        if entries:
            remaining[name] = entries
    return {name: remaining[name] for name in metadata if name in remaining}


def _remove_keys(entries: Any, keys: Collection[str]) -> Any:
    return {key: value for key, value in entries.items() if key not in keys} if isinstance(entries, dict) else entries


@dataclass(frozen=True, eq=False)
class OutputFiles:
    """The optional files of a Plugin's package, the objects in these files, and the findings.

    Attributes:
        dependencies: Maps each config object that the optional files depend on to a digest of the data in use.
    """

    files: Mapping[str, bytes] = field(default_factory=dict)
    objects: tuple[OwnedObject, ...] = ()
    dependencies: Mapping[ConfigObject, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @property
    def values(self) -> bytes | None:
        """The content of `values.yaml`. None if the settings do not enable this file."""
        return self.files.get(VALUES_FILE)


def build_output_files(
    request: PluginRequest,
    definition: UsableDefinition,
    release: PluginRelease,
    options: Collection[ResolvedOption],
    output_names: Collection[str],
) -> OutputFiles:
    """Return the optional files that `output_names` enables. A Plugin without a chart gets no HelmRelease."""
    has_release = HELM_RELEASE in output_names and bool(definition.chart)
    if VALUES not in output_names and not has_release:
        return OutputFiles()
    helm_values = build_values(list_literal_values(options))
    files = {VALUES_FILE: emit(helm_values.values).encode()} if VALUES in output_names else {}
    outputs = OutputFiles(files, findings=tuple(create_conflict_findings(options, helm_values.conflicts)))
    return _add_release(outputs, request, definition, release, options, helm_values.values) if has_release else outputs


def _add_release(
    outputs: OutputFiles, request: PluginRequest, definition: UsableDefinition, release: PluginRelease,
    options: Collection[ResolvedOption], values: Mapping[str, Any],
) -> OutputFiles:  # fmt: skip
    secrets = list_effective_secrets(options, values)
    data = build_plugin_release(request, definition, release, values, secrets)
    return OutputFiles(
        {**outputs.files, RELEASE_FILE: emit(data).encode()},
        (OwnedObject(RELEASE_FILE, HELM_RELEASE_KIND, data["spec"]),),
        {definition.manifest: compute_digest(data["spec"]["chartRef"])},
        (*outputs.findings, *check_helm_release(request, data["spec"], options, secrets)),
    )
