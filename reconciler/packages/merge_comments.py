"""Merge comments: the upstream identity of a resource, written on its `metadata` line (kpt.md 5.4)."""

from __future__ import annotations

from reconciler.caching import cached
from reconciler.krm.findings import Finding, Where
from reconciler.krm.yaml import Document, Original, YamlError, parse
from reconciler.krm.yaml.scalar import inline_text
from reconciler.packages.codes import MERGE_COMMENTS_SKIPPED
from reconciler.packages.kptfile import Profile
from reconciler.packages.package import Package, PackageResource
from reconciler.packages.parsing import Unparsable, parse_cached
from reconciler.packages.resource import UPSTREAM_IDENTIFIER
from reconciler.snapshot.files import FileTree

MERGE_COMMENT = "# kpt-merge: "
_METADATA = ("metadata",)
_ANNOTATIONS = (*_METADATA, "annotations")
_IDENTIFIER = (*_ANNOTATIONS, UPSTREAM_IDENTIFIER)


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
        content = with_comments(files[path].data, profile)
        if isinstance(content, Unparsable):
            findings.append(_left_alone(path, content))
        else:
            changes[path] = content
    return files.with_files({path: data for path, data in changes.items() if data != files[path].data}), tuple(findings)


def merge_identity(document: Document) -> tuple[str, str] | None:
    """Return (namespace, name) of the merge comment, or None when there is none."""
    comment = document.comment(_METADATA) or ""
    if not comment.startswith(MERGE_COMMENT):
        return None
    namespace, _, name = comment.removeprefix(MERGE_COMMENT).strip().partition("/")
    return namespace, name


@cached(2048)
def with_comments(content: bytes, profile: Profile) -> bytes | Unparsable:
    """Return one file with a merge comment on every resource that lacks one, or why it does not parse."""
    # one upstream package is cloned for many clusters, with the same comments everywhere
    source = parse_cached(content)
    if isinstance(source, Unparsable):
        return source
    documents = [_with_comment(document, profile) for document in source.documents]
    changed = any(new is not old for new, old in zip(documents, source.documents, strict=True))
    return source.arranged(list(enumerate(documents))).to_bytes() if changed else content


def _with_comment(document: Document, profile: Profile) -> Document:
    resource = PackageResource("", "", 0, document)
    if not resource.metadata or not (resource.name or resource.namespace or resource.labels):
        return document
    # a comment of somebody else on that line stays, so there is no room for ours
    if document.comment(_METADATA) is None:
        document = _with_line_comment(document, f"{MERGE_COMMENT}{resource.namespace}/{resource.name}")
    return _with_identifier(document, resource) if profile == "compat" else document


def _with_line_comment(document: Document, comment: str) -> Document:
    try:
        return document.with_comment(_METADATA, comment)
    except YamlError:
        return document  # best effort: an alias, or a mapping that shares its line, has no place for a comment


def _with_identifier(document: Document, resource: PackageResource) -> Document:
    namespace, name = merge_identity(document) or (resource.namespace, resource.name)
    identifier = f"{resource.group}|{resource.kind}|{namespace or 'default'}|{name}"
    if resource.annotations.get(UPSTREAM_IDENTIFIER) == identifier:
        return document
    annotations = dict(resource.annotations) | {UPSTREAM_IDENTIFIER: identifier}
    metadata = dict(resource.metadata) | {"annotations": annotations}
    # in single quotes, as upstream's tool writes it: it compares texts, and takes other quotes for an edit
    text = inline_text(identifier, flow=False, style="'")
    quoted = parse(f"metadata:\n  annotations:\n    {UPSTREAM_IDENTIFIER}: {text}\n")
    lender = quoted.documents[0].lending({place: Original(place) for place in (_ANNOTATIONS, _IDENTIFIER)})
    return document.with_data({**document.data, "metadata": metadata}, lender)


def _left_alone(path: str, reason: Unparsable) -> Finding:
    text = f"no merge comments were written, since the file does not parse: {reason.message}"
    return MERGE_COMMENTS_SKIPPED.finding(text, Where(path, reason.line))
