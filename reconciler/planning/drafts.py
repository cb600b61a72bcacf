"""Drafts: from the outcomes of all packages to what becomes of each draft branch of a destination."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from reconciler.planning.branches import Grow, Keep, Layout, Step, Wishes, begin_anew, lay_out
from reconciler.planning.destination import Destination
from reconciler.planning.ground import Ground
from reconciler.planning.outcome import Draft, Leaving, Outcome, Unchanged
from reconciler.planning.standing import Heads
from reconciler.planning.state import DestinationState, DraftBranch
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import BlobId, CommitId, TreeId


@dataclass(frozen=True)
class Words:
    """What a person reads of one draft: its status file, and its commit message."""

    status: bytes
    message: str


class Writer(Protocol):
    """Finds the words for a draft."""

    def words(self, draft: Draft, destination: Destination) -> Words:
        """Return the status file and the commit message of a draft."""
        ...

    def removal(self, leaving: Leaving, destination: Destination, before: FileTree | None) -> str:
        """Return the commit message of a removal; `before` is what goes, None where it is too large to be read."""
        ...


def lay_out_all(
    ground: Ground, outcomes: Iterable[Outcome], leaving: Collection[str], words: Mapping[str, Words],
    config_seconds: int,
) -> tuple[Layout, ...]:  # fmt: skip
    """Return what becomes of every draft branch that exists or is wanted; `outcomes` are of distinct packages.

    `leaving` are packages that are on a draft and must not be. Removal drafts are not laid out here.
    """
    published = ground.heads.branch
    if published is None:
        return ()
    by_package = {outcome.variant.place.package: outcome for outcome in outcomes}
    members: dict[str, list[str]] = {name: [] for name, draft in ground.state.drafts.items() if not draft.removes}
    members |= {name: [] for name in ground.heads.closed - ground.heads.removals}
    for package in {**ground.state.packages, **by_package}:
        members.setdefault(ground.branch_of(package), []).append(package)
    return tuple(
        _laid_out(ground, branch, published, _wishes(ground, packages, by_package, leaving, words, config_seconds))
        for branch, packages in sorted(members.items())
    )


def closed_heads(before: DestinationState, heads: Heads) -> tuple[CommitId, ...]:
    """Return the heads with people's work of drafts whose pull request was closed, which go with their branches."""
    return tuple(
        heads.drafts[name] for name in sorted(heads.closed) if _is_theirs(before.drafts.get(name), heads, name)
    )


def _is_theirs(known: DraftBranch | None, heads: Heads, name: str) -> bool:
    return name in heads.drafts and (known is None or known.edited or known.head != heads.drafts[name])


def _laid_out(ground: Ground, branch: str, published: CommitId, wishes: Wishes) -> Layout:
    head = ground.heads.drafts.get(branch)
    if branch in ground.heads.closed:
        return begin_anew(branch, head, published, wishes)
    layout = lay_out(branch, head, ground.state, published, wishes, ground.objects)
    return Keep(branch) if isinstance(layout, Grow) and ground.is_frozen(branch) else layout


def _wishes(
    ground: Ground, packages: Iterable[str], outcomes: Mapping[str, Outcome], leaving: Collection[str],
    words: Mapping[str, Words], config_seconds: int,
) -> Wishes:  # fmt: skip
    changed, withdrawn, standing = {}, {}, set()
    for package in packages:
        match outcomes.get(package):
            case Draft() as draft:
                changed[package] = _step(draft, words[package], config_seconds)
            case Unchanged(withdraw=True):
                why = "The cluster branch holds what is wanted, or it was declined."
                withdrawn[package] = put_back(ground, package, why)
            case None if package in leaving:
                withdrawn[package] = put_back(ground, package, "Nothing in the config wants it any more.")
            case _:
                pass
        if package in ground.state.packages and ground.state.packages[package].put:
            standing.add(package)
    moved = {one for one in packages if ground.has_moved(one) and (one in changed or ground.is_touched(one))}
    edited = {one for one in moved if _is_edited(ground, one)}
    kept = {
        one: as_it_is(ground, one, *ground.at(ground.heads.drafts.get(ground.branch_of(one)), one))
        for one in moved & (standing - changed.keys() - withdrawn.keys())
    }
    return Wishes(changed, withdrawn, frozenset(standing), frozenset(moved), frozenset(edited), kept)


def _is_edited(ground: Ground, package: str) -> bool:
    published, _ = ground.at(ground.heads.branch, package)
    record = ground.state.packages.get(package)
    return published is not None and not (record and record.ours and record.ours.rendered == published)


def _step(draft: Draft, words: Words, config_seconds: int) -> Step:
    seconds = max(config_seconds, draft.variant.source.committer_seconds)
    return Step(draft.variant.place.package, draft.rendered.files, words.status, words.message, seconds)


def as_it_is(ground: Ground, package: str, content: TreeId | None, status: BlobId | None) -> Step:
    """Return the commit that puts a package back on its draft as it is there, after the cluster branch was merged."""
    return Step(package, content, status, _message(ground, package, "keep it as it is in the draft"))


def _message(ground: Ground, package: str, what: str, why: str = "") -> str:
    trailers = f"Reconciler-Repository: {ground.destination.name}\nReconciler-Package: {package}\n"
    return "\n\n".join(filter(None, (f"{package}: {what}", why, trailers)))


def put_back(ground: Ground, package: str, why: str) -> Step:
    """Return the commit that takes a package out of a draft which people work on."""
    content, status = ground.at(ground.heads.branch, package)
    return Step(package, content, status, _message(ground, package, "take it out of the draft", why))
