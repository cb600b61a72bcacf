"""Drafts: from the outcomes of all packages to what becomes of each draft branch of a destination."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from reconciler.planning.branches import Grow, Keep, Layout, Step, Wishes, lay_out
from reconciler.planning.destination import Destination
from reconciler.planning.ground import Ground
from reconciler.planning.outcome import Draft, Outcome, Unchanged
from reconciler.snapshot.objects import CommitId


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


def lay_out_all(
    ground: Ground, outcomes: Iterable[Outcome], words: Mapping[str, Words], config_seconds: int
) -> tuple[Layout, ...]:
    """Return what becomes of every draft branch that exists or is wanted; `outcomes` are of distinct packages."""
    published = ground.heads.branch
    if published is None:
        return ()
    by_package = {outcome.variant.place.package: outcome for outcome in outcomes}
    members: dict[str, list[str]] = {branch: [] for branch in ground.state.drafts}
    for package in {**ground.state.packages, **by_package}:
        members.setdefault(ground.branch_of(package), []).append(package)
    return tuple(
        _laid_out(ground, branch, published, _wishes(ground, packages, by_package, words, config_seconds))
        for branch, packages in sorted(members.items())
    )


def _laid_out(ground: Ground, branch: str, published: CommitId, wishes: Wishes) -> Layout:
    head = ground.heads.drafts.get(branch)
    layout = lay_out(branch, head, ground.state, published, wishes, ground.objects)
    return Keep(branch) if isinstance(layout, Grow) and ground.is_frozen(branch) else layout


def _wishes(
    ground: Ground, packages: Iterable[str], outcomes: Mapping[str, Outcome],
    words: Mapping[str, Words], config_seconds: int,
) -> Wishes:  # fmt: skip
    changed, withdrawn, standing = {}, {}, set()
    for package in packages:
        match outcomes.get(package):
            case Draft() as draft:
                changed[package] = _step(draft, words[package], config_seconds)
            case Unchanged(withdraw=True):
                withdrawn[package] = _undo(ground, package)
            case _:
                pass
        if package in ground.state.packages and ground.state.packages[package].put:
            standing.add(package)
    moved = {one for one in packages if ground.has_moved(one) and (one in changed or ground.is_touched(one))}
    edited = {one for one in moved if _is_edited(ground, one)}
    kept = {one: _as_it_is(ground, one) for one in moved & (standing - changed.keys() - withdrawn.keys())}
    return Wishes(changed, withdrawn, frozenset(standing), frozenset(moved), frozenset(edited), kept)


def _is_edited(ground: Ground, package: str) -> bool:
    published, _ = ground.at(ground.heads.branch, package)
    record = ground.state.packages.get(package)
    return published is not None and not (record and record.ours and record.ours.rendered == published)


def _step(draft: Draft, words: Words, config_seconds: int) -> Step:
    seconds = max(config_seconds, draft.variant.upstream.committer_seconds)
    return Step(draft.variant.place.package, draft.rendered.files, words.status, words.message, seconds)


def _as_it_is(ground: Ground, package: str) -> Step:
    """Return the commit that puts a package back on its draft as it is there, after the cluster branch was merged."""
    content, status = ground.at(ground.heads.drafts.get(ground.branch_of(package)), package)
    return Step(package, content, status, _message(ground, package, "keep it as it is in the draft"))


def _message(ground: Ground, package: str, what: str, why: str = "") -> str:
    trailers = f"Reconciler-Repository: {ground.destination.name}\nReconciler-Package: {package}\n"
    return "\n\n".join(filter(None, (f"{package}: {what}", why, trailers)))


def _undo(ground: Ground, package: str) -> Step:
    """Return the commit that takes a package out of a draft which people work on."""
    content, status = ground.at(ground.heads.branch, package)
    why = "The cluster branch holds what is wanted, or it was declined."
    return Step(package, content, status, _message(ground, package, "take it out of the draft", why))
