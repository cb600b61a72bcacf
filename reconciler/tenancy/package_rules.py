"""The rules for requested packages: their upstreams, targets, paths and number.

A package that breaks a rule is stalled: its published content stays, and it gets no draft.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial

from reconciler.catalog.catalog import Catalog
from reconciler.catalog.tenants import TENANT_DEPENDENCY, Tenant, Tenants
from reconciler.controllers.keyed_cache import IdentityCache
from reconciler.controllers.package_variants.status import build_stalled_conditions
from reconciler.controllers.repositories import Repository
from reconciler.controllers.results import (
    ControllerResult,
    PackageTarget,
    StalledVariant,
    Variant,
    merge_results,
)
from reconciler.krm.findings import Finding, FindingCode, SourceLocation
from reconciler.krm.git_formats import normalize_repository_url
from reconciler.krm.globs import matches_any_glob
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.tenancy.codes import TenancyCodes
from reconciler.tenancy.config_rules import format_violation

_MAX_LISTED = 20


@dataclass(frozen=True)
class UpstreamRules:
    """The rules for the upstreams of all tenants.

    Attributes:
        find_credential_tenant: Returns the only tenant that may use the credentials of an upstream URL. Returns "" if
            all tenants may use them.
        urls: Maps the namespace and name of each Repository to its URL.
    """

    tenants: Tenants
    find_credential_tenant: Callable[[str], str]
    urls: Mapping[tuple[str, str], str]

    def get_check(self, tenant: str) -> Callable[[Repository], str]:
        """Return a function that checks whether a tenant may read a Repository.

        The function returns the reason why the tenant may not read the Repository, or "". The platform team has the
        name "", and may read all Repositories.
        """
        return partial(self._explain_forbidden, self.tenants.by_name[tenant]) if tenant else _allow

    def _explain_forbidden(self, tenant: Tenant, repository: Repository) -> str:
        return self.check_repository((repository.key.namespace, repository.key.name), tenant, str(repository.key))

    def check_repository(self, name: tuple[str, str], tenant: Tenant, subject: str) -> str:
        """Return the reason why a tenant may not read a Repository.

        Return "" if the tenant may read it, or if it does not exist.
        """
        return self.check_url(self.urls[name], tenant, subject) if name in self.urls else ""

    def check_url(self, url: str, tenant: Tenant, subject: str) -> str:
        """Return the reason why a tenant may not read a Repository with this URL. Return "" if it is allowed."""
        allowed, locations = tenant.spec.allow.upstreams, _list_locations(url)
        if not any(matches_any_glob(location, allowed) for location in locations):
            return format_violation(tenant, subject, "the upstream", locations[0], "upstreams", allowed)
        owner = self.find_credential_tenant(url)
        if owner and owner != tenant.name:
            return (
                f"{subject}: tenant {tenant.name} may not use the credentials of the upstream {locations[0]}, because"
                f" they belong to tenant {owner} (setting `git.credentials`)"
            )
        return ""


def _allow(_: Repository) -> str:
    """Return "", because the platform team may use each Repository."""
    return ""


@dataclass(frozen=True)
class PackageRules:
    """The rules for the packages of all tenants.

    Attributes:
        find_labels: Returns the labels of a cluster or Repository. The arguments are its namespace and its name.
        upstreams: The rules for upstreams.
        list_existing: Returns the packages that exist on their targets.
        assigned: A cache of the accepted package variants of this and the previous pass.
    """

    catalog: Catalog
    find_labels: Callable[[str, str], Mapping[str, str]]
    upstreams: UpstreamRules
    list_existing: Callable[[], frozenset[PackageTarget]]
    assigned: IdentityCache[Variant]

    @cached_property
    def existing(self) -> frozenset[PackageTarget]:
        """The packages that exist on their targets."""
        return self.list_existing()

    def apply(self, result: ControllerResult, tenant: str) -> ControllerResult:
        """Check the packages that the controllers request for one tenant.

        In the returned result, packages that break a rule are stalled. There is one exception: if a selector selects a
        target that the tenant may not use, a new package on this target is omitted from the result.
        """
        rules = self.catalog.tenants.by_name[tenant]
        accepted: list[Variant] = []
        stalled: list[StalledVariant] = []
        skipped: dict[ObjectKey, list[str]] = {}
        for variant in result.variants:
            allowed_target = self._is_target_allowed(variant.target, rules)
            if not allowed_target and self._is_selected(variant) and variant.target not in self.existing:
                skipped.setdefault(variant.owner.parent or variant.owner.key, []).append(variant.target.repository)
            elif reason := self._find_violation(variant, rules, is_target_allowed=allowed_target):
                stalled.append(self._stall(variant, TenancyCodes.TENANT_FORBIDDEN, reason))
            else:
                accepted.append(self.assigned.get_or_create((variant, rules.spec), partial(_assign, variant, rules)))
        accepted, excess = self._apply_limit(accepted, rules)
        findings = (self._report_skipped(owner, targets, rules) for owner, targets in sorted(skipped.items()))
        return replace(
            result,
            variants=tuple(accepted),
            stalled=tuple(
                replace(self._forbid_upstream(value, rules), tenant=tenant)
                for value in (*result.stalled, *stalled, *excess)
            ),
            findings=(*result.findings, *findings),
        )

    def apply_to_placed(self, result: ControllerResult) -> ControllerResult:
        """Check the packages of placed resources, and return the result of the placement controller.

        A package contains all placed resources of one namespace. It belongs to the tenant that owns the config files of
        these resources. If several tenants own these files, the package is stalled.
        """
        if not self.catalog.tenants:
            return result
        by_tenant: dict[frozenset[str], list[Variant]] = {}
        for variant in result.variants:
            by_tenant.setdefault(self.catalog.tenants.find_owners(variant.sources), []).append(variant)
        platform = tuple(by_tenant.pop(frozenset(), ()))
        parts = [replace(result, variants=platform)]
        for names, variants in sorted(by_tenant.items(), key=lambda entry: sorted(entry[0])):
            if len(names) == 1:
                parts.append(self.apply(ControllerResult(tuple(variants)), *names))
            else:
                parts.append(
                    ControllerResult(stalled=tuple(self._stall_shared(names, variant) for variant in variants))
                )
        return merge_results(parts)

    def _stall_shared(self, names: frozenset[str], variant: Variant) -> StalledVariant:
        message = (
            f"{variant.target} contains resources of the tenants {' and '.join(sorted(names))}. Next step: use another"
            " namespace for each tenant"
        )
        return self._stall(variant, TenancyCodes.TENANT_FORBIDDEN, message)

    def _find_violation(self, variant: Variant, tenant: Tenant, *, is_target_allowed: bool) -> str:
        allow, subject, target = tenant.spec.allow, str(variant.target), variant.target
        if not is_target_allowed:
            selector = allow.targets.selector.selector.as_data() if allow.targets else "none"
            return format_violation(tenant, subject, "the target", target.repository, "targets", (str(selector),))
        if not matches_any_glob(target.package, allow.packages):
            return format_violation(tenant, subject, "the package path", target.package, "packages", allow.packages)
        urls = variant.upstream.urls if variant.upstream else ()
        problems = (self.upstreams.check_url(url, tenant, subject) for url in urls)
        return next(filter(None, problems), "")

    def _forbid_upstream(self, stalled: StalledVariant, tenant: Tenant) -> StalledVariant:
        """If the tenant may not use the upstream of a stalled variant, replace the reported reason by this reason."""
        source, owner = stalled.upstream_target, stalled.owner
        name = (source.namespace, source.repository) if source else ("", "")
        message = self.upstreams.check_repository(name, tenant, str(owner.key))
        if not message:
            return stalled
        code = TenancyCodes.TENANT_FORBIDDEN
        finding = code.finding(message, self._locate(owner.parent or owner.key))
        return replace(stalled, conditions=build_stalled_conditions(code.name, message), findings=(finding,))

    def _is_target_allowed(self, target: PackageTarget, tenant: Tenant) -> bool:
        targets = tenant.spec.allow.targets
        return targets is not None and targets.selector.selector.matches(
            self.find_labels(target.namespace, target.repository)
        )

    def _is_selected(self, variant: Variant) -> bool:
        """Return whether a set selects the target of the package with a selector, and not by name.

        Return False for a PackageVariant that no set generated.
        """
        parent = self.catalog.objects.get(variant.owner.parent) if variant.owner.parent else None
        if parent is None:
            return False
        targets = parent.data.get("spec", {}).get("targets")
        indexes = variant.owner.target_indexes
        if not isinstance(targets, list) or not indexes:
            return True
        return all("repositories" not in targets[index] for index in indexes if index < len(targets))

    def _apply_limit(self, variants: list[Variant], tenant: Tenant) -> tuple[list[Variant], list[StalledVariant]]:
        limit = tenant.spec.limits.packages
        if limit is None or len(variants) <= limit:
            return variants, []
        # Accept existing packages first, so that a new package never blocks an existing package.
        ordered = sorted(variants, key=lambda variant: (variant.target not in self.existing, variant.target))
        excess = frozenset(variant.target for variant in ordered[limit:])
        message = (
            f'exceeds the package limit, because tenant "{tenant.name}" requests {len(variants)} packages, but the'
            f" limit is {limit} (spec.limits.packages at {tenant.location.file}:{tenant.location.line})"
        )
        return (
            [variant for variant in variants if variant.target not in excess],
            [
                self._stall(variant, TenancyCodes.TENANT_LIMIT_EXCEEDED, f"{variant.target} {message}")
                for variant in variants
                if variant.target in excess
            ],
        )

    def _stall(self, variant: Variant, code: FindingCode, message: str) -> StalledVariant:
        finding = code.finding(message, self._locate(variant.owner.parent or variant.owner.key))
        conditions = build_stalled_conditions(code.name, message)
        upstream = variant.upstream
        source = PackageTarget(upstream.namespace, upstream.repository, upstream.package) if upstream else None
        return StalledVariant(variant.owner, conditions, (finding,), variant.target, source)

    def _report_skipped(self, owner: ObjectKey, targets: Sequence[str], tenant: Tenant) -> Finding:
        names = sorted(set(targets))
        more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
        message = (
            f'the selector of {owner} also matches targets that tenant "{tenant.name}" may not deploy to. These targets'
            f" are skipped: {', '.join(names[:_MAX_LISTED])}{more}"
        )
        return TenancyCodes.TARGETS_NOT_ALLOWED.finding(message, self._locate(owner))

    def _locate(self, owner: ObjectKey) -> SourceLocation:
        definition = self.catalog.objects.get(owner)
        return definition.location if definition else SourceLocation(object=owner.reference)


def _assign(variant: Variant, tenant: Tenant) -> Variant:
    dependencies = {**variant.dependencies, TENANT_DEPENDENCY: f"{tenant.name} {tenant.digest}"}
    return replace(variant, tenant=tenant.name, dependencies=dependencies)


def _list_locations(url: str) -> tuple[str, ...]:
    """Return the notations of a repository that a pattern can match: host and path, without and with `.git`."""
    location = normalize_repository_url(url).rpartition("://")[2]
    return location.removesuffix(".git"), location


def select_owned(result: ControllerResult, catalog: Catalog, tenant: str) -> ControllerResult:
    """Return the part of a controller result that belongs to the objects of a tenant.

    The platform team has the name "".

    Args:
        catalog: A catalog of the current pass that contains all objects of the tenant.
    """
    find_owner = catalog.tenants.find_owner
    keys = {key for key, value in catalog.objects.items() if find_owner(value.file) == tenant}
    keys |= {key for key, values in catalog.copies.items() if any(find_owner(value.file) == tenant for value in values)}
    keys |= {child for status in result.statuses if status.key in keys for child in status.children}
    keys |= {variant.owner.key for variant in result.variants if variant.owner.parent in keys}
    return replace(
        result,
        variants=tuple(variant for variant in result.variants if variant.owner.key in keys),
        stalled=tuple(value for value in result.stalled if value.owner.key in keys or value.owner.parent in keys),
        statuses=tuple(status for status in result.statuses if status.key in keys),
        findings=tuple(finding for finding in result.findings if find_owner(finding.location.file) == tenant),
        pins=tuple(pin for pin in result.pins if pin.key in keys),
        guards={key: guard for key, guard in result.guards.items() if key in keys},
    )
