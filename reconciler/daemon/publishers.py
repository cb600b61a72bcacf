"""What becomes of a plan: pushed to the remotes, kept to be shown, or written to a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from reconciler.daemon.approvals import Approvals, Approved
from reconciler.daemon.codes import PUSH_FAILED, STATUS_BRANCH_UNUSABLE
from reconciler.daemon.config import ConfigSnapshot
from reconciler.daemon.events import log
from reconciler.daemon.first_seen import FirstSeen
from reconciler.daemon.known_heads import KnownHeads
from reconciler.daemon.open_drafts import RefNames
from reconciler.daemon.proposals import Proposals
from reconciler.daemon.publish import HEADS, Announce, Written, describe, push_all
from reconciler.daemon.remotes import Remote, Remotes
from reconciler.daemon.requests import Requested, Requests
from reconciler.daemon.tags import Tagged, Tags
from reconciler.gitio.errors import (
    FolderUnwritableError,
    GitError,
    ObjectMissingError,
    RepositoryMissingError,
    StatusBranchError,
    TooLargeError,
    TreeMalformedError,
    UnderWayError,
)
from reconciler.gitio.names import is_path
from reconciler.gitio.url import parse_url
from reconciler.gitio.verdicts import Done, Failed, Lost, Outcome, Postponed, PushUnit, RefUpdate, Refused
from reconciler.gitio.walk import remove_folder
from reconciler.gitio.writer import Drop, NewCommit, Put
from reconciler.krm.findings import Finding
from reconciler.planning.branches import End, Grow, Rest
from reconciler.planning.codes import REPOSITORY_RESET
from reconciler.planning.destination import Destination
from reconciler.planning.fleet import FleetPlan
from reconciler.planning.proposal import Proposal
from reconciler.reporting.summary import SUMMARY, is_status
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import CommitId

MOST_TRIES = 5
StatusFiles = Callable[[FleetPlan, Mapping[str, bytes], Callable[[Finding], None]], Mapping[str, bytes]]


class Push:
    """Pushes every destination, and the status branch last."""

    def __init__(
        self,
        state_ref: str,
        status_url: str,
        status_branch: str,
        status_files: StatusFiles,
        message: Callable[[Mapping[str, bytes]], str],
        tags: Tags,
        approvals: Approvals,
        announce: Announce,
    ) -> None:
        self._state_ref = state_ref
        self._status_url = status_url
        self._status_at = parse_url(status_url).text
        self._status_ref = HEADS + status_branch
        self._status_files = status_files
        self._message = message
        self._tags = tags
        self._approvals = approvals
        self._announce = announce
        self._refused: dict[str, Refused] = {}
        self._written: tuple[CommitId | None, Mapping[str, bytes]] = (None, {})
        self.status_outcome: Outcome = Done()
        self.status_findings: tuple[Finding, ...] = ()

    @property
    def unwritten(self) -> str:
        """Why the status of the last pass was not written; "" when it was, or waits for its turn."""
        return "" if isinstance(self.status_outcome, Done | Postponed) else describe(self.status_outcome)

    def publish(self, remote: Remote, written: Sequence[Written]) -> Mapping[str, Outcome]:
        """Push one remote's destinations; each draft that got there is an event.

        What the host refused is not sent again until it, or the cluster branch, is another (git.md, push refused).
        """
        known = {one.name: self._refused[one.id] for one in written if one.id in self._refused}
        new = [one for one in written if one.name not in known]
        # a status that waited for drafts goes before them now, or it would wait for as long as there are any
        leave = int(isinstance(self.status_outcome, Postponed) and remote.mirror.url == self._status_at)
        outcomes = push_all(remote.mirror, new, self._state_ref, self._announce, leave)
        for one in new:
            _tell(one, outcomes[one.name])
        if not remote.mirror.takes_push_options:
            # the drafts are there; that nobody opened a pull request for them is for people to know
            log.warning("no_push_options", url=remote.mirror.url)
        self._refused |= {one.id: end for one in new if isinstance(end := outcomes[one.name], Refused)}
        return {**known, **outcomes}

    def tag(self, remote: Remote, written: Sequence[Written]) -> Tagged:
        """Push the tags that revisions lack."""
        return self._tags.make(remote, written)

    def approve(self, groups: Sequence[tuple[Remote, Sequence[Written]]], now: int) -> Approved:
        """Push what annotations approve."""
        return self._approvals.make(groups, now)

    def request(
        self, requests: Requests, destinations: Sequence[Destination], remotes: Remotes, names: RefNames, retry: int
    ) -> Requested:
        """Bring the pull requests of drafts up to date."""
        return requests.bring(destinations, remotes, names, retry)

    def propose(self, proposals: Proposals, proposal: Proposal, snapshot: ConfigSnapshot) -> Outcome:
        """Push what is proposed to the config."""
        return proposals.push(proposal, snapshot)

    def remember(self, seen: FirstSeen) -> None:
        """Write down what the pass saw first, for the next process."""
        seen.keep()

    def keep_heads(self, heads: KnownHeads) -> None:
        """Write the heads into the cache, for passes that find neither branch nor state."""
        heads.keep()

    def finish(self, plan: FleetPlan | None, remotes: Remotes) -> Outcome:
        """Commit and push what has changed of the status; a lost race is tried again on the new head."""
        self.status_findings = ()
        if plan is None:
            return Done()
        if remotes.get(self._status_url) is None:
            remotes.fetch((), (self._status_url,))
        for _ in range(MOST_TRIES):
            remote = remotes.get(self._status_url)
            if remote is None:
                error = remotes.failures[self._status_url]
                self.status_outcome = Postponed(error.message) if isinstance(error, UnderWayError) else Failed(error)
                break
            self.status_outcome = self._status_written(plan, remote)
            if not isinstance(self.status_outcome, Lost):
                break
            remotes.fetch((), (self._status_url,))
        if isinstance(self.status_outcome, Failed) and isinstance(self.status_outcome.error, StatusBranchError):
            self.status_findings = (STATUS_BRANCH_UNUSABLE.finding(self.status_outcome.error.told),)
        if self.unwritten:
            log.error("status_not_written", why=self.unwritten)
        return self.status_outcome

    def _status_written(self, plan: FleetPlan, remote: Remote) -> Outcome:
        """Return the outcome of writing the status; drafts were pushed before, so that no error ends the pass here."""
        try:
            return self._write_status(plan, remote)
        except GitError as error:
            return Failed(error)

    def _write_status(self, plan: FleetPlan, remote: Remote) -> Outcome:
        head = remote.refs.get(self._status_ref)
        if not remote.refs and _is_reset(plan, self._status_url):
            return Failed(RepositoryMissingError(f"{remote.mirror.url} is empty, and that is not acknowledged yet"))
        before = self._contents(remote, head)
        findings: list[Finding] = []
        after = self._status_files(plan, before, findings.append)
        self.status_findings = tuple(findings)
        changed = sorted(path for path, data in after.items() if before.get(path) != data)
        drops = tuple(Drop(path) for path in sorted(before.keys() - after.keys()))
        if not changed and not drops:
            return Done()
        puts = tuple(Put(path, after[path]) for path in changed)
        seconds = max(plan.as_of, remote.commit(head).seconds if head else 0)
        commit = NewCommit((head,) if head else (), (*drops, *puts), self._message(after), seconds, fresh=head is None)
        (new,) = remote.mirror.write([commit])
        unit = PushUnit("status", (RefUpdate(self._status_ref, new, head),))
        outcome = remote.mirror.push([unit])["status"]
        if isinstance(outcome, Done):
            self._written = (new, after)
        return outcome

    def _contents(self, remote: Remote, head: CommitId | None) -> Mapping[str, bytes]:
        """Return the files of the status branch; what this one wrote last need not be read again."""
        if head is None:
            return {}
        if head != self._written[0]:
            branch = f"the branch {self._status_ref.removeprefix(HEADS)} of {remote.mirror.url}"
            with status_branch_errors(branch):
                files = remote.files(remote.commit(head).tree)
            check_status_paths(files, branch)
            self._written = (head, {path: file.data for path, file in files.items()})
        return self._written[1]


@contextmanager
def status_branch_errors(branch: str) -> Iterator[None]:
    """Raise StatusBranchError where `branch` cannot be read because of what it points to or contains."""
    try:
        yield
    except (ObjectMissingError, TooLargeError, TreeMalformedError) as error:
        raise StatusBranchError(f"{branch} must be a branch that a pass wrote: {error.message}") from error


def check_status_paths(paths: Collection[str], branch: str) -> None:
    """Raise StatusBranchError for the files of another branch: a pass deletes the files that it does not write."""
    if paths and not is_status(paths):
        found = ", ".join(sorted(paths)[:3])
        raise StatusBranchError(
            f"{branch} must be empty or contain {SUMMARY}, because a pass deletes other files there; it has {found}"
        )


def _is_reset(plan: FleetPlan, url: str) -> bool:
    """Return whether a repository is held because it was emptied."""
    held = (
        one.destination for one in plan.destinations if any(each.code == REPOSITORY_RESET.name for each in one.findings)
    )
    status = parse_url(url).identity
    return any(one.repository_id == status for one in held)


def _tell(one: Written, outcome: Outcome) -> None:
    destination = one.plan.destination
    if isinstance(outcome, Done):
        for branch, head in one.heads.items():
            log.info("draft_written", destination=destination.name, branch=branch, commit=head)
    elif isinstance(outcome, Postponed):
        log.info("push_postponed", destination=destination.name, why=outcome.why)
    elif not isinstance(outcome, Lost):
        log.error("push_failed", destination=destination.name, why=describe(outcome))


class _Unpushed:
    """What nobody but `Push` does: tags, approvals, proposals and requests are there to be looked at."""

    unwritten = ""
    status_findings: tuple[Finding, ...] = ()

    def keep_heads(self, heads: KnownHeads) -> None:
        """Write nothing: only a pass that pushes proves that a branch is in use."""

    def remember(self, seen: FirstSeen) -> None:
        """Forget it: looking at a plan is nothing that others wait for."""

    def tag(self, remote: Remote, written: Sequence[Written]) -> Tagged:
        """Make none: what is tagged has been published before."""
        return Tagged()

    def approve(self, groups: Sequence[tuple[Remote, Sequence[Written]]], now: int) -> Approved:
        """Publish nothing: the findings say what would be."""
        return Approved()

    def request(
        self, requests: Requests, destinations: Sequence[Destination], remotes: Remotes, names: RefNames, retry: int
    ) -> Requested:
        """Ask no forge for anything."""
        return Requested()

    def propose(self, proposals: Proposals, proposal: Proposal, snapshot: ConfigSnapshot) -> Outcome:
        """Leave the config alone: plan and findings say what is proposed."""
        return Done()


class Keep(_Unpushed):
    """Pushes nothing: the commits stay in the mirrors, unreachable, and the plan is there to be shown."""

    def publish(self, remote: Remote, written: Sequence[Written]) -> Mapping[str, Outcome]:
        """Return what a push would come to if nobody else writes."""
        return {one.name: Done() for one in written}

    def finish(self, plan: FleetPlan | None, remotes: Remotes) -> Outcome:
        """Leave the status branch alone."""
        return Done()


class Folder(_Unpushed):
    """Writes each destination's draft as files: `OUT/<repository>/…`, and `OUT/status/…` (design 7, 10.30).

    What stands in the folder goes when the first file is written, not before: a pass that cannot run removes nothing.
    """

    def __init__(self, out: Path, status_files: StatusFiles) -> None:
        self._out = out
        self._status_files = status_files
        self._is_empty = False

    def publish(self, remote: Remote, written: Sequence[Written]) -> Mapping[str, Outcome]:
        """Write the whole tree that each destination's drafts come to."""
        return {one.name: self._written(remote, one) for one in written}

    def _written(self, remote: Remote, one: Written) -> Outcome:
        try:
            self._empty()
            _write_files(self._out / one.name, _whole(remote, one))
        except OSError as error:
            return Failed(self._unwritable(error))
        return Done()

    def finish(self, plan: FleetPlan | None, remotes: Remotes) -> Outcome:
        """Write the status as the status branch would hold it."""
        findings: list[Finding] = []
        files = self._status_files(plan, {}, findings.append) if plan else {}
        self.status_findings = tuple(findings)
        try:
            self._empty()
            # a shard may have no destination, and the folder is there all the same
            self._out.mkdir(parents=True, exist_ok=True)
            for path, data in files.items():
                _write(self._out / "status" / path, data)
        except OSError as error:
            unwritable = self._unwritable(error)
            self.status_findings += (PUSH_FAILED.finding(f"the status: {unwritable.told}"),)
            return Failed(unwritable)
        return Done()

    def _unwritable(self, error: OSError) -> FolderUnwritableError:
        why = error.strerror or str(error)
        return FolderUnwritableError(f"{error.filename or self._out} cannot be written: {why}")

    def _empty(self) -> None:
        # the folder itself stays: it may be a mount point, or somebody's working directory
        for path in self._out.iterdir() if self._out.is_dir() and not self._is_empty else ():
            if path.is_dir() and not path.is_symlink():
                remove_folder(path)
            else:
                path.unlink()
        self._is_empty = True


def _whole(remote: Remote, one: Written) -> FileTree:
    """Return the cluster branch with every draft's packages on it; one draft alone is its own whole tree."""
    heads = dict(_draft_heads(one))
    if len(heads) == 1:
        (head,) = heads.values()
        return remote.files(remote.commit(head).tree)
    assert one.plan.heads.branch
    base = remote.files(remote.commit(one.plan.heads.branch).tree)
    for head in heads.values():
        drafted = remote.files(remote.commit(head).tree)
        base = base.with_files({path: file for path, file in drafted.items() if base.get(path) != file})
    return base


def _draft_heads(one: Written) -> Iterator[tuple[str, CommitId]]:
    for layout in one.plan.layouts:
        if layout.branch in one.plan.heads.removals:
            # what is to go is still there until people approve it
            continue
        if isinstance(layout, Grow):
            yield layout.branch, one.heads[layout.branch]
        elif not isinstance(layout, End | Rest) and layout.branch in one.plan.heads.drafts:
            yield layout.branch, one.plan.heads.drafts[layout.branch]


def _write_files(folder: Path, files: FileTree) -> None:
    for path, file in files.items():
        if not is_path(path):
            # the rest of the branch is other people's, and may hold what leads out of the folder
            log.warning("file_not_written", folder=folder.name, path=path)
            continue
        _write(folder / path, file.data)
        if file.executable:
            (folder / path).chmod(0o755)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def output_fault(out: Path, config: Path, force: bool) -> str:
    """Make the folder `out`, and return why it may not be written to, or ""; `config` is CONFIG where that is a folder.

    Raises OSError where the folder cannot be made.
    """
    if out.exists() and not out.is_dir():
        return f"{out} must be a folder"
    if fault := _overlap(out.resolve(), config.resolve()):
        return f"{out} {fault}"
    if out.is_dir() and any(out.iterdir()):
        if not force:
            return f"{out} must be absent or empty; --force replaces what is in it"
        if any(path.name == ".git" or (path / "HEAD").is_file() for path in (out, *out.iterdir())):
            return f"{out} must not hold a Git repository, which --force would remove"
    out.mkdir(parents=True, exist_ok=True)
    return "" if os.access(out, os.W_OK | os.X_OK) else f"{out} must be a folder that may be written to"


def _overlap(out: Path, config: Path) -> str:
    if out == config or out in config.parents:
        return f"must not hold the config, {config}"
    if config in out.parents and not any(part.startswith(".") for part in out.relative_to(config).parts):
        return f"must not lie in {config}, where it would be read as config; a hidden folder there is not read"
    return ""
