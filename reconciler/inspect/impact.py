"""Impact of a config change: two plans of the whole fleet with the configs of two commits.

Each repository is fetched once for both plans. The module `reconciler.planning.attribution.impact` compares the plans.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from reconciler.catalog.files import FileTree, TreeId
from reconciler.git.errors import ObjectMissingError
from reconciler.krm.findings import Finding
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.commit_messages import DryCommit
from reconciler.output.impact.overview import FleetImpact
from reconciler.output.json_data import read_mappings
from reconciler.output.status.package_sections import read_text
from reconciler.planning.attribution.impact import (
    ConflictLocation,
    PackageImpact,
    ProjectedPackage,
    compare_plans,
    find_unknown_impact,
)
from reconciler.planning.decide.drafts import DraftTexts
from reconciler.planning.lifecycle.open_drafts import parse_package_status
from reconciler.planning.model.outcomes import Draft, RemovalOutcome, Unchanged
from reconciler.planning.model.sources import PackageTooLargeError, locate_conflict
from reconciler.planning.model.targets import Target
from reconciler.reconcile.config_source import ConfigHistory
from reconciler.reconcile.pass_context import PassContext, check_target_read
from reconciler.reconcile.pass_inputs import ConfigSource
from reconciler.reconcile.reconcile_pass import plan_fleet
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.services import PassServices
from reconciler.reconcile.snapshot import PreparedPass, prepare_pass, take_snapshots

_REMOVAL_REASONS = ("proposed", "withdrawn")


@dataclass(frozen=True)
class CommitRange:
    """Two config commits to compare, in the notation `base..head` or `base...head`.

    Attributes:
        base: The name of the first commit. An empty name selects the config branch of the settings.
        head: The name of the second commit. An empty name selects the current config: the files on disk, or the branch
            of the config URL.
        is_from_merge_base: Whether the merge base of the two commits replaces the first commit, as with `...` in Git.
    """

    base: str
    head: str
    is_from_merge_base: bool = False

    def __str__(self) -> str:
        return f"{self.base}{'...' if self.is_from_merge_base else '..'}{self.head}"


@dataclass(frozen=True)
class ConfigVersions:
    """The current config, and the history of the config for reading the config of each commit.

    Attributes:
        branch: The config branch of the settings.
    """

    current: ConfigSource
    history: ConfigHistory
    branch: str

    def resolve(self, commit_range: CommitRange) -> tuple[ConfigSource, ConfigSource]:
        """Return the configs of the two commits of a range.

        Raises:
            GitError: A commit cannot be read, or the two commits have no merge base.
        """
        history = self.history
        base = history.find_commit(commit_range.base) if commit_range.base else history.find_branch_head(self.branch)
        head = history.find_commit(commit_range.head) if commit_range.head else None
        if commit_range.is_from_merge_base:
            merge_base = history.merge_base(base, head or history.find_commit(history.current_name))
            if merge_base is None:
                raise ObjectMissingError(f"{commit_range}: the two commits have no common ancestor")
            base = merge_base
        return history.source_at(base), history.source_at(head) if head else self.current


def compute_impact(
    commit_range: CommitRange, configs: ConfigVersions, remotes: Remotes, services: PassServices
) -> FleetImpact:
    """Plan the fleet with both configs of a range, and return the packages that differ between the two plans.

    Raises:
        GitError: A config cannot be read.
    """
    services = replace(services, create_text_writer=_EmptyTextWriter)
    base_snapshot, head_snapshot = take_snapshots(configs.resolve(commit_range), remotes, services)
    base_pass = prepare_pass(base_snapshot, remotes, services)
    base_plan = plan_fleet(base_pass, services)
    head_pass = prepare_pass(head_snapshot, remotes, services)
    head_plan = plan_fleet(head_pass, services, (base_pass, base_plan))
    read_contents = partial(_read_contents, base_pass.context, head_pass.context)
    impacts = tuple(read_contents(impact) for impact in compare_plans(base_plan, head_plan))
    clusters = {**base_pass.context.clusters, **head_pass.context.clusters}
    labels = {name: cluster.labels for name, cluster in clusters.items()}
    unknown = find_unknown_impact((base_plan, head_plan), _find_unread_targets((base_pass, head_pass), remotes))
    return FleetImpact(base_plan, head_plan, impacts, labels, unknown)


def _find_unread_targets(passes: Iterable[PreparedPass], remotes: Remotes) -> dict[Target, Finding]:
    """Return an error for each target whose repository could not be read."""
    # Ignore unreadable repositories that only provide upstream packages. The packages that require these upstream
    # packages report the error.
    targets = {
        target.key: target
        for prepared in passes
        for target in (
            *prepared.all_targets,
            *(known_target for known_target in prepared.known_targets if known_target.is_deployment),
        )
    }
    return {target: finding for target in targets.values() for finding in check_target_read(target, remotes)}


class _EmptyTextWriter:
    """Returns empty commit messages and status files.

    The computation of an impact commits nothing, and real texts would take as much time as the renders.
    """

    def __init__(self, config: str, dry_commit: DryCommit | None) -> None:
        self._empty_texts = DraftTexts(b"", "")

    def write_draft_texts(self, draft: Draft, target: Target) -> DraftTexts:
        """Return an empty status file and an empty commit message for a draft."""
        return self._empty_texts

    def write_removal_message(self, removal: RemovalOutcome, target: Target, before: FileTree | None) -> str:
        """Return an empty commit message for the removal of a package."""
        return ""


def _read_contents(base: PassContext, head: PassContext, impact: PackageImpact) -> PackageImpact:
    """Return the impact with the files of the package before and after the config change."""
    target = impact.target
    if target is None:
        return impact
    try:
        if impact.before.kind == "requested":
            files_before = _read_projected_files(base, target, impact.before)
        else:
            files_before = _read_published_files(head, target, impact)
        if impact.after.kind in ("requested", "declined"):
            files_after = _read_projected_files(head, target, impact.after)
        else:
            files_after = FileTree() if _is_removed(impact) else files_before
    except PackageTooLargeError:
        return replace(impact, files_before=None, files_after=None)
    known_conflicts = _find_known_conflicts(base, impact)
    return replace(impact, files_before=files_before, files_after=files_after, known_conflicts=known_conflicts)


def _read_projected_files(context: PassContext, target: Target, projected: ProjectedPackage) -> FileTree:
    if isinstance(projected.outcome, Draft):
        return projected.outcome.rendered.files
    return _read_tree(context, target, projected.tree)


def _read_published_files(context: PassContext, target: Target, impact: PackageImpact) -> FileTree:
    """Return the published files of a package that the first of the two compared configs does not request."""
    outcome = impact.after.outcome
    if isinstance(outcome, Draft):
        return outcome.previous_files
    return _read_tree(context, target, impact.after.tree if isinstance(outcome, Unchanged) else None)


def _is_removed(impact: PackageImpact) -> bool:
    """Return whether the package does not exist in the plan of the second config."""
    after = impact.after
    return after.kind == "none" or (after.kind == "removal" and after.reason in _REMOVAL_REASONS)


def _read_tree(context: PassContext, target: Target, tree: TreeId | None) -> FileTree:
    return context.read_tree(target, tree) if tree else FileTree()


def _find_known_conflicts(base: PassContext, impact: PackageImpact) -> frozenset[ConflictLocation]:
    """Return the package's conflicts of local changes in the plan of the first config.

    If the package has no conflicts in the plan of the second config, the conflicts of the first plan are not needed.
    In this case, return an empty set.
    """
    draft, target = impact.after.outcome, impact.target
    if not (isinstance(draft, Draft) and draft.rendered.conflicts and target):
        return frozenset()
    match impact.before.outcome:
        case Draft(rendered=rendered):
            return frozenset(locate_conflict(conflict) for conflict in rendered.conflicts)
        case Unchanged(record=record) if version := record.draft_version or record.published_version:
            status = parse_package_status(base.read_file(target, version.status)) or {}
            return frozenset(
                (read_text(conflict, "file"), read_text(conflict, "resource"), read_text(conflict, "pointer"))
                for conflict in read_mappings(status, "conflicts")
            )
        case _:
            return frozenset()
