"""Publishers push a plan to the remotes, only show the plan (dry run), or write the drafts of the plan to a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from reconciler.catalog.files import CommitId, FileTree
from reconciler.git.errors import (
    FolderUnwritableError,
    GitError,
    ObjectMissingError,
    RemoteBusyError,
    RepositoryMissingError,
    StatusBranchError,
    TooLargeError,
    TreeMalformedError,
)
from reconciler.git.filesystem import remove_folder
from reconciler.git.names import is_tree_path
from reconciler.git.object_writer import DeletePath, NewCommit, PutFile
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
from reconciler.git.url import parse_url
from reconciler.krm.findings import Finding
from reconciler.output.status.summary import SUMMARY_FILE, is_status_branch
from reconciler.planning.decide.fleet_plan import FleetPlan
from reconciler.planning.layout.config_proposal import ConfigProposal
from reconciler.planning.layout.refs import DeleteBranch, PushCommits, ResetBranch
from reconciler.planning.model.codes import PlanningCodes
from reconciler.planning.model.targets import Target
from reconciler.reconcile.cache_files import FirstSeenTimes, KnownHeads
from reconciler.reconcile.codes import PassCodes
from reconciler.reconcile.commits import (
    PushOptionsAnnouncer,
    RevisionTagger,
    TagResult,
    WrittenPlan,
    describe_push_outcome,
    push_plans_of_remote,
)
from reconciler.reconcile.config_proposals import ConfigProposals
from reconciler.reconcile.config_source import ConfigSnapshot
from reconciler.reconcile.publication_log import log_push_outcomes
from reconciler.reconcile.pull_requests.synchronizer import PullRequests, PullRequestSummary
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX, RefTemplates
from reconciler.reconcile.review_actions import AnnotationApprovals, ApprovalResult
from reconciler.telemetry.event_log import log

MAX_STATUS_ATTEMPTS = 5
StatusFiles = Callable[[FleetPlan, Mapping[str, bytes], Callable[[Finding], None]], Mapping[str, bytes]]


class PushPublisher:
    """Pushes the plans of all targets, and then the status branch."""

    def __init__(
        self,
        state_ref: str,
        status_url: str,
        status_branch: str,
        status_files: StatusFiles,
        message: Callable[[Mapping[str, bytes]], str],
        tagger: RevisionTagger,
        approvals: AnnotationApprovals,
        announce: PushOptionsAnnouncer,
    ) -> None:
        self._state_ref = state_ref
        self._status_url = status_url
        self._status_display_url = parse_url(status_url).text
        self._status_ref = BRANCH_PREFIX + status_branch
        self._status_files = status_files
        self._message = message
        self._tagger = tagger
        self._approvals = approvals
        self._announce = announce
        self._refused: dict[str, PushRefused] = {}
        self._last_status: tuple[CommitId | None, Mapping[str, bytes]] = (None, {})
        self.status_outcome: PushOutcome = PushDone()
        self.status_findings: tuple[Finding, ...] = ()

    @property
    def status_error(self) -> str:
        """The error that prevented the last push of the status. It is "" if the push succeeded or was postponed."""
        return (
            ""
            if isinstance(self.status_outcome, PushDone | PushPostponed)
            else describe_push_outcome(self.status_outcome)
        )

    def publish(self, remote: Remote, plans: Sequence[WrittenPlan]) -> Mapping[str, PushOutcome]:
        """Push the targets of one remote, and log an event for each pushed draft.

        If the remote refused a plan, the plan is not pushed again until the plan or the head of its target branch
        changes.
        """
        refused = {written.name: self._refused[written.id] for written in plans if written.id in self._refused}
        new = [written for written in plans if written.name not in refused]
        # Reserve one push of the rate limit for a postponed status, because drafts could use all pushes in each pass.
        reserved_pushes = int(
            isinstance(self.status_outcome, PushPostponed) and remote.mirror.url == self._status_display_url
        )
        outcomes = push_plans_of_remote(remote.mirror, new, self._state_ref, self._announce, reserved_pushes)
        log_push_outcomes(remote, [(written, outcomes[written.name]) for written in new])
        if not remote.mirror.can_use_push_options:
            # Log a warning, because the drafts are pushed, but the host has opened no pull requests for them.
            log.warning("push_options_unsupported", remote=remote.mirror.url)
        self._refused |= {
            written.id: outcome for written in new if isinstance(outcome := outcomes[written.name], PushRefused)
        }
        return {**refused, **outcomes}

    def push_tags(self, remote: Remote, plans: Sequence[WrittenPlan]) -> TagResult:
        """Push the missing tags of published revisions."""
        return self._tagger.push_missing_tags(remote, plans)

    def push_approvals(self, groups: Sequence[tuple[Remote, Sequence[WrittenPlan]]], now: int) -> ApprovalResult:
        """Publish the drafts that annotations approve and that are due at `now`."""
        return self._approvals.push_due_approvals(groups, now)

    def update_pull_requests(
        self,
        pull_requests: PullRequests,
        targets: Sequence[Target],
        remotes: Remotes,
        templates: RefTemplates,
        retry_at: int,
    ) -> PullRequestSummary:
        """Update the pull requests of drafts."""
        return pull_requests.update(targets, remotes, templates, retry_at)

    def push_config_proposal(
        self, proposals: ConfigProposals, proposal: ConfigProposal, config: ConfigSnapshot
    ) -> PushOutcome:
        """Push a config proposal to the config repository."""
        return proposals.push(proposal, config)

    def store_publication_times(self, times: FirstSeenTimes) -> None:
        """Write the publication times to the cache file."""
        times.store()

    def store_known_heads(self, heads: KnownHeads) -> None:
        """Write the recorded heads of target branches to the cache file."""
        heads.store()

    def push_status(self, plan: FleetPlan | None, remotes: Remotes) -> PushOutcome:
        """Commit and push changed status files.

        If another writer moves the branch before the push, fetch and try again.
        """
        self.status_findings = ()
        if plan is None:
            return PushDone()
        if remotes.get(self._status_url) is None:
            remotes.fetch((), (self._status_url,))
        for _ in range(MAX_STATUS_ATTEMPTS):
            remote = remotes.get(self._status_url)
            if remote is None:
                error = remotes.failures[self._status_url]
                self.status_outcome = (
                    PushPostponed(error.message) if isinstance(error, RemoteBusyError) else PushFailed(error)
                )
                break
            self.status_outcome = self._try_to_write_status(plan, remote)
            if not isinstance(self.status_outcome, PushStale):
                break
            remotes.fetch((), (self._status_url,))
        if isinstance(self.status_outcome, PushFailed) and isinstance(self.status_outcome.error, StatusBranchError):
            self.status_findings = (PassCodes.STATUS_BRANCH_UNUSABLE.finding(self.status_outcome.error.full_message),)
        if self.status_error:
            log.error("status_push_failed", message=self.status_error)
        return self.status_outcome

    def _try_to_write_status(self, plan: FleetPlan, remote: Remote) -> PushOutcome:
        """Write the status. Return errors as an outcome, because the pass must continue after an error."""
        try:
            return self._write_status(plan, remote)
        except GitError as error:
            return PushFailed(error)

    def _write_status(self, plan: FleetPlan, remote: Remote) -> PushOutcome:
        head = remote.refs.get(self._status_ref)
        if not remote.refs and _is_reset(plan, self._status_url):
            return PushFailed(
                RepositoryMissingError(
                    f"{remote.mirror.url} is empty; restore the repository, or set the annotation from the"
                    f" findings {PlanningCodes.REPOSITORY_RESET.name} of its targets"
                )
            )
        before = self._read_status(remote, head)
        findings: list[Finding] = []
        after = self._status_files(plan, before, findings.append)
        self.status_findings = tuple(findings)
        changed = sorted(path for path, data in after.items() if before.get(path) != data)
        deletions = tuple(DeletePath(path) for path in sorted(before.keys() - after.keys()))
        if not changed and not deletions:
            return PushDone()
        files = tuple(PutFile(path, after[path]) for path in changed)
        seconds = max(plan.latest_commit_seconds, remote.read_commit(head).seconds if head else 0)
        commit = NewCommit(
            (head,) if head else (), (*deletions, *files), self._message(after), seconds, has_empty_base=head is None
        )
        (new_head,) = remote.mirror.write_commits([commit])
        unit = PushUnit("status", (RefUpdate(self._status_ref, new_head, head),))
        outcome = remote.mirror.push([unit])["status"]
        if isinstance(outcome, PushDone):
            self._last_status = (new_head, after)
        return outcome

    def _read_status(self, remote: Remote, head: CommitId | None) -> Mapping[str, bytes]:
        """Return the files of the status branch, from the cache if the branch has not moved since the last call."""
        if head is None:
            return {}
        if head != self._last_status[0]:
            branch = f"the branch {self._status_ref.removeprefix(BRANCH_PREFIX)} of {remote.mirror.url}"
            with status_branch_errors(branch):
                files = remote.read_files(remote.read_commit(head).tree)
            check_status_paths(files, branch)
            self._last_status = (head, {path: file.data for path, file in files.items()})
        return self._last_status[1]


@contextmanager
def status_branch_errors(branch: str) -> Iterator[None]:
    """Raise StatusBranchError if the content of the status branch cannot be read. The message begins with `branch`."""
    try:
        yield
    except (ObjectMissingError, TooLargeError, TreeMalformedError) as error:
        raise StatusBranchError(f"{branch} cannot be read as a status branch: {error.message}") from error


def check_status_paths(paths: Collection[str], branch: str) -> None:
    """Raise StatusBranchError if a branch has files that do not belong to a status branch.

    A pass would delete these files.
    """
    if paths and not is_status_branch(paths):
        examples = ", ".join(sorted(paths)[:3])
        raise StatusBranchError(
            f"{branch} must be empty or contain {SUMMARY_FILE}, because a pass deletes all other files on "
            f"this branch; existing files: {examples}"
        )


def _is_reset(plan: FleetPlan, url: str) -> bool:
    """Return whether a target has an error because the repository with this URL was emptied."""
    reset_targets = (
        target_plan.target
        for target_plan in plan.targets
        if any(finding.code == PlanningCodes.REPOSITORY_RESET.name for finding in target_plan.findings)
    )
    status_repository = parse_url(url).identity
    return any(target.repository_id == status_repository for target in reset_targets)


class _LocalPublisher:
    """Base class of publishers that do not push. Most methods, such as those for tags and approvals, do nothing."""

    status_error = ""
    status_findings: tuple[Finding, ...] = ()

    def store_known_heads(self, heads: KnownHeads) -> None:
        """Do nothing, because only a push proves that the daemon uses a target branch."""

    def store_publication_times(self, times: FirstSeenTimes) -> None:
        """Do nothing, because a dry run must not start the soak time of a rollout wave."""

    def push_tags(self, remote: Remote, plans: Sequence[WrittenPlan]) -> TagResult:
        """Do nothing, because revisions are tagged only after their publication."""
        return TagResult()

    def push_approvals(self, groups: Sequence[tuple[Remote, Sequence[WrittenPlan]]], now: int) -> ApprovalResult:
        """Do nothing, because the findings of the plan describe the approvals that a real pass would publish."""
        return ApprovalResult()

    def update_pull_requests(
        self,
        pull_requests: PullRequests,
        targets: Sequence[Target],
        remotes: Remotes,
        templates: RefTemplates,
        retry_at: int,
    ) -> PullRequestSummary:
        """Do nothing, because a publisher that does not push calls no forge."""
        return PullRequestSummary()

    def push_config_proposal(
        self, proposals: ConfigProposals, proposal: ConfigProposal, config: ConfigSnapshot
    ) -> PushOutcome:
        """Do nothing, because the plan and its findings describe the proposal."""
        return PushDone()


class DryRunPublisher(_LocalPublisher):
    """Pushes nothing. The written commits stay in the mirrors, and no ref points to them."""

    def publish(self, remote: Remote, plans: Sequence[WrittenPlan]) -> Mapping[str, PushOutcome]:
        """Return `PushDone` for each target, as if no other writer had moved its refs."""
        return {written.name: PushDone() for written in plans}

    def push_status(self, plan: FleetPlan | None, remotes: Remotes) -> PushOutcome:
        """Do nothing, because a dry run writes no status."""
        return PushDone()


class FolderPublisher(_LocalPublisher):
    """Writes the drafts of each target as files to `OUT/<target>/`, and the status to `OUT/status/`.

    Existing content of the folder is deleted when the first file is written. A pass that fails earlier deletes nothing.
    """

    def __init__(self, out: Path, status_files: StatusFiles) -> None:
        self._out = out
        self._status_files = status_files
        self._is_cleared = False
        self._clear_lock = Lock()

    def publish(self, remote: Remote, plans: Sequence[WrittenPlan]) -> Mapping[str, PushOutcome]:
        """Write the files of each target branch to the folder, with the changes of all drafts."""
        return {written.name: self._write_target(remote, written) for written in plans}

    def _write_target(self, remote: Remote, written: WrittenPlan) -> PushOutcome:
        try:
            self._clear()
            _write_files(self._out / written.name, _merge_drafts(remote, written))
        except OSError as error:
            return PushFailed(self._create_error(error))
        return PushDone()

    def push_status(self, plan: FleetPlan | None, remotes: Remotes) -> PushOutcome:
        """Write the files of the status branch to the folder."""
        findings: list[Finding] = []
        files = self._status_files(plan, {}, findings.append) if plan else {}
        self.status_findings = tuple(findings)
        try:
            self._clear()
            # Create the folder even if nothing is written to it, for example because a shard has no target.
            self._out.mkdir(parents=True, exist_ok=True)
            for path, data in files.items():
                _write_file(self._out / "status" / path, data)
        except OSError as error:
            unwritable = self._create_error(error)
            self.status_findings += (
                PassCodes.PUSH_FAILED.finding(f"the status is incomplete, because {unwritable.full_message}"),
            )
            return PushFailed(unwritable)
        return PushDone()

    def _create_error(self, error: OSError) -> FolderUnwritableError:
        return FolderUnwritableError(f"{error.filename or self._out} cannot be written: {error.strerror or str(error)}")

    def _clear(self) -> None:
        # Several threads publish repositories at the same time. Without the lock, a thread could delete the new files
        # of another thread.
        with self._clear_lock:
            if not self._is_cleared:
                self._delete_content()
            self._is_cleared = True

    def _delete_content(self) -> None:
        # Delete only the content of the folder, because the folder can be a mount point or the working directory of a
        # process.
        for path in self._out.iterdir() if self._out.is_dir() else ():
            if path.is_dir() and not path.is_symlink():
                remove_folder(path)
            else:
                path.unlink()


def _merge_drafts(remote: Remote, written: WrittenPlan) -> FileTree:
    """Return the files of the target branch with the changes of all drafts."""
    heads = dict(_list_draft_heads(written))
    if len(heads) == 1:
        (head,) = heads.values()
        return remote.read_files(remote.read_commit(head).tree)
    assert written.plan.heads.target_branch
    files = remote.read_files(remote.read_commit(written.plan.heads.target_branch).tree)
    for head in heads.values():
        drafted = remote.read_files(remote.read_commit(head).tree)
        files = files.with_files({path: file for path, file in drafted.items() if files.get(path) != file})
    return files


def _list_draft_heads(written: WrittenPlan) -> Iterator[tuple[str, CommitId]]:
    for action in written.plan.branch_actions:
        if action.branch in written.plan.heads.removal_branches:
            # Skip removal drafts, because a package stays until a person approves its removal.
            continue
        if isinstance(action, PushCommits):
            yield action.branch, written.draft_heads[action.branch]
        elif not isinstance(action, DeleteBranch | ResetBranch) and action.branch in written.plan.heads.drafts:
            yield action.branch, written.plan.heads.drafts[action.branch]


def _write_files(folder: Path, files: FileTree) -> None:
    for path, file in files.items():
        if not is_tree_path(path):
            # Skip this path, because it is outside of the folder. Other writers can commit such a path to the branch.
            log.warning("file_skipped", folder=folder.name, path=path)
            continue
        _write_file(folder / path, file.data)
        if file.executable:
            (folder / path).chmod(0o755)


def _write_file(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def check_output_folder(out: Path, config: Path, should_replace: bool) -> str:
    """Create the output folder. Return the reason if the folder cannot be used, or "" if it can be used.

    Args:
        should_replace: Whether existing content of the output folder can be deleted (`--force`).

    Raises:
        OSError: The folder cannot be created.
    """
    if out.exists() and not out.is_dir():
        return f"{out} must be a folder"
    if overlap := _describe_overlap(out.resolve(), config.resolve()):
        return f"{out} {overlap}"
    if out.is_dir() and any(out.iterdir()):
        if not should_replace:
            return f"{out} must be absent or empty; --force replaces its content"
        if any(path.name == ".git" or (path / "HEAD").is_file() for path in (out, *out.iterdir())):
            return f"{out} must not contain a Git repository, because --force would delete the repository"
    out.mkdir(parents=True, exist_ok=True)
    return "" if os.access(out, os.W_OK | os.X_OK) else f"{out} must be a writable folder"


def _describe_overlap(out: Path, config: Path) -> str:
    if out == config or out in config.parents:
        return f"must not contain the config, {config}"
    if config in out.parents and not any(part.startswith(".") for part in out.relative_to(config).parts):
        return (
            f"must not be in {config}, because passes would read the output as config; choose another folder or a"
            " hidden folder"
        )
    return ""
