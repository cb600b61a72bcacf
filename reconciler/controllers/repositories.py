"""Reader of Repository objects. A Repository is a Git branch, a chart repository or an OCI registry with packages."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.api.manifest import read_manifest
from reconciler.api.package_sources import HelmRepository, OciRepository, RepositoryType, SourceVerification
from reconciler.api.porch import repository as porch_repository
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.validation import create_field_findings
from reconciler.krm.field_text import quote_list, suggest_name
from reconciler.krm.findings import CommonCodes, Finding, SourceLocation
from reconciler.krm.names import validate_ref_name
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.packages.artifacts import ArtifactRepository, SignerIdentity, VerifySpec
from reconciler.redaction import redact_url

_MAX_LISTED = 8


@dataclass(frozen=True)
class Repository:
    """A valid Repository object. `url` is unchanged from the config. `directory` has no slash at its start or end.

    `tag_prefix` is the prefix of the tags for package revisions. By default, it is "" for a catalog and `<Repository
    name>/` for a deployment repository.

    `artifacts` is the chart repository or OCI registry, or None for a Git branch. If it is not None, `branch` is "".
    """

    key: ObjectKey
    url: str
    branch: str
    directory: str
    deployment: bool
    tag_prefix: str
    location: SourceLocation
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    type: RepositoryType = "git"
    artifacts: ArtifactRepository | None = None


Repositories = Mapping[tuple[str, str], Repository]


def read_repositories(catalog: Catalog) -> tuple[Repositories, tuple[Finding, ...]]:
    """Return a mapping from namespace and name to each valid Repository, and the errors of invalid Repositories."""
    repositories: dict[tuple[str, str], Repository] = {}
    findings: list[Finding] = []
    for manifest in catalog.objects_of_kind(PORCH_GROUP, "Repository"):
        repository = read_repository(manifest)
        if isinstance(repository, Repository):
            repositories[manifest.key.namespace, manifest.key.name] = repository
        else:
            findings += repository
    return repositories, tuple(findings)


def format_kptfile_url(text: str) -> str:
    """Return the URL of a Repository as Kptfiles contain it: with the suffix `.git` and without credentials."""
    bare = redact_url(text).rstrip("/")
    return bare if bare.endswith(".git") else f"{bare}.git"


def explain_missing_repository(repositories: Repositories, namespace: str, name: str) -> str:
    """Return the error message for a Repository that does not exist, with a hint.

    The hint contains other namespaces that have a Repository with this name, or the existing Repositories.
    """
    message = f'could not find Repository "{name}" in namespace "{namespace}"'
    elsewhere = sorted(other_namespace for other_namespace, other_name in repositories if other_name == name)
    names = sorted(other_name for other_namespace, other_name in repositories if other_namespace == namespace)
    if elsewhere:
        return (
            f"{message}; a Repository with this name exists in other namespaces: {quote_list(elsewhere[:_MAX_LISTED])}"
        )
    # Omit a long list of names, because each new cluster would change the list in the status of invalid objects.
    if not 0 < len(names) <= _MAX_LISTED:
        return message
    return f"{message}; existing Repositories: {quote_list(names)}{suggest_name(name, names)}"


def read_repository(manifest: ConfigObject) -> Repository | tuple[Finding, ...]:
    """Return a Repository, or the errors of an invalid Repository. Unknown fields are ignored."""
    result = read_manifest(porch_repository.Repository, manifest.data)
    if result.model is None:
        return create_field_findings(manifest, result.errors, ControllerCodes.REPOSITORY_INVALID, CommonCodes.by_name)
    spec, git, name = result.model.spec, result.model.spec.git, manifest.key.name
    if fields := spec.helm or spec.oci:
        artifacts = _build_artifact_repository(manifest.key, fields)
        return Repository(
            manifest.key, artifacts.url, "", "", False, "", manifest.location, manifest.labels, manifest.annotations,
            spec.type, artifacts,
        )  # fmt: skip
    assert git, "a Repository of type git has this block"
    branch = git.branch or (f"clusters/{name}" if spec.deployment else "main")
    prefix = (f"{name}/" if spec.deployment else "") if git.tag_prefix is None else git.tag_prefix
    # Append "x" to the prefix for the check, because a valid prefix such as "app/" is not a valid ref name.
    for field_name, value, ref_name in (("branch", branch, branch), ("tagPrefix", prefix, f"{prefix}x")):
        if error := validate_ref_name(ref_name):
            subject = f"spec.git.{field_name}" if value == ref_name else f'spec.git.{field_name} "{value}"'
            message = f"{subject} is invalid: {error}"
            location = manifest.location_of(("spec", "git", field_name))
            return (ControllerCodes.NAME_NOT_USABLE.finding(message, location),)
    return Repository(
        manifest.key, git.repo, branch, git.directory.strip("/"), spec.deployment, prefix,
        manifest.location, manifest.labels, manifest.annotations,
    )  # fmt: skip


def _build_artifact_repository(key: ObjectKey, fields: HelmRepository | OciRepository) -> ArtifactRepository:
    secret, certificates = (ref.name if ref else "" for ref in (fields.secret_ref, fields.cert_secret_ref))
    if isinstance(fields, HelmRepository):
        return ArtifactRepository(
            key.namespace, key.name, "helm", fields.url.rstrip("/"), fields.insecure, fields.pass_credentials, secret,
            certificates, verify=_build_verify_spec(fields.verify),
        )  # fmt: skip
    return ArtifactRepository(
        key.namespace, key.name, "oci", f"oci://{fields.registry}", fields.insecure, False, secret, certificates,
        fields.layer_selector.media_type, fields.ignore, _build_verify_spec(fields.verify),
    )  # fmt: skip


def _build_verify_spec(verify: SourceVerification | None) -> VerifySpec | None:
    if verify is None:
        return None
    identities = tuple(SignerIdentity(entry.issuer, entry.subject) for entry in verify.match_oidc_identity)
    return VerifySpec(verify.provider, verify.secret_ref.name if verify.secret_ref else "", identities)
