"""Reads recorded states, heads and open drafts of targets from their refs.

This module also contains the names of refs and the selection of targets by users. It renders and writes no packages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from typing import Protocol

from reconciler.catalog.files import EMPTY_TREE, FALLBACK_COMMIT_SECONDS, CommitId, FileTree, TreeId
from reconciler.git.errors import GitError, InternalGitError
from reconciler.git.object_reader import Commit, GitIdentity
from reconciler.krm.findings import Finding, create_internal_error_finding
from reconciler.krm.git_formats import PACKAGE_TRAILER
from reconciler.krm.internal_errors import ExpectedError
from reconciler.krm.selectors import matches_label_query
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.output.commit_messages import format_sync_message, parse_causes, parse_reason, parse_templates
from reconciler.output.review.models import Rejection
from reconciler.output.review.open_drafts import DraftDetails, DraftPackageDetails
from reconciler.packages.kptfile import KPTFILE
from reconciler.planning.decide.fleet_plan import find_promoter_branch, is_promoter_branch_idle
from reconciler.planning.decide.target_inputs import find_missing_target
from reconciler.planning.lifecycle.open_drafts import DraftedPackage, OpenDraft, read_open_drafts
from reconciler.planning.model.branch_names import format_draft_branch
from reconciler.planning.model.state import EngineTooOldError, StateUnreadableError, TargetState
from reconciler.planning.model.targets import STATUS_FOLDER, Target
from reconciler.planning.observe.target_snapshot import (
    TargetHeads,
    TargetSnapshot,
    list_removal_branches,
    track_drafts,
    track_publications,
)
from reconciler.reconcile.codes import PassCodes
from reconciler.reconcile.draft_approvals import approvals_ref, read_approvals
from reconciler.reconcile.failures import log_if_internal, repository_boundary
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.repository import Remote, TargetRepository
from reconciler.telemetry.event_log import log

BRANCH_PREFIX = "refs/heads/"

TargetStates = Mapping[Target, TargetState]

# The maximal number of states that are read in one request. Their trees must fit into the cache of an object reader.
_MAX_PREFETCHED_STATES = 500


def kept_ref(state_ref: str, name: str, head: CommitId) -> str:
    """Return the ref that keeps a head with local changes reachable.

    If the settings use branches as state refs, this ref is a branch too. The Git host possibly rejects all other refs.
    """
    start = BRANCH_PREFIX if state_ref.startswith(BRANCH_PREFIX) else "refs/"
    return f"{start}reconciler/kept/{name}/{head[:12]}"


def proposed_ref(draft: str) -> str:
    """Return the ref that marks a draft branch as proposed, e.g. "drafts/a" -> "refs/heads/proposed/a"."""
    return f"{BRANCH_PREFIX}proposed/{draft.removeprefix('drafts/')}"


def rejection_ref(state_ref: str, branch: str) -> str:
    """Return the ref that records the rejection of a draft branch."""
    # Use the prefix of the state refs, because every pass fetches the refs with this prefix. No Repository can have a
    # name with "_rejected/".
    return state_ref.format(repository=f"_rejected/{branch}")


def find_rejection(draft: OpenDraft, remote: Remote, state_ref: str) -> Commit | None:
    """Return the commit that rejects the current head of a draft. Return None if the current head is not rejected."""
    ref = rejection_ref(state_ref, draft.branch)
    rejection = remote.read_commit(remote.refs[ref]) if ref in remote.refs else None
    return rejection if rejection and rejection.parents == (draft.head,) else None


class UnknownTargetError(ExpectedError):
    """Raised if user input names a target or package that does not exist. The message lists the existing names."""


@dataclass(frozen=True)
class TargetReference:
    """User input that names a target (`CLUSTER`) or one of its packages (`CLUSTER/PACKAGE`)."""

    cluster: str
    package: str = ""

    def __str__(self) -> str:
        return f"{self.cluster}/{self.package}" if self.package else self.cluster


@dataclass(frozen=True)
class ExpectedDraft:
    """A draft as a person reviewed it.

    A review action skips the draft if the draft branch or the target branch has moved since then.

    Attributes:
        packages: The packages of the draft to which the action applies.
        branch: The name of the draft branch.
        head: The head of the draft branch.
        published_head: The head of the target branch.
    """

    target: str
    packages: frozenset[str]
    branch: str
    head: CommitId
    published_head: CommitId


@dataclass(frozen=True)
class ReviewSelection:
    """The targets that a command selects by name or by a label selector. By default, all targets are selected.

    Attributes:
        references: The names of the selected targets and packages.
        selector: A label selector for targets, which is used only if `references` is empty.
        should_include_removals: Whether the selection of a target includes its removal drafts.
        expected_drafts: If not empty, only these drafts are selected, at most one for each draft branch, and the other
            fields are not used.
    """

    references: tuple[TargetReference, ...] = ()
    selector: str = ""
    should_include_removals: bool = False
    expected_drafts: tuple[ExpectedDraft, ...] = ()

    @property
    def names_targets(self) -> bool:
        """Whether the selection contains names of targets."""
        return bool(self.references or self.expected_drafts)

    @cached_property
    def expected_by_target(self) -> Mapping[str, Sequence[ExpectedDraft]]:
        """The expected drafts by target."""
        by_target: dict[str, list[ExpectedDraft]] = {}
        for draft in self.expected_drafts:
            by_target.setdefault(draft.target, []).append(draft)
        return by_target

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the target with this name and these labels is selected."""
        if self.expected_drafts:
            return name in self.expected_by_target
        if self.references:
            return any(reference.cluster == name for reference in self.references)
        return matches_label_query(self.selector, labels)

    def packages_of(self, name: str) -> frozenset[str]:
        """Return the selected packages of a target. The result is empty if the whole target is selected."""
        packages = [reference.package for reference in self.references if reference.cluster == name]
        return frozenset() if "" in packages else frozenset(packages)


@dataclass(frozen=True)
class RefTemplates:
    """The templates of state refs, and of the names of draft branches and removal branches."""

    state: str
    draft: str
    removal: str


class DraftReviews(Protocol):
    """The reviews of the drafts of one target in pull requests."""

    @property
    def approved_heads(self) -> Mapping[str, CommitId]:
        """The heads of drafts that are approved or being merged, by branch."""
        ...

    @property
    def closed_drafts(self) -> frozenset[str]:
        """The branches of drafts whose pull requests were closed without a merge."""
        ...


class KnownStates(Protocol):
    """Returns states of targets that earlier passes have read."""

    def find_state(self, target: Target, commit: CommitId) -> TargetState | None:
        """Return the state of a target if it was read from this state commit. Otherwise, return None."""
        ...


def read_target_states(
    targets: Iterable[Target], remotes: Remotes, state_ref: str, known_states: KnownStates | None = None
) -> dict[Target, TargetState | Finding]:
    """Return the recorded state of each target, or an error for a target that must not be changed.

    The result does not contain targets without a state. States in `known_states` are not read again.
    """
    results: dict[Target, TargetState | Finding] = {}
    remaining = iter(targets)
    while group := tuple(islice(remaining, _MAX_PREFETCHED_STATES)):
        pairs = [(target, remote) for target in group if (remote := remotes.get(target.url))]
        if known_states is not None:
            results |= _find_known_states(pairs, known_states, state_ref)
            pairs = [(target, remote) for target, remote in pairs if target not in results]
        for remote, members in _group_by_remote(pairs):
            with _optional(remote):
                refs = (state_ref.format(repository=target.name) for target in members)
                remote.prefetch_states(_list_heads(remote, refs))
        states = {target: state for target, remote in pairs if (state := read_target_state(target, remote, state_ref))}
        _prefetch_branches(pairs, states)
        results |= states
    return results


@contextmanager
def _optional(remote: Remote) -> Iterator[None]:
    """Log an error of prefetching and continue. If the error occurs again, the read of the target reports it."""
    try:
        with repository_boundary(f"prefetching objects of {remote.mirror.url}"):
            yield
    except GitError as error:
        log_if_internal(error)
        log.warning("prefetch_failed", remote=remote.mirror.url, message=error.message)


def _find_known_states(
    pairs: Iterable[tuple[Target, Remote]], known_states: KnownStates, state_ref: str
) -> dict[Target, TargetState | Finding]:
    states: dict[Target, TargetState | Finding] = {}
    for target, remote in pairs:
        commit = remote.refs.get(state_ref.format(repository=target.name))
        if commit and (state := known_states.find_state(target, commit)):
            remote.cache_state(commit, state)
            states[target] = state
    return states


def prefetch_branches(targets: Iterable[Target], remotes: Remotes, state_ref: str) -> None:
    """Read the branch objects that the planning of these targets needs, in one request per remote, and cache them."""
    pairs = [(target, remote) for target in targets if (remote := remotes.get(target.url))]
    _prefetch_branches(
        pairs, {target: state for target, remote in pairs if (state := read_target_state(target, remote, state_ref))}
    )


def _prefetch_branches(pairs: Iterable[tuple[Target, Remote]], states: Mapping[Target, TargetState | Finding]) -> None:
    for remote, members in _group_by_remote(pairs):
        with _optional(remote):
            remote.prefetch_folder(_list_heads(remote, _list_branch_refs(members, states)), STATUS_FOLDER)


def _group_by_remote(pairs: Iterable[tuple[Target, Remote]]) -> Iterable[tuple[Remote, list[Target]]]:
    groups: dict[Remote, list[Target]] = {}
    for target, remote in pairs:
        groups.setdefault(remote, []).append(target)
    return groups.items()


def _list_heads(remote: Remote, refs: Iterable[str]) -> list[CommitId]:
    existing = remote.refs
    return [existing[ref] for ref in refs if ref in existing]


def _list_branch_refs(targets: Iterable[Target], states: Mapping[Target, TargetState | Finding]) -> Iterator[str]:
    for target in targets:
        yield BRANCH_PREFIX + target.branch
        state = states.get(target)
        yield from (BRANCH_PREFIX + name for name in (state.drafts if isinstance(state, TargetState) else ()))


def read_target_state(target: Target, remote: Remote, state_ref: str) -> TargetState | Finding | None:
    """Return the recorded state of a target. Return None if the target has no state, or an error if the target must not
    be changed.
    """
    ref = state_ref.format(repository=target.name)
    commit = remote.refs.get(ref)
    if commit is None:
        return None
    try:
        with repository_boundary(f"{target.title}: its state"):
            return remote.read_state(commit)
    except InternalGitError as error:
        return create_internal_error_finding(error.failure, target.location)
    except EngineTooOldError as error:
        return PassCodes.ENGINE_TOO_OLD.finding(
            f"{target.title}: {error}; the target is not changed. Next step: update the reconciler", target.location
        )
    except StateUnreadableError as error:
        message = f"{target.title}: {error}; the target is not changed until {ref} is repaired or deleted"
        return PassCodes.STATE_UNREADABLE.finding(message, target.location)
    except GitError as error:
        # Return an error, for example if the ref points to a blob, or to a commit that exceeds a size limit.
        message = (
            f"{target.title}: the state of the target cannot be read: {error.full_message};"
            f" the target is not changed until {ref} is repaired"
        )
        return PassCodes.STATE_UNREADABLE.finding(message, target.location)


def _list_draft_branches(
    templates: RefTemplates, target: Target, state: TargetState, packages: Iterable[str]
) -> set[str]:
    names = {format_draft_branch(templates.draft, target, package) for package in packages}
    return names | set(state.drafts) | list_removal_branches(templates.removal, target, state)


class TargetHeadReader:
    """Reads the heads of the branches of targets.

    `find_requests` returns the reviews of drafts in pull requests. If `has_promoter` is True, drafts can be on the
    branch that GitOps Promoter expects.
    """

    def __init__(
        self,
        templates: RefTemplates,
        find_requests: Callable[[Target, TargetState, Mapping[str, CommitId]], DraftReviews],
        *,
        has_promoter: bool,
    ) -> None:
        self._templates = templates
        self._find_requests = find_requests
        self._has_promoter = has_promoter
        self._root_commits: dict[str, CommitId] = {}

    def list_draft_branches(self, target: Target, state: TargetState, packages: Iterable[str]) -> set[str]:
        """Return the recorded draft branches, all removal branches, and the draft branches of `packages`."""
        return _list_draft_branches(self._templates, target, state, packages)

    def read(self, target: Target, remote: Remote, state: TargetState, packages: Iterable[str]) -> TargetHeads:
        """Return the heads of a target. If the target branch does not exist, a root commit is used as its head."""
        refs = remote.refs
        removals = list_removal_branches(self._templates.removal, target, state)
        names = self.list_draft_branches(target, state, packages)
        branch = refs.get(BRANCH_PREFIX + target.branch)
        promoter_branch = find_promoter_branch(target, self._templates.draft) if self._has_promoter else None
        names |= {promoter_branch} if promoter_branch else set()
        drafts = {name: refs[BRANCH_PREFIX + name] for name in names if BRANCH_PREFIX + name in refs}
        is_idle = promoter_branch is not None and is_promoter_branch_idle(
            drafts.get(promoter_branch), branch, state.observed_commit
        )
        promoter_head = drafts.pop(promoter_branch) if promoter_branch and is_idle else None
        proposed = {name: refs[proposed_ref(name)] for name in names if proposed_ref(name) in refs}
        requests = self._find_requests(target, state, drafts)
        return TargetHeads(
            branch or self._write_root_commit(remote),
            branch is None,
            drafts,
            proposed,
            removals,
            requests.approved_heads,
            requests.closed_drafts,
            promoter_head,
        )

    def _write_root_commit(self, remote: Remote) -> CommitId:
        url = remote.mirror.url
        if url not in self._root_commits:
            self._root_commits[url] = remote.mirror.write_root_commit()
        return self._root_commits[url]


@dataclass(frozen=True)
class OpenTarget:
    """A target with its open drafts, as review commands need it.

    Attributes:
        packages: The names of all packages in the recorded state.
        error: The reason why the target cannot be read. It is "" if the target was read.
        snapshot: The refs and the state of the target. None if the target has no state or cannot be read.
        draft_branches: The names of all branches that can contain drafts of the target.
    """

    target: Target
    drafts: tuple[OpenDraft, ...] = ()
    packages: frozenset[str] = frozenset()
    error: str = ""
    snapshot: TargetSnapshot | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    draft_branches: frozenset[str] = frozenset()


class DraftReader:
    """Reads the open drafts of targets from their refs. The caller must close `remotes` after the last use of the
    reader.
    """

    def __init__(self, remotes: Remotes, templates: RefTemplates) -> None:
        self._remotes = remotes
        self._templates = templates

    def read_target(self, target: Target) -> OpenTarget:
        """Return a target with its drafts, from the refs after the last fetch or push."""
        try:
            with repository_boundary(target.title):
                return self._read_target(target)
        except GitError as error:
            log_if_internal(error)
            return OpenTarget(target, error=f"{target.title}: {error.full_message}")

    def _read_target(self, target: Target) -> OpenTarget:
        remote = self._remotes.get(target.url)
        if remote is None:
            failure = self._remotes.failures.get(target.url)
            message = failure.full_message if failure else "the repository was not fetched"
            return OpenTarget(target, error=f"{target.title}: {message}")
        state = read_target_state(target, remote, self._templates.state)
        if state is None:
            branch = format_draft_branch(self._templates.draft, target, "")
            error = _check_unrecorded_draft(target, remote, branch)
            return OpenTarget(target, error=error, draft_branches=frozenset({branch}))
        heads = TargetHeads() if isinstance(state, Finding) else self._read_heads(target, remote, state)
        repository = TargetRepository(remote, target)
        finding = state if isinstance(state, Finding) else find_missing_target(target, state, heads, repository)
        if isinstance(state, Finding) or finding:
            return OpenTarget(target, error=finding.message if finding else "")
        current = track_drafts(track_publications(state, target, heads, repository), target, heads, repository)
        snapshot = TargetSnapshot(target, current, heads, repository, self._templates.draft)
        drafts = read_open_drafts(snapshot, repository)
        branches = _list_draft_branches(self._templates, target, state, state.packages)
        packages = frozenset(current.packages)
        return OpenTarget(target, drafts, packages, snapshot=snapshot, draft_branches=frozenset(branches))

    def _read_heads(self, target: Target, remote: Remote, state: TargetState) -> TargetHeads:
        refs = remote.refs
        removals = list_removal_branches(self._templates.removal, target, state)
        drafts = {
            name: refs[BRANCH_PREFIX + name]
            for name in sorted(_list_draft_branches(self._templates, target, state, state.packages))
            if BRANCH_PREFIX + name in refs
        }
        published = refs.get(BRANCH_PREFIX + target.branch)
        promoter_branch = find_promoter_branch(target, self._templates.draft)
        if promoter_branch and is_promoter_branch_idle(drafts.get(promoter_branch), published, state.observed_commit):
            del drafts[promoter_branch]
        proposed = {name: refs[proposed_ref(name)] for name in drafts if proposed_ref(name) in refs}
        return TargetHeads(published, False, drafts, proposed, removals)

    def read_draft_details(
        self, draft: OpenDraft, packages: frozenset[str] = frozenset(), *, should_read_files: bool = False
    ) -> DraftDetails:
        """Return a draft with details from the history of its branch.

        If `should_read_files` is True, the result contains the files of `packages`. If `packages` is empty, the result
        contains the files of all packages.
        """
        remote = self.get_remote(draft.target)
        repository = TargetRepository(remote, draft.target)
        commits = [remote.read_commit(commit) for commit in repository.list_first_parents(draft.base, draft.head) or ()]
        editors = [author.name for author in _list_editors(commits, draft.target)]
        contents, base = draft.select_packages(packages) if should_read_files else (), remote.read_commit(draft.base)
        date = base.seconds if base.tree != EMPTY_TREE else None
        behind_count = len(repository.list_first_parents(draft.base, draft.published_head) or ())
        return DraftDetails(
            draft, date, behind_count, tuple(dict.fromkeys(editors)), self._read_rejection(draft, remote),
            tuple(_read_package_details(package, remote, commits) for package in contents),
            tuple(dict.fromkeys(approval.name for approval in read_approvals(draft, remote, self._templates.state))),
        )  # fmt: skip

    def read_heads(self, target: Target, drafts: Iterable[str]) -> Mapping[str, CommitId]:
        """Return the refs on which the data of a target depends. Maps full ref names to commits.

        Args:
            drafts: The names of the branches that can contain drafts of the target.
        """
        remote = self._remotes.get(target.url)
        refs = {} if remote is None else remote.refs
        names = [BRANCH_PREFIX + target.branch, self._templates.state.format(repository=target.name)]
        for draft in drafts:
            names += [BRANCH_PREFIX + draft, proposed_ref(draft), rejection_ref(self._templates.state, draft)]
            names.append(approvals_ref(self._templates.state, draft))
        return {name: refs[name] for name in names if name in refs}

    def prefetch(self, targets: Sequence[Target]) -> None:
        """Read the states, branches and drafts of targets in a few requests per remote, and cache them."""
        states = read_target_states(targets, self._remotes, self._templates.state)
        pairs = [(target, remote) for target in targets if (remote := self._remotes.get(target.url))]
        for remote, members in _group_by_remote(pairs):
            with _optional(remote):
                remote.prefetch_files(_list_draft_files(remote, members, states))

    def list_editors(self, draft: OpenDraft) -> tuple[GitIdentity, ...]:
        """Return the authors of the commits on the draft branch, except the reconciler."""
        remote = self.get_remote(draft.target)
        commits = TargetRepository(remote, draft.target).list_first_parents(draft.base, draft.head) or ()
        return tuple(_list_editors(map(remote.read_commit, commits), draft.target))

    def get_remote(self, target: Target) -> Remote:
        """Return the remote from which `read_target` has read the target."""
        remote = self._remotes.get(target.url)
        assert remote is not None, "the target was read from it"
        return remote

    def _read_rejection(self, draft: OpenDraft, remote: Remote) -> Rejection | None:
        rejection = find_rejection(draft, remote, self._templates.state)
        return Rejection(by=rejection.author.name, reason=parse_reason(rejection.message)) if rejection else None


def _list_draft_files(
    remote: Remote, targets: Iterable[Target], states: Mapping[Target, TargetState | Finding]
) -> Iterator[tuple[CommitId, str]]:
    """Yield the paths of the status file and the Kptfile of each drafted package.

    Each path comes with the head of the draft branch that contains the file.
    """
    for target in targets:
        state = states.get(target)
        for package, record in state.packages.items() if isinstance(state, TargetState) else ():
            head = remote.refs.get(BRANCH_PREFIX + record.draft_branch)
            if record.draft_version and head:
                yield head, target.get_status_file_path(package)
                yield head, f"{target.get_package_path(package)}/{KPTFILE}"


def _check_unrecorded_draft(target: Target, remote: Remote, branch: str) -> str:
    if BRANCH_PREFIX + branch not in remote.refs:
        return ""
    return (
        f'{target.title}: the branch "{branch}" exists, but no state records it; run `reconciler sync`'
        " to record it again"
    )


def _list_editors(commits: Iterable[Commit], target: Target) -> Iterator[GitIdentity]:
    return (commit.author for commit in commits if _is_local_change(commit, target))


def _is_local_change(commit: Commit, target: Target) -> bool:
    # The commit message is sufficient here, because the result is only displayed. The planning does not use it, and
    # compares trees to detect local changes.
    return f"{PACKAGE_TRAILER}: " not in commit.message and commit.message != format_sync_message(target)


def _read_package_details(package: DraftedPackage, remote: Remote, commits: Sequence[Commit]) -> DraftPackageDetails:
    trailer = f"{PACKAGE_TRAILER}: {package.package}"
    own_commits = [commit for commit in commits if trailer in commit.message.splitlines()]
    before, after = (_read_files(tree, remote.read_files) for tree in (package.published_tree, package.drafted_tree))
    message = own_commits[-1].message if own_commits else ""
    first_commit = next(iter(own_commits or commits), None)
    has_date = first_commit is not None and first_commit.seconds != FALLBACK_COMMIT_SECONDS
    since = first_commit.seconds if first_commit and has_date else None
    return DraftPackageDetails(package, before, after, parse_causes(message), parse_templates(message), since)


def _read_files(tree: TreeId | None, read: Callable[[TreeId], FileTree]) -> FileTree:
    return read(tree) if tree else FileTree()
