"""Writes the commits, states and tags of a pass to the mirrors, and then pushes them to the remotes.

No ref of a remote moves before all objects for this remote are written. The module `review_actions` contains the
commits of approvals and other review actions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from reconciler.catalog.files import FALLBACK_COMMIT_SECONDS, CommitId, FileTree, ObjectId, TreeId
from reconciler.git.errors import GitError, ObjectMissingError
from reconciler.git.mirror import Mirror
from reconciler.git.names import is_ref_name
from reconciler.git.object_writer import DeletePath, NewCommit, NewTag, PutFile, PutObject, TreeChange
from reconciler.git.push_outcomes import (
    PushDone,
    PushFailed,
    PushOutcome,
    PushPostponed,
    PushRefused,
    PushStale,
    PushUnit,
    RefUpdate,
)
from reconciler.krm.findings import Finding, FindingCode
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.output.commit_messages import format_state_message, format_sync_message, format_tag_message
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.planning.decide.target_plan import list_pushes
from reconciler.planning.layout.refs import (
    DeleteBranch,
    DraftCommit,
    MissingTag,
    PushCommits,
    ResetBranch,
    TargetBranchMerge,
    format_tag_prefix,
    record_tags,
)
from reconciler.planning.model.outcomes import Draft
from reconciler.planning.model.state import DraftBranch, TargetState, serialize_state, serialize_state_changes
from reconciler.planning.model.targets import Target
from reconciler.reconcile.codes import PassCodes
from reconciler.reconcile.publication_approval import find_approval
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX, kept_ref, proposed_ref
from reconciler.telemetry.event_log import log

# A function that returns the push options for the drafts of a plan.
PushOptionsAnnouncer = Callable[[TargetPlan], tuple[str, ...]]


@dataclass(frozen=True)
class WrittenPlan:
    """The plan of a target, and the commits of the plan that were written to the mirror.

    Attributes:
        draft_heads: The new heads of draft branches, by branch name.
        state: The new state of the target, or None if the state did not change.
    """

    plan: TargetPlan
    draft_heads: Mapping[str, CommitId] = field(default_factory=dict)
    state: TargetState | None = None
    state_commit: CommitId | None = None

    @property
    def name(self) -> str:
        """The name of the target. The push unit of the target has the same name."""
        return self.plan.target.name

    @property
    def id(self) -> str:
        """A digest of the planned changes and of the target branch head. It does not depend on the config commit."""
        plan = self.plan
        drafts = [outcome for outcome in plan.outcomes if isinstance(outcome, Draft)]
        drafted = {
            draft.variant.target.package: [draft.rendered.files.id, draft.rendered.review_digest] for draft in drafts
        }
        ended = [action.branch for action in plan.branch_actions if isinstance(action, DeleteBranch | ResetBranch)]
        removals = [[removal.package, removal.kind, removal.is_new] for removal in plan.removals]
        return compute_digest([plan.target.url, self.name, plan.heads.target_branch, drafted, ended, removals])


def write_plans(
    remote: Remote,
    plans: Sequence[TargetPlan],
    config_seconds: int,
    source_trees: Mapping[TreeId, FileTree],
    state_ref: str,
) -> list[WrittenPlan]:
    """Write the draft commits of all targets of one remote, and then their states. No ref moves.

    Args:
        config_seconds: The date of the config commit, in seconds since 1970.
        source_trees: Maps the IDs of upstream trees to their files. A tree is written if a new state refers to it, and
            the previous state of the same target does not.
        state_ref: The template of state refs.
    """
    if any(plan.heads.is_absent and list_pushes(plan) for plan in plans):
        remote.mirror.write_root_commit()
    heads = _write_drafts(remote, plans, config_seconds, _list_source_commits(plans, source_trees))
    states = {plan.target.name: _with_heads(plan, heads[plan.target.name]) for plan in plans}
    changed = [plan for plan in plans if states[plan.target.name] != plan.previous_state]
    commits = write_states(remote, [(plan.target, states[plan.target.name]) for plan in changed], state_ref)
    written = {
        plan.target.name: WrittenPlan(plan, heads[plan.target.name], states[plan.target.name], commit)
        for plan, commit in zip(changed, commits, strict=True)
    }
    return [written.get(plan.target.name, WrittenPlan(plan, heads[plan.target.name])) for plan in plans]


def _write_drafts(
    remote: Remote, plans: Iterable[TargetPlan], config_seconds: int, source_commits: Iterable[NewCommit]
) -> dict[str, dict[str, CommitId]]:
    commits: list[NewCommit] = []
    last_indexes: dict[tuple[str, str], int] = {}
    for plan in plans:
        for push in list_pushes(plan):
            commits += _list_draft_commits(remote, plan.target, push, len(commits), config_seconds)
            last_indexes[plan.target.name, push.branch] = len(commits) - 1
    # Write all commits in one stream. States are written later, because they refer to the trees of `source_commits`.
    ids = remote.mirror.write_commits([*commits, *source_commits])
    heads: dict[str, dict[str, CommitId]] = {plan.target.name: {} for plan in plans}
    for (name, branch), index in last_indexes.items():
        heads[name][branch] = ids[index]
    return heads


def _list_draft_commits(
    remote: Remote, target: Target, push: PushCommits, first_index: int, config_seconds: int
) -> Iterator[NewCommit]:
    """Yield the commits of one draft branch. A parent is a commit ID, or the index of a commit in the same write."""
    parent: CommitId | int = push.start_commit
    seconds = max(remote.read_commit(push.start_commit).seconds, config_seconds)
    if push.merge:
        yield _build_merge(remote, target, push.start_commit, push.merge, seconds)
        parent, first_index = first_index, first_index + 1
    for index, commit in enumerate(push.commits):
        seconds = max(seconds, commit.min_seconds)
        metadata = (PutFile(*push.metadata_file),) if push.metadata_file else ()
        yield NewCommit((parent,), (*_list_package_changes(remote, target, commit), *metadata), commit.message, seconds)
        parent = first_index + index


def _build_merge(remote: Remote, target: Target, head: CommitId, merge: TargetBranchMerge, seconds: int) -> NewCommit:
    """Return a commit that merges the target branch into a draft, and changes nothing else.

    Because of this commit, a rebase of the draft gives the same tree as a merge, e.g. with "Rebase and merge" on
    GitHub.
    """
    changed = remote.list_changes(merge.base, merge.commit, head)
    changes = tuple(PutObject(path, entry.id, entry.mode) if entry else DeletePath(path) for path, entry in changed)
    seconds = max(seconds, remote.read_commit(merge.commit).seconds)
    return NewCommit((head, merge.commit), changes, format_sync_message(target), seconds)


def _list_package_changes(remote: Remote, target: Target, commit: DraftCommit) -> Iterator[TreeChange]:
    path, status = target.get_package_path(commit.package), target.get_status_file_path(commit.package)
    match commit.content:
        case FileTree():
            yield DeletePath(path)
            yield from (PutFile(f"{path}/{name}", file.data, file.mode) for name, file in commit.content.items())
            yield from (
                PutObject(f"{path}/{name}", entry.id, entry.mode)
                for name, entry in commit.content.special_entries.items()
            )
        case None:
            yield DeletePath(path)
        case tree:
            yield PutObject(path, tree)
    match commit.status:
        case None:
            yield DeletePath(status)
        case bytes():
            yield PutFile(status, commit.status)
        case blob:
            yield PutFile(status, remote.read_blob(blob))


def _with_heads(plan: TargetPlan, heads: Mapping[str, CommitId]) -> TargetState:
    drafts = dict(plan.next_state.drafts)
    for push in list_pushes(plan):
        is_removal = push.branch in plan.heads.removal_branches
        # Keep the record of the pull request, unless the pull request was closed. The daemon does not reopen a closed
        # pull request, but opens a new pull request for the new draft.
        recorded = drafts.get(push.branch) if push.branch not in plan.heads.closed_drafts else None
        pull_request = recorded.pull_request if recorded else None
        drafts[push.branch] = DraftBranch(
            heads[push.branch], push.base_commit, push.is_edited, is_removal, pull_request
        )
    return replace(plan.next_state, drafts=drafts)


def _list_source_commits(plans: Iterable[TargetPlan], source_trees: Mapping[TreeId, FileTree]) -> list[NewCommit]:
    # Write each source tree once, although many targets use it. The state of a target contains only the ID of the tree.
    new = {
        tree
        for plan in plans
        for tree in plan.next_state.collect_trees() - plan.previous_state.collect_trees()
        if tree in source_trees
    }
    contents = [source_trees[tree] for tree in sorted(new)]
    return [
        NewCommit((), tuple(_put_files(files)), "source", FALLBACK_COMMIT_SECONDS, has_empty_base=True)
        for files in contents
    ]


def _put_files(files: FileTree) -> Iterator[PutFile]:
    return (PutFile(path, file.data, file.mode) for path, file in files.items())


def write_states(remote: Remote, states: Sequence[tuple[Target, TargetState]], state_ref: str) -> list[CommitId]:
    """Write the commits of states. The mirror must already contain the trees that the states refer to.

    Each commit writes only the files that differ from the previous state commit. Equal states give equal commits.
    """
    refs = [state_ref.format(repository=target.name) for target, _ in states]
    remote.prefetch_commits(remote.refs[ref] for ref in refs if ref in remote.refs)
    changes = [tuple(_list_state_changes(remote, state, ref)) for (_, state), ref in zip(states, refs, strict=True)]
    commits = remote.mirror.write_commits(
        [
            NewCommit((), change, format_state_message(target), FALLBACK_COMMIT_SECONDS, has_empty_base=True)
            for (target, _), change in zip(states, changes, strict=True)
        ]
    )
    for commit, (_, state) in zip(commits, states, strict=True):
        # Cache the state, because later steps of the pass add data to it.
        remote.cache_state(commit, state)
    return commits


def _list_state_changes(remote: Remote, state: TargetState, ref: str) -> Iterator[TreeChange]:
    """Yield the changes that convert the tree of the previous state commit to the tree of `state`.

    If there is no previous state commit, the changes apply to an empty tree.
    """
    previous_commit = remote.refs.get(ref)
    if previous_commit is None:
        yield from (PutFile(path, content) for path, content in sorted(serialize_state(state).items()))
        yield from _keep_trees(state.collect_trees())
        return
    previous = remote.read_state(previous_commit)
    yield PutObject("", remote.read_commit(previous_commit).tree)
    files = sorted(serialize_state_changes(state, previous).items())
    yield from (DeletePath(path) for path, content in files if content is None)
    yield from (PutFile(path, content) for path, content in files if content is not None)
    yield from (DeletePath(f"trees/{tree}") for tree in sorted(previous.collect_trees() - state.collect_trees()))
    yield from _keep_trees(state.collect_trees() - previous.collect_trees())


def _keep_trees(trees: Iterable[TreeId]) -> Iterator[PutObject]:
    return (PutObject(f"trees/{tree}", tree) for tree in sorted(trees))


def push_states(
    remote: Remote, states: Sequence[tuple[Target, TargetState]], state_ref: str
) -> Mapping[str, PushOutcome]:
    """Write and push only the states, and return the outcomes by target name.

    The push moves a state ref only if no other writer has moved it since this pass read it.
    """
    commits = write_states(remote, states, state_ref)
    refs = [state_ref.format(repository=target.name) for target, _ in states]
    updates = [RefUpdate(ref, commit, remote.refs.get(ref)) for ref, commit in zip(refs, commits, strict=True)]
    units = [PushUnit(target.name, (update,)) for (target, _), update in zip(states, updates, strict=True)]
    return remote.mirror.push(units).outcomes


def push_plans_of_remote(
    mirror: Mirror,
    plans: Sequence[WrittenPlan],
    state_ref: str,
    announce: PushOptionsAnnouncer = lambda plan: (),
    reserved_pushes: int = 0,
) -> dict[str, PushOutcome]:
    """Push the new target branches of one remote, and then the drafts of each target together with its state.

    Args:
        state_ref: The template of state refs.
        announce: Returns the push options that make the host open a pull request.
        reserved_pushes: The number of pushes per minute that this call must leave for other pushes.
    """
    outcomes: dict[str, PushOutcome] = {}
    new = [written for written in plans if written.plan.heads.is_absent and list_pushes(written.plan)]
    if new:
        root = mirror.write_root_commit()
        # Create each branch once, because targets with different directories can share a branch.
        branches = {written.name: written.plan.target.branch for written in new}
        unique = dict.fromkeys(branches.values())
        report = mirror.push(
            [PushUnit(branch, (RefUpdate(BRANCH_PREFIX + branch, root, None),)) for branch in unique], reserved_pushes
        )
        outcomes = {
            name: outcome for name, branch in branches.items() if not isinstance(outcome := report[branch], PushDone)
        }
    refs = mirror.refs()
    units = [
        unit
        for written in plans
        if written.name not in outcomes and (unit := _build_unit(refs, written, state_ref, announce)).updates
    ]
    if units:
        report = mirror.push(units, reserved_pushes)
        outcomes |= {unit.name: report[unit.name] for unit in units}
    return {written.name: outcomes.get(written.name, PushDone()) for written in plans}


def _build_unit(
    refs: Mapping[str, CommitId], written: WrittenPlan, state_ref: str, announce: PushOptionsAnnouncer
) -> PushUnit:
    plan = written.plan
    updates = [
        RefUpdate(BRANCH_PREFIX + push.branch, written.draft_heads[push.branch], push.expected_head)
        for push in list_pushes(plan)
    ]
    for action in plan.branch_actions:
        if isinstance(action, DeleteBranch | ResetBranch):
            new_head = action.commit if isinstance(action, ResetBranch) else None
            updates.append(RefUpdate(BRANCH_PREFIX + action.branch, new_head, action.expected_head))
            if action.branch in plan.heads.proposed:
                updates.append(RefUpdate(proposed_ref(action.branch), None, plan.heads.proposed[action.branch]))
    updates += [RefUpdate(kept_ref(state_ref, written.name, head), head, None) for head in plan.kept_heads]
    if written.state_commit:
        ref = state_ref.format(repository=written.name)
        updates.append(RefUpdate(ref, written.state_commit, refs.get(ref)))
    return PushUnit(written.name, tuple(updates), announce(plan) if list_pushes(plan) else ())


def describe_push_outcome(outcome: PushOutcome) -> str:
    """Return a message that describes the outcome of a push."""
    match outcome:
        case PushDone():
            return "done"
        case PushStale(ref):
            return f"another writer moved {ref}"
        case PushRefused(message):
            return f"the host refused the push: {message}"
        case PushFailed(error):
            return error.full_message
        case PushPostponed(reason):
            return reason


_TAGS = "refs/tags/"
_MAX_TAGS_IN_MESSAGE = 8


@dataclass(frozen=True)
class TagResult:
    """The result of the creation of tags.

    Attributes:
        has_new_tags: Whether tags or states moved. If true, the next pass must not be skipped.
        has_failed: Whether the push of a tag failed. If true, the next pass must try again, even without other changes.
    """

    findings: tuple[Finding, ...] = ()
    has_new_tags: bool = False
    has_failed: bool = False


def merge_tag_results(results: Iterable[TagResult]) -> TagResult:
    """Return one result that contains the results of several remotes."""
    all_results = list(results)
    findings = tuple(finding for result in all_results for finding in result.findings)
    has_new_tags = any(result.has_new_tags for result in all_results)
    return TagResult(findings, has_new_tags, any(result.has_failed for result in all_results))


@dataclass(frozen=True)
class _TagRequest:
    written: WrittenPlan
    tag: MissingTag

    @property
    def target(self) -> Target:
        return self.written.plan.target

    @property
    def ref(self) -> str:
        return _TAGS + self.tag.name


@dataclass(frozen=True)
class _TagFailure:
    """The reason why a tag was not created. If several tags have the same reason, their messages are equal."""

    code: FindingCode
    message: str


# The existing tag, or the reason why the tag cannot be created. None if neither of them is known yet.
_TagStatus = ObjectId | _TagFailure | None


class RevisionTagger:
    """Creates the tags of published revisions. Each tag that the host refuses has its own back-off."""

    def __init__(self, state_ref: str, backoff: Backoff) -> None:
        self._state_ref = state_ref
        self._backoff = backoff
        self._failures: dict[str, _TagFailure] = {}

    def push_missing_tags(self, remote: Remote, plans: Sequence[WrittenPlan]) -> TagResult:
        """Create the missing tags of one remote, and record the existing tags in the states of their targets.

        An existing tag is recorded if it points to the commit of the revision. A tag that points to a different object
        is not changed. Errors of the remote become findings.
        """
        requests = [_TagRequest(written, tag) for written in plans for tag in written.plan.missing_tags]
        if not requests:
            return TagResult()
        try:
            statuses = self._create_tags(remote, requests)
            has_recorded = self._record_tags(remote, requests, statuses)
        except GitError as error:
            failure = _TagFailure(PassCodes.REVISION_TAG_FAILED, error.full_message)
            return TagResult(tuple(_build_findings(requests, [failure] * len(requests))), has_failed=True)
        has_failed = any(
            isinstance(status, _TagFailure) and status.code == PassCodes.REVISION_TAG_FAILED for status in statuses
        )
        return TagResult(tuple(_build_findings(requests, statuses)), has_recorded or None in statuses, has_failed)

    def _create_tags(self, remote: Remote, requests: Sequence[_TagRequest]) -> list[_TagStatus]:
        valid = [request for request in requests if is_ref_name(request.ref)]
        remote.mirror.fetch_tags({format_tag_prefix(request.target, request.tag.package) for request in valid})
        # Create each tag for the first target that requests it, because several targets can request the same tag name.
        new = {request.tag.name: request for request in reversed(valid) if self._find_tag(remote, request) is None}
        tags = [_build_tag(remote, request) for request in new.values()]
        report = remote.mirror.push_tags(dict(zip(new, remote.mirror.write_tags(tags), strict=True)))
        for name, request in new.items():
            self._record_outcome(remote, request, report[name])
        return [self._find_tag(remote, request) for request in requests]

    def _find_tag(self, remote: Remote, request: _TagRequest) -> _TagStatus:
        """Return the existing tag, or the reason why the tag cannot be created. Return None if creation is possible."""
        if not is_ref_name(request.ref):
            return _TagFailure(PassCodes.REVISION_TAG_REFUSED, "Git does not allow this tag name")
        existing = remote.refs.get(request.ref)
        if existing is not None:
            has_commit = remote.mirror.peel_ref(request.ref) == request.tag.revision.commit
            return ObjectId(existing) if has_commit else _TagFailure(PassCodes.REVISION_TAG_TAKEN, "")
        if not _has_commit(remote, request.tag.revision.commit):
            return _TagFailure(PassCodes.REVISION_TAG_REFUSED, "the commit of the revision does not exist any more")
        key = _format_key(remote, request)
        return self._failures.get(key) if self._backoff.is_waiting(key) else None

    def _record_outcome(self, remote: Remote, request: _TagRequest, outcome: PushOutcome) -> None:
        key = _format_key(remote, request)
        match outcome:
            case PushDone():
                _log_tag(remote, request)
                self._backoff.record_success(key)
            case PushRefused(message):
                self._failures[key] = _TagFailure(
                    PassCodes.REVISION_TAG_REFUSED, f"the host refused the push: {message}"
                )
                self._backoff.record_failure(key)
            case PushFailed(error):
                self._failures[key] = _TagFailure(PassCodes.REVISION_TAG_FAILED, error.full_message)
                self._backoff.record_failure(key)
            case PushStale():
                log.info("race_lost", targets=[request.target.name])

    def _record_tags(self, remote: Remote, requests: Sequence[_TagRequest], statuses: Sequence[_TagStatus]) -> bool:
        """Record the existing tags in the states of the targets, and push these states.

        Return whether the state ref of any target has moved, either through this push or through another writer.
        """
        existing: dict[str, tuple[WrittenPlan, dict[tuple[str, int], ObjectId]]] = {}
        for request, status in zip(requests, statuses, strict=True):
            if isinstance(status, str):
                _, tags = existing.setdefault(request.written.name, (request.written, {}))
                tags[request.tag.package, request.tag.revision.number] = status
        states = [
            (written.plan.target, record_tags(written.state or written.plan.next_state, tags))
            for written, tags in existing.values()
        ]
        outcomes = push_states(remote, states, self._state_ref)
        # Do not retry if another writer moved a state before the push, because the next pass records the missing tags.
        return any(isinstance(outcome, PushDone | PushStale) for outcome in outcomes.values())


def _format_key(remote: Remote, request: _TagRequest) -> str:
    return f"{remote.mirror.url} {request.ref}"


def _has_commit(remote: Remote, commit: CommitId) -> bool:
    try:
        remote.read_commit(commit)
    except ObjectMissingError:
        return False
    return True


def _log_tag(remote: Remote, request: _TagRequest) -> None:
    tag, approval = request.tag, find_approval(remote.read_commit(request.tag.revision.commit))
    log.info(
        "revision_tagged",
        target=request.target.name,
        tag=tag.name,
        package=tag.package,
        revision=tag.revision.number,
        commit=tag.revision.commit,
        source=approval.source,
        author=approval.author,
    )


def _build_tag(remote: Remote, request: _TagRequest) -> NewTag:
    commit = request.tag.revision.commit
    return NewTag(
        request.tag.name, commit, format_tag_message(request.tag, request.target), remote.read_commit(commit).seconds
    )


def _build_findings(requests: Sequence[_TagRequest], statuses: Sequence[_TagStatus]) -> Iterator[Finding]:
    """Yield one finding for each target and reason. A finding lists all tags of the target with this reason."""
    failed: dict[tuple[str, _TagFailure], list[_TagRequest]] = {}
    for request, status in zip(requests, statuses, strict=True):
        if isinstance(status, _TagFailure):
            failed.setdefault((request.written.name, status), []).append(request)
    for (_, failure), group in failed.items():
        target = group[0].target
        message = _format_failure(failure, [request.tag.name for request in group])
        yield failure.code.finding(f"{target.title}: {message}", target.location)


def _format_failure(failure: _TagFailure, names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_TAGS_IN_MESSAGE} more" if len(names) > _MAX_TAGS_IN_MESSAGE else ""
    tags = f"{'tag' if len(names) == 1 else 'tags'} {', '.join(names[:_MAX_TAGS_IN_MESSAGE])}{more}"
    if failure.code == PassCodes.REVISION_TAG_TAKEN:
        if len(names) == 1:
            return (
                f"{tags} was not created, because a tag with this name already exists on another commit. Next step:"
                " delete or rename the existing tag"
            )
        return (
            f"{tags} were not created, because tags with these names already exist on other commits. Next step:"
            " delete or rename the existing tags"
        )
    return f"{tags} could not be created, because {failure.message}"
