"""Impact over real Git: the fleet is fetched once, and planned twice, with the config of one commit and of another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from reconciler.catalog.files import FileTree, TreeId
from reconciler.git.errors import ObjectMissingError
from reconciler.krm.findings import Finding
from reconciler.output.commits import DryCommit
from reconciler.output.data import read_mappings
from reconciler.output.impact.overview import FleetImpact
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
from reconciler.reconcile.reconcile_pass import plan_fleet
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.services import ConfigSource, PassServices
from reconciler.reconcile.snapshot import PreparedPass, prepare_pass, take_snapshots


@dataclass(frozen=True)
class CommitRange:
    """Two commits by name: `base..head`, or `base...head`, which begins at the last commit that both come from.

    "" is the config as settings name it: as `base` its branch, as `head` what is on disk, or the branch of a URL.
    """

    base: str
    head: str
    is_from_merge_base: bool = False

    def __str__(self) -> str:
        return f"{self.base}{'...' if self.is_from_merge_base else '..'}{self.head}"


@dataclass(frozen=True)
class ConfigVersions:
    """Where configs are read from: as it is now, at any commit, and the branch that settings name."""

    current: ConfigSource
    history: ConfigHistory
    branch: str

    def resolve(self, asked: CommitRange) -> tuple[ConfigSource, ConfigSource]:
        """Return the two configs that a range asks for. Raises GitError."""
        base = self.history.find_commit(asked.base) if asked.base else self.history.find_branch_head(self.branch)
        head = self.history.find_commit(asked.head) if asked.head else None
        if asked.is_from_merge_base:
            tip = head or self.history.find_commit(self.history.current_name)
            fork = self.history.merge_base(base, tip)
            if fork is None:
                raise ObjectMissingError(f"{asked}: the two must come from one commit, and have none in common")
            base = fork
        return self.history.source_at(base), self.history.source_at(head) if head else self.current


def compute_impact(asked: CommitRange, configs: ConfigVersions, remotes: Remotes, tools: PassServices) -> FleetImpact:
    """Return what the one config makes different for the fleet that the other would not. Raises GitError."""
    tools = replace(tools, create_text_writer=_Wordless)
    before, after = take_snapshots(configs.resolve(asked), remotes, tools)
    begun = prepare_pass(before, remotes, tools)
    base = plan_fleet(begun, tools)
    going = prepare_pass(after, remotes, tools)
    head = plan_fleet(going, tools, (begun, base))
    read = partial(_read, begun.context, going.context)
    found = tuple(read(one) for one in compare_plans(base, head))
    labels = {name: one.labels for name, one in {**begun.context.clusters, **going.context.clusters}.items()}
    return FleetImpact(base, head, found, labels, find_unknown_impact((base, head), _unread((begun, going), remotes)))


def _unread(configs: Iterable[PreparedPass], remotes: Remotes) -> dict[Target, Finding]:
    """Return an error for each destination of the configs whose repository could not be read."""
    # a Repository that is only an upstream counts where a package is missing for it
    known = {
        one.key: one
        for begun in configs
        for one in (*begun.all_targets, *(one for one in begun.known_targets if one.is_deployment))
    }
    return {one: finding for one in known.values() for finding in check_target_read(one, remotes)}


class _Wordless:
    """Finds no words: what is not committed needs none, and they cost as much as a render."""

    def __init__(self, config: str, dry_commit: DryCommit | None) -> None:
        self._nothing = DraftTexts(b"", "")

    def write_draft_texts(self, draft: Draft, destination: Target) -> DraftTexts:
        """Return nothing."""
        return self._nothing

    def write_removal_message(self, leaving: RemovalOutcome, destination: Target, before: FileTree | None) -> str:
        """Return nothing."""
        return ""


def _read(base: PassContext, head: PassContext, effect: PackageImpact) -> PackageImpact:
    """Return an effect with the contents that tell what is different in it."""
    where = effect.target
    if where is None:
        return effect
    try:
        had = _content(base, where, effect.before) if effect.before.kind == "wanted" else _standing(head, effect)
        has = _content(head, where, effect.after) if effect.after.kind in ("wanted", "declined") else _left(effect, had)
    except PackageTooLargeError:
        return replace(effect, files_before=None, files_after=None)
    return replace(effect, files_before=had, files_after=has, known_conflicts=_known_conflicts(base, effect))


def _content(desk: PassContext, where: Target, outlook: ProjectedPackage) -> FileTree:
    if isinstance(outlook.outcome, Draft):
        return outlook.outcome.rendered.files
    return _tree(desk, where, outlook.tree)


def _standing(desk: PassContext, effect: PackageImpact) -> FileTree:
    """Return what stands of a package that the first config leaves as it is, as the second finds it."""
    assert effect.target
    outcome = effect.after.outcome
    if isinstance(outcome, Draft):
        return outcome.previous_files
    return _tree(desk, effect.target, effect.after.tree if isinstance(outcome, Unchanged) else None)


def _left(effect: PackageImpact, had: FileTree) -> FileTree:
    """Return what there is to be of a package that the second config does not want, or cannot have."""
    gone = effect.after.kind == "none" or (effect.after.kind == "leaving" and effect.after.reason in _GOING)
    return FileTree() if gone else had


_GOING = ("proposed", "withdrawn")


def _tree(desk: PassContext, where: Target, tree: TreeId | None) -> FileTree:
    return desk.read_tree(where, tree) if tree else FileTree()


def _known_conflicts(desk: PassContext, effect: PackageImpact) -> frozenset[ConflictLocation]:
    """Return where people's edits meet others already by the first config, if there are any by the second."""
    draft, where = effect.after.outcome, effect.target
    if not (isinstance(draft, Draft) and draft.rendered.conflicts and where):
        return frozenset()
    match effect.before.outcome:
        case Draft(rendered=rendered):
            return frozenset(locate_conflict(one) for one in rendered.conflicts)
        case Unchanged(record=record) if offer := record.draft_version or record.published_version:
            told = read_mappings(parse_package_status(desk.read_file(where, offer.status)) or {}, "conflicts")
            return frozenset(
                (read_text(one, "file"), read_text(one, "resource"), read_text(one, "pointer")) for one in told
            )
        case _:
            return frozenset()
