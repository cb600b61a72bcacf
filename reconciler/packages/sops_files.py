"""SOPS documents in the files of packages: search, comparison, and checks that need no key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest

from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import Finding, FindingCode, SourceLocation
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import replace
from reconciler.memory import cached
from reconciler.packages.package import PackageResource, get_package, parse_documents, parse_resources
from reconciler.packages.parsing import ParseFailure
from reconciler.packages.sops import SOPS, SopsMacError, SopsScope, find_stale_mac, is_sops_document
from reconciler.packages.source_codes import SourceCodes
from reconciler.redaction import is_ciphertext

_MARK = SOPS.encode()
_MAX_CACHED_FILES = 1024
_MERGE_COMMENT = re.compile(rb"^(metadata:)[ \t]+# kpt-merge: [^\r\n]*", re.MULTILINE)
_NEXT_STEP = "Next step: exclude the document from the rule, or encrypt the file again with --mac-only-encrypted"


def has_sops_document(path: str, content: bytes) -> bool:
    """Return whether a YAML or JSON file contains a SOPS document."""
    # Do not parse most files, because they do not contain the name of the field.
    return _MARK in content and _has_sops_document(path.endswith(".json"), content)


@cached(_MAX_CACHED_FILES)
def _has_sops_document(is_json: bool, content: bytes) -> bool:
    documents = parse_documents(".json" if is_json else "", content)
    return not isinstance(documents, ParseFailure) and any(is_sops_document(document.data) for document in documents)


def remove_merge_comments(content: bytes) -> bytes:
    """Return the content of a file without the merge comments that kpt adds. SOPS ignores these comments."""
    return _MERGE_COMMENT.sub(rb"\1", content)


def locate_document(resource: PackageResource, path: DataPath = ()) -> SourceLocation:
    """Return the location of a field of a SOPS document. If the kind is encrypted, the location names no object."""
    return resource.locate(path, resource.key.reference if resource.kind else "")


def create_mac_finding(error: SopsMacError, location: SourceLocation, rule: str) -> Finding:
    """Return the error for a change that would break the MAC of a SOPS document.

    `rule` describes the origin of the change, e.g. an item of a policy.
    """
    pointer = format_pointer(error.path)
    message = f"{rule} must not change {pointer} of a SOPS document, because {error.message}. {_NEXT_STEP}"
    return SourceCodes.SOPS_MAC_BROKEN.finding(message, replace(location, pointer=pointer))


def check_sops_files(files: FileTree, earlier: Iterable[FileTree]) -> tuple[Finding, ...]:
    """Check the SOPS documents of a package. Return errors and warnings. The check needs no decryption key.

    Args:
        files: The rendered package.
        earlier: Earlier versions of the package, such as the merge base. A document that differs from an earlier
            version must have been encrypted again.
    """
    findings: list[Finding] = []
    for package, path, content in get_package(files).iterate_krm_files():
        if not has_sops_document(path, content):
            continue
        findings += _check_file(package, path, content)
        previous = dict.fromkeys(file for tree in earlier if (file := tree.get(path)) and file.data != content)
        findings += _check_changes(package, path, content, previous)
    return tuple(dict.fromkeys(findings))


@cached(_MAX_CACHED_FILES)
def _check_file(package: str, path: str, content: bytes) -> tuple[Finding, ...]:
    return tuple(
        finding for resource in _read_sops_resources(package, path, content) for finding in _check_document(resource)
    )


def _check_document(resource: PackageResource) -> Iterator[Finding]:
    plaintext = next(SopsScope(resource.document).iterate_plaintext(), None)
    if plaintext is not None:
        message = (
            f"{format_pointer(plaintext)} must be encrypted, because the rules in the field sops of the document select"
            " it. Next step: encrypt the file again with SOPS"
        )
        yield _create_finding(SourceCodes.PLAINTEXT_SECRET, message, resource, plaintext)
    if not is_ciphertext(resource.data[SOPS]["mac"]):
        message = (
            "SOPS cannot decrypt the document, because /sops/mac is not a ciphertext. Next step: encrypt the file again"
        )
        yield _create_finding(SourceCodes.SOPS_MAC_SUSPECT, message, resource, (SOPS, "mac"))


def _check_changes(package: str, path: str, content: bytes, earlier: Iterable[File]) -> Iterator[Finding]:
    for file in earlier:
        previous = _read_sops_resources(package, path, file.data)
        for old, new in zip_longest(previous, _read_sops_resources(package, path, content)):
            changed = find_stale_mac(old.document, new.document) if old and new else None
            if changed is not None:
                message = (
                    f"{format_pointer(changed)} is covered by the MAC and was changed without SOPS (sops.lastmodified"
                    " is unchanged), so SOPS cannot decrypt the document. Next step: change the file with SOPS, for"
                    " example with `sops edit`"
                )
                yield _create_finding(SourceCodes.SOPS_MAC_SUSPECT, message, new, changed)


def _read_sops_resources(package: str, path: str, content: bytes) -> list[PackageResource]:
    resources = parse_resources(package, path, content)
    if isinstance(resources, ParseFailure):
        return []
    return [resource for resource in resources if resource.is_sops]


def _create_finding(code: FindingCode, message: str, resource: PackageResource, path: DataPath) -> Finding:
    return code.finding(message, locate_document(resource, path))
