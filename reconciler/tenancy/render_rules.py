"""The rules for rendered packages: their functions, namespaces and resources without a namespace."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.catalog.files import FileTree
from reconciler.catalog.manifests import is_local_config
from reconciler.catalog.tenants import Tenant
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.globs import matches_any_glob
from reconciler.packages.functions.field_specs import get_resource_scope
from reconciler.packages.functions.registry import split_image
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.packages.package import Package, PackageResource
from reconciler.redaction import HIDDEN_CIPHERTEXT, is_ciphertext
from reconciler.tenancy.codes import TenancyCodes
from reconciler.tenancy.config_rules import format_kind, format_violation


def check_functions(files: FileTree, tenant: Tenant) -> tuple[Finding, ...]:
    """Return an error for each function in the pipelines of a package that the tenant may not run."""
    return tuple(
        TenancyCodes.TENANT_FORBIDDEN.finding(message, SourceLocation(path))
        for path, file in files.items()
        if path.rpartition("/")[2] == KPTFILE
        for message in _list_forbidden_functions(path, file.data, tenant)
    )


def _list_forbidden_functions(path: str, data: bytes, tenant: Tenant) -> Iterator[str]:
    kptfile = read_kptfile(data)
    if not isinstance(kptfile, Kptfile):
        return
    allow = tenant.spec.allow.functions
    for function in (*kptfile.pipeline.mutators, *kptfile.pipeline.validators):
        if function.exec and not matches_any_glob(function.exec, allow.exec):
            yield format_violation(tenant, path, "the program", function.exec, "functions.exec", allow.exec)
        elif function.image and not matches_any_glob(function.image, allow.images):
            yield format_violation(tenant, path, "the function", function.image, "functions.images", allow.images)
        elif split_image(function.image)[0] == "starlark" and not allow.starlark:
            yield format_violation(tenant, path, "the function", function.image, "functions.starlark", ("false",))


def check_resources(files: FileTree, tenant: Tenant) -> tuple[Finding, ...]:
    """Return an error for each resource of a package that the tenant may not deploy."""
    resources = Package(files).resources
    return tuple(
        TenancyCodes.TENANT_FORBIDDEN.finding(message, SourceLocation(resource.file, 0, str(resource.key)))
        for resource in resources
        if (message := _find_forbidden_resource(resource, tenant))
    )


def _is_identity_encrypted(resource: PackageResource) -> bool:
    if not resource.is_sops:
        return False
    data = resource.data
    return any(map(is_ciphertext, (data.get("apiVersion"), data.get("kind"), resource.metadata.get("namespace"))))


def _find_forbidden_resource(resource: PackageResource, tenant: Tenant) -> str:
    metadata = resource.data.get("metadata")
    if resource.kind == "Kptfile" or (isinstance(metadata, dict) and is_local_config(metadata)):
        return ""
    allow, kind, subject = tenant.spec.allow, format_kind(resource.group, resource.kind), str(resource.key)
    if _is_identity_encrypted(resource):
        # The resource can have any kind and any namespace.
        if matches_any_glob(HIDDEN_CIPHERTEXT, allow.cluster_scoped_resources):
            return ""
        noun = "a SOPS document with an encrypted kind or namespace,"
        return format_violation(
            tenant, resource.file, noun, HIDDEN_CIPHERTEXT, "clusterScopedResources", allow.cluster_scoped_resources
        )
    scope = get_resource_scope(resource)
    namespace = resource.namespace
    if scope == "cluster" or (scope == "unknown" and not namespace):
        if matches_any_glob(kind, allow.cluster_scoped_resources):
            return ""
        noun = "resources without a namespace of the kind"
        return format_violation(tenant, subject, noun, kind, "clusterScopedResources", allow.cluster_scoped_resources)
    # Kubernetes creates a resource without a namespace in the namespace of the client, which is often `default`.
    namespace = namespace or "default"
    if matches_any_glob(namespace, allow.namespaces):
        return ""
    return format_violation(tenant, subject, "the namespace", namespace, "namespaces", allow.namespaces)
