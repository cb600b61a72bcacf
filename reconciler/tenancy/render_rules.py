"""The rules for rendered packages: their functions, namespaces and resources without a namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconciler.catalog.files import FileTree
from reconciler.catalog.manifests import Manifest, is_local_config
from reconciler.catalog.tenants import Tenant
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.globs import matches_any_glob
from reconciler.krm.objects import ObjectKey, split_api_version
from reconciler.krm.schema import find_kind_scope
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.functions.registry import split_image
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.packages.package import KUSTOMIZATION_FILES, parse_documents
from reconciler.packages.parsing import ParseFailure
from reconciler.packages.sops import is_sops_document
from reconciler.packages.source_kinds import CHART_FILE
from reconciler.redaction import HIDDEN_CIPHERTEXT, is_ciphertext
from reconciler.tenancy.codes import TenancyCodes
from reconciler.tenancy.config_rules import format_kind, format_violation

# Argo CD and Flux generate resources from these files, so that the package does not contain these resources.
_GENERATOR_FILES = frozenset({CHART_FILE, *KUSTOMIZATION_FILES})
_GENERATOR_EXTENSIONS = (".jsonnet", ".libsonnet")


def check_functions(files: FileTree, tenant: Tenant) -> tuple[Finding, ...]:
    """Check the functions in the pipelines of a package.

    Return an error for each function that the tenant may not run.
    """
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
    """Check the files and resources of a package. Return an error for each of them that the tenant may not deploy.

    Deployment tools also apply files that `.krmignore` hides from functions, and the items of Lists. Therefore, the
    check includes these files and items.
    """
    return tuple(
        TenancyCodes.TENANT_FORBIDDEN.finding(message, SourceLocation(path, 0, subject))
        for path, file in files.items()
        for subject, message in _list_violations(path, file.data, tenant)
    )


def _list_violations(path: str, content: bytes, tenant: Tenant) -> Iterator[tuple[str, str]]:
    """Yield the object and the message of each violation in a file. The object is "" if the file is forbidden."""
    name = path.rpartition("/")[2]
    if name in _GENERATOR_FILES or name.endswith(_GENERATOR_EXTENSIONS):
        yield "", _format_unknown_content(tenant, path, "other tools generate resources from the file")
    elif name.endswith((".yaml", ".yml", ".json")):
        documents = parse_documents(path, content)
        if isinstance(documents, ParseFailure):
            yield "", _format_unknown_content(tenant, path, f"the file cannot be parsed: {documents.message}")
            return
        for data in (document.data for document in documents if isinstance(document.data, dict)):
            for manifest in _iterate_manifests(data):
                resource = _DeployedResource(path, manifest, is_sops_document(data))
                if message := _find_violation(resource, tenant):
                    yield resource.subject, message


def _iterate_manifests(data: dict[Any, Any], api_version: object = None, kind: object = None) -> Iterator[Manifest]:
    """Yield the manifests of a document.

    As in kubectl, each object with a list of `items` is a List, also if it has a name. Items can omit `apiVersion` and
    `kind`.
    """
    api_version, kind = data.get("apiVersion", api_version), data.get("kind", kind)
    manifest = Manifest((), data, _get_text(api_version), _get_text(kind))
    items = data.get("items")
    is_list = isinstance(items, list) and (manifest.kind or "").endswith("List")
    if not is_list:
        yield manifest
    item_kind = (manifest.kind or "").removesuffix("List") if is_list else ""
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict):
            yield from _iterate_manifests(item, api_version if item_kind else None, item_kind or None)


def _get_text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _format_unknown_content(tenant: Tenant, path: str, reason: str) -> str:
    rule = f"spec.allow at {tenant.location.file}:{tenant.location.line}"
    return (
        f'tenant "{tenant.name}" may not deploy the file {path}, because {reason}. Next step: delete the file ({rule})'
    )


@dataclass(frozen=True)
class _DeployedResource:
    """A resource of a package, or an item of a List in the package.

    Attributes:
        is_sops: Whether the document of the resource is a SOPS document, in which any field can be encrypted.
    """

    file: str
    manifest: Manifest
    is_sops: bool

    @property
    def group(self) -> str:
        return split_api_version(self.manifest.api_version or "")[0]

    @property
    def kind(self) -> str:
        return self.manifest.kind or ""

    @property
    def metadata(self) -> dict[str, Any]:
        metadata = self.manifest.data.get("metadata") if isinstance(self.manifest.data, dict) else None
        return metadata if isinstance(metadata, dict) else {}

    @property
    def namespace(self) -> str:
        namespace = self.metadata.get("namespace")
        return namespace if isinstance(namespace, str) else ""

    @property
    def subject(self) -> str:
        if self.is_identity_encrypted:
            return ""
        return str(ObjectKey(self.group, self.kind, self.namespace, str(self.metadata.get("name", ""))))

    @property
    def is_identity_encrypted(self) -> bool:
        identity = (self.manifest.api_version, self.manifest.kind, self.metadata.get("namespace"))
        return self.is_sops and any(map(is_ciphertext, identity))

    @property
    def is_for_functions(self) -> bool:
        """Whether only functions read the resource, so that no tool deploys it.

        The annotation `config.kubernetes.io/local-config` is not sufficient, because deployment tools can ignore it.
        Therefore, a local config with a namespace or with a cluster-scoped kind counts as deployed.
        """
        if (self.group, self.kind) == ("kpt.dev", "Kptfile"):
            return True
        is_deployable = self.namespace or find_kind_scope(self.group, self.kind) == "cluster"
        return is_local_config(self.metadata) and not is_deployable


def _find_violation(resource: _DeployedResource, tenant: Tenant) -> str:
    if resource.is_for_functions:
        return ""
    allow, kind, subject = tenant.spec.allow, format_kind(resource.group, resource.kind), resource.subject
    if resource.is_identity_encrypted:
        # The kind or the namespace of the resource is encrypted, and can have any value. Therefore, require a pattern
        # that matches every kind, such as `*`.
        if matches_any_glob(HIDDEN_CIPHERTEXT, allow.cluster_scoped_resources):
            return ""
        noun = "SOPS documents with an encrypted kind or namespace, such as"
        return format_violation(
            tenant, resource.file, noun, HIDDEN_CIPHERTEXT, "clusterScopedResources", allow.cluster_scoped_resources
        )
    if not kind:
        return f"{resource.file}: tenant {tenant.name} may not deploy a document without apiVersion and kind"
    scope = find_kind_scope(resource.group, resource.kind)
    namespace = resource.namespace
    if scope == "cluster" or (scope is None and not namespace):
        if matches_any_glob(kind, allow.cluster_scoped_resources):
            return ""
        noun = "a resource without a namespace and with the kind"
        return format_violation(tenant, subject, noun, kind, "clusterScopedResources", allow.cluster_scoped_resources)
    # Kubernetes creates a resource without a namespace in the namespace of the client, which is often `default`.
    namespace = namespace or "default"
    if matches_any_glob(namespace, allow.namespaces):
        return ""
    return format_violation(tenant, subject, "the namespace", namespace, "namespaces", allow.namespaces)
