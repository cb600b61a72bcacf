"""Recovery of package records from status files and Git tags, for example after the state ref was deleted.

A commit with a package also contains the status file of the package. The status file contains the owner and the trees
of the package. It is used only if the recorded owner still requests the package. If the package was changed after its
status file was written, only the ownership of the package is recovered. Tags show which revision numbers are in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reconciler.catalog.files import CommitId, FileTree, TreeId
from reconciler.controllers.results import GeneratedSource, Variant, read_upstream_status
from reconciler.krm.git_formats import WORKSPACE_TRAILER, parse_trailers
from reconciler.krm.objects import Condition
from reconciler.krm.yaml import YamlError, parse_yaml
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.planning.layout.refs import TaggedRevision
from reconciler.planning.model.outcomes import (
    APPROVAL_DELAY_ANNOTATION,
    APPROVAL_POLICY_ANNOTATION,
    compute_review_digest,
)
from reconciler.planning.model.sources import PackageContentStore
from reconciler.planning.model.state import PackageRecord, PublishedRevision, RenderedVersion
from reconciler.planning.model.targets import STATUS_FOLDER
from reconciler.planning.observe.base_recovery import RecoveryInputs, UnavailableBase, recover_base
from reconciler.planning.observe.target_snapshot import TargetSnapshot

_WORKSPACE_PREFIX = "packagevariant-"


@dataclass(frozen=True)
class _UnrecordedPackage:
    """A variant without a package record, with the status files on the target branch and on the draft."""

    variant: Variant
    published: Mapping[str, Any] | None
    drafted: Mapping[str, Any] | None

    @property
    def package(self) -> str:
        return self.variant.target.package

    @property
    def has_status(self) -> bool:
        return self.published is not None or self.drafted is not None

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels in the status file of the draft or the published package, or else the labels of the variant."""
        labels = self._read_metadata("labels")
        return self.variant.labels if labels is None else labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations in the status file of the draft or the published package, or else those of the variant.

        If an annotation about the approval of drafts differs from the variant, all such annotations are omitted.
        Otherwise, anyone who can push to a draft could change the approval of the draft in the status file.
        """
        annotations = self._read_metadata("annotations")
        if annotations is None:
            return self.variant.annotations
        names = (APPROVAL_POLICY_ANNOTATION, APPROVAL_DELAY_ANNOTATION)
        if all(annotations.get(name) == self.variant.annotations.get(name) for name in names):
            return annotations
        return {name: value for name, value in annotations.items() if name not in names}

    def _read_metadata(self, field: str) -> Mapping[str, str] | None:
        status = self.drafted if self.drafted is not None else self.published
        metadata = (status or {}).get(field)
        if not isinstance(metadata, dict):
            return None
        return {name: value for name, value in metadata.items() if isinstance(name, str) and isinstance(value, str)}


def recover_state(
    snapshot: TargetSnapshot,
    variants: Iterable[Variant],
    inputs: RecoveryInputs,
) -> TargetSnapshot:
    """Return the snapshot with recovered records for requested packages that have no record.

    A record is recovered if the package's status file contains the requesting owner.

    If the state contains no packages, a record is also recovered if the package has revision tags, so that no revision
    number is used twice. The target branch need not contain such a package.
    """
    packages = [
        _read_statuses(snapshot, variant)
        for variant in variants
        if variant.target.package not in snapshot.state.packages
    ]
    is_empty = not snapshot.state.packages and not snapshot.heads.is_absent
    candidates = [package for package in packages if package.has_status or is_empty]
    if not candidates:
        return snapshot
    tagged = snapshot.objects.list_tagged_revisions({candidate.package for candidate in candidates})
    records: dict[str, PackageRecord] = {}
    unavailable: dict[str, UnavailableBase] = {}
    # If several variants request one package, the variant whose owner is named in the status file gets the package. If
    # there is no such variant, the first owner in alphabetical order gets the package.
    for candidate in sorted(candidates, key=lambda entry: (not entry.has_status, entry.variant.owner.key)):
        if candidate.package in records:
            continue
        record = _recover_record(snapshot, candidate, inputs, tagged.get(candidate.package, ()))
        if isinstance(record, UnavailableBase):
            unavailable[candidate.package] = record
        elif record:
            records[candidate.package] = record
    all_records = dict(sorted({**snapshot.state.packages, **records}.items()))
    state = replace(snapshot.state, packages=all_records)
    return replace(snapshot, state=state, unavailable_bases=unavailable)


def _read_statuses(snapshot: TargetSnapshot, variant: Variant) -> _UnrecordedPackage:
    draft = snapshot.heads.drafts.get(snapshot.find_draft_branch(variant.target.package))
    return _UnrecordedPackage(
        variant,
        _read_status(snapshot, variant, snapshot.heads.target_branch),
        _read_status(snapshot, variant, draft),
    )


def _recover_record(
    snapshot: TargetSnapshot,
    candidate: _UnrecordedPackage,
    inputs: RecoveryInputs,
    tagged: Sequence[TaggedRevision],
) -> PackageRecord | UnavailableBase | None:
    if not candidate.has_status and not tagged:
        return None
    variant = candidate.variant
    record = PackageRecord(
        variant.owner,
        is_owned=candidate.has_status,
        labels=candidate.labels,
        annotations=candidate.annotations,
        last_workspace=max(map(_get_workspace_number, tagged), default=0),
        last_revision=max((tag.number for tag in tagged), default=0),
    )
    if candidate.published is not None:
        published = _recover_version(snapshot, variant, snapshot.heads.target_branch, candidate.published, inputs)
        if isinstance(published, UnavailableBase):
            return published
        record = _add_published_version(snapshot, candidate.package, record, published, tagged)
    if candidate.drafted is not None and snapshot.observe_package(candidate.package).drafted:
        branch = snapshot.find_draft_branch(candidate.package)
        drafted = _recover_version(snapshot, variant, snapshot.heads.drafts.get(branch), candidate.drafted, inputs)
        if isinstance(drafted, UnavailableBase):
            return drafted
        record = record.with_draft_version(drafted, branch) if drafted else record
    return record


def _add_published_version(
    snapshot: TargetSnapshot,
    package: str,
    record: PackageRecord,
    version: RenderedVersion | None,
    tagged: Sequence[TaggedRevision],
) -> PackageRecord:
    """Return the record with the published version.

    The version gets the revision number of its tag. If it has no tag, it gets the next revision number.
    """
    if version is None:
        return replace(record, last_workspace=max(record.last_workspace, 1), last_revision=max(record.last_revision, 1))
    same = [tag for tag in tagged if snapshot.find_package_at(tag.commit, package)[0] == version.rendered]
    if same:
        last = max(same, key=lambda tag: tag.number)
        return replace(
            record,
            published_version=version,
            revisions=(PublishedRevision(last.number, last.commit, version, _get_workspace_number(last), last.tag),),
        )
    assert snapshot.heads.target_branch
    number, workspace = record.last_revision + 1, record.last_workspace + 1
    # Use the head of the target branch, because the commit that published the version is unknown.
    revision = PublishedRevision(number, snapshot.heads.target_branch, version, workspace)
    return replace(
        record, published_version=version, last_revision=number, last_workspace=workspace, revisions=(revision,)
    )


def _get_workspace_number(tag: TaggedRevision) -> int:
    """Return the number of the workspace in the message of a tag, or the revision number if it is larger."""
    name = parse_trailers(tag.message).get(WORKSPACE_TRAILER, "")
    number = name.removeprefix(_WORKSPACE_PREFIX)
    return max(int(number) if name != number and number.isdecimal() else 0, tag.number)


def _read_status(snapshot: TargetSnapshot, variant: Variant, commit: CommitId | None) -> Mapping[str, Any] | None:
    """Return the status of a package at a commit.

    Return None if its status file does not name the owner of the variant.
    """
    folder = snapshot.objects.find_tree_at(commit, snapshot.target.get_package_path(STATUS_FOLDER)) if commit else None
    files = snapshot.objects.read_files(folder) if folder else FileTree()
    file = files.get(f"{variant.target.package}.yaml")
    try:
        documents = parse_yaml(file.data).documents if file else ()
    except YamlError:
        return None
    data = documents[0].data if documents else None
    status = data.get("status") if isinstance(data, dict) else None
    return status if isinstance(status, dict) and status.get("owner") == variant.owner.as_data() else None


def _recover_version(
    snapshot: TargetSnapshot,
    variant: Variant,
    commit: CommitId | None,
    status: Mapping[str, Any],
    inputs: RecoveryInputs,
) -> RenderedVersion | UnavailableBase | None:
    """Return the version that a status file describes.

    Return None in these cases:

    - The status file is not valid.
    - The source of the package is not available.
    - The source comes from Git or is generated, and the package has local changes.

    If the source is downloaded or rendered, the version contains the local changes. For such a source, return the
    reason if the merge base cannot be recovered.
    """
    tree, blob = snapshot.find_package_at(commit, variant.target.package)
    published, _ = snapshot.find_package_at(snapshot.heads.target_branch, variant.target.package)
    if tree is None or blob is None:
        return None
    try:
        base = TreeId(status["trees"]["base"])
        digest = _compute_review_digest(status)
        against = None if tree == published else published
        if variant.upstream and not variant.upstream.is_git_package:
            recovered = recover_base(variant, variant.upstream, status, tree, inputs)
            if isinstance(recovered, UnavailableBase):
                return recovered
            merged = recovered.merged
            # The local changes on the target branch are unknown. Therefore, if the package on the draft branch differs
            # from the target branch, assume that all local changes were made on the draft branch.
            plain = recovered.base if against else merged
            return RenderedVersion(
                tree, blob, recovered.base, merged, plain, digest, against, recovered.upstream,
                release=recovered.release,
            )  # fmt: skip
        is_unchanged = status["trees"] == {"base": base, "merged": base, "rendered": tree}
        summary = _build_source_summary(variant, status, tree, base, inputs.contents)
    except (KeyError, TypeError, AttributeError):
        # Ignore an invalid status file, because everyone can edit it.
        return None
    if not is_unchanged or summary is None:
        return None
    return RenderedVersion(tree, blob, base, base, base, digest, against, summary)


def _build_source_summary(
    variant: Variant, status: Mapping[str, Any], tree: TreeId, base: TreeId, contents: PackageContentStore
) -> str | None:
    """Return the summary of the source that a status file refers to. Return None if the source cannot be read any more.

    Only sources that can be read may be recorded: generated files, or the upstream that the `upstreamLock` refers to.
    """
    source = variant.source
    if isinstance(source, GeneratedSource):
        contents.store_tree(source.files)
        return source.summary if source.files.id == base else None
    upstream = source.pin(read_upstream_status(status["upstream"]["to"]))
    if upstream is None or upstream.repo != source.repo:
        return None
    if contents.find_locked_tree(contents.read_tree(tree)) != upstream.tree:
        return None
    return upstream.summary if contents.read_source(upstream).files.id == base else None


def _compute_review_digest(status: Mapping[str, Any]) -> str:
    conditions = tuple(Condition(**condition) for condition in status.get("conditions", ()))
    gates = tuple(gate["conditionType"] for gate in status.get("readinessGates", ()))
    return compute_review_digest(conditions, gates, status.get("conflicts", ()), status.get("templates", ()))
