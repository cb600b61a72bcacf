"""Recovery: what status files and tags say of packages that state does not know, as after a lost state ref (git.md 3).

A status file stands beside its package in the same commit and names its owner and its trees. It is believed when
it names the variant that claims the place; a package that people have changed since is known as owned, no more.
Tags tell which numbers were used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconciler.krm.conditions import Condition
from reconciler.krm.trailers import read_trailers
from reconciler.krm.yaml import YamlError, parse
from reconciler.planning.approvals import DELAY as APPROVAL_DELAY
from reconciler.planning.approvals import POLICY as APPROVAL_POLICY
from reconciler.planning.destination import STATUS_FOLDER
from reconciler.planning.ground import Ground
from reconciler.planning.ingredients import Sources
from reconciler.planning.outcome import review_digest
from reconciler.planning.state import Offer, PackageRecord, Revision
from reconciler.planning.tags import TaggedRevision
from reconciler.rules.variant import Generated, Variant
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import CommitId, TreeId

_WORKSPACE = "packagevariant-"


@dataclass(frozen=True)
class _Claim:
    """A variant whose place state does not know, with what the status file says there: published, and drafted."""

    variant: Variant
    published: Mapping[str, Any] | None
    drafted: Mapping[str, Any] | None

    @property
    def package(self) -> str:
        return self.variant.place.package

    @property
    def is_told(self) -> bool:
        return self.published is not None or self.drafted is not None

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels that the last draft was created with; those of the variant where no status file has them."""
        found = self._metadata("labels")
        return self.variant.labels if found is None else found

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations that the last draft was created with, as `labels`.

        Everyone who can push to a draft can edit its status file. So annotations that publish drafts count only if
        the variant has the same.
        """
        found = self._metadata("annotations")
        if found is None:
            return self.variant.annotations
        names = (APPROVAL_POLICY, APPROVAL_DELAY)
        if all(found.get(name) == self.variant.annotations.get(name) for name in names):
            return found
        return {name: value for name, value in found.items() if name not in names}

    def _metadata(self, field: str) -> Mapping[str, str] | None:
        status = self.drafted if self.drafted is not None else self.published
        found = (status or {}).get(field)
        if not isinstance(found, dict):
            return None
        return {name: value for name, value in found.items() if isinstance(name, str) and isinstance(value, str)}


def recover(ground: Ground, variants: Iterable[Variant], sources: Sources) -> Ground:
    """Return the ground with a record for every claimed package whose status file names its claimant.

    Where nothing is remembered at all, the numbers that tags have used are taken from them, too, for packages that are
    not there any more: a number is never used again (porch 7).
    """
    unknown = [_claim(ground, one) for one in variants if one.place.package not in ground.state.packages]
    is_blank = not ground.state.packages and not ground.heads.absent
    asked = [one for one in unknown if one.is_told or is_blank]
    if not asked:
        return ground
    tagged = ground.objects.tagged({one.package for one in asked})
    found: dict[str, PackageRecord] = {}
    # of several claimants without a word from a status file, the place goes to the least
    for one in sorted(asked, key=lambda one: (not one.is_told, one.variant.owner.key)):
        if one.package not in found and (record := _record(ground, one, sources, tagged.get(one.package, ()))):
            found[one.package] = record
    packages = dict(sorted({**ground.state.packages, **found}.items()))
    return replace(ground, state=replace(ground.state, packages=packages))


def _claim(ground: Ground, variant: Variant) -> _Claim:
    draft = ground.heads.drafts.get(ground.branch_of(variant.place.package))
    return _Claim(variant, _told(ground, variant, ground.heads.branch), _told(ground, variant, draft))


def _record(ground: Ground, one: _Claim, sources: Sources, tagged: Sequence[TaggedRevision]) -> PackageRecord | None:
    if not one.is_told and not tagged:
        return None
    variant = one.variant
    record = PackageRecord(
        variant.owner, owned=one.is_told, labels=one.labels, annotations=one.annotations,
        workspace=max(map(_workspace, tagged), default=0), revision=max((tag.number for tag in tagged), default=0),
    )  # fmt: skip
    if one.published is not None:
        ours = _offer(ground, variant, ground.heads.branch, one.published, sources)
        record = _published(ground, one.package, record, ours, tagged)
    if one.drafted is not None and ground.look(one.package).drafted:
        draft = ground.branch_of(one.package)
        put = _offer(ground, variant, ground.heads.drafts.get(draft), one.drafted, sources)
        record = record.offered(put, draft) if put else record
    return record


def _published(
    ground: Ground, package: str, record: PackageRecord, ours: Offer | None, tagged: Sequence[TaggedRevision]
) -> PackageRecord:
    """Return the record with what is published as the revision whose tag says so, else as the next one."""
    if ours is None:
        return replace(record, workspace=max(record.workspace, 1), revision=max(record.revision, 1))
    same = [one for one in tagged if ground.at(one.commit, package)[0] == ours.rendered]
    if same:
        one = max(same, key=lambda one: one.number)
        return replace(record, ours=ours, revisions=(Revision(one.number, one.commit, ours, _workspace(one), one.tag),))
    assert ground.heads.branch
    number, workspace = record.revision + 1, record.workspace + 1
    # which commit brought it is forgotten; the head has it
    revision = Revision(number, ground.heads.branch, ours, workspace)
    return replace(record, ours=ours, revision=number, workspace=workspace, revisions=(revision,))


def _workspace(tag: TaggedRevision) -> int:
    """Return the number of the workspace that a revision had; each had one of its own, so that it is no lower."""
    name = read_trailers(tag.message).get("Reconciler-Workspace", "")
    number = name.removeprefix(_WORKSPACE)
    return max(int(number) if name != number and number.isdecimal() else 0, tag.number)


def _told(ground: Ground, variant: Variant, commit: CommitId | None) -> Mapping[str, Any] | None:
    """Return what a package's status file says at a commit, if it names this variant as its owner."""
    folder = ground.objects.tree_at(commit, ground.destination.path(STATUS_FOLDER)) if commit else None
    files = ground.objects.files(folder) if folder else FileTree()
    file = files.get(f"{variant.place.package}.yaml")
    try:
        documents = parse(file.data).documents if file else ()
    except YamlError:
        return None
    data = documents[0].data if documents else None
    status = data.get("status") if isinstance(data, dict) else None
    return status if isinstance(status, dict) and status.get("owner") == variant.owner.as_data() else None


def _offer(
    ground: Ground, variant: Variant, commit: CommitId | None, status: Mapping[str, Any], sources: Sources
) -> Offer | None:
    """Return the offer that a status file tells of, if the package stands as it was rendered from a known source."""
    tree, blob = ground.at(commit, variant.place.package)
    published, _ = ground.at(ground.heads.branch, variant.place.package)
    if tree is None or blob is None:
        return None
    try:
        base = TreeId(status["trees"]["base"])
        review = _review(status)
        stands = status["trees"] == {"base": base, "merged": base, "rendered": tree}
        words = _words_of_source(variant, status, tree, base, sources)
    except (KeyError, TypeError, AttributeError):
        # the file is open to everybody's edits: what makes no sense is as good as none
        return None
    if not stands or words is None:
        return None
    against = None if tree == published else published
    return Offer(tree, blob, base, base, base, review, against, words)


def _words_of_source(
    variant: Variant, status: Mapping[str, Any], tree: TreeId, base: TreeId, sources: Sources
) -> str | None:
    """Return the words for the source that a status file tells of, None where that cannot be read any more.

    State may name only a source that was read: what a room makes now, or what the lock leads to.
    """
    source = variant.source
    if isinstance(source, Generated):
        sources.keep(source.files)
        return source.words if source.files.id == base else None
    upstream = replace(source, **status["upstream"]["to"])
    if upstream.repo != source.repo or sources.lock_tree(sources.standing(tree)) != upstream.tree:
        return None
    return upstream.words if sources.upstream(upstream).id == base else None


def _review(status: Mapping[str, Any]) -> str:
    conditions = tuple(Condition(**one) for one in status.get("conditions", ()))
    gates = tuple(one["conditionType"] for one in status.get("readinessGates", ()))
    return review_digest(conditions, gates, status.get("conflicts", ()), status.get("templates", ()))
