"""The cause of a value: the commit that set the value on its branch, and the change that led to this commit.

The search has two steps:

1. Find the last commit on the branch that changed the value.
2. If the reconciler made this commit, find the config commit or upstream commit that caused the change. A binary search
   re-renders the package with the commits between the previous version of the package and this version.

The module `reconciler.output.explain.why` formats the result.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.catalog.files import CommitId, FileTree, TreeId
from reconciler.git.errors import GitError
from reconciler.inspect.committed_packages import (
    CommittedPackage,
    CurrentConfig,
    PastConfig,
    PastReader,
    ReRenderFailure,
    read_files,
    shorten_id,
)
from reconciler.inspect.verify import build_commit_info, is_reconciler_commit, select_targets
from reconciler.krm.merge3.rules import ABSENT
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.explain.builder import format_closest_names
from reconciler.output.explain.model import ValueNotFoundError
from reconciler.output.explain.verification import CommitInfo, find_setter
from reconciler.output.explain.why import (
    BranchValueChange,
    ChangeReason,
    ConfigObjectChange,
    FoundValue,
    ValueQuery,
    WhyResult,
    find_config_changes,
    format_value_not_found,
    reveal_value,
)
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.attribution.re_render import TREE_PREFIX, RecordedRender, ReRenderedPackage, find_change_point
from reconciler.planning.model.targets import STATUS_FOLDER, Target
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX, TargetReference, UnknownTargetError

_MAX_NESTED_MERGES = 10
# Limit the number of cached configs, because one config contains the result of the controllers for the whole fleet.
_MAX_CACHED_CONFIGS = 4
_NO_VALUE = FoundValue()


def explain_value(
    reference: TargetReference, query: ValueQuery, past: PastReader, *, should_use_draft: bool = False
) -> WhyResult:
    """Return the commit that set a value, and the cause of this commit.

    Args:
        reference: The names of the target and of the package.
        query: The value to find in the package.
        past: The reader of committed packages.
        should_use_draft: Whether to search on the draft branch instead of the target branch.

    Raises:
        UnknownTargetError: The target, package or draft does not exist or cannot be read.
        ValueNotFoundError: No version of the package has the value.
        GitError: The config cannot be read.
    """
    current_config = past.open_config(lambda targets: select_targets([reference], targets))
    (target,) = current_config.targets
    remote = past.get_remote(target)
    if remote is None:
        raise UnknownTargetError(past.describe_fetch_failure(target))
    branch, head = _find_head(reference, target, remote, current_config, should_use_draft=should_use_draft)
    history = _ValueHistory(reference, query, target, remote)
    change = history.find_last_change(head)
    return _CauseSearch(past, current_config, history, branch, change).run()


def _find_head(
    reference: TargetReference,
    target: Target,
    remote: Remote,
    current_config: CurrentConfig,
    *,
    should_use_draft: bool,
) -> tuple[str, CommitId]:
    """Return the name and the head commit of the branch to search."""
    if not should_use_draft:
        head = remote.refs.get(BRANCH_PREFIX + target.branch)
        if head is None:
            raise UnknownTargetError(f"{reference}: {target.title} has no branch {target.branch}")
        return target.branch, head
    state = current_config.states.get(target)
    record = state.packages.get(reference.package) if state else None
    branch = record.draft_branch if record and record.draft_version else target.branch
    head = remote.refs.get(BRANCH_PREFIX + branch)
    if head is None or branch == target.branch:
        if target in current_config.unreadable:
            raise UnknownTargetError(
                f"{reference}: the state of the drafts cannot be read: {current_config.unreadable[target]}"
            )
        raise UnknownTargetError(f"{reference}: this package has no open draft")
    return branch, head


@dataclass(frozen=True)
class _ValueChange:
    """The value before and after a commit that changed it, and the first parent of this commit."""

    commit: CommitId
    parent: CommitId | None
    before: FoundValue
    after: FoundValue


class _ValueHistory:
    """Reads one value of a package at the commits of a branch."""

    def __init__(self, reference: TargetReference, query: ValueQuery, target: Target, remote: Remote) -> None:
        self.reference = reference
        self.query = query
        self.target = target
        self.remote = remote
        self.path = target.get_package_path(reference.package)
        self._values: dict[TreeId | None, FoundValue] = {None: _NO_VALUE}
        self._last_file = ""

    def find_last_change(self, head: CommitId) -> _ValueChange:
        """Return the last change of the value in the history of the commit `head`."""
        commits = self.remote.mirror.list_commits_changing(head, self.path)
        if not commits:
            names = self._find_closest_packages(head)
            raise UnknownTargetError(f"{self.reference}: {self.target.name} has no such package; it has {names}")
        change = self._find_change(commits)
        if change is None:
            files = self._read_package_files(head) or self._read_package_files(commits[-1]) or FileTree()
            raise ValueNotFoundError(format_value_not_found(str(self.reference), self.query, files))
        return change

    def find_commit_setting(self, commits: Sequence[CommitId], value: FoundValue) -> CommitId | None:
        """Return the first commit in the list that changed the value to `value`, or None if no commit did this."""
        for commit in commits:
            parents = self.remote.read_commit(commit).parents
            before = self.read_value(parents[0]) if parents else _NO_VALUE
            if self.read_value(commit).is_same_value(value) and not before.is_same_value(value):
                return commit
        return None

    def _find_change(self, commits: Sequence[CommitId]) -> _ValueChange | None:
        after = self.read_value(commits[0])
        for commit, older_commit in zip(commits, [*commits[1:], None], strict=True):
            # Compare only these two commits, because no commit between them changed the package.
            before = self.read_value(older_commit) if older_commit else _NO_VALUE
            if not before.is_same_value(after):
                parents = self.remote.read_commit(commit).parents
                return _ValueChange(commit, parents[0] if parents else None, before, after)
        return None

    def read_value(self, commit: CommitId) -> FoundValue:
        """Return the value in the package at a commit."""
        tree = self.remote.find_tree_at(commit, self.path)
        if tree not in self._values:
            self._values[tree] = self._read_value_in_tree(commit, tree)
        return self._values[tree]

    def _read_value_in_tree(self, commit: CommitId, tree: TreeId | None) -> FoundValue:
        # First read only the file that contained the last found value, because a value seldom moves to another file.
        # Reading the whole package is slower.
        blob = self.remote.find_blob_at(commit, f"{self.path}/{self._last_file}") if self._last_file else None
        if blob and (value := self.query.find_in_file(self._last_file, self.remote.read_file(blob))):
            return value
        value = self.query.find_in_package(self.remote.read_files(tree)) if tree else _NO_VALUE
        self._last_file = value.file or self._last_file
        return value

    def _read_package_files(self, commit: CommitId) -> FileTree | None:
        tree = self.remote.find_tree_at(commit, self.path)
        return self.remote.read_files(tree) if tree else None

    def _find_closest_packages(self, head: CommitId) -> str:
        folder = self.remote.find_tree_at(head, self.target.get_package_path(STATUS_FOLDER))
        paths = self.remote.list_paths(folder) if folder else ()
        return format_closest_names(self.reference.package, [path.removesuffix(".yaml") for path in paths])


class _CauseSearch:
    """Searches the cause of one value change, and counts the renders and the searched commits."""

    def __init__(
        self,
        past: PastReader,
        current_config: CurrentConfig,
        history: _ValueHistory,
        branch: str,
        change: _ValueChange,
    ) -> None:
        self._past = past
        self._current_config = current_config
        self._history = history
        self._branch = branch
        self._change = change
        self._render_count = 0
        self._commit_count = 0
        self._values: dict[tuple[str, str], FoundValue | None] = {}
        self._configs: dict[str, PastConfig | ReRenderFailure] = {}
        self._package = self._read_package_at(change.commit)
        self._previous = self._read_package_at(change.parent) if change.parent else None

    def _read_package_at(self, commit: CommitId) -> CommittedPackage | None:
        history = self._history
        package = self._past.read_package(history.target, history.remote, history.reference.package, commit)
        return package if isinstance(package, CommittedPackage) else None

    def run(self) -> WhyResult:
        """Search the cause of the change, and return the value, its last change and the cause."""
        history = self._history
        reason, re_rendered = self._find_reason()
        after, before = self._change.after, self._change.before
        if re_rendered:
            after = reveal_value(after, re_rendered)
            before = replace(before, is_hidden=after.is_hidden)
            reason = replace(reason, set_by=find_setter(after.resource, after.pointer, re_rendered))
        commit = build_commit_info(history.remote.read_commit(self._change.commit))
        change = BranchValueChange(str(history.reference), self._branch, history.query, before, after, commit)
        reason = replace(reason, render_count=self._render_count, commit_count=self._commit_count)
        old_config = self._previous.recorded.config if self._previous else ""
        new_config = self._package.recorded.config if self._package else ""
        return WhyResult(change, reason, (old_config, new_config))

    def _find_reason(self) -> tuple[ChangeReason, ReRenderedPackage | None]:
        package = self._package
        if package is None:
            return self._build_unrecorded_reason(), None
        if reason := self._find_edit_reason(package):
            return reason, None
        re_rendered = self._re_render(package)
        if isinstance(re_rendered, ReRenderFailure):
            message = f"the reconciler changed the value, but the cause is unknown: {re_rendered.message}"
            return ChangeReason("other", message), None
        self._render_count += 1
        if not re_rendered.is_usable or not self._find_value(re_rendered).is_same_value(self._change.after):
            message = "the reconciler changed the value, but a re-render gives another value; run `reconciler verify`"
            return ChangeReason("other", message), re_rendered
        return self._find_render_reason(package), re_rendered

    def _build_unrecorded_reason(self) -> ChangeReason:
        if self._change.after.value is ABSENT:
            return ChangeReason("removal", "the package was deleted", self._list_edit_commits())
        message = "a person changed the package, which has no status file"
        return ChangeReason("edit", message, self._list_edit_commits())

    def _re_render(self, package: CommittedPackage) -> ReRenderedPackage | ReRenderFailure:
        past_config = self._read_config(package.recorded.config)
        current_config = self._current_config
        try:
            if isinstance(past_config, PastConfig):
                return self._past.re_render(package, past_config, current_config)
            evaluated = self._read_config(current_config.snapshot.id)
            return self._past.re_render_with_current_config(package, current_config, evaluated) or past_config
        except InterruptedFunctionError as error:
            return ReRenderFailure(str(error))

    def _find_edit_reason(self, package: CommittedPackage) -> ChangeReason | None:
        """Return the reason if a person set the value on the target branch or draft branch. Return None otherwise."""
        after, history = self._change.after, self._history
        rendered_value = self._find_value_in_tree(package, package.recorded.rendered)
        if package.is_edited and rendered_value is not None and not rendered_value.is_same_value(after):
            return ChangeReason("edit", "a person changed the value on the branch", self._list_edit_commits())
        if not package.recorded.is_edited:
            return None
        base_value = self._find_value_in_tree(package, package.recorded.base)
        merged_value = self._find_value_in_tree(package, package.recorded.merged)
        if base_value is None or merged_value is None:
            return None
        if base_value.is_same_value(after) or not merged_value.is_same_value(after):
            return None
        earlier_commits = history.remote.mirror.list_commits_changing(self._change.commit, history.path)
        edit = history.find_commit_setting([*self._list_merged_commits(), *earlier_commits], after)
        commits = (build_commit_info(history.remote.read_commit(edit)),) if edit else ()
        return ChangeReason(
            "edit", "a person changed the value on the draft branch before the draft was published", commits
        )

    def _find_value_in_tree(self, package: CommittedPackage, tree: TreeId) -> FoundValue | None:
        files = read_files(package.remote, tree)
        return self._history.query.find_in_package(files) if files is not None else None

    def _list_merged_commits(self) -> list[CommitId]:
        """Return the merged commits if a merge commit changed the value. Return [] for any other commit."""
        remote = self._history.remote
        if len(remote.read_commit(self._change.commit).parents) < 2:
            return []
        return remote.mirror.list_merged_commits_changing(self._change.commit, self._history.path)

    def _list_edit_commits(self) -> tuple[CommitInfo, ...]:
        """Return the commit in which a person set the value. For a merge, this is a commit of the merged branch."""
        history, change = self._history, self._change
        merged = history.find_commit_setting(self._list_merged_commits(), change.after)
        if merged and merged != change.commit and not is_reconciler_commit(history.remote.read_commit(merged)):
            return (build_commit_info(history.remote.read_commit(merged), change.commit),)
        return (build_commit_info(history.remote.read_commit(change.commit)),)

    def _find_render_reason(self, package: CommittedPackage) -> ChangeReason:
        previous = self._previous.recorded if self._previous else None
        return (
            self._find_config_reason(package, previous)
            or self._find_upstream_reason(package, previous)
            or self._find_other_reason(package)
        )

    def _find_config_reason(self, package: CommittedPackage, previous: RecordedRender | None) -> ChangeReason | None:
        """Return the reason with the config commit that set the value, or None if no config change set the value."""
        if package.recorded.config == (previous.config if previous else ""):
            return None
        new_config = self._resolve_config(package.recorded.config)
        old_config = self._resolve_config(previous.config if previous else "")
        if TREE_PREFIX in old_config + new_config:
            return self._build_folder_reason(old_config, new_config)
        history = self._past.history
        try:
            commits = history.list_commits_between(CommitId(old_config) if old_config else None, CommitId(new_config))
        except GitError as error:
            message = f"a config change set the value; the config commits cannot be read: {error.message}"
            return ChangeReason("config", message)
        if commits is None and history.list_commits_between(CommitId(new_config), CommitId(old_config)) is not None:
            message = "a person reverted the package to the output of an earlier config"
            return ChangeReason("edit", message, self._list_edit_commits())
        if commits is None:
            return self._build_folder_reason(old_config, new_config)
        if not commits or (old_config and self._has_new_value(old_config)):
            return None
        self._commit_count += len(commits)
        # The config "" means the state before the first config commit.
        versions = [CommitId(old_config), *commits]
        last_old, first_new = self._find_change_point(versions)
        return self._build_config_reason_in_merges(versions[last_old], versions[last_old + 1 : first_new + 1])

    def _find_change_point(self, configs: Sequence[CommitId]) -> tuple[int, int]:
        """Return the index of the last config without the new value, and of the first config with the new value."""
        return find_change_point(0, len(configs) - 1, lambda index: self._has_new_value(configs[index]))

    def _resolve_config(self, config: str) -> str:
        """Return the commit with the content of a recorded config. A plain folder is recorded as `tree:<id>`.

        Return the recorded config unchanged if no commit has this content.
        """
        if not config.startswith(TREE_PREFIX):
            return config
        current_id = self._current_config.snapshot.id
        head = "HEAD" if current_id.startswith(TREE_PREFIX) else current_id
        try:
            return self._past.history.find_commit_with_tree(TreeId(config.removeprefix(TREE_PREFIX)), head) or config
        except GitError:
            # Return the ID unchanged, because the folder is outside a Git repository.
            return config

    def _build_config_reason_in_merges(self, before: CommitId, candidates: Sequence[CommitId]) -> ChangeReason:
        """Return the reason for config commits that set the value. If a merge set it, search the merged commits."""
        merges: list[CommitInfo] = []
        while len(candidates) == 1 and len(merges) < _MAX_NESTED_MERGES:
            commit = self._past.history.read_commit(candidates[0])
            merged = self._find_merged_change(commit.id, commit.parents)
            if merged is None:
                break
            merges.append(build_commit_info(commit))
            before, candidates = merged
        return self._build_config_reason(before, candidates, merges)

    def _find_merged_change(
        self, merge: CommitId, parents: Sequence[CommitId]
    ) -> tuple[CommitId, Sequence[CommitId]] | None:
        """Return the commits of a merged branch that set the value, and the commit before these commits.

        Returns:
            None if the commit is not a merge of two parents, or if no commit of the merged branch set the value.
        """
        history = self._past.history
        start = history.merge_base(parents[0], parents[1]) if len(parents) == 2 else None
        commits = history.list_commits_between(start, parents[1]) if start else None
        if start is None or not commits:
            return None
        if not self._has_new_value(commits[-1]) or self._has_new_value(start) is not False:
            return None
        self._commit_count += len(commits)
        versions = [start, *commits]
        last_old, first_new = self._find_change_point(versions)
        return versions[last_old], versions[last_old + 1 : first_new + 1]

    def _build_config_reason(
        self, before: CommitId, candidates: Sequence[CommitId], merges: Sequence[CommitInfo]
    ) -> ChangeReason:
        commits = tuple(build_commit_info(self._past.history.read_commit(commit)) for commit in candidates)
        message = (
            "a config commit set the value" if len(candidates) == 1 else "one of these config commits set the value"
        )
        upstream = self._find_upstream_commit_for(candidates[-1])
        objects = self._find_changed_objects(before, candidates[-1])
        return ChangeReason("config", message, commits, tuple(merges), objects, upstream)

    def _find_changed_objects(self, before: str, after: str) -> tuple[ConfigObjectChange, ...]:
        re_rendered = self._render_alternative(after, ())
        old = self._read_config(before) if before else None
        new = self._read_config(after) if after else None
        if not (isinstance(old, PastConfig) and isinstance(new, PastConfig)):
            return ()
        used_by = re_rendered if isinstance(re_rendered, ReRenderedPackage) else None
        return find_config_changes(old.catalog, new.catalog, used_by)

    def _build_folder_reason(self, old_config: str, new_config: str) -> ChangeReason | None:
        """Return the reason if the value changed between two configs whose commits are unknown."""
        if not old_config:
            return ChangeReason("config", f"the config {shorten_id(new_config)} added the package")
        if self._has_new_value(old_config):
            return None
        versions = f"{shorten_id(old_config)} and {shorten_id(new_config)}"
        message = f"a config change set the value; the commits between {versions} are unknown"
        return ChangeReason("config", message, objects=self._find_changed_objects(old_config, new_config))

    def _find_upstream_reason(self, package: CommittedPackage, previous: RecordedRender | None) -> ChangeReason | None:
        """Return a reason with the upstream commit that set the value. Return None if the upstream did not set it."""
        if previous is None:
            return None
        commit = self._find_upstream_commit(package.recorded, previous, package.recorded.config)
        return ChangeReason("upstream", "an upstream commit set the value", (commit,)) if commit else None

    def _find_upstream_commit_for(self, config: str) -> CommitInfo | None:
        """Return the upstream commit that set the value when a config change selected another upstream version."""
        if not (self._package and self._previous):
            return None
        return self._find_upstream_commit(self._package.recorded, self._previous.recorded, config)

    def _find_upstream_commit(self, now: RecordedRender, previous: RecordedRender, config: str) -> CommitInfo | None:
        new, old = now.upstream, previous.upstream
        if not new or not old or new["commit"] == old["commit"] or new["repo"] != old["repo"]:
            return None
        remote = self._past.find_upstream(now, self._current_config)
        if remote is None:
            return None
        try:
            commits = remote.mirror.list_commits_changing(
                CommitId(new["commit"]), new["directory"], CommitId(old["commit"])
            )[::-1]
        except GitError:
            # Return None, because the repository does not contain the old commit any more.
            return None
        versions = [CommitId(old["commit"]), *commits]
        if len(versions) < 2 or self._has_new_value_with_upstream(now, remote, versions[0], config) is not False:
            return None
        self._commit_count += len(commits)
        _, first_new = find_change_point(
            0,
            len(versions) - 1,
            lambda index: self._has_new_value_with_upstream(now, remote, versions[index], config),
        )
        return build_commit_info(remote.read_commit(versions[first_new]))

    def _has_new_value_with_upstream(
        self, now: RecordedRender, remote: Remote, commit: CommitId, config: str
    ) -> bool | None:
        tree = remote.find_tree_at(commit, now.upstream["directory"])
        if tree is None:
            return self._change.after.value is ABSENT
        recorded = replace(now, upstream={**now.upstream, "commit": commit, "tree": tree})
        return self._has_new_value(config, (recorded,))

    def _find_other_reason(self, package: CommittedPackage) -> ChangeReason:
        """Return the reason for a change that neither the config nor the upstream caused."""
        if rules := self._find_started_rules(package):
            message = f"the rollout of these rules reached {package.target.name}: {', '.join(rules)}"
            return ChangeReason("rollout", message)
        if names := self._find_changed_related_packages(package):
            packages = ", ".join(f"{package.target.name}/{name}" for name in names)
            message = (
                f"the value depends on templates of other packages, which changed in the same commit: {packages}; "
                "run `reconciler why` for these packages"
            )
            return ChangeReason("templates", message)
        message = (
            "neither the config nor the upstream set the value; the version of the reconciler or of a function changed"
        )
        return ChangeReason("other", message)

    def _find_started_rules(self, package: CommittedPackage) -> list[str]:
        """Return the names of the rollout rules that differ between this version and the previous version."""
        record = self._current_config.find_record(package)
        old = record.find_version(self._previous.status) if record and self._previous else None
        new = record.find_version(package.status) if record else None
        past_config = self._read_config(package.recorded.config)
        if old is None or new is None or isinstance(past_config, ReRenderFailure):
            return []
        rollouts = past_config.renderer.cluster_overrides.rollouts
        old_rules, new_rules = dict(old.rules), dict(new.rules)
        return sorted(str(rule) for rule in rollouts if old_rules.get(rule) != new_rules.get(rule))

    def _find_changed_related_packages(self, package: CommittedPackage) -> list[str]:
        """Return the names of the other packages with Kafka templates that changed in the same commit."""
        past_config = self._read_config(package.recorded.config)
        if isinstance(past_config, ReRenderFailure) or self._change.parent is None:
            return []
        files = package.remote.read_files(package.tree) if package.tree else FileTree()
        if not past_config.renderer.template_merger.has_template_roles(files):
            return []
        new = self._past.read_related_packages(package, past_config, package.commit)
        old = self._past.read_related_packages(package, past_config, self._change.parent)
        return sorted(name for name in {*new, *old} if new.get(name) != old.get(name))

    def _has_new_value(self, config: str, upstreams: Sequence[RecordedRender] = ()) -> bool | None:
        """Return whether a render with another config gives the new value. Return None if no render is possible."""
        if not config:
            return self._change.after.value is ABSENT
        key = (config, upstreams[0].upstream["commit"] if upstreams else "")
        if key not in self._values:
            self._values[key] = self._find_alternative_value(config, upstreams)
        value = self._values[key]
        return None if value is None else value.is_same_value(self._change.after)

    def _find_alternative_value(self, config: str, upstreams: Sequence[RecordedRender]) -> FoundValue | None:
        re_rendered = self._render_alternative(config, upstreams)
        if isinstance(re_rendered, ReRenderFailure):
            # Return no value for a mismatch, because a mismatch means that no object of this config requests the
            # package.
            return _NO_VALUE if re_rendered.is_mismatch else None
        return self._find_value(re_rendered) if re_rendered.is_usable else None

    def _render_alternative(
        self, config: str, upstreams: Sequence[RecordedRender]
    ) -> ReRenderedPackage | ReRenderFailure:
        assert self._package, "_render_alternative() requires a package with a status file"
        past_config = self._read_config(config)
        if isinstance(past_config, ReRenderFailure):
            return past_config
        recorded = [package.recorded for package in (self._package, self._previous) if package]
        self._render_count += 1
        try:
            return self._past.re_render_with_other_config(
                self._package, past_config, self._current_config, upstreams or recorded
            )
        except InterruptedFunctionError as error:
            return ReRenderFailure(str(error))

    def _find_value(self, re_rendered: ReRenderedPackage) -> FoundValue:
        return self._history.query.find_in_package(re_rendered.rendered.files, self._change.after.file)

    def _read_config(self, config: str) -> PastConfig | ReRenderFailure:
        assert self._package, "_read_config() requires a package with a status file"
        if config not in self._configs:
            self._configs[config] = self._past.read_config(config, self._current_config, [self._package])
            for oldest in [*self._configs][:-_MAX_CACHED_CONFIGS]:
                del self._configs[oldest]
        return self._configs[config]
