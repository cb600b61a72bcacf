"""Reader of Repository objects. A Repository is a Git URL, a branch and a directory that contain packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.controllers.codes import ControllerCodes
from reconciler.krm.findings import CommonCodes, Finding, FindingCode, SourceLocation
from reconciler.krm.names import validate_ref_name
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.redaction import has_credentials, redact_url

_MAX_LISTED = 8
REPOSITORY_API_VERSION = f"{PORCH_GROUP}/v1alpha1"


@dataclass(frozen=True)
class Repository:
    """A valid Repository object. `url` is unchanged from the config. `directory` has no slash at its start or end.

    `tag_prefix` is the prefix of the revision tags of its packages. By default, it is "" for a catalog and `<Repository
    name>/` for a deployment repository.
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


Repositories = Mapping[tuple[str, str], Repository]


def read_repositories(catalog: Catalog) -> tuple[Repositories, tuple[Finding, ...]]:
    """Return the valid Repositories by namespace and name, and the errors of invalid Repositories."""
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
    """Return the error that a Repository does not exist. Add other namespaces or existing names as a hint."""
    message = f'could not find Repository "{name}" in namespace "{namespace}"'
    elsewhere = sorted(other_namespace for other_namespace, other_name in repositories if other_name == name)
    names = sorted(other_name for other_namespace, other_name in repositories if other_namespace == namespace)
    if elsewhere:
        return (
            f"{message}; a Repository with this name exists in other namespaces: {', '.join(elsewhere[:_MAX_LISTED])}"
        )
    # Omit a long list of names, because each new cluster would change the list and the status of invalid objects.
    return f"{message}; existing Repositories: {', '.join(names)}" if 0 < len(names) <= _MAX_LISTED else message


def read_repository(manifest: ConfigObject) -> Repository | list[Finding]:
    """Return a Repository, or the errors of an invalid Repository. Unknown fields are ignored."""
    spec = _get_mapping(manifest.data.get("spec"))
    git = _get_mapping(spec.get("git"))
    errors = [*_find_text_errors(manifest, git), *_find_spec_errors(manifest, spec)]
    if errors:
        return errors
    deployment = spec.get("deployment") is True
    branch = git.get("branch") or (f"clusters/{manifest.key.name}" if deployment else "main")
    if error := validate_ref_name(branch):
        message = f'spec.git.branch "{branch}" is invalid: {error}'
        return [_create_finding(manifest, ("spec", "git", "branch"), message, ControllerCodes.NAME_NOT_USABLE)]
    directory = (git.get("directory") or "").strip("/")
    tag_prefix = git.get("tagPrefix")
    prefix = (f"{manifest.key.name}/" if deployment else "") if tag_prefix is None else tag_prefix
    # A tag starts with the prefix, and continues with a package path and a revision. "x" represents this second part.
    if error := validate_ref_name(f"{prefix}x"):
        message = f'spec.git.tagPrefix "{prefix}" is invalid: {error}'
        return [_create_finding(manifest, ("spec", "git", "tagPrefix"), message, ControllerCodes.NAME_NOT_USABLE)]
    return Repository(
        manifest.key,
        git["repo"],
        branch,
        directory,
        deployment,
        prefix,
        manifest.location,
        manifest.labels,
        manifest.annotations,
    )


def _get_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _find_text_errors(manifest: ConfigObject, git: Mapping[str, Any]) -> list[Finding]:
    errors = []
    for name in ("repo", "branch", "directory", "tagPrefix"):
        value = git.get(name)
        if value is not None and not isinstance(value, str):
            errors.append(
                _create_finding(manifest, ("spec", "git", name), f"spec.git.{name} must be a string, not {value!r}")
            )
    if not git.get("repo"):
        errors.append(
            _create_finding(manifest, ("spec", "git", "repo"), "spec.git.repo is required: the URL of a Git repository")
        )
    repo = git.get("repo")
    if isinstance(repo, str) and has_credentials(repo):
        message = (
            f'spec.git.repo must not contain a user name, password or token. Write "{redact_url(repo)}";'
            " put the credentials into the file of the setting `git.credentials_file`. In a path, write @ as %40"
        )
        errors.append(_create_finding(manifest, ("spec", "git", "repo"), message, CommonCodes.CREDENTIAL_IN_URL))
    directory = git.get("directory")
    if isinstance(directory, str) and ".." in directory.split("/"):
        message = f'spec.git.directory must not contain "..", and is "{directory}"'
        errors.append(_create_finding(manifest, ("spec", "git", "directory"), message))
    return errors


def _find_spec_errors(manifest: ConfigObject, spec: Mapping[str, Any]) -> list[Finding]:
    errors = []
    if manifest.api_version != REPOSITORY_API_VERSION:
        errors.append(
            _create_finding(
                manifest,
                ("apiVersion",),
                f'apiVersion must be "{REPOSITORY_API_VERSION}", not "{manifest.api_version}"',
            )
        )
    if spec.get("type", "git") != "git":
        errors.append(_create_finding(manifest, ("spec", "type"), f'spec.type must be "git", not {spec["type"]!r}'))
    if spec.get("deployment", False) not in (True, False):
        errors.append(
            _create_finding(
                manifest, ("spec", "deployment"), f"spec.deployment must be true or false, not {spec['deployment']!r}"
            )
        )
    return errors


def _create_finding(
    manifest: ConfigObject, path: tuple[str, ...], message: str, code: FindingCode = ControllerCodes.REPOSITORY_INVALID
) -> Finding:
    return code.finding(message, manifest.location_of(path))
