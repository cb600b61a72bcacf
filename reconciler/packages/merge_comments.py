"""Merge comments: the upstream identity of a resource, written on its `metadata` line (kpt.md 5.4)."""

from __future__ import annotations

from reconciler.krm.findings import Finding, Severity, Where
from reconciler.krm.yaml import Document, YamlFile
from reconciler.packages.kptfile import Profile
from reconciler.packages.package import Package, PackageResource
from reconciler.packages.parsing import parse_cached
from reconciler.packages.resource import UPSTREAM_IDENTIFIER
from reconciler.snapshot.files import FileTree

MERGE_COMMENT = "# kpt-merge: "
_METADATA = ("metadata",)


def with_merge_comments(files: FileTree, profile: Profile = "safe") -> tuple[FileTree, tuple[Finding, ...]]:
    """Return the files with a merge comment on every resource that lacks one, and warnings.

    Best effort, file by file: what does not parse, or is hidden by .krmignore, is left alone. `compat` also writes
    the annotation `internal.kpt.dev/upstream-identifier`.
    """
    package = Package(files)
    changes: dict[str, bytes] = {}
    findings: list[Finding] = []
    for path in package.krm_files():
        if not path.endswith((".yaml", ".yml")):
            continue
        parsed = parse_cached(files[path].data)
        if not isinstance(parsed, YamlFile):
            findings.append(_left_alone(path, parsed.message, parsed.line))
            continue
        changes[path] = _with_comments(parsed, profile).to_bytes()
    return files.with_files({path: data for path, data in changes.items() if data != files[path].data}), tuple(findings)


def merge_identity(document: Document) -> tuple[str, str] | None:
    """Return (namespace, name) of the merge comment, or None when there is none."""
    comment = document.comment(_METADATA) or ""
    if not comment.startswith(MERGE_COMMENT):
        return None
    namespace, _, name = comment.removeprefix(MERGE_COMMENT).strip().partition("/")
    return namespace, name


def _with_comments(source: YamlFile, profile: Profile) -> YamlFile:
    for index, document in enumerate(source.documents):
        changed = _with_comment(document, profile)
        if changed is not document:
            source = source.replace(index, changed)
    return source


def _with_comment(document: Document, profile: Profile) -> Document:
    resource = PackageResource("", "", 0, document)
    if not resource.metadata or not (resource.name or resource.namespace or resource.labels):
        return document
    # a comment of somebody else on that line stays, so there is no room for ours
    if document.comment(_METADATA) is None:
        document = document.with_comment(_METADATA, f"{MERGE_COMMENT}{resource.namespace}/{resource.name}")
    return _with_identifier(document, resource) if profile == "compat" else document


def _with_identifier(document: Document, resource: PackageResource) -> Document:
    namespace, name = merge_identity(document) or (resource.namespace, resource.name)
    identifier = f"{resource.group}|{resource.kind}|{namespace or 'default'}|{name}"
    if resource.annotations.get(UPSTREAM_IDENTIFIER) == identifier:
        return document
    annotations = dict(resource.annotations) | {UPSTREAM_IDENTIFIER: identifier}
    metadata = dict(resource.metadata) | {"annotations": annotations}
    return document.with_data({**document.data, "metadata": metadata})


def _left_alone(path: str, message: str, line: int) -> Finding:
    text = f"no merge comments were written, since the file does not parse: {message}"
    return Finding("MergeCommentsSkipped", text, Where(path, line), Severity.WARNING)
