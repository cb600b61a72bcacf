"""Verification: re-render packages from their recorded inputs, and compare the output with the recorded tree."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from reconciler.catalog.files import CommitId, FileTree
from reconciler.git.object_reader import Commit
from reconciler.inspect.committed_packages import (
    CommittedPackage,
    ReRenderError,
    has_recorded_inputs,
    list_packages,
    read_files,
    read_package,
)
from reconciler.inspect.package_history import TEXTS_UNKNOWN_NOTE, PackageHistory, PastReader
from reconciler.krm.git_formats import PACKAGE_TRAILER, parse_trailers
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.explain.builder import find_setter, format_closest_names
from reconciler.output.explain.first_difference import FirstDifference, find_first_difference
from reconciler.output.explain.verification import (
    CommitInfo,
    PackageVerification,
    RerenderResult,
    VerificationResult,
    build_verification_result,
    format_changed_inputs,
)
from reconciler.output.text import shorten_id
from reconciler.packages.kptfile import KPTFILE
from reconciler.planning.attribution.re_render import ReRenderedPackage
from reconciler.planning.model.codes import PlanningCodes
from reconciler.planning.model.targets import Target
from reconciler.planning.render.renderer import RENDERED_CONDITION
from reconciler.reconcile.codes import PassCodes
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX, TargetReference, UnknownTargetError


@dataclass(frozen=True)
class VerifyOptions:
    """The selection of packages to verify.

    Attributes:
        references: The targets and packages to verify. If the list is empty, all packages are verified.
        at: The name of a commit to verify. This requires references to exactly one target. If the name is "", the head
            of the branch is verified.
        should_verify_drafts: Whether the draft branches are verified instead of the target branches.
        max_diff_lines: The maximum number of lines of a diff. The value 0 omits diffs.
    """

    references: tuple[TargetReference, ...] = ()
    at: str = ""
    should_verify_drafts: bool = False
    max_diff_lines: int = 40


def verify(options: VerifyOptions, past: PastReader) -> VerificationResult:
    """Re-render the selected packages, and compare the output with the recorded trees.

    Raises:
        UnknownTargetError: A selected target or package does not exist.
        GitError: The config or the selected commit cannot be read.
    """
    history = past.open(options.references)
    verification = _Verification(options, history)
    subjects = list(verification.list_subjects())
    results = [subject for subject in subjects if isinstance(subject, PackageVerification)]
    packages = [subject for subject in subjects if isinstance(subject, CommittedPackage)]
    for number, result in enumerate(verification.verify_packages(packages)):
        history.report_progress("re-rendering", number, len(packages))
        results.append(result)
    return build_verification_result(results, map(PassCodes.TARGET_UNREADABLE.finding, verification.errors))


class _Verification:
    def __init__(self, options: VerifyOptions, history: PackageHistory) -> None:
        self._options = options
        self._history = history
        self.errors: list[str] = []

    def list_subjects(self) -> Iterator[CommittedPackage | PackageVerification]:
        """Yield the packages to verify. Yield a result for each package without a valid status file."""
        for target in self._history.targets:
            try:
                remote = self._history.get_remote(target)
            except UnknownTargetError as error:
                self.errors.append(str(error))
                continue
            if message := self._find_target_error(target, remote):
                self.errors.append(message)
            else:
                yield from self._list_target_subjects(target, remote)

    def _find_target_error(self, target: Target, remote: Remote) -> str:
        """Return the reason why the packages of a fetched target cannot be listed. Return "" if the packages can be
        listed.
        """
        if self._options.should_verify_drafts:
            return self._history.unreadable.get(target, "")
        is_branch_missing = (
            not self._options.at
            and BRANCH_PREFIX + target.branch not in remote.refs
            and self._history.has_earlier_branch(target)
        )
        return (
            f'{target.title}: the branch "{target.branch}" existed earlier and is missing now'
            if is_branch_missing
            else ""
        )

    def _list_target_subjects(self, target: Target, remote: Remote) -> Iterator[CommittedPackage | PackageVerification]:
        references = {reference.package for reference in self._options.references if reference.cluster == target.name}
        existing: set[str] = set()
        for branch, commit in self._list_heads(target, remote):
            selected = references - {""} if "" not in references else set()
            packages = tuple(selected) or list_packages(target, remote, commit)
            for package in sorted(packages):
                if subject := self._find_subject(target, remote, branch, package, commit):
                    existing.add(package)
                    yield subject
            if packages and not selected and not self._options.should_verify_drafts:
                yield from self._list_foreign_packages(target, remote, branch, commit, packages)
        if missing := sorted((references - {""}) - existing):
            raise UnknownTargetError(self._describe_missing_package(target, remote, missing[0]))

    def _list_heads(self, target: Target, remote: Remote) -> list[tuple[str, CommitId]]:
        """Return the name of each branch to verify, with the commit to verify on this branch."""
        if self._options.at:
            return [(self._options.at, self._history.resolve_commit(remote, self._options.at))]
        branches = self._list_draft_branches(target) if self._options.should_verify_drafts else [target.branch]
        return [(name, remote.refs[BRANCH_PREFIX + name]) for name in branches if BRANCH_PREFIX + name in remote.refs]

    def _list_draft_branches(self, target: Target) -> list[str]:
        """Return the names of the draft branches, except for those that delete packages."""
        state = self._history.states.get(target)
        return sorted(name for name, draft in state.drafts.items() if not draft.is_removal) if state else []

    def _find_subject(
        self, target: Target, remote: Remote, branch: str, package: str, commit: CommitId
    ) -> CommittedPackage | PackageVerification | None:
        committed = read_package(target, remote, package, commit)
        if self._options.should_verify_drafts and not self._is_drafted(committed):
            return None
        if isinstance(committed, CommittedPackage):
            return replace(committed, branch=branch)
        if committed is not None:
            rerender = RerenderResult("unknowable", f"the status file is invalid: {committed}")
        elif remote.find_tree_at(commit, target.get_package_path(package)):
            rerender = RerenderResult("foreign")
        else:
            return None
        return _build_unmanaged(f"{target.name}/{package}", branch, commit, rerender)

    def _is_drafted(self, committed: CommittedPackage | str | None) -> bool:
        """Return whether the version of a package on a draft branch differs from the version on the target branch."""
        if not isinstance(committed, CommittedPackage):
            return False
        head = committed.remote.refs.get(BRANCH_PREFIX + committed.target.branch)
        path = committed.target.get_status_file_path(committed.package)
        return head is None or committed.remote.find_blob_at(head, path) != committed.status

    def _list_foreign_packages(
        self, target: Target, remote: Remote, branch: str, commit: CommitId, managed: Collection[str]
    ) -> Iterator[PackageVerification]:
        """Yield a result for each package without a status file. The reconciler does not manage such packages."""
        root = remote.find_tree_at(commit, target.directory) if target.directory else None
        files = remote.list_paths(root or remote.read_commit(commit).tree) if root or not target.directory else ()
        folders = {path.removesuffix(f"/{KPTFILE}") for path in files if path.endswith(f"/{KPTFILE}")}
        for folder in sorted(folders):
            if not any(folder == package or folder.startswith(f"{package}/") for package in managed):
                yield _build_unmanaged(f"{target.name}/{folder}", branch, commit, RerenderResult("foreign"))

    def _describe_missing_package(self, target: Target, remote: Remote, package: str) -> str:
        heads = self._list_heads(target, remote)
        existing = {name for _, commit in heads for name in list_packages(target, remote, commit)}
        branch = "draft" if self._options.should_verify_drafts else "branch"
        location = f"at {self._options.at}" if self._options.at else f"on its {branch}"
        names = format_closest_names(package, existing)
        return f"{target.name}/{package}: {target.name} has no such package {location}; existing packages: {names}"

    def verify_packages(self, packages: Sequence[CommittedPackage]) -> Iterator[PackageVerification]:
        """Yield the result of each package. Read each config once for all packages with this config."""
        by_config: dict[str, list[CommittedPackage]] = {}
        for package in packages:
            by_config.setdefault(package.recorded.config, []).append(package)
        for group in by_config.values():
            yield from (self._verify(package, group) for package in group)

    def _verify(self, package: CommittedPackage, group: Sequence[CommittedPackage]) -> PackageVerification:
        rerender = self._compare(package, group)
        if rerender.verdict == "differs" and self._can_depend_on_refs(package, group):
            rerender = self._compare(package, [package], has_original_refs=True)
        return PackageVerification(
            package=str(package.package_target),
            branch=package.branch,
            commit=package.commit,
            config=package.recorded.config,
            rerender=rerender,
            is_edited=package.is_edited,
            edit_commits=tuple(self._list_edit_commits(package)) if package.is_edited else (),
            edit_difference=self._find_edit_difference(package) if package.is_edited else None,
        )

    def _find_edit_difference(self, package: CommittedPackage) -> FirstDifference | None:
        rendered = read_files(package.remote, package.recorded.rendered)
        current = read_files(package.remote, package.tree) if package.tree else FileTree()
        if rendered is None or current is None:
            return None
        return find_first_difference(rendered, current, self._options.max_diff_lines)

    def _can_depend_on_refs(self, package: CommittedPackage, group: Sequence[CommittedPackage]) -> bool:
        """Return whether the current refs may select a different upstream version than the recorded render used.

        Only then can a second re-render, with the refs from the time of the recorded render, have a different result.
        """
        recorded = package.recorded
        try:
            source = self._history.read_config(recorded.config, group).find_variant(package).source
        except ReRenderError:
            return True
        return (source.as_data() or {}) != recorded.upstream if recorded.upstream else True

    def _compare(
        self, package: CommittedPackage, group: Sequence[CommittedPackage], *, has_original_refs: bool = False
    ) -> RerenderResult:
        try:
            re_rendered = self._history.re_render_recorded(package, group, has_original_refs=has_original_refs)
            if re_rendered.is_reproduced:
                note = self._describe_other_engine(package)
                return RerenderResult("reproduced", notes=(*re_rendered.notes, *([note] if note else ())))
            past_config = self._history.read_config(package.recorded.config, group, has_original_refs=has_original_refs)
        except ReRenderError as error:
            return RerenderResult("differs" if error.is_mismatch else "unknowable", error.message)
        reason = _find_unknowable_reason(package, re_rendered, is_config_complete=past_config.catalog.is_complete)
        return RerenderResult("unknowable", reason) if reason else self._describe_difference(package, re_rendered)

    def _describe_difference(self, package: CommittedPackage, re_rendered: ReRenderedPackage) -> RerenderResult:
        recorded = package.recorded
        rendered = read_files(package.remote, recorded.rendered)
        record = self._history.find_record(package)
        changed_inputs: tuple[str, ...] = ()
        if note := self._describe_other_engine(package):
            reason = f"the output differs; {note}"
        elif has_recorded_inputs(recorded, re_rendered.trace):
            reason = "all inputs equal the recorded inputs, but the output differs"
        elif record and has_recorded_inputs(recorded, record.trace):
            reason, changed_inputs = "the output differs", format_changed_inputs(record.trace, re_rendered.trace)
        else:
            reason = (
                "the output and the inputs differ; it is unknown which inputs changed, because the state "
                "does not contain the recorded values"
            )
        if rendered is None:
            tree = shorten_id(recorded.rendered)
            reason = f"{reason}; no diff is available, because the recorded tree {tree} does not exist any more"
        return RerenderResult("differs", reason, self._find_difference(rendered, re_rendered), changed_inputs)

    def _describe_other_engine(self, package: CommittedPackage) -> str:
        """Return a message if the recorded program and the current program differ.

        Return "" if they are equal, or if one of them is not known.
        """
        recorded = package.recorded.engine
        current = self._history.identify_program(recorded.partition("/")[0]) if recorded else ""
        if not current or current == recorded:
            return ""
        return f"EngineDiffers: the package was rendered with {recorded}, and it was rendered again with {current}"

    def _find_difference(self, rendered: FileTree | None, re_rendered: ReRenderedPackage) -> FirstDifference | None:
        if rendered is None:
            return None
        assert re_rendered.rendered, "a failed render has no difference"
        difference = find_first_difference(rendered, re_rendered.rendered.files, self._options.max_diff_lines)
        if difference is None or not difference.resource:
            return difference
        return replace(difference, set_by=find_setter(difference.resource, difference.pointer, re_rendered))

    def _list_edit_commits(self, package: CommittedPackage) -> Iterator[CommitInfo]:
        """Yield the commits that contain local changes after the last render of a package, newest first."""
        path, remote = package.target.get_package_path(package.package), package.remote
        introduced = package.find_introducing_commit()
        commits = remote.mirror.list_commits_changing(package.commit, path, introduced) if introduced else []
        for commit in [*commits, *([introduced] if introduced else [])]:
            if remote.find_tree_at(commit, path) == package.recorded.rendered:
                return
            parents = remote.read_commit(commit).parents
            if len(parents) > 1:
                merged = map(remote.read_commit, remote.mirror.list_merged_commits_changing(commit, path))
                edits = [merged_commit for merged_commit in merged if not is_reconciler_commit(merged_commit)]
                yield from (build_commit_info(edit, commit) for edit in edits)
                if edits:
                    continue
            yield build_commit_info(remote.read_commit(commit))


def _build_unmanaged(package: str, branch: str, commit: CommitId, rerender: RerenderResult) -> PackageVerification:
    """Return the verification of a package without a valid status file."""
    return PackageVerification(package=package, branch=branch, commit=commit, rerender=rerender, is_edited=False)


def _find_unknowable_reason(
    package: CommittedPackage, re_rendered: ReRenderedPackage, *, is_config_complete: bool
) -> str:
    """Return the reason why the new output cannot be compared with the recorded output.

    Return "" if the outputs can be compared.
    """
    if re_rendered.rendered is None:
        return f"a re-render with the recorded config fails: {re_rendered.findings[0].message}"
    findings = re_rendered.rendered.findings
    unavailable = [finding for finding in findings if finding.code == PlanningCodes.FUNCTION_UNAVAILABLE.name]
    if unavailable and package.recorded.conditions.get(RENDERED_CONDITION) == "True":
        return unavailable[0].message
    if TEXTS_UNKNOWN_NOTE in re_rendered.notes:
        return TEXTS_UNKNOWN_NOTE
    if not is_config_complete:
        return "the recorded config has files that cannot be read; the package can depend on their content"
    return ""


def is_reconciler_commit(commit: Commit) -> bool:
    """Return whether the message of a commit has the trailer that the reconciler writes.

    Use the result for output only, because every person can write this trailer.
    """
    return PACKAGE_TRAILER in parse_trailers(commit.message)


def build_commit_info(commit: Commit, merge_commit: CommitId | None = None) -> CommitInfo:
    """Return the ID, author, committer, date and subject of a commit.

    Args:
        merge_commit: The merge that added the commit to the branch. None if the commit was made on the branch.
    """
    subject = commit.message.partition("\n")[0]
    return CommitInfo(
        commit.id, commit.author.name, commit.committer.name, commit.author.seconds, subject, str(merge_commit or "")
    )
