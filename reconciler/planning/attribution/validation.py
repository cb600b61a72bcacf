"""Validation of a config after all packages are rendered.

- Conformance: rendered resources are compared with the API versions of the Kubernetes release and with JSON Schemas.
- Lint: checks that require the packages of all controllers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from reconciler.api.kpt import FunctionSpec
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.files import FileTree
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.kafka_templates.strimzi.kafka_checks import find_deprecated_fields
from reconciler.controllers.override_policies.attachment import MissingPolicyMode, find_attached_policies
from reconciler.controllers.override_policies.codes import PolicyCodes
from reconciler.controllers.override_policies.read_policies import OverridePolicies
from reconciler.controllers.resource_findings import ResourceIssue, create_finding
from reconciler.controllers.results import GeneratedSource, Variant
from reconciler.krm.field_text import (
    describe_choice,
    describe_value,
    format_list,
    format_path,
    quote_list,
    suggest_name,
)
from reconciler.krm.findings import Finding, FindingCode, SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.krm.schema.custom_resources import (
    CustomResourceKinds,
    CustomResourceVersion,
    read_custom_resource_kinds,
)
from reconciler.krm.schema.kubernetes_apis import (
    BUILTIN_GROUPS,
    KubernetesRelease,
    find_api_removal,
    format_kubernetes_release,
)
from reconciler.krm.schema.validation import Violation
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.packages.functions.registry import FunctionMatch, FunctionUnavailable
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.package import Package, PackageResource
from reconciler.packages.pipeline import FunctionProvider
from reconciler.planning.model.codes import PlanningCodes
from reconciler.planning.model.outcomes import PackageRender, format_rival_message
from reconciler.planning.model.targets import PackagePathIndex
from reconciler.redaction import MASK, is_secret

CRD_TYPE = ("apiextensions.k8s.io", "CustomResourceDefinition")


class SchemaSource(Protocol):
    """JSON Schemas by Kubernetes release. If the release is None, the newest known release is used."""

    def find_violations(
        self, release: KubernetesRelease | None, data: Mapping[str, Any]
    ) -> tuple[Violation, ...] | None:
        """Return the schema violations of a resource. Return None if its kind has no schema."""
        ...

    def is_complete(self, release: KubernetesRelease | None) -> bool:
        """Return whether all built-in kinds of a Kubernetes release have a schema."""
        ...

    def describe_release(self, release: KubernetesRelease | None) -> str:
        """Return the name of the Kubernetes release whose schemas are used."""
        ...

    def explain_missing_schema(self, release: KubernetesRelease | None) -> str:
        """Return a message with the reason why a built-in kind has no schema, and with the next step for the user."""
        ...


@dataclass(frozen=True)
class ResourceViolation:
    """A violation of a validation rule by one resource of a package."""

    code: FindingCode
    resource: PackageResource
    path: tuple[str | int, ...]
    message: str


@dataclass(frozen=True)
class CheckedPackage:
    """A rendered package with its violations, and with its resources that have no schema."""

    variant: Variant
    rendered: PackageRender
    violations: tuple[ResourceViolation, ...] = ()
    unchecked: tuple[UncheckedResources, ...] = ()


@dataclass(frozen=True)
class UncheckedResources:
    """Resources of a package that were not compared with a schema.

    Attributes:
        description: The API version and kind of the resources, or "built-in kinds".
        builtin_reason: The reason why a built-in kind has no schema, with the next step. "" for custom kinds.
        first_resource: The first resource of the package with this description.
    """

    description: str
    builtin_reason: str
    first_resource: PackageResource
    count: int = 1


_CheckResult = tuple[tuple[ResourceViolation, ...], tuple[UncheckedResources, ...]]


class ConformanceChecker:
    """Checks the packages of several clusters, one cluster after another. The results for equal packages are cached."""

    def __init__(self, catalog: Catalog, releases: Mapping[str, KubernetesRelease], schemas: SchemaSource) -> None:
        self._releases = releases
        self._schemas = schemas
        definitions = (definition.data for definition in catalog.objects_of_kind(*CRD_TYPE))
        self._config_kinds = read_custom_resource_kinds(definitions)
        self._results: dict[tuple[object, ...], _CheckResult] = {}

    def check_packages(
        self, cluster: str, packages: Sequence[tuple[Variant, PackageRender]]
    ) -> Iterator[CheckedPackage]:
        """Check all packages of a cluster. A package can contain CustomResourceDefinitions for the other packages."""
        release = self._releases.get(cluster)
        defining_packages = [rendered.files for _, rendered in packages if _may_define_kinds(rendered.files)]
        custom_kinds = self._config_kinds
        if defining_packages:
            custom_kinds = custom_kinds.with_overrides(read_custom_resource_kinds(_list_definitions(defining_packages)))
        cluster_key = (release, *sorted(files.id for files in defining_packages))
        for variant, rendered in packages:
            key = (rendered.files.id, *cluster_key)
            if key not in self._results:
                self._results[key] = self._check_files(rendered.files, release, custom_kinds)
            yield CheckedPackage(variant, rendered, *self._results[key])

    def _check_files(
        self, files: FileTree, release: KubernetesRelease | None, custom_kinds: CustomResourceKinds
    ) -> _CheckResult:
        violations: list[ResourceViolation] = []
        unchecked: dict[tuple[str, str], UncheckedResources] = {}
        for resource in Package(files).resources:
            if not _is_applied(resource):
                continue
            found_violations, is_checked = self._check_resource(resource, release, custom_kinds)
            violations += found_violations
            if not is_checked:
                new = self._describe_unchecked(resource, release)
                key = (new.description, new.builtin_reason)
                known = unchecked.get(key)
                unchecked[key] = replace(known, count=known.count + 1) if known else new
        return tuple(violations), tuple(unchecked.values())

    def _describe_unchecked(self, resource: PackageResource, release: KubernetesRelease | None) -> UncheckedResources:
        if resource.group in BUILTIN_GROUPS:
            return UncheckedResources("built-in kinds", self._schemas.explain_missing_schema(release), resource)
        return UncheckedResources(f"{resource.api_version} {resource.kind}", "", resource)

    def _check_resource(
        self, resource: PackageResource, release: KubernetesRelease | None, custom_kinds: CustomResourceKinds
    ) -> tuple[tuple[ResourceViolation, ...], bool]:
        """Return the violations of a resource, and whether the resource could be checked.

        A check requires a schema, or a list of the API versions that are served.
        """
        if custom_kinds.contains(resource.group, resource.kind):
            violations = _check_custom_resource(resource, custom_kinds.get_versions(resource.group, resource.kind))
            return violations or (), violations is not None
        removal = _check_api_removal(resource, release)
        removals = (removal,) if removal else ()
        if removal and removal.code is PlanningCodes.API_NOT_SERVED:
            return removals, True
        is_builtin = resource.group in BUILTIN_GROUPS
        schema_violations = self._schemas.find_violations(release, resource.data)
        if schema_violations is not None:
            schema_name = self._schemas.describe_release(release) if is_builtin else "its schema"
            return (*removals, *_convert_violations(resource, schema_violations, schema_name)), True
        if is_builtin and self._schemas.is_complete(release) and not removals:
            release_name = self._schemas.describe_release(release)
            message = f"is {resource.api_version}, but {release_name} has no {resource.kind} in this API version"
            return (ResourceViolation(PlanningCodes.API_NOT_SERVED, resource, ("apiVersion",), message),), True
        return removals, False


def _is_applied(resource: PackageResource) -> bool:
    if resource.is_sops:
        return False  # The cluster applies the decrypted document, whose content is unknown.
    # Skip a List itself, because kubectl and GitOps tools apply only the items of a List.
    is_list = resource.kind.endswith("List") and isinstance(resource.data.get("items"), list)
    return not (resource.missing_krm_field or resource.is_local_config or resource.kind == KPTFILE or is_list)


def _may_define_kinds(files: FileTree) -> bool:
    return any(b"CustomResourceDefinition" in file.data for file in files.values())


def _list_definitions(packages: Iterable[FileTree]) -> Iterator[Mapping[str, Any]]:
    for files in packages:
        resources = Package(files).resources
        yield from (resource.data for resource in resources if (resource.group, resource.kind) == CRD_TYPE)


def _check_api_removal(resource: PackageResource, release: KubernetesRelease | None) -> ResourceViolation | None:
    removal = find_api_removal(resource.api_version, resource.kind)
    if removal is None or (release and release < removal.deprecated_in):
        return None
    removed_in = format_kubernetes_release(removal.removed_in)
    prefix = f"is {resource.api_version}, which"
    if release and release >= removal.removed_in:
        cluster_release = format_kubernetes_release(release)
        message = (
            f"{prefix} was removed in Kubernetes {removed_in} (the cluster runs Kubernetes {cluster_release}); use"
            f" {removal.replacement}"
        )
        return ResourceViolation(PlanningCodes.API_NOT_SERVED, resource, ("apiVersion",), message)
    deprecated_in = format_kubernetes_release(removal.deprecated_in)
    message = (
        f"{prefix} is deprecated since Kubernetes {deprecated_in}, and removed in {removed_in};"
        f" use {removal.replacement}"
    )
    return ResourceViolation(PlanningCodes.API_DEPRECATED, resource, ("apiVersion",), message)


def _check_custom_resource(
    resource: PackageResource, versions: Mapping[str, CustomResourceVersion]
) -> tuple[ResourceViolation, ...] | None:
    """Return the violations of a custom resource. Return None if its CustomResourceDefinition has no schema."""
    version = versions.get(resource.version)
    if version is None or not version.served:
        served = format_list(sorted(name for name, definition in versions.items() if definition.served)) or "no version"
        message = f"is {resource.api_version}, but its CustomResourceDefinition serves {served}"
        return (ResourceViolation(PlanningCodes.API_NOT_SERVED, resource, ("apiVersion",), message),)
    violations = version.find_violations(resource.data)
    return (
        None if violations is None else tuple(_convert_violations(resource, violations, "its CustomResourceDefinition"))
    )


def _convert_violations(
    resource: PackageResource, violations: Iterable[Violation], schema_name: str
) -> Iterator[ResourceViolation]:
    for violation in violations:
        if violation.rule == "unknown":
            message = f"is an unknown field, according to {schema_name}"
            yield from (
                ResourceViolation(PlanningCodes.FIELD_NOT_IN_SCHEMA, resource, (*violation.path, name), message)
                for name in violation.names
            )
        else:
            message = _format_violation(violation, should_mask=is_secret(resource.data))
            yield ResourceViolation(
                PlanningCodes.RESOURCE_INVALID, resource, violation.path, f"{message}, according to {schema_name}"
            )


def _format_violation(violation: Violation, *, should_mask: bool) -> str:
    names = ", ".join(violation.names)
    value = MASK if should_mask else describe_value(violation.value)
    match violation.rule:
        case "type":
            types = [name for name in violation.names if name != "null"] or violation.names
            return f"must have the type {' or '.join(types)}, but is {value}"
        case "enum":
            return f"must be {describe_choice(violation.names)}, but is {value}"
        case "required":
            return f"must have the field {quote_list(violation.names)}"
        case "format":
            return f'must have the format "{names}", but is {value}'
        case "one-of":
            return "must match exactly one alternative of the schema, but matches none or several"
        case _:
            return "violates a rule of its schema" if should_mask else f"violates a rule of its schema: {names}"


FieldPathStep = str | int
# Known fields of a Repository: all fields that the reconciler or Porch reads.
_REPOSITORY_FIELDS = (
    "type",
    "git",
    "deployment",
    "description",
    "content",
    "oci",
    "sync",
    "upstream",
    "mutators",
    "validators",
)
_GIT_FIELDS = ("repo", "branch", "directory", "tagPrefix", "createBranch", "secretRef", "author", "email")


def lint_package_conflicts(variants: Iterable[Variant], objects: Mapping[ObjectKey, ConfigObject]) -> Iterator[Finding]:
    """Yield an error for each variant whose package is equal to, or nested with, the package of an earlier variant.

    A pass accepts only one of the conflicting variants, and blocks the others.
    """
    requested: dict[tuple[str, str], tuple[PackagePathIndex, dict[str, Variant]]] = {}
    for variant in sorted(variants, key=lambda variant: (variant.owner.key, variant.target)):
        target = variant.target
        paths, winners = requested.setdefault((target.namespace, target.repository), (PackagePathIndex(), {}))
        package = target.package
        rivals = [winners[name] for name in (package, *paths.find_nested(package)) if name in winners]
        if rivals:
            message = format_rival_message(variant, rivals[0])
            yield PlanningCodes.DOWNSTREAM_CONFLICT.finding(message, _locate_owner(variant, objects))
        else:
            winners[package] = variant
            paths.add(package)


def _locate_owner(variant: Variant, objects: Mapping[ObjectKey, ConfigObject]) -> SourceLocation:
    name = variant.owner.key.reference
    manifest = objects.get(variant.owner.parent or variant.owner.key)
    return replace(manifest.location, object=name) if manifest else SourceLocation(object=name)


def lint_generated(
    variants: Iterable[Variant],
    policies: OverridePolicies,
    on_missing: MissingPolicyMode,
    objects: Mapping[ObjectKey, ConfigObject],
) -> Iterator[Finding]:
    """Yield findings about generated resources: invalid references to override policies, and deprecated fields.

    A pass reports these findings for each package separately. This function reports them only once for equal packages
    of several clusters.
    """
    checked_ids: set[str] = set()
    for variant in variants:
        source = variant.source
        if variant.cluster and isinstance(source, GeneratedSource) and source.files.id not in checked_ids:
            checked_ids.add(source.files.id)
            for resource in Package(source.files).resources:
                yield from _lint_generated_resource(resource, variant, policies, on_missing, objects)


def _lint_generated_resource(
    resource: PackageResource,
    variant: Variant,
    policies: OverridePolicies,
    on_missing: MissingPolicyMode,
    objects: Mapping[ObjectKey, ConfigObject],
) -> Iterator[Finding]:
    attached = find_attached_policies(resource, policies, on_missing)
    issues = (
        *(_add_policy_suggestion(issue, policies) for issue in attached.issues),
        *find_deprecated_fields(resource),
    )
    for finding in (create_finding(resource, issue) for issue in issues):
        manifest = objects.get(resource.key)
        if manifest is not None:
            # Locate the finding in the config file, because this generated resource is a copy of an object in the
            # config.
            yield replace(finding, location=replace(finding.location, file=manifest.file, line=manifest.line))
        else:
            location = replace(finding.location, package=str(variant.target), owner=variant.owner.key.reference)
            yield replace(finding, location=location)


def _add_policy_suggestion(issue: ResourceIssue, policies: OverridePolicies) -> ResourceIssue:
    if issue.code is not PolicyCodes.POLICY_NOT_FOUND:
        return issue
    names = sorted(map(str, policies.valid))
    missing_name = issue.message.partition(" refers to ")[2].partition(",")[0]
    return replace(issue, message=f"{issue.message}{suggest_name(missing_name, names)}")


def lint_repositories(catalog: Catalog) -> Iterator[Finding]:
    """Yield a warning for each unknown field of a Repository that is similar to a known field."""
    for repository in catalog.objects_of_kind(PORCH_GROUP, "Repository"):
        spec = repository.data.get("spec")
        git = spec.get("git") if isinstance(spec, dict) else None
        sections = ((("spec",), spec, _REPOSITORY_FIELDS), (("spec", "git"), git, _GIT_FIELDS))
        for path, fields, known_fields in sections:
            names = map(str, fields if isinstance(fields, dict) else ())
            for name in (name for name in names if name not in known_fields):
                if suggestion := suggest_name(name, known_fields):
                    message = f"{format_path((*path, name))} is an unknown field{suggestion}"
                    yield ControllerCodes.FIELD_MISSPELT.finding(message, repository.location_of((*path, name)))


def lint_functions(catalog: Catalog, functions: FunctionProvider) -> Iterator[Finding]:
    """Yield a warning for each function of a PackageVariant or PackageVariantSet that this installation cannot run."""
    for kind in ("PackageVariant", "PackageVariantSet"):
        for config_object in catalog.objects_of_kind(PORCH_GROUP, kind):
            for path, entry in _list_function_entries(config_object.data.get("spec")):
                reason = _explain_unavailable(entry, functions)
                if reason:
                    name = entry.get("image") or entry.get("exec")
                    message = (
                        f"the function {name} in {format_path(path)} cannot run in this environment, because {reason}"
                    )
                    yield PlanningCodes.FUNCTION_UNAVAILABLE.finding(message, config_object.location_of(path))


def _list_function_entries(spec: Any) -> Iterator[tuple[tuple[FieldPathStep, ...], Mapping[str, Any]]]:
    """Yield each function in `spec.pipeline` and `spec.targets[].template.pipeline`, with the path of its field."""
    templates: list[tuple[tuple[FieldPathStep, ...], Any]] = [(("spec",), spec)]
    targets = spec.get("targets") if isinstance(spec, dict) else None
    for index, target in enumerate(targets if isinstance(targets, list) else ()):
        template = target.get("template") if isinstance(target, dict) else None
        templates.append((("spec", "targets", index, "template"), template))
    for path, template in templates:
        pipeline = template.get("pipeline") if isinstance(template, dict) else None
        for name in ("mutators", "validators"):
            entries = pipeline.get(name) if isinstance(pipeline, dict) else None
            for index, entry in enumerate(entries if isinstance(entries, list) else ()):
                if isinstance(entry, dict):
                    yield (*path, "pipeline", name, index), entry


def _explain_unavailable(entry: Mapping[str, Any], functions: FunctionProvider) -> str:
    texts = {name: value for name in ("image", "exec", "tag") if isinstance(value := entry.get(name), str)}
    if not texts.keys() & {"image", "exec"}:
        return ""
    try:
        function = functions.find(FunctionSpec.model_validate(texts))
    except InterruptedFunctionError:
        # Report nothing, because the check was interrupted, e.g. by a timeout, and can succeed the next time.
        return ""
    match function:
        case FunctionMatch():
            return ""
        case FunctionUnavailable(reason):
            return reason
        case None:
            return "it is not built in, and neither `functions.containers` nor `functions.exec` lists it"


def deduplicate_lint(findings: Sequence[Finding], lint: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings in `lint`, except for those with the same code, object and field as one of `findings`."""
    known = {_get_lint_key(finding) for finding in findings}
    return tuple(finding for finding in lint if _get_lint_key(finding) not in known)


def _get_lint_key(finding: Finding) -> tuple[str, str, str]:
    return finding.code, finding.location.object, finding.location.pointer
