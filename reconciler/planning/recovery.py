"""Recovery: what status files say of packages that state does not know, as after a lost state ref (git.md 3).

A status file stands beside its package in the same commit and names its owner and its trees. It is believed when
it names the variant that claims the place; a package that people have changed since is known as owned, no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from reconciler.krm.conditions import Condition
from reconciler.krm.yaml import YamlError, parse
from reconciler.planning.ground import Ground
from reconciler.planning.ingredients import Sources
from reconciler.planning.outcome import review_digest
from reconciler.planning.state import Offer, PackageRecord
from reconciler.rules.variant import Variant
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import CommitId, TreeId

STATUS_FOLDER = ".reconciler"


def recover(ground: Ground, variants: Iterable[Variant], sources: Sources) -> Ground:
    """Return the ground with a record for every claimed package whose status file names its claimant."""
    unknown = [one for one in variants if one.place.package not in ground.state.packages]
    found = {one.place.package: record for one in unknown if (record := _record(ground, one, sources))}
    if not found:
        return ground
    packages = dict(sorted({**ground.state.packages, **found}.items()))
    return replace(ground, state=replace(ground.state, packages=packages))


def _record(ground: Ground, variant: Variant, sources: Sources) -> PackageRecord | None:
    package = variant.place.package
    draft = ground.branch_of(package)
    published = _told(ground, variant, ground.heads.branch)
    drafted = _told(ground, variant, ground.heads.drafts.get(draft))
    if published is None and drafted is None:
        return None
    record = PackageRecord(variant.owner, owned=True, labels=variant.labels, annotations=variant.annotations)
    if published is not None:
        ours = _offer(ground, variant, ground.heads.branch, published, sources)
        record = replace(record, ours=ours, workspace=1, revision=1)
    if drafted is not None and ground.look(package).drafted:
        put = _offer(ground, variant, ground.heads.drafts.get(draft), drafted, sources)
        record = record.offered(put, draft) if put else record
    return record


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
        upstream = replace(variant.upstream, **status["upstream"]["to"])
    except (KeyError, TypeError, AttributeError):
        # the file is open to everybody's edits: what makes no sense is as good as none
        return None
    if not stands or upstream.repo != variant.upstream.repo:
        return None
    # only what the lock leads to is read, and state may name only a source that was read
    if sources.lock_tree(sources.standing(tree)) != upstream.tree or sources.upstream(upstream).id != base:
        return None
    return Offer(tree, blob, base, base, base, review, None if tree == published else published)


def _review(status: Mapping[str, Any]) -> str:
    conditions = tuple(Condition(**one) for one in status.get("conditions", ()))
    return review_digest(
        conditions, tuple(one["conditionType"] for one in status.get("readinessGates", ())), status.get("conflicts", ())
    )
