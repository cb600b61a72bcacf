"""Findings about resources in packages, and the check for Secrets with values.

Secrets are reported, because everyone with read access to a Git branch can read secrets, and Git keeps secrets in its
history.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from posixpath import basename
from typing import Any

from reconciler.catalog.files import FileTree
from reconciler.controllers.codes import ControllerCodes
from reconciler.krm.findings import Finding, FindingCode, Severity, SourceLocation, upgrade_to_error
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.package import PackageResource, get_package, parse_resources
from reconciler.packages.parsing import ParseFailure
from reconciler.packages.resource import KrmResource, ResourceData
from reconciler.packages.secret_values import find_plaintext_values
from reconciler.packages.source_codes import SourceCodes
from reconciler.redaction import MASK, is_secret

# Maximum number of files in the cache. This number is larger than the usual number of package files in one pass.
_CACHED_FILES = 4096


@dataclass(frozen=True)
class ResourceIssue:
    """An issue at `path` of a resource. `create_finding` converts the issue to a finding.

    `value` is the wrong value. It is ABSENT if the issue is not about a value.
    """

    code: FindingCode
    message: str
    path: DataPath = ()
    value: Any = ABSENT

    @property
    def is_error(self) -> bool:
        """Whether the severity of the issue is error, so that the resource must not be published."""
        return self.code.severity is Severity.ERROR


def create_finding(resource: PackageResource, issue: ResourceIssue, subject: str = "") -> Finding:
    """Return a finding for an issue of a resource. If the resource is a Secret, the value of the issue is masked."""
    value = MASK if is_secret(resource.data) else issue.value
    quoted = "" if issue.value is ABSENT else f', but is "{value}"'
    prefix = f"{subject}: " if subject else ""
    # Use line 0 for JSON files, because the JSON parser does not return line numbers.
    line = 0 if resource.file.endswith(".json") else resource.document.find_line(issue.path)
    location = SourceLocation(resource.file, line, resource.key.reference, format_pointer(issue.path))
    return issue.code.finding(f"{prefix}{issue.message}{quoted}", location)


def find_secrets(files: FileTree, *, block: bool) -> tuple[Finding, ...]:
    """Return a warning for every Secret of the core group that contains values. If `block` is True, return errors.

    Items of List objects are checked as well. Kptfiles, local config and files that cannot be parsed are not checked. A
    Secret with empty values is allowed, because it is a placeholder. Values that SOPS encrypted are allowed too.
    Messages never contain the values.
    """
    findings = (finding for file in get_package(files).iterate_krm_files() for finding in _find_secrets_in_file(*file))
    return tuple(map(upgrade_to_error, findings)) if block else tuple(findings)


def find_plaintext_secrets(files: FileTree, allowed: Collection[str]) -> tuple[Finding, ...]:
    """Return an error for each plaintext Secret in the files of a source that is not in `allowed`.

    The function `find_secrets` describes which Secrets and values are not checked.

    Args:
        allowed: The Secrets that the owner of the package allows, as "Kind/name".
    """
    findings: list[Finding] = []
    for finding in find_secrets(files, block=False):
        name = _remove_namespace(finding.location.object)
        if name not in allowed:
            message = (
                f"{finding.location.object} in the upstream contains a plaintext secret at {finding.location.pointer}."
                " Next step: encrypt it with SOPS, use an ExternalSecret, or allow it with the annotation"
                f" `reconciler.dev/allow-plaintext-secrets: {name}`"
            )
            findings.append(SourceCodes.PLAINTEXT_SECRET.finding(message, finding.location))
    return tuple(findings)


def _remove_namespace(name: str) -> str:
    kind, _, rest = name.partition("/")
    return f"{kind}/{rest.partition('/')[2]}"


@cached(_CACHED_FILES)
def _find_secrets_in_file(package: str, path: str, content: bytes) -> tuple[Finding, ...]:
    resources = parse_resources(package, path, content)
    if isinstance(resources, ParseFailure) or basename(path) == KPTFILE:
        return ()
    return tuple(finding for resource in resources for finding in _find_secrets_in_resource(resource, (), resource))


def _find_secrets_in_resource(resource: PackageResource, path: DataPath, item: KrmResource) -> Iterator[Finding]:
    if item.is_local_config:
        return
    data = item.data
    items = data.get("items") if isinstance(data, Mapping) and item.kind.endswith("List") else None
    for index, nested_item in enumerate(items if isinstance(items, list) else ()):
        yield from _find_secrets_in_resource(resource, (*path, "items", index), ResourceData(nested_item))
    fields = list(dict.fromkeys(str(path[0]) for path in find_plaintext_values(data, is_encrypted=resource.is_sops)))
    if fields:
        field_path = (*path, fields[0])
        message = (
            f"{' and '.join(fields)} of a Secret must be empty, because everyone with read access to the branch can"
            " read the values. Next step: encrypt the Secret with SOPS, or use an ExternalSecret"
        )
        yield ControllerCodes.SECRET_IN_BRANCH.finding(message, resource.locate(field_path, item.key.reference))
