"""Repository objects: a Git URL, a branch and a directory that hold packages (porch 1, design 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.krm.codes import CREDENTIAL_IN_URL
from reconciler.krm.findings import Code, Finding, Where
from reconciler.krm.identity import ObjectKey
from reconciler.krm.names import ref_name_fault
from reconciler.redaction import has_credentials, redact_url
from reconciler.rules.codes import NAME_NOT_USABLE, REPOSITORY_INVALID
from reconciler.snapshot.catalog import PORCH_GROUP, Catalog, ConfigObject

_NAMED = 8
API_VERSION = f"{PORCH_GROUP}/v1alpha1"


@dataclass(frozen=True)
class Repository:
    """A Repository as all rooms read it: `directory` without outer slashes, `url` as people wrote it.

    `tag_prefix` is what the revision tags of its packages start with (design 10.11).
    """

    key: ObjectKey
    url: str
    branch: str
    directory: str
    deployment: bool
    tag_prefix: str
    where: Where
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


Repositories = Mapping[tuple[str, str], Repository]


def read_repositories(catalog: Catalog) -> tuple[Repositories, tuple[Finding, ...]]:
    """Return the usable Repositories by (namespace, name), and why others cannot be used; unknown fields are kept."""
    found: dict[tuple[str, str], Repository] = {}
    findings: list[Finding] = []
    for one in catalog.of_kind(PORCH_GROUP, "Repository"):
        read = read_repository(one)
        if isinstance(read, Repository):
            found[one.key.namespace, one.key.name] = read
        else:
            findings += read
    return found, tuple(findings)


def kptfile_url(text: str) -> str:
    """Return a Repository's URL as Kptfiles write it: ending in `.git`, without credentials (design 10.18)."""
    bare = redact_url(text).rstrip("/")
    return bare if bare.endswith(".git") else f"{bare}.git"


def repository_missing(repositories: Repositories, namespace: str, name: str) -> str:
    """Return what to tell somebody who names a Repository that is not there: where it is, or which there are."""
    message = f'could not find Repository "{name}" in namespace "{namespace}"'
    elsewhere = sorted(there for there, other in repositories if other == name)
    names = sorted(other for there, other in repositories if there == namespace)
    if elsewhere:
        return f"{message}; there is one in {', '.join(elsewhere[:_NAMED])}"
    # a list of many would help nobody, and change the status of what is broken with every cluster
    return f"{message}; there are {', '.join(names)}" if 0 < len(names) <= _NAMED else message


def read_repository(one: ConfigObject) -> Repository | list[Finding]:
    """Return a Repository object as rules read it, or why it cannot be used."""
    spec = _mapping(one.data.get("spec"))
    git = _mapping(spec.get("git"))
    faults = [*_text_faults(one, git), *_spec_faults(one, spec)]
    if faults:
        return faults
    deployment = spec.get("deployment") is True
    branch = git.get("branch") or (f"clusters/{one.key.name}" if deployment else "main")
    if why := ref_name_fault(branch):
        message = f'spec.git.branch "{branch}" is not usable: {why}'
        return [_finding(one, ("spec", "git", "branch"), message, NAME_NOT_USABLE)]
    directory = (git.get("directory") or "").strip("/")
    written = git.get("tagPrefix")
    prefix = (f"{one.key.name}/" if deployment else "") if written is None else written
    # a package and a number follow
    if why := ref_name_fault(f"{prefix}x"):
        message = f'spec.git.tagPrefix "{prefix}" is not usable: {why}'
        return [_finding(one, ("spec", "git", "tagPrefix"), message, NAME_NOT_USABLE)]
    return Repository(
        one.key, git["repo"], branch, directory, deployment, prefix, one.where, one.labels, one.annotations
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text_faults(one: ConfigObject, git: Mapping[str, Any]) -> list[Finding]:
    faults = []
    for name in ("repo", "branch", "directory", "tagPrefix"):
        value = git.get(name)
        if value is not None and not isinstance(value, str):
            faults.append(_finding(one, ("spec", "git", name), f"spec.git.{name} must be a string, not {value!r}"))
    if not git.get("repo"):
        faults.append(_finding(one, ("spec", "git", "repo"), "spec.git.repo must name a Git repository; it is missing"))
    repo = git.get("repo")
    if isinstance(repo, str) and has_credentials(repo):
        message = (
            f'spec.git.repo must be written without user name, password or token: "{redact_url(repo)}" is what remains;'
            " put them into the file that git.credentials_file names, and write an @ of a path as %40"
        )
        faults.append(_finding(one, ("spec", "git", "repo"), message, CREDENTIAL_IN_URL))
    directory = git.get("directory")
    if isinstance(directory, str) and ".." in directory.split("/"):
        message = f'spec.git.directory must not leave the repository, as "{directory}" does'
        faults.append(_finding(one, ("spec", "git", "directory"), message))
    return faults


def _spec_faults(one: ConfigObject, spec: Mapping[str, Any]) -> list[Finding]:
    faults = []
    if one.api_version != API_VERSION:
        faults.append(_finding(one, ("apiVersion",), f'apiVersion must be "{API_VERSION}", not "{one.api_version}"'))
    if spec.get("type", "git") != "git":
        faults.append(_finding(one, ("spec", "type"), f'spec.type must be "git", not {spec["type"]!r}'))
    if spec.get("deployment", False) not in (True, False):
        faults.append(
            _finding(one, ("spec", "deployment"), f"spec.deployment must be true or false, not {spec['deployment']!r}")
        )
    return faults


def _finding(one: ConfigObject, path: tuple[str, ...], message: str, code: Code = REPOSITORY_INVALID) -> Finding:
    return code.finding(message, one.where_at(path))
