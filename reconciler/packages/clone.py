"""Clones: create a package from the files of an upstream package, and add merge comments to its resources.

A merge comment records the upstream identity of a resource. The comment follows `metadata:` on the same line, e.g.
`metadata: # kpt-merge: default/web`.
"""

from __future__ import annotations

from reconciler.api.kpt import KptfileUpstream
from reconciler.api.profile import Profile
from reconciler.catalog.files import FileTree
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.yaml import Document, FormattingSource, YamlError, parse_yaml
from reconciler.krm.yaml.emit import format_scalar
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached
from reconciler.packages.codes import PackageCodes
from reconciler.packages.kptfile import KPTFILE, Kptfile, create_kptfile
from reconciler.packages.package import Package, PackageResource
from reconciler.packages.parsing import ParseFailure, parse_cached
from reconciler.packages.resource import UPSTREAM_IDENTIFIER
from reconciler.packages.sops_files import has_sops_document

MERGE_COMMENT = "# kpt-merge: "
_METADATA = ("metadata",)
_ANNOTATIONS = (*_METADATA, "annotations")
_IDENTIFIER = (*_ANNOTATIONS, UPSTREAM_IDENTIFIER)


def add_merge_comments(files: FileTree, profile: Profile = "safe") -> tuple[FileTree, tuple[Finding, ...]]:
    """Add a merge comment to every resource without one. Return the files and warnings.

    Files that cannot be parsed, that contain a SOPS document or that a `.krmignore` file excludes stay unchanged. In
    the profile `compat`, resources also get the annotation `internal.kpt.dev/upstream-identifier`.
    """
    package = Package(files)
    changes: dict[str, bytes] = {}
    findings: list[Finding] = []
    for path in package.iterate_krm_paths():
        if not path.endswith((".yaml", ".yml")):
            continue
        content = add_comments_to_content(files[path].data, profile)
        if isinstance(content, ParseFailure):
            findings.append(_create_skipped_file_finding(path, content))
        else:
            changes[path] = content
    return files.with_files({path: data for path, data in changes.items() if data != files[path].data}), tuple(findings)


def read_merge_identity(document: Document) -> tuple[str, str] | None:
    """Return the namespace and the name in the merge comment of a document. Return None if the document has no merge
    comment.
    """
    comment = document.comment(_METADATA) or ""
    if not comment.startswith(MERGE_COMMENT):
        return None
    namespace, _, name = comment.removeprefix(MERGE_COMMENT).strip().partition("/")
    return namespace, name


@cached(2048)
def add_comments_to_content(content: bytes, profile: Profile) -> bytes | ParseFailure:
    """Return the content of a file with a merge comment on every resource, or the failure if the content cannot be
    parsed.

    A file with a SOPS document stays unchanged, because it is merged as a whole.
    """
    source = parse_cached(content)
    if isinstance(source, ParseFailure):
        return source
    if has_sops_document("", content):
        return content
    documents = [_add_merge_comment(document, profile) for document in source.documents]
    has_changes = any(new is not old for new, old in zip(documents, source.documents, strict=True))
    return source.with_documents(list(enumerate(documents))).to_bytes() if has_changes else content


def _add_merge_comment(document: Document, profile: Profile) -> Document:
    resource = PackageResource("", "", 0, document)
    if not resource.metadata or not (resource.name or resource.namespace or resource.labels):
        return document
    # Add no merge comment if the line of `metadata` has any other comment, because a line has at most one comment.
    if document.comment(_METADATA) is None:
        document = _set_line_comment(document, f"{MERGE_COMMENT}{resource.namespace}/{resource.name}")
    return _set_identifier(document, resource) if profile == "compat" else document


def _set_line_comment(document: Document, comment: str) -> Document:
    try:
        return document.with_comment(_METADATA, comment)
    except YamlError:
        return document  # A line comment cannot be written if `metadata` is an alias or flow mapping.


def _set_identifier(document: Document, resource: PackageResource) -> Document:
    namespace, name = read_merge_identity(document) or (resource.namespace, resource.name)
    identifier = f"{resource.group}|{resource.kind}|{namespace or 'default'}|{name}"
    if resource.annotations.get(UPSTREAM_IDENTIFIER) == identifier:
        return document
    annotations = dict(resource.annotations) | {UPSTREAM_IDENTIFIER: identifier}
    metadata = dict(resource.metadata) | {"annotations": annotations}
    # Write the identifier in single quotes, as kpt does, because kpt treats other quotes as a local change.
    text = format_scalar(identifier, flow=False, style="'")
    quoted = parse_yaml(f"metadata:\n  annotations:\n    {UPSTREAM_IDENTIFIER}: {text}\n")
    lender = quoted.documents[0].reuse_formatting(
        {path: FormattingSource(path) for path in (_ANNOTATIONS, _IDENTIFIER)}
    )
    return document.with_data({**document.data, "metadata": metadata}, lender)


def _create_skipped_file_finding(path: str, reason: ParseFailure) -> Finding:
    text = f"this file gets no merge comments, because it cannot be parsed: {reason.message}"
    return PackageCodes.MERGE_COMMENTS_SKIPPED.finding(text, SourceLocation(path, reason.line))


@dataclass(frozen=True)
class ResolvedUpstream:
    """The location and the commit of an upstream package, as in `upstream` and `upstreamLock` of a Kptfile.

    `repo` is the URL of the Repository object. It ends in `.git` and has no credentials.
    """

    repo: str
    directory: str
    ref: str
    commit: str


@dataclass(frozen=True)
class StoredUpstream:
    """The location and version of an upstream outside of Git, as in `upstreamLock.generic` of a Kptfile.

    Attributes:
        store_id: The type of the store: `helm`, `oci`, `kustomize`, or `sources` for several sources.
        resource_id: The URL of the chart, artifact or overlay. Several sources have the form `name=URL,name=URL`.
        version: The version or tag, with the digest of the content after "@". Several sources have the form
            `name=version,name=version`.
    """

    store_id: str
    resource_id: str
    version: str


UpstreamLock = ResolvedUpstream | StoredUpstream
SEVERAL_SOURCES = "sources"
"""The store ID of a package with several sources."""


def clone_package(
    source: FileTree,
    name: str,
    lock: UpstreamLock,
    profile: Profile = "safe",
    base: FileTree | None = None,
    should_add_comments: bool = True,
) -> tuple[FileTree, tuple[Finding, ...]]:
    """Create the package `name` from the files of an upstream package. Return its files and findings.

    The Kptfile gets the name, `upstream` and `upstreamLock`, and resources get merge comments. Other content does not
    change. If the Kptfile cannot be read, the result is the unchanged files with findings.

    Args:
        source: The files of the upstream package. They can contain local changes.
        profile: The merge behavior: `safe`, or `compat` as in kpt.
        base: The upstream files without local changes, if `source` contains local changes.
        should_add_comments: Whether resources get merge comments. Charts and plain manifests keep their text.
    """
    kptfile = Package(source).kptfile if KPTFILE in source else create_kptfile(name)
    if not isinstance(kptfile, Kptfile):
        return source, kptfile
    # Remove the section `upstream` that comes from the upstream package, because the clone has a different upstream.
    # Keep the section if a local change set it.
    has_local_upstream = base is not None and read_upstream(source) != read_upstream(base)
    named_kptfile = (kptfile if has_local_upstream else kptfile.without_upstream()).with_name(name)
    files = source.with_files({KPTFILE: _set_lock(named_kptfile, lock).to_bytes()})
    return add_merge_comments(files, profile) if should_add_comments else (files, ())


def _set_lock(kptfile: Kptfile, lock: UpstreamLock) -> Kptfile:
    if isinstance(lock, StoredUpstream):
        return kptfile.with_generic_lock(lock.store_id, lock.resource_id, lock.version)
    return kptfile.with_upstream(lock.repo, lock.directory, lock.ref, lock.commit)


def read_upstream_lock(files: FileTree) -> UpstreamLock | None:
    """Return the `upstreamLock` of a package. Return None if the Kptfile has no such field or cannot be read."""
    kptfile = Package(files).kptfile if KPTFILE in files else ()
    lock = kptfile.upstream_lock if isinstance(kptfile, Kptfile) else None
    if lock and lock.git and lock.git.ref:
        return ResolvedUpstream(lock.git.repo, lock.git.directory, lock.git.ref, lock.git.commit)
    if lock and lock.generic and lock.generic.resource_version:
        return StoredUpstream(lock.generic.store_id, lock.generic.resource_id, lock.generic.resource_version)
    return None


def read_upstream(files: FileTree) -> KptfileUpstream | None:
    """Return the section `upstream` of a Kptfile. Return None if the Kptfile has no such section or cannot be read."""
    kptfile = Package(files).kptfile if KPTFILE in files else ()
    return kptfile.upstream if isinstance(kptfile, Kptfile) else None
