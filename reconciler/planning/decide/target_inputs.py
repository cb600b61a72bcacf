"""Inputs of the decisions about one target: its requested packages, their owners, and its snapshot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from enum import IntEnum
from functools import cached_property

from reconciler.catalog.catalog import ConfigObject
from reconciler.catalog.files import CommitId
from reconciler.catalog.trace import DependencyReader
from reconciler.controllers.keyed_cache import are_identical
from reconciler.controllers.package_variants.package_variant import match_claim
from reconciler.controllers.results import ControllerResult, DeletionGuard, PackageOwner, PackageTarget, Variant
from reconciler.krm.findings import Finding
from reconciler.krm.git_formats import is_same_repository
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.planning.decide.drafts import DraftTextWriter
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.planning.decide.package_decision import DecisionInput, RenderFunction, block_stalled
from reconciler.planning.model.codes import PlanningCodes
from reconciler.planning.model.config_completeness import ConfigCompleteness
from reconciler.planning.model.outcomes import Blocked, PackageOutcome, format_rival_message
from reconciler.planning.model.sources import PackageContentStore
from reconciler.planning.model.state import ObservedPackage, PackageRecord, TargetState
from reconciler.planning.model.targets import PackagePathIndex, Target, list_folders_above
from reconciler.planning.observe.base_recovery import RecordedVariantFinder, RecoveryInputs, find_no_variant
from reconciler.planning.observe.state_recovery import recover_state
from reconciler.planning.observe.target_snapshot import (
    GitObjectReader,
    TargetHeads,
    TargetObjects,
    TargetSnapshot,
    track_drafts,
    track_publications,
)
from reconciler.planning.render.templates import TemplateMerger

TargetName = tuple[str, str]
"""Namespace and name of the object that defines a target."""


@dataclass(frozen=True)
class DesiredPackages:
    """The packages that the controllers request, by target and by owner."""

    controller_result: ControllerResult

    def is_same_result(self, result: ControllerResult) -> bool:
        """Return whether the variants and stalled variants of another result are the same Python objects."""
        own = self.controller_result
        return are_identical(own.variants, result.variants) and are_identical(own.stalled, result.stalled)

    @cached_property
    def variants_by_target(self) -> Mapping[TargetName, tuple[Variant, ...]]:
        """The requested package variants of each target."""
        by_target: dict[TargetName, list[Variant]] = {}
        for variant in self.controller_result.variants:
            by_target.setdefault((variant.target.namespace, variant.target.repository), []).append(variant)
        return {name: tuple(variants) for name, variants in by_target.items()}

    def is_downstream(self, target: ObjectKey) -> bool:
        """Return whether a package variant requests a package on this target."""
        return (target.namespace, target.name) in self.variants_by_target

    @cached_property
    def targets_by_owner(self) -> Mapping[ObjectKey, frozenset[PackageTarget]]:
        """The packages that each owner requests, as target and package path."""
        by_owner: dict[ObjectKey, set[PackageTarget]] = {}
        for variant in self.controller_result.variants:
            by_owner.setdefault(variant.owner.key, set()).add(variant.target)
        return {owner: frozenset(targets) for owner, targets in by_owner.items()}

    @cached_property
    def multi_target_owners(self) -> frozenset[ObjectKey]:
        """The owners that can have packages on several targets."""
        return frozenset(variant.owner.key for variant in self.controller_result.variants if variant.is_per_cluster)

    @cached_property
    def stalled_owners(self) -> frozenset[ObjectKey]:
        """The owners whose packages cannot be computed now."""
        return frozenset(stalled.owner.key for stalled in self.controller_result.stalled)

    @cached_property
    def stalled_packages(self) -> Mapping[TargetName, frozenset[str]]:
        """The packages of each target that are requested, but cannot be computed now."""
        by_target: dict[TargetName, frozenset[str]] = {}
        for target in (stalled.target for stalled in self.controller_result.stalled if stalled.target):
            name = (target.namespace, target.repository)
            by_target[name] = by_target.get(name, frozenset()) | {target.package}
        return by_target

    @cached_property
    def dependents_by_target(self) -> Mapping[TargetName, Mapping[str, ObjectKey]]:
        """Maps each Repository to its packages that other packages use as upstreams.

        Each of these packages is mapped to the owner of one package that uses it.
        """
        by_target: dict[TargetName, dict[str, ObjectKey]] = {}
        for variant in self.controller_result.variants:
            for upstream in variant.upstream.packages if variant.upstream else ():
                packages = by_target.setdefault((upstream.namespace, upstream.repository), {})
                packages.setdefault(upstream.package, variant.owner.key)
        return by_target


@dataclass(frozen=True)
class UnreadyOwners:
    """The owners that are not ready, and the packages that they may request.

    Attributes:
        owners_by_target: Maps a repository and a package to the owner that may request this package.
        objects: The PackageVariants and PackageVariantSets that are not ready.
        other_owners: The owners of other kinds that are not ready.
        owners_by_package: Maps a package to the owner that may request this package on unknown clusters.
    """

    owners_by_target: Mapping[tuple[str, str], ObjectKey] = field(default_factory=dict)
    objects: tuple[ConfigObject, ...] = ()
    other_owners: frozenset[ObjectKey] = frozenset()
    owners_by_package: Mapping[str, ObjectKey] = field(default_factory=dict)

    def find_claimant(self, target: PackageTarget, owner: PackageOwner, *, is_gone: bool) -> ObjectKey | None:
        """Return an owner that is not ready and may request the package `target`. Return None if there is none.

        An owner in another namespace is returned only in two cases:

        - Its manifest contains the name of the package.
        - It has the kind and the name of the recorded owner, or of the set that created the recorded owner. The config
          does not contain the recorded owner any more. The object may have moved to another namespace.

        Args:
            owner: The recorded owner, which does not request the package any more.
            is_gone: Whether the config does not contain the recorded owner.
        """
        if known := self.owners_by_target.get((target.repository, target.package)) or self.owners_by_package.get(
            target.package
        ):
            return known
        names = {(key.kind, key.name) for key in (owner.key, owner.parent) if key} if is_gone else set()
        for candidate in self.objects:
            claim = match_claim(candidate.data, target.repository, target.package)
            is_related = (
                candidate.key.namespace == target.namespace or (candidate.key.kind, candidate.key.name) in names
            )
            if claim == "named" or (claim == "possible" and is_related):
                return candidate.key
        return next((key for key in sorted(self.other_owners) if (key.kind, key.name) in names), None)


@dataclass(frozen=True)
class TargetClaims:
    """The requested packages of one target, and the data that decides which packages may be deleted.

    Attributes:
        existing_owners: All owners in the config.
        unresolved_owners: The owners and sets in the config whose packages cannot be computed.
        completeness: The decision whether a missing object is evidence of a deletion.
        stalled_packages: The requested packages that cannot be computed now.
        multi_target_owners: The owners that can have several packages.
        dependents: For each upstream package, an owner that uses the package.
        similar_objects: The objects of unknown kinds, which can be misspelled owners, by namespace and name.
        unready_owners: All owners that are not ready, including those of other targets.
        acknowledged_hashes: The hashes of removals that an annotation of the target confirms.
        max_delete_percent: The percentage of the target's published packages that one pass removes without a
            confirmation.
        select_tenants: Returns a copy of the claims in which only owners of the given tenants and of the platform team
            can block a deletion. None if the claims are not divided by tenant.
    """

    variants: tuple[Variant, ...]
    existing_owners: Set[ObjectKey]
    unresolved_owners: frozenset[ObjectKey]
    completeness: ConfigCompleteness = field(default_factory=ConfigCompleteness)
    stalled_packages: frozenset[str] = frozenset()
    targets_by_owner: Mapping[ObjectKey, frozenset[PackageTarget]] = field(default_factory=dict)
    multi_target_owners: frozenset[ObjectKey] = frozenset()
    guards: Mapping[ObjectKey, DeletionGuard] = field(default_factory=dict)
    dependents: Mapping[str, ObjectKey] = field(default_factory=dict)
    similar_objects: Mapping[tuple[str, str], ObjectKey] = field(default_factory=dict)
    has_no_owners: bool = False
    unready_owners: UnreadyOwners = field(default_factory=UnreadyOwners)
    acknowledged_hashes: frozenset[str] = frozenset()
    max_delete_percent: int = 100
    select_tenants: Callable[[frozenset[str]], TargetClaims] | None = field(default=None, compare=False)

    def select_for(self, record: PackageRecord) -> TargetClaims:
        """Return the claims that can block the deletion of a recorded package.

        These claims do not include owners of other tenants. If the tenants of the package are unknown, they include all
        owners.
        """
        if self.select_tenants is None:
            return self
        tenants = self.completeness.find_tenants(record)
        return self if tenants is None else self.select_tenants(tenants)

    def has_owner(self, owner: PackageOwner) -> bool:
        """Return whether the config contains the owner, or a set that may still create it.

        A set may create the owner if the set cannot be expanded now.
        """
        return owner.key in self.existing_owners or owner.parent in self.unresolved_owners

    def is_requested(self, package: str) -> bool:
        """Return whether any owner requests a package. A package that cannot be rendered now is also requested."""
        return package in self.accepted_packages or package in self.stalled_packages

    def may_be_requested(self, package: str, record: PackageRecord) -> bool:
        """Return whether a recorded package is or may be requested. If not, this pass can delete its draft."""
        if package in self.accepted_packages or not self.completeness.includes(record):
            return True
        claims = self.select_for(record)
        return (
            claims.is_requested(package)
            or claims.is_unresolved(record.owner)
            or bool(claims.explain_similar_object(record.owner))
        )

    @cached_property
    def accepted_packages(self) -> frozenset[str]:
        """The requested packages, without those that cannot be computed now."""
        return frozenset(variant.target.package for variant in self.variants)

    def explain_uncertainty(self, record: PackageRecord) -> str:
        """Return the reason why an owner may exist although it was not found. Return "" if it does not exist."""
        if self.completeness.includes(record):
            return ""
        return "An error in the config makes the list of objects incomplete. Next step: correct this error"

    def is_owner_gone(self, owner: PackageOwner) -> bool:
        """Return whether the config contains neither the owner nor its set."""
        return not (self.has_owner(owner) or owner.parent in self.guards or owner.key in self.guards)

    def explain_similar_object(self, owner: PackageOwner) -> str:
        """Return the reason why the owner may exist with a misspelled kind. Return "" if there is no similar object."""
        similar = (self.similar_objects.get((key.namespace, key.name)) for key in (owner.key, owner.parent) if key)
        other = next((key for key in similar if key), None)
        return (
            f"{owner.key} does not exist, but {other} may be the same object with a misspelled kind. Next step: correct"
            f" the kind of {other}, or delete this object"
            if other
            else ""
        )

    def is_released_by(self, owner: PackageOwner, target: PackageTarget) -> bool:
        """Return whether an owner was deleted, or requests a different package instead of `target`."""
        return not self.has_owner(owner) or target not in self.targets_by_owner.get(owner.key, {target})

    def find_only_target(self, owner: PackageOwner) -> PackageTarget | None:
        """Return the package of an owner that has exactly one package. Return None for other owners."""
        targets = (
            self.targets_by_owner.get(owner.key, frozenset())
            if owner.key not in self.multi_target_owners
            else frozenset()
        )
        return next(iter(targets), None)

    def is_unresolved(self, owner: PackageOwner) -> bool:
        """Return whether the config contains the owner, but the packages of the owner cannot be computed now."""
        return owner.key in self.unresolved_owners or owner.parent in self.unresolved_owners


def resolve_claims(claims: TargetClaims, state: TargetState) -> tuple[dict[str, Variant], list[Blocked]]:
    """Return one variant for each package, and the outcomes of the variants that do not get their package.

    If several variants request one package, or nested packages, the first of these variants gets the package:

    1. the variant of the recorded owner
    2. the variant of the platform team
    3. the variant of the tenant that owns the namespace of the target
    4. the variant whose owner is the first in alphabetical order, if all variants belong to one tenant

    If the variants of several tenants are equal according to these rules, none of them gets the package.
    """
    winners: dict[str, Variant] = {}
    assigned = PackagePathIndex()
    losers: list[Blocked] = []
    ranked = sorted(
        ((_rank_claim(variant, claims, state), variant) for variant in claims.variants),
        key=lambda entry: (entry[0], entry[1].owner.key),
    )
    equal_claims = _EqualClaims([variant for rank, variant in ranked if rank is _ClaimRank.OTHER_TENANT])
    for rank, variant in ranked:
        package = variant.target.package
        names = (package, *assigned.find_nested(package))
        rival = next((winners[name] for name in names if name in winners), None)
        if rival is None and rank is _ClaimRank.OTHER_TENANT:
            rival = equal_claims.find_rival(variant)
        if rival:
            losers.append(_block_claim(variant, rival))
        else:
            winners[package] = variant
            assigned.add(package)
    return dict(sorted(winners.items())), losers


class _ClaimRank(IntEnum):
    RECORDED_OWNER = 0
    PLATFORM = 1
    NAMESPACE_OWNER = 2
    OTHER_TENANT = 3


def _rank_claim(variant: Variant, claims: TargetClaims, state: TargetState) -> _ClaimRank:
    record = state.packages.get(variant.target.package)
    if record and record.is_owned and _is_recorded_owner(variant, record, claims.completeness):
        return _ClaimRank.RECORDED_OWNER
    if not variant.tenant:
        return _ClaimRank.PLATFORM
    is_owner = claims.completeness.tenants.find_namespace_owner(variant.target.namespace) == variant.tenant
    return _ClaimRank.NAMESPACE_OWNER if is_owner else _ClaimRank.OTHER_TENANT


def _is_recorded_owner(variant: Variant, record: PackageRecord, completeness: ConfigCompleteness) -> bool:
    # Compare the tenants too. Owners of different tenants can have the same name, because sets create these names.
    tenants = completeness.find_tenants(record) if variant.tenant else None
    return record.owner.key == variant.owner.key and (tenants is None or variant.tenant in tenants)


class _EqualClaims:
    """The variants with the rank `_ClaimRank.OTHER_TENANT`. Of variants of different tenants, none has precedence."""

    def __init__(self, variants: Iterable[Variant]) -> None:
        self._by_package: dict[str, list[Variant]] = {}
        for variant in variants:
            self._by_package.setdefault(variant.target.package, []).append(variant)
        self._paths = PackagePathIndex(self._by_package)

    def find_rival(self, variant: Variant) -> Variant | None:
        """Return a variant of another tenant that requests the same package or a nested package.

        Return None if there is no such variant.
        """
        names = (variant.target.package, *self._paths.find_nested(variant.target.package))
        rivals = (rival for name in names for rival in self._by_package.get(name, ()))
        return next((rival for rival in rivals if rival.tenant != variant.tenant), None)


def _block_claim(variant: Variant, rival: Variant) -> Blocked:
    message = format_rival_message(variant, rival)
    return block_stalled(DecisionInput(variant, None, ObservedPackage()), PlanningCodes.DOWNSTREAM_CONFLICT, message)


def build_decision_input(variant: Variant, claims: TargetClaims, snapshot: TargetSnapshot) -> DecisionInput:
    """Collect the inputs of `decide_package` for one variant."""
    package = variant.target.package
    record = snapshot.state.packages.get(package)
    nested = () if record and record.is_owned else _find_nested_packages(package, snapshot)
    is_owner_gone = (
        record is not None
        and claims.completeness.includes(record)
        and claims.select_for(record).is_released_by(record.owner, variant.target)
    )
    return DecisionInput(
        variant, record, snapshot.observe_package(package), nested, is_owner_gone, snapshot.find_obstacle(package),
        snapshot.unavailable_bases.get(package),
    )  # fmt: skip


def _find_nested_packages(package: str, snapshot: TargetSnapshot) -> tuple[str, ...]:
    return (*snapshot.owned_packages.find_nested(package), *_find_published_parents(package, snapshot))


def _find_published_parents(package: str, snapshot: TargetSnapshot) -> tuple[str, ...]:
    if snapshot.heads.target_branch is None:
        return ()
    # Ignore the root folder, because a Kptfile in the root folder does not make all packages subpackages.
    folders = (folder for folder in list_folders_above(package) if folder)
    return tuple(
        folder
        for folder in folders
        if snapshot.objects.find_blob_at(
            snapshot.heads.target_branch, f"{snapshot.target.get_package_path(folder)}/Kptfile"
        )
    )


_SHORT_ID_LENGTH = 12


@dataclass(frozen=True)
class ConfigOrigin:
    """Origin of the config of a pass. The recorded state contains the origin.

    Attributes:
        directory: The folder in the repository that contains the config files.
        root_commit: The first commit of the config branch, or "" for a plain folder. Also "" after a replacement of the
            history that no person has acknowledged. Then the state keeps the recorded commit.
    """

    directory: str = ""
    root_commit: str = ""

    def get_repository_path(self, file: str) -> str:
        """Return the path of a config file relative to the root of its repository."""
        return f"{self.directory}/{file}" if self.directory else file


@dataclass(frozen=True)
class PlanningContext:
    """Settings, functions and package contents that planning uses."""

    dependency_reader: DependencyReader
    contents: PackageContentStore
    render: RenderFunction
    text_writer: DraftTextWriter
    draft_template: str
    config_seconds: int
    removal_template: str = "removals/{repository}"
    template_merger: TemplateMerger = field(default_factory=TemplateMerger)
    config_origin: ConfigOrigin = field(default_factory=ConfigOrigin)
    hold_kinds: Collection[str] = ()
    find_recorded_variant: RecordedVariantFinder = find_no_variant

    @property
    def recovery_inputs(self) -> RecoveryInputs:
        """The inputs for the recovery of lost state."""
        return RecoveryInputs(self.contents, self.hold_kinds, self.find_recorded_variant)


@dataclass(frozen=True)
class PreparedTarget:
    """One target with its requested packages and its updated state, before the decisions.

    Attributes:
        known_outcomes: The outcomes of packages that need no decision, by package.
    """

    target: Target
    claims: TargetClaims
    previous_state: TargetState
    snapshot: TargetSnapshot
    context: PlanningContext
    known_outcomes: Mapping[str, PackageOutcome] = field(default_factory=dict, kw_only=True)


def prepare_target(
    target: Target,
    claims: TargetClaims,
    state: TargetState,
    heads: TargetHeads,
    objects: TargetObjects,
    context: PlanningContext,
    last_known_head: CommitId | None = None,
) -> PreparedTarget | TargetPlan:
    """Return a target with its updated state. If the target has an error, return a plan that changes nothing.

    Args:
        last_known_head: The cached head of the target branch, as for `find_missing_target`.
    """
    if finding := find_missing_target(target, state, heads, objects, last_known_head):
        return TargetPlan(target, heads, state, state, findings=(finding,))
    # Keep the recorded URL if only its spelling differs, so that daemons with different spellings write equal commits.
    moved = replace(state, url=target.display_url) if has_other_url(target, state) else state
    current = track_drafts(track_publications(moved, target, heads, objects), target, heads, objects)
    snapshot = TargetSnapshot(target, current, heads, objects, context.draft_template, context.removal_template)
    recovered = recover_state(snapshot, claims.variants, context.recovery_inputs)
    return PreparedTarget(target, claims, state, recovered, context)


def find_missing_target(
    target: Target,
    state: TargetState,
    heads: TargetHeads,
    repository: GitObjectReader,
    last_known_head: CommitId | None = None,
) -> Finding | None:
    """Return the error for a target whose known branch was deleted, or whose location in the config has changed.

    Return None if there is no such error. A new URL is not an error if the branch at the new URL contains the recorded
    head and `last_known_head`.

    Args:
        last_known_head: The cached head of the branch at the previous URL. A branch at the new URL without this commit
            is an outdated copy.
    """
    recorded = (state.url, state.branch, state.directory)
    current = (target.display_url, target.branch, target.directory)
    if recorded[1:] != current[1:]:
        message = (
            f"{target.title} used {_format_location(recorded)} before, and uses {_format_location(current)} now."
            " Nothing is pushed. Next step: restore the branch and the directory in the config. To keep the new"
            f" location instead, delete the state ref of {target.name} (setting `state_ref`)"
        )
    elif state.observed_commit and (heads.target_branch is None or heads.is_absent):
        message = (
            f'branch "{target.branch}" of {target.display_url} does not exist. Its last known commit is'
            f" {state.observed_commit[:_SHORT_ID_LENGTH]}. Nothing is pushed. Next step: push this commit to the branch"
            f" again. To start again without the branch, delete the state ref of {target.name} (setting `state_ref`),"
            " and acknowledge the reset that the next pass reports"
        )
    elif has_other_url(target, state) and (
        lost := _find_lost_commit(repository, heads.target_branch, state.observed_commit, last_known_head)
    ):
        message = (
            f"{target.title} used the repository {state.url} before, and uses {target.display_url} now. Branch"
            f' "{target.branch}" of the new repository does not contain the last known commit'
            f" {lost[:_SHORT_ID_LENGTH]}. Nothing is pushed. Next step: restore the URL, or push"
            " all refs of the old repository to the new URL. To"
            f" accept the new branch as it is, delete the state ref of {target.name} (setting `state_ref`)"
        )
    else:
        return None
    return PlanningCodes.DESTINATION_MISSING.finding(message, target.location)


def has_other_url(target: Target, state: TargetState) -> bool:
    """Return whether the state was recorded for a different repository. The spelling of the URL is ignored."""
    return not any(is_same_repository(state.url, url) for url in (target.display_url, target.url))


def _find_lost_commit(
    repository: GitObjectReader, branch: CommitId | None, *commits: CommitId | None
) -> CommitId | None:
    candidates = (commit for commit in commits if commit is not None and commit != branch)
    return next(
        (commit for commit in candidates if branch is None or repository.list_first_parents(commit, branch) is None),
        None,
    )


def _format_location(location: tuple[str, str, str]) -> str:
    url, branch, directory = location
    return f'directory /{directory} on branch "{branch}" of {url}'
