"""Surveys: a destination as a pass finds it, with what was published and dropped since, before anything is decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from reconciler.krm.findings import Finding
from reconciler.krm.repository_url import is_same_repository
from reconciler.planning.claims import Claims
from reconciler.planning.codes import DESTINATION_MISSING
from reconciler.planning.decide import Render
from reconciler.planning.destination import Destination
from reconciler.planning.drafts import Writer
from reconciler.planning.fleet import DestinationPlan
from reconciler.planning.ground import Ground, Objects
from reconciler.planning.ingredients import Sources
from reconciler.planning.outcome import Outcome
from reconciler.planning.recovery import recover
from reconciler.planning.standing import Heads, Repository, recognise, settle_drafts
from reconciler.planning.state import DestinationState
from reconciler.planning.templates import Templating
from reconciler.snapshot.objects import CommitId
from reconciler.snapshot.trace import Answers

_SHORT = 12


@dataclass(frozen=True)
class ConfigOrigin:
    """Where the config of a pass comes from, as state records it.

    `directory` is the folder of the repository that its files are relative to. `root` is the first commit of the
    branch; "" for a plain folder, or where state has to keep the one that it has.
    """

    directory: str = ""
    root: str = ""

    def path(self, file: str) -> str:
        """Return a file of the config as a path from the root of its repository."""
        return f"{self.directory}/{file}" if self.directory else file


@dataclass(frozen=True)
class Workshop:
    """What planning works with: the config's answers, contents by tree id, the renderer, the words, the merge rules."""

    answers: Answers
    sources: Sources
    render: Render
    writer: Writer
    draft_template: str
    config_seconds: int
    removal_template: str = "removals/{repository}"
    templating: Templating = field(default_factory=Templating)
    origin: ConfigOrigin = field(default_factory=ConfigOrigin)


@dataclass(frozen=True)
class Surveyed:
    """One destination with who wants what of it, and the ground: its state brought up to date with its branches.

    `settled` are outcomes that are known by package, as deciding on those would come to them again.
    """

    destination: Destination
    claims: Claims
    before: DestinationState
    ground: Ground
    shop: Workshop
    settled: Mapping[str, Outcome] = field(default_factory=dict, kw_only=True)


def survey(
    destination: Destination,
    claims: Claims,
    state: DestinationState,
    heads: Heads,
    objects: Objects,
    shop: Workshop,
    last_known: CommitId | None = None,
) -> Surveyed | DestinationPlan:
    """Return a destination as it is found, or the plan to leave it alone; `last_known` as in `gone_from`."""
    if finding := gone_from(destination, state, heads, objects, last_known):
        return DestinationPlan(destination, heads, state, state, findings=(finding,))
    # another spelling must not change the state: replicas may use different ones, and write equal commits
    moved = replace(state, url=destination.url_text) if has_moved(destination, state) else state
    now = settle_drafts(recognise(moved, destination, heads, objects), destination, heads, objects)
    ground = Ground(destination, now, heads, objects, shop.draft_template, shop.removal_template)
    return Surveyed(destination, claims, state, recover(ground, claims.variants, shop.sources), shop)


def gone_from(
    destination: Destination,
    state: DestinationState,
    heads: Heads,
    repository: Repository,
    last_known: CommitId | None = None,
) -> Finding | None:
    """Return why nothing is written to a destination: its branch, seen before, is gone or elsewhere.

    A repository may move: its state and the last seen head of the branch prove that the new URL has the same content.
    `last_known` is the head that the cache knows from the URL before, which an outdated copy does not contain.
    """
    known = (state.url, state.branch, state.directory)
    wanted = (destination.url_text, destination.branch, destination.directory)
    if known[1:] != wanted[1:]:
        message = (
            f"{destination.title} pointed to {_place(known)} before and points to {_place(wanted)} now; nothing is"
            " pushed. Next step: set branch and directory back, or delete the state ref of the cluster, so that the"
            " state is rebuilt from the new branch"
        )
    elif state.seen and (heads.branch is None or heads.absent):
        message = (
            f"branch {destination.branch} of {destination.url_text} is gone, though it was there before at"
            f" {state.seen[:_SHORT]}; nothing is pushed. Next step: push that commit to the branch again, or delete"
            " the state ref of the cluster as well, and acknowledge the reset that the next pass reports"
        )
    elif has_moved(destination, state) and (lost := _lost_commit(repository, heads.branch, state.seen, last_known)):
        message = (
            f"{destination.title} pointed to {state.url} before and points to {destination.url_text} now, where branch"
            f" {destination.branch} does not contain the last seen commit {lost[:_SHORT]}; nothing is"
            f" pushed. Next step: set the URL back, or copy {state.url} to the new place with all its refs, or delete"
            " the state ref of the cluster, so that the state is rebuilt from the new branch"
        )
    else:
        return None
    return DESTINATION_MISSING.finding(message, destination.where)


def has_moved(destination: Destination, state: DestinationState) -> bool:
    """Return whether a state was recorded for another URL, and not only for another spelling of the same one."""
    return not any(is_same_repository(state.url, url) for url in (destination.url_text, destination.url))


def _lost_commit(repository: Repository, branch: CommitId | None, *commits: CommitId | None) -> CommitId | None:
    """Return the first of the commits that is not in the history of a branch."""
    wanted = (one for one in commits if one is not None and one != branch)
    return next((one for one in wanted if branch is None or repository.first_parents(one, branch) is None), None)


def _place(place: tuple[str, str, str]) -> str:
    url, branch, directory = place
    return f"{url} branch {branch} directory /{directory}"
