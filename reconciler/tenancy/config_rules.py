"""The rules for config files: which tenant owns a file, and which objects the tenant may define.

An object that breaks a rule has no effect, but it counts as present. Its packages are not changed and not deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from reconciler.api import tenancy
from reconciler.api.manifest import read_manifest
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.codes import CatalogCodes
from reconciler.catalog.tenants import Tenant, Tenants
from reconciler.controllers.clusters.inventory import CLUSTER_KINDS
from reconciler.controllers.kafka_templates.model import TEMPLATE_RULE_GROUP, TEMPLATE_RULE_KIND
from reconciler.controllers.validation import create_field_findings
from reconciler.krm.field_text import quote_list
from reconciler.krm.findings import Finding
from reconciler.krm.globs import matches_any_glob
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.update.sides import is_below
from reconciler.tenancy.codes import TenancyCodes

TENANT_KIND = ("reconciler.dev", "Tenant")
# Objects of these kinds apply to all packages of the fleet.
PLATFORM_KINDS = frozenset({TENANT_KIND, (TEMPLATE_RULE_GROUP, TEMPLATE_RULE_KIND), *CLUSTER_KINDS})


@dataclass(frozen=True)
class TenancyOptions:
    """The settings about tenants.

    Attributes:
        directory: The folder with the Tenant objects, without a slash at its start and end.
        denies_other_files: Whether files that belong to no tenant may define only objects of `PLATFORM_KINDS`.
    """

    directory: str = "tenants"
    denies_other_files: bool = False


def format_kind(group: str, kind: str) -> str:
    """Return a kind in the notation of Tenant objects: `<kind>.<group>`, or `<kind>` for the core group."""
    return f"{kind}.{group}" if group else kind


def apply_config_rules(catalog: Catalog, options: TenancyOptions) -> Catalog:
    """Read the tenants of a catalog, and return the catalog after the config rules are applied.

    If a tenant may not define an object, the object has no effect.
    """
    has_duplicates = any(key[:2] == TENANT_KIND for key in catalog.duplicates)
    if not has_duplicates and not catalog.objects_of_kind(*TENANT_KIND):
        return catalog
    definitions = (definition for definition in catalog.definitions if definition.key[:2] == TENANT_KIND)
    misplaced = [definition for definition in definitions if not is_below(definition.file, options.directory)]
    catalog = catalog.without_definitions(misplaced, ())
    tenants, errors = _read_tenants(catalog.objects_of_kind(*TENANT_KIND))
    # The folders of an invalid Tenant are unknown. Therefore, a file outside of all known folders can belong to this
    # Tenant, and must not have the permissions of the platform team.
    is_uncertain = bool(errors) or any(key[:2] == TENANT_KIND for key in catalog.duplicates)
    options = replace(options, denies_other_files=options.denies_other_files or is_uncertain)
    catalog = replace(catalog, tenants=Tenants(tenants))
    overlaps = _find_overlaps({definition.file for definition in catalog.definitions}, catalog.tenants)
    rules = _ConfigRules(catalog.tenants, options, frozenset(overlaps))
    refused = [(value, reason) for value in catalog.definitions if (reason := rules.find_violation(value))]
    # Remove refused Repositories and clusters from the catalog completely. They never defined a target, so that no
    # packages depend on them. If they stayed in the catalog, their names could affect other targets.
    present = (value for value, _ in refused if value.key[:2] not in PLATFORM_KINDS)
    catalog = catalog.without_definitions([value for value, _ in refused], present)
    rivals = tuple(_find_rivals(catalog))
    catalog = catalog.without_definitions([value for value, _ in rivals], ())
    findings = (
        *(_create_rival_finding(value, first) for value, first in rivals),
        *(_create_misplaced_finding(definition, options) for definition in misplaced),
        *errors,
        *overlaps.values(),
        *(TenancyCodes.TENANT_FORBIDDEN.finding(reason, value.location) for value, reason in refused),
    )
    return replace(catalog, findings=(*catalog.findings, *findings))


def _find_rivals(catalog: Catalog) -> Iterator[tuple[ConfigObject, ConfigObject]]:
    """Find objects that both a tenant and the platform team define.

    Yield both definitions of each object: first that of the tenant, then that of the platform team.
    """
    for copies in catalog.copies.values():
        first = next((copy for copy in copies if not catalog.tenants.find_owner(copy.file)), None)
        if first is not None:
            yield from ((copy, first) for copy in copies if catalog.tenants.find_owner(copy.file))


def _create_rival_finding(value: ConfigObject, first: ConfigObject) -> Finding:
    message = (
        f"{value.key} has no effect, because the platform team defines the same object at {first.file}:{first.line}."
        " Next step: use another name"
    )
    return CatalogCodes.CLAIM_CONFLICT.finding(message, value.location)


def _create_misplaced_finding(definition: ConfigObject, options: TenancyOptions) -> Finding:
    message = (
        f"{definition.key} has no effect, because Tenants must be in the folder {options.directory}/ (setting"
        " `tenancy.directory`). Next step: move the object to this folder"
    )
    return TenancyCodes.TENANT_INVALID.finding(message, definition.location)


def _read_tenants(definitions: Iterable[ConfigObject]) -> tuple[dict[str, Tenant], list[Finding]]:
    tenants: dict[str, Tenant] = {}
    errors: list[Finding] = []
    for definition in definitions:
        result = read_manifest(tenancy.Tenant, definition.data)
        if result.model is None:
            errors += create_field_findings(definition, result.errors, TenancyCodes.TENANT_INVALID)
        else:
            name = definition.key.name
            tenants[name] = Tenant(name, result.model.spec, definition.location)
    return tenants, errors


def _find_overlaps(paths: Iterable[str], tenants: Tenants) -> dict[str, Finding]:
    """Return an error for each file that several tenants own, because their folders overlap."""
    overlaps: dict[str, Finding] = {}
    for path in sorted(paths):
        matching = list(tenants.list_matching(path))
        if len(matching) > 1:
            names = " and ".join(tenant.name for tenant in matching)
            message = (
                f"the file {path} is in the folders of the Tenants {names}, so its objects have no effect. Next step:"
                " change `spec.directories` of one of these Tenants"
            )
            overlaps[path] = TenancyCodes.TENANT_INVALID.finding(message, matching[1].location)
    return overlaps


@dataclass(frozen=True)
class _ConfigRules:
    tenants: Tenants
    options: TenancyOptions
    overlaps: frozenset[str]

    def find_violation(self, definition: ConfigObject) -> str:
        """Return the rule that an object breaks. Return "" if the object is allowed."""
        if definition.file in self.overlaps:
            return f"{definition.key} has no effect, because the folders of several Tenants contain its file"
        name = self.tenants.find_owner(definition.file)
        kind = definition.key.group, definition.key.kind
        if not name:
            return self._check_other_file(definition) if self.options.denies_other_files else ""
        tenant = self.tenants.by_name[name]
        if kind in PLATFORM_KINDS:
            return (
                f"{definition.key} has no effect, because only the platform team may define objects of the kind"
                f" {format_kind(*kind)}"
            )
        allow = tenant.spec.allow
        if not matches_any_glob(format_kind(*kind), allow.kinds):
            return format_violation(tenant, str(definition.key), "the kind", format_kind(*kind), "kinds", allow.kinds)
        namespace = definition.key.namespace
        if namespace and not matches_any_glob(namespace, allow.namespaces):
            return format_violation(
                tenant, str(definition.key), "the namespace", namespace, "namespaces", allow.namespaces
            )
        return ""

    def _check_other_file(self, definition: ConfigObject) -> str:
        kind = definition.key.group, definition.key.kind
        if kind in PLATFORM_KINDS:
            return ""
        return (
            f"{definition.key} has no effect, because its file is in no folder of a valid Tenant. Next step: move the"
            " file to such a folder, correct the invalid Tenants, or change the setting `tenancy.default`"
        )


def format_violation(tenant: Tenant, subject: str, noun: str, value: str, field: str, allowed: Sequence[str]) -> str:
    """Return the message about a value that a tenant may not use.

    Args:
        noun: The description of the value in the message, such as "the namespace".
        field: The field of `spec.allow` that contains the allowed values.
    """
    listed = quote_list(map(str, allowed)) or "none"
    rule = f"spec.allow.{field} at {tenant.location.file}:{tenant.location.line}"
    return f'{subject}: tenant "{tenant.name}" may not use {noun} "{value}". Allowed values: {listed} ({rule})'
