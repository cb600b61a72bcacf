"""Readers for component types, components, EnvBindings, Environments and Builds, and helpers for readers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import MAX_FINDINGS_PER_OBJECT, FieldFinding
from reconciler.controllers.components.model import (
    API_VERSION,
    COMPONENT,
    DEFAULT_INSTANCE,
    RECONCILER_API_VERSION,
    AddonInstance,
    AllowedAddon,
    Build,
    Component,
    ComponentEnvironment,
    ComponentType,
    EnvBinding,
    EnvironmentOverrides,
    ListedAddon,
    PlatformAddon,
    ValidationRule,
    Values,
)
from reconciler.controllers.components.template_syntax import EXTENSION_PREFIX
from reconciler.controllers.deletion_guards import ACK_DELETIONS
from reconciler.controllers.validation import FieldFindings, FieldReader
from reconciler.krm.field_text import quote_value, suggest_name
from reconciler.krm.findings import Finding, FindingCode, Severity
from reconciler.krm.names import validate_dns_label, validate_dns_subdomain, validate_name_segment
from reconciler.krm.selectors import LabelSelector, read_label_selector
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field

ID_PATTERN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
ID_DESCRIPTION = 'lower-case letters, digits and "-", with a letter or digit at both ends'
_OBJECT_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")


@dataclass
class ManifestFindings(FieldFindings):
    """Findings about one object. `non_errors` contains warnings and infos, which do not make the object invalid."""

    non_errors: list[Finding] = field(default_factory=list)

    def add_field_findings(self, field_findings: Iterable[FieldFinding], manifest: ConfigObject) -> None:
        """Add findings about fields of the object. Their messages contain the paths of the fields."""
        for finding in field_findings:
            is_error = finding.code.severity is Severity.ERROR
            collection = self.findings if is_error else self.non_errors
            if len(collection) < MAX_FINDINGS_PER_OBJECT:
                collection.append(finding.to_finding(manifest))

    def add(self, path: DataPath, message: str, code: FindingCode | None = None) -> None:
        """Add an error about the field at `path`, up to the maximum number of errors of an object."""
        if len(self.findings) < MAX_FINDINGS_PER_OBJECT:
            super().add(path, message, code)

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """Errors, warnings and infos about the object."""
        return (*self.findings, *self.non_errors)


class Spec(FieldReader):
    """Reader for a mapping in a spec. Unknown fields are errors, except fields with the prefix `x-`."""

    def _refuse_unknown(self, known: Sequence[str]) -> None:
        for name in map(str, self.data):
            if name not in known and not name.startswith(EXTENSION_PREFIX):
                self.add_finding(
                    name,
                    f"is unknown; allowed are {', '.join(known)}{suggest_name(name, known)}",
                    ComponentCodes.UNKNOWN_FIELD,
                )

    def read_values(self, name: str) -> Values:
        """Return the mapping in a field without a check of its content. Return {} if the field is absent."""
        return self.read_mapping(name, None).data

    def read_identifier(self, name: str, default: str = "") -> str:
        """Return the id in a field. Return `default` if the field is absent or the id is not valid."""
        text = self.read_text(name)
        if self.data.get(name) == text and not ID_PATTERN.fullmatch(text):
            self.add_finding(name, f"must be {ID_DESCRIPTION}, not {quote_value(text)}")
            return default
        return text or default

    def reject_unsupported(self, name: str) -> None:
        """Add an error if the field is set, because the reconciler does not support its feature."""
        if self.has_value(name):
            self.add_finding(name, "is not supported; remove the field", ComponentCodes.FEATURE_NOT_SUPPORTED)


def open_spec(
    manifest: ConfigObject,
    code: FindingCode,
    api_version: str,
    known: Sequence[str] | None,
    check_name: Callable[[str], str | None] = validate_dns_subdomain,
) -> tuple[Spec, ManifestFindings]:
    """Return a reader for the spec of an object, and the collection for its findings."""
    findings = ManifestFindings(manifest.location_of, code)
    for name in manifest.data:
        if name not in _OBJECT_FIELDS:
            findings.add(
                (str(name),), f"is unknown; allowed are {', '.join(_OBJECT_FIELDS)}", ComponentCodes.UNKNOWN_FIELD
            )
    if manifest.api_version != api_version:
        findings.add(("apiVersion",), f"must be {api_version}, not {quote_value(manifest.api_version)}")
    if error := check_name(manifest.key.name):
        findings.add(("metadata", "name"), f"must be a valid object name: {error}")
    if manifest.data.get("spec") is None:
        findings.add(("spec",), "must be a mapping")
    return Spec(manifest.data.get("spec"), ("spec",), findings, known), findings


def read_rules(spec: Spec) -> tuple[ValidationRule, ...]:
    """Return the rules in `validation.rules` of a spec. Their expressions are not compiled yet."""
    entries = spec.read_mapping("validation", ("rules",)).iterate_mappings("rules", ("name", "expression", "message"))
    rules = [
        ValidationRule(
            entry.read_text("name"),
            entry.read_text("expression", required=True),
            entry.read_text("message"),
            entry.path,
        )
        for entry in entries
    ]
    return tuple(rule for rule in rules if rule.expression)


def read_instance_id(spec: Spec) -> tuple[str, bool]:
    """Return the id of an addon instance, and whether the field `instanceId` is set."""
    return spec.read_identifier("instanceId", DEFAULT_INSTANCE), spec.has_value("instanceId")


def read_label_text(manifest: ConfigObject, name: str) -> str:
    """Return the value of a label as text, even if YAML parsed the value as a number, e.g. a version."""
    value = read_label_value(manifest, name)
    return "" if value is None or isinstance(value, Mapping | list) else str(value)


def read_label_value(manifest: ConfigObject, name: str) -> Any:
    """Return the value of a label with its YAML type. Return None if the label is absent."""
    labels: Any = manifest.data["metadata"].get("labels")
    return labels.get(name) if isinstance(labels, Mapping) else None


def check_namespace(manifest: ConfigObject, findings: ManifestFindings) -> None:
    """Add an error if the namespace of the object is not a valid name."""
    if error := validate_dns_label(manifest.key.namespace):
        findings.add(("metadata", "namespace"), f"must be a valid namespace name: {error}")


FLATTEN_ANNOTATION = "reconciler.dev/bake"
_TYPE_FIELDS = ("componentDefinitionRef", "platformAddons", "developerAddons", "validation")
_PLATFORM_ADDON_FIELDS = ("name", "instanceId", "config", "condition")
_ALLOWED_ADDON_FIELDS = ("name", "description", "defaults", "presets")


def read_component_type(manifest: ConfigObject) -> tuple[ComponentType | None, tuple[Finding, ...]]:
    """Read a component type. Return None and the findings if the component type has errors."""
    spec, findings = open_spec(manifest, ComponentCodes.COMPONENT_TYPE_INVALID, API_VERSION, _TYPE_FIELDS)
    reference = spec.read_mapping("componentDefinitionRef", ("name", "version"))
    definition = reference.read_text("name", required=True)
    platform_addons = tuple(_read_platform_addons(spec))
    developer_addons = tuple(_read_allowed_addons(spec.read_mapping("developerAddons", ("allowed",))))
    flattened_name = manifest.annotations.get(FLATTEN_ANNOTATION, "")
    if flattened_name and (error := validate_dns_subdomain(flattened_name)):
        findings.add(("metadata", "annotations", FLATTEN_ANNOTATION), f"must be a valid object name: {error}")
    model = ComponentType(
        manifest,
        definition,
        reference.read_text("version"),
        platform_addons,
        developer_addons,
        read_rules(spec),
        flattened_name,
    )
    return (None if findings.findings else model), findings.all_findings


def _read_platform_addons(spec: Spec) -> Iterator[PlatformAddon]:
    for entry in spec.iterate_mappings("platformAddons", _PLATFORM_ADDON_FIELDS):
        addon, (instance, is_named) = entry.read_text("name", required=True), read_instance_id(entry)
        yield PlatformAddon(
            AddonInstance(addon, instance),
            entry.read_values("config"),
            entry.path,
            is_named,
            entry.data.get("condition"),
        )


def _read_allowed_addons(spec: Spec) -> Iterator[AllowedAddon]:
    checked_names: set[str] = set()
    for entry in spec.iterate_mappings("allowed", _ALLOWED_ADDON_FIELDS):
        name = entry.read_text("name", required=True)
        if name in checked_names:
            entry.add_finding("name", f"must be unique, and {quote_value(name)} is used twice")
        checked_names.add(name)
        entry.reject_unsupported("presets")
        yield AllowedAddon(name, entry.read_values("defaults"), entry.path, entry.read_text("description"))


_COMPONENT_FIELDS = ("componentDefinition", "parameters", "addons")
_BINDING_FIELDS = ("owner", "environment", "overrides", "platformAddonOverrides", "addonOverrides", "endpoints")


def read_component(manifest: ConfigObject) -> tuple[Component | None, tuple[Finding, ...]]:
    """Read a component. Return None and the findings if the component has errors.

    For a generated kind, the fields of the spec are not checked here, because they depend on the component type.
    """
    if manifest.key.kind != COMPONENT:
        spec, findings = open_spec(manifest, ComponentCodes.COMPONENT_INVALID, API_VERSION, None, validate_name_segment)
        check_namespace(manifest, findings)
        return (None if findings.findings else Component(manifest, spec.data)), findings.all_findings
    spec, findings = open_spec(
        manifest, ComponentCodes.COMPONENT_INVALID, API_VERSION, _COMPONENT_FIELDS, validate_name_segment
    )
    check_namespace(manifest, findings)
    definition, addons = spec.read_text("componentDefinition", required=True), tuple(_read_listed_addons(spec))
    model = Component(manifest, spec.read_values("parameters"), definition, addons)
    return (None if findings.findings else model), findings.all_findings


def _read_listed_addons(spec: Spec) -> Iterator[ListedAddon]:
    for entry in spec.iterate_mappings("addons", ("name", "instanceId", "config")):
        addon, (instance, is_named) = entry.read_text("name", required=True), read_instance_id(entry)
        yield ListedAddon(AddonInstance(addon, instance), entry.read_values("config"), entry.path, is_named)


def read_binding(manifest: ConfigObject) -> tuple[EnvBinding | None, tuple[Finding, ...]]:
    """Read an EnvBinding. Return None and the findings if the EnvBinding has errors."""
    spec, findings = open_spec(manifest, ComponentCodes.ENV_BINDING_INVALID, API_VERSION, _BINDING_FIELDS)
    check_namespace(manifest, findings)
    owner = spec.read_mapping("owner", ("componentName", "namespace"))
    environment = spec.read_text("environment", required=True)
    if environment and (error := validate_name_segment(environment)):
        spec.add_finding("environment", f"must be a valid environment name: {error}")
    overrides = EnvironmentOverrides(
        spec.read_values("overrides"),
        _read_addon_overrides(spec, "platformAddonOverrides"),
        _read_addon_overrides(spec, "addonOverrides"),
    )
    endpoints = list(_read_endpoints(spec))
    acknowledged = manifest.annotations.get(ACK_DELETIONS, "").split(",")
    model = EnvBinding(
        manifest,
        owner.read_text("componentName"),
        owner.read_text("namespace") or manifest.key.namespace,
        environment,
        overrides,
        endpoints,
        frozenset(text.strip() for text in acknowledged),
    )
    return (None if findings.findings else model), findings.all_findings


def _read_endpoints(spec: Spec) -> Iterator[dict[str, object]]:
    for entry in spec.iterate_mappings("endpoints", ("name", "host")):
        for name in ("name", "host"):
            entry.read_text(name)
        yield dict(entry.data)


def _read_addon_overrides(spec: Spec, name: str) -> dict[str, object]:
    """Return the overrides of each addon by its key. Add an error for each override that is not a mapping."""
    mapping = spec.read_mapping(name, None)
    return {str(key): dict(mapping.read_mapping(str(key), None).data) for key in mapping.data}


_ENVIRONMENT_FIELDS = ("clusters", "clusterSelector", "context")


def read_environment(manifest: ConfigObject) -> tuple[ComponentEnvironment | None, tuple[Finding, ...]]:
    """Read an Environment. Return None and the findings if the Environment has errors."""
    spec, findings = open_spec(
        manifest, ComponentCodes.ENVIRONMENT_INVALID, RECONCILER_API_VERSION, _ENVIRONMENT_FIELDS
    )
    names, selector = spec.read_texts("clusters"), _read_selector(spec)
    model = ComponentEnvironment(manifest, names, selector, spec.read_values("context"))
    return (None if findings.findings else model), findings.all_findings


def _read_selector(spec: Spec) -> LabelSelector | None:
    if not spec.has_value("clusterSelector"):
        return None
    selector, errors = read_label_selector(spec.data["clusterSelector"])
    for error in errors:
        spec.add_finding("clusterSelector", error, ControllerCodes.SELECTOR_INVALID)
    return selector


def read_build(manifest: ConfigObject) -> tuple[Build | None, tuple[Finding, ...]]:
    """Read a Build, whose spec can contain any fields. Return None and the findings if the Build has errors."""
    spec, findings = open_spec(manifest, ComponentCodes.BUILD_INVALID, RECONCILER_API_VERSION, None)
    check_namespace(manifest, findings)
    if spec.has_value("workload"):
        spec.read_mapping("workload", None)
    return (None if findings.findings else Build(manifest, spec.data)), findings.all_findings
