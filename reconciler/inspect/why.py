"""The cause of a value: the commit that set the value on its branch, and the change that led to this commit.

The search has two steps:

1. Find the last commit on the branch that changed the value.
2. If the reconciler made this commit, find the config commit or upstream commit that caused the change. A binary search
   re-renders the package with the commits between the previous version of the package and this version.

The module `reconciler.output.explain.why` formats the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from reconciler.catalog.files import CommitId, FileTree, TreeId
from reconciler.git.errors import GitError
from reconciler.inspect.committed_packages import CommittedPackage, PastConfig, ReRenderError, read_files, read_package
from reconciler.inspect.package_history import PackageHistory, PastReader
from reconciler.inspect.recorded_inputs import read_related_packages
from reconciler.inspect.value_history import NO_VALUE, ValueChangeCommit, ValueHistory, find_change_point
from reconciler.inspect.verify import build_commit_info, is_reconciler_commit
from reconciler.krm.json_text import DIGEST_PATTERN
from reconciler.krm.merge3.rules import ABSENT
from reconciler.lazy_dataclasses import replace
from reconciler.output.changes.config_changes import ConfigChangeAttribution, compare_configs
from reconciler.output.envelope import create_cli_metadata
from reconciler.output.explain.builder import find_setter
from reconciler.output.explain.value_query import FoundValue, ValueQuery, reveal_value
from reconciler.output.explain.verification import CommitInfo
from reconciler.output.explain.why import (
    ChangeReason,
    ObjectChangeEntry,
    SearchSummary,
    ValueChange,
    ValueChangeResult,
    build_object_change_entries,
)
from reconciler.output.text import shorten_id
from reconciler.planning.attribution.re_render import TREE_PREFIX, RecordedRender, ReRenderedPackage
from reconciler.planning.model.targets import Target
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX, TargetReference, UnknownTargetError

_MAX_NESTED_MERGES = 10


def explain_value(
    reference: TargetReference, query: ValueQuery, past: PastReader, *, should_use_draft: bool = False
) -> ValueChangeResult:
    """Return the commit that set a value, and the cause of this commit.

    Args:
        should_use_draft: Whether to search on the draft branch instead of the target branch.

    Raises:
        UnknownTargetError: The target, package or draft does not exist or cannot be read.
        ValueNotFoundError: No version of the package has the value.
        GitError: The config cannot be read.
    """
    history = past.open([reference])
    (target,) = history.targets
    remote = history.get_remote(target)
    find_branch = _find_draft_branch if should_use_draft else _find_target_branch
    branch, head = find_branch(reference, target, remote, history)
    values = ValueHistory(reference, query, target, remote)
    change = values.find_last_change(head)
    return _CauseSearch(history, values, branch, change).run()


def _find_target_branch(
    reference: TargetReference, target: Target, remote: Remote, history: PackageHistory
) -> tuple[str, CommitId]:
    """Return the name and the head commit of the target branch."""
    head = remote.refs.get(BRANCH_PREFIX + target.branch)
    if head is None:
        raise UnknownTargetError(f'{reference}: {target.title} has no branch "{target.branch}"')
    return target.branch, head


def _find_draft_branch(
    reference: TargetReference, target: Target, remote: Remote, history: PackageHistory
) -> tuple[str, CommitId]:
    """Return the name and the head commit of the draft branch of a package."""
    state = history.states.get(target)
    record = state.packages.get(reference.package) if state else None
    head = remote.refs.get(BRANCH_PREFIX + record.draft_branch) if record and record.draft_version else None
    if record and head:
        return record.draft_branch, head
    if target in history.unreadable:
        raise UnknownTargetError(f"{reference}: the state of the drafts cannot be read: {history.unreadable[target]}")
    raise UnknownTargetError(f"{reference}: this package has no open draft")


class _CauseSearch:
    """Searches for the cause of one value change, and counts the renders and the searched commits."""

    def __init__(self, history: PackageHistory, values: ValueHistory, branch: str, change: ValueChangeCommit) -> None:
        self._history = history
        self._values = values
        self._branch = branch
        self._change = change
        self._render_count = 0
        self._commit_count = 0
        self._alternatives: dict[tuple[str, tuple[str, ...]], FoundValue | None] = {}
        self._package = self._read_package_at(change.commit)
        self._packages = [self._package] if self._package else []
        self._previous = self._read_package_at(change.parent) if change.parent else None

    def _read_package_at(self, commit: CommitId) -> CommittedPackage | None:
        values = self._values
        package = read_package(values.target, values.remote, values.reference.package, commit)
        return package if isinstance(package, CommittedPackage) else None

    def run(self) -> ValueChangeResult:
        """Search for the cause of the last change of the value. Return the value, this change and its cause."""
        values, set_by = self._values, ""
        reason, re_rendered = self._find_reason()
        after, before = self._change.after, self._change.before
        if re_rendered:
            after = reveal_value(after, re_rendered)
            before = replace(before, is_hidden=after.is_hidden)
            set_by = find_setter(after.resource, after.pointer, re_rendered)
        found = after if after.resource else before
        config = self._package.recorded.config if self._package else ""
        change = ValueChange(
            package=str(values.reference),
            branch=self._branch,
            resource=found.resource,
            file=found.file,
            location=values.query.location,
            pointer=found.pointer,
            commit=build_commit_info(values.remote.read_commit(self._change.commit)),
            before=before.visible_value,
            value=after.visible_value,
            reason=reason.model_copy(update={"set_by": set_by}),
            previous_config=self._previous.recorded.config if self._previous else "",
            config=config,
        )
        summary = SearchSummary(commits=self._commit_count, renders=self._render_count)
        return ValueChangeResult(metadata=create_cli_metadata(config), items=(change,), summary=summary)

    def _find_reason(self) -> tuple[ChangeReason, ReRenderedPackage | None]:
        package = self._package
        if package is None:
            return self._build_unrecorded_reason(), None
        if reason := self._find_edit_reason(package):
            return reason, None
        try:
            re_rendered = self._history.re_render_recorded(package, self._packages)
        except ReRenderError as error:
            message = f"the reconciler changed the value, but the cause is unknown: {error}"
            return ChangeReason(kind="other", message=message), None
        self._render_count += 1
        value = self._find_value(re_rendered)
        if value is None or not value.is_same_value(self._change.after):
            message = "the reconciler changed the value, but a re-render gives another value; run `reconciler verify`"
            return ChangeReason(kind="other", message=message), re_rendered
        reason = (
            self._find_config_reason(package) or self._find_upstream_reason(package) or self._find_other_reason(package)
        )
        return reason, re_rendered

    def _build_unrecorded_reason(self) -> ChangeReason:
        if self._change.after.value is ABSENT:
            return ChangeReason(kind="removal", message="the package was deleted", commits=self._list_edit_commits())
        message = "a person changed the package, which has no status file"
        return ChangeReason(kind="edit", message=message, commits=self._list_edit_commits())

    def _find_edit_reason(self, package: CommittedPackage) -> ChangeReason | None:
        """Return the reason if a person set the value on the target branch or draft branch. Return None otherwise."""
        after, values = self._change.after, self._values
        rendered_value = self._find_value_in_tree(package, package.recorded.rendered)
        if package.is_edited and rendered_value is not None and not rendered_value.is_same_value(after):
            return ChangeReason(
                kind="edit", message="a person changed the value on the branch", commits=self._list_edit_commits()
            )
        if not package.recorded.is_edited:
            return None
        base_value = self._find_value_in_tree(package, package.recorded.base)
        merged_value = self._find_value_in_tree(package, package.recorded.merged)
        if base_value is None or merged_value is None:
            return None
        if base_value.is_same_value(after) or not merged_value.is_same_value(after):
            return None
        earlier_commits = values.remote.mirror.list_commits_changing(self._change.commit, values.path)
        edit = values.find_commit_setting([*self._list_merged_commits(), *earlier_commits], after)
        commits = (build_commit_info(values.remote.read_commit(edit)),) if edit else ()
        message = "a person changed the value on the draft branch before the draft was published"
        return ChangeReason(kind="edit", message=message, commits=commits)

    def _find_value_in_tree(self, package: CommittedPackage, tree: TreeId) -> FoundValue | None:
        files = read_files(package.remote, tree)
        return self._values.query.find_in_package(files) if files is not None else None

    def _list_merged_commits(self) -> list[CommitId]:
        """Return the merged commits if a merge commit changed the value. Return [] for any other commit."""
        remote = self._values.remote
        if len(remote.read_commit(self._change.commit).parents) < 2:
            return []
        return remote.mirror.list_merged_commits_changing(self._change.commit, self._values.path)

    def _list_edit_commits(self) -> tuple[CommitInfo, ...]:
        """Return the commit in which a person set the value. For a merge, this is a commit of the merged branch."""
        values, change = self._values, self._change
        merged = values.find_commit_setting(self._list_merged_commits(), change.after)
        if merged and merged != change.commit and not is_reconciler_commit(values.remote.read_commit(merged)):
            return (build_commit_info(values.remote.read_commit(merged), change.commit),)
        return (build_commit_info(values.remote.read_commit(change.commit)),)

    def _search(
        self, before: CommitId, commits: Sequence[CommitId], has_new_value: Callable[[CommitId], bool | None]
    ) -> tuple[CommitId, Sequence[CommitId]]:
        """Search for the commit that introduced the new value.

        Args:
            before: The commit before `commits`, which does not have the new value.
            commits: The commits to search, oldest first. The last commit has the new value.
            has_new_value: Returns whether a render with a commit gives the new value. Returns None if the commit cannot
                be rendered.

        Returns:
            The last commit that is known not to have the new value, and the next commits up to the first commit that is
            known to have it. There is more than one next commit if some commits cannot be rendered.
        """
        self._commit_count += len(commits)
        versions = [before, *commits]
        last_old, first_new = find_change_point(0, len(commits), lambda index: has_new_value(versions[index]))
        return versions[last_old], versions[last_old + 1 : first_new + 1]

    def _find_config_reason(self, package: CommittedPackage) -> ChangeReason | None:
        """If a config change set the value, return a reason with the config commit. Otherwise, return None."""
        old_config, new_config = self._previous.recorded.config if self._previous else "", package.recorded.config
        if new_config == old_config:
            return None
        old_config, new_config = self._resolve_config(old_config), self._resolve_config(new_config)
        if TREE_PREFIX in old_config + new_config:
            return self._build_folder_reason(old_config, new_config)
        config_history = self._history.config_history
        try:
            commits = config_history.list_commits_between(
                CommitId(old_config) if old_config else None, CommitId(new_config)
            )
        except GitError as error:
            message = f"a config change set the value; the config commits cannot be read: {error.message}"
            return ChangeReason(kind="config", message=message)
        if commits is None:
            if config_history.list_commits_between(CommitId(new_config), CommitId(old_config)) is None:
                return self._build_folder_reason(old_config, new_config)
            message = "a person reverted the package to the output of an earlier config"
            return ChangeReason(kind="edit", message=message, commits=self._list_edit_commits())
        if not commits or (old_config and self._has_new_value(old_config)):
            return None
        # The config "" means the state before the first config commit.
        before, candidates = self._search(CommitId(old_config), commits, self._has_new_value)
        merges: list[CommitInfo] = []
        while len(candidates) == 1 and len(merges) < _MAX_NESTED_MERGES:
            commit = config_history.read_commit(candidates[0])
            merged = self._find_merged_change(commit.parents)
            if merged is None:
                break
            merges.append(build_commit_info(commit))
            before, candidates = merged
        return self._build_config_reason(before, candidates, merges)

    def _resolve_config(self, config: str) -> str:
        """Return the commit with the content of a recorded config. A plain folder is recorded as `tree:<id>`.

        Return the recorded config unchanged if no commit has this content.
        """
        if not config.startswith(TREE_PREFIX):
            return config
        current_id = self._history.snapshot.id
        head = "HEAD" if current_id.startswith(TREE_PREFIX) else current_id
        tree = TreeId(config.removeprefix(TREE_PREFIX))
        try:
            return self._history.config_history.find_commit_with_tree(tree, head) or config
        except GitError:
            # Return the ID unchanged, because the folder is outside a Git repository.
            return config

    def _find_merged_change(self, parents: Sequence[CommitId]) -> tuple[CommitId, Sequence[CommitId]] | None:
        """Return the result of `_search` for the commits that a merge added.

        Returns:
            None if the commit is not a merge of two parents, or if no commit of the merged branch set the value.
        """
        config_history = self._history.config_history
        start = config_history.merge_base(parents[0], parents[1]) if len(parents) == 2 else None
        commits = config_history.list_commits_between(start, parents[1]) if start else None
        if start is None or not commits:
            return None
        if not self._has_new_value(commits[-1]) or self._has_new_value(start) is not False:
            return None
        return self._search(start, commits, self._has_new_value)

    def _build_config_reason(
        self, before: CommitId, candidates: Sequence[CommitId], merges: Sequence[CommitInfo]
    ) -> ChangeReason:
        config_history = self._history.config_history
        commits = tuple(build_commit_info(config_history.read_commit(commit)) for commit in candidates)
        message = (
            "a config commit set the value" if len(candidates) == 1 else "one of these config commits set the value"
        )
        upstream = self._find_upstream_commit(candidates[-1])
        objects = self._find_changed_objects(before, candidates[-1])
        return ChangeReason(
            kind="config", message=message, commits=commits, merges=tuple(merges), objects=objects, upstream=upstream
        )

    def _find_changed_objects(self, before: str, after: str) -> tuple[ObjectChangeEntry, ...]:
        if not before:
            return ()
        re_rendered = None
        with suppress(ReRenderError):
            re_rendered = self._render_alternative(after)
        try:
            old, new = self._read_config(before), self._read_config(after)
        except ReRenderError:
            return ()
        changes = compare_configs(old.catalog.objects, new.catalog.objects)
        inputs = ConfigChangeAttribution(changes).find_inputs(re_rendered) if re_rendered else ()
        return build_object_change_entries(inputs or changes)

    def _build_folder_reason(self, old_config: str, new_config: str) -> ChangeReason | None:
        """Return a reason if a config change set the value, but the commits between the two configs are unknown.

        Return None if the old config already gives the new value.
        """
        if not old_config:
            return ChangeReason(kind="config", message=f"the config {shorten_id(new_config)} added the package")
        if self._has_new_value(old_config):
            return None
        versions = f"{shorten_id(old_config)} and {shorten_id(new_config)}"
        message = f"a config change set the value; the commits between {versions} are unknown"
        return ChangeReason(kind="config", message=message, objects=self._find_changed_objects(old_config, new_config))

    def _find_upstream_reason(self, package: CommittedPackage) -> ChangeReason | None:
        """Return a reason with the upstream commit that set the value, or with the version of a chart or artifact.

        Return None if the upstream did not set the value.
        """
        config = package.recorded.config
        if commit := self._find_upstream_commit(config):
            return ChangeReason(kind="upstream", message="an upstream commit set the value", commits=(commit,))
        for new, old in self._list_changed_upstreams():
            if DIGEST_PATTERN.fullmatch(new["commit"]) and self._has_new_value(config, self._restore(old)) is False:
                message = (
                    f"version {new['ref']} of {new['directory']} set the value; the version before was {old['ref']}"
                )
                return ChangeReason(kind="upstream", message=message)
        return None

    def _list_changed_upstreams(self) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Yield the new and the old version of each upstream with a new commit in the same repository."""
        if not (self._package and self._previous):
            return
        by_name = {upstream.get("name"): upstream for upstream in self._previous.recorded.upstreams}
        for new in self._package.recorded.upstreams:
            old = by_name.get(new.get("name"))
            if old and new["commit"] != old["commit"] and new["repo"] == old["repo"]:
                yield new, old

    def _restore(self, upstream: Mapping[str, Any]) -> RecordedRender:
        """Return the recorded render with a different version of one upstream. `upstream` describes this version."""
        assert self._package, "a package without a status file has no upstreams"
        return self._package.recorded.with_upstream(upstream)

    def _find_upstream_commit(self, config: str) -> CommitInfo | None:
        """Return the upstream commit that set the value, or None.

        To check a commit, render the package with the config that `config` identifies.
        """
        found = (self._find_source_commit(config, new, old) for new, old in self._list_changed_upstreams())
        return next(filter(None, found), None)

    def _find_source_commit(self, config: str, new: Mapping[str, Any], old: Mapping[str, Any]) -> CommitInfo | None:
        """Return the commit that set the value, from the commits between two versions of one upstream.

        Return None if no such commit set the value, or if the commits are not available.
        """
        remote = self._history.find_upstream(new["repo"])
        if remote is None:
            return None
        old_commit, directory = CommitId(old["commit"]), new.get("directory", "")
        try:
            commits = remote.mirror.list_commits_changing(CommitId(new["commit"]), directory, old_commit)[::-1]
        except GitError:
            # Return None, because the repository does not contain the old commit any more.
            return None

        def has_new_value(commit: CommitId) -> bool | None:
            tree = remote.find_tree_at(commit, directory)
            if tree is None:
                return self._change.after.value is ABSENT
            return self._has_new_value(config, self._restore({**new, "commit": commit, "tree": tree}))

        if not commits or has_new_value(old_commit) is not False:
            return None
        _, candidates = self._search(old_commit, commits, has_new_value)
        return build_commit_info(remote.read_commit(candidates[-1]))

    def _find_other_reason(self, package: CommittedPackage) -> ChangeReason:
        """Return the reason for a change that neither the config nor the upstream caused."""
        reason = None
        with suppress(ReRenderError):
            past_config = self._read_config(package.recorded.config)
            reason = self._find_rollout_reason(package, past_config) or self._find_template_reason(package, past_config)
        message = (
            "neither the config nor the upstream set the value; the version of the reconciler or of a function changed"
        )
        return reason or ChangeReason(kind="other", message=message)

    def _find_rollout_reason(self, package: CommittedPackage, past_config: PastConfig) -> ChangeReason | None:
        """Return a reason if rollout rules differ between this version and the previous version. Else return None."""
        record = self._history.find_record(package)
        old = record.find_version(self._previous.status) if record and self._previous else None
        new = record.find_version(package.status) if record else None
        if old is None or new is None:
            return None
        rollouts = past_config.renderer.cluster_overrides.rollouts
        old_rules, new_rules = dict(old.rules), dict(new.rules)
        rules = sorted(str(rule) for rule in rollouts if old_rules.get(rule) != new_rules.get(rule))
        message = f"the rollout of these rules reached {package.target.name}: {', '.join(rules)}"
        return ChangeReason(kind="rollout", message=message) if rules else None

    def _find_template_reason(self, package: CommittedPackage, past_config: PastConfig) -> ChangeReason | None:
        """Return a reason if other packages with Kafka templates changed in the same commit. Else return None."""
        files = package.remote.read_files(package.tree) if package.tree else FileTree()
        if self._change.parent is None or not past_config.renderer.template_merger.has_template_roles(files):
            return None
        new = read_related_packages(package, past_config, package.commit)
        old = read_related_packages(package, past_config, self._change.parent)
        names = sorted(name for name in {*new, *old} if new.get(name) != old.get(name))
        packages = ", ".join(f"{package.target.name}/{name}" for name in names)
        message = (
            f"the value depends on templates of other packages, which changed in the same commit: {packages}; "
            "run `reconciler why` for these packages"
        )
        return ChangeReason(kind="templates", message=message) if names else None

    def _has_new_value(self, config: str, upstream: RecordedRender | None = None) -> bool | None:
        """Return whether a render with a given config gives the new value. Return None if no render is possible.

        Args:
            config: The ID of the config. "" means the state before the first config commit.
            upstream: The recorded render with the upstream to use. None selects the upstreams in the status files.
        """
        if not config:
            return self._change.after.value is ABSENT
        key = (config, tuple(entry["commit"] for entry in upstream.upstreams) if upstream else ())
        if key not in self._alternatives:
            try:
                self._alternatives[key] = self._find_value(self._render_alternative(config, upstream))
            except ReRenderError as error:
                # Store NO_VALUE for a mismatch: no object of this config requests the package, so that the value does
                # not exist.
                self._alternatives[key] = NO_VALUE if error.is_mismatch else None
        value = self._alternatives[key]
        return None if value is None else value.is_same_value(self._change.after)

    def _render_alternative(self, config: str, upstream: RecordedRender | None = None) -> ReRenderedPackage:
        assert self._package, "_render_alternative() requires a package with a status file"
        past_config = self._read_config(config)
        recorded = [package.recorded for package in (self._package, self._previous) if package]
        self._render_count += 1
        return self._history.re_render_with_other_config(
            self._package, past_config, [upstream] if upstream else recorded
        )

    def _find_value(self, re_rendered: ReRenderedPackage) -> FoundValue | None:
        """Return the value in a render. Return None if the render failed."""
        if re_rendered.rendered is None:
            return None
        return self._values.query.find_in_package(re_rendered.rendered.files, self._change.after.file)

    def _read_config(self, config: str) -> PastConfig:
        return self._history.read_config(config, self._packages)
