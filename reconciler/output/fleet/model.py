"""The index of the fleet: immutable values that pages and the read API use.

A change contains the drafts of all targets with one cause. A variant of a change contains the drafts with one effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Literal

from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.output.changes.package_changes import PackageChanges
from reconciler.output.entries import ConflictEntry
from reconciler.output.fleet.publications import Publication
from reconciler.output.fleet.risk import Risk, RiskLevel
from reconciler.output.fleet.rollouts import Rollout
from reconciler.output.fleet.value_table import VariantGroups, group_variants
from reconciler.planning.lifecycle.open_drafts import PACKAGE_STATES, BlockingReason, PackageState

ChangeState = Literal["waiting", "proposed", "blocked", "rejected"]
CHANGE_STATES: tuple[ChangeState, ...] = ("waiting", "proposed", "blocked", "rejected")
BLOCKED_STATES: tuple[PackageState, ...] = ("blocked", "held")
"""The states of packages that wait for a config change, or for a decision that is not a review."""
KEY_CHARACTERS = 12
"""The length of the keys of changes and variants in URLs."""


@dataclass(frozen=True)
class DraftMember:
    """The draft of one package on one target, as a member of a variant.

    Attributes:
        branch: The name of the draft branch.
        head: The head of the draft branch.
        published_head: The head of the target branch.
        lifecycle: The lifecycle of the draft: Draft, Proposed or Stale.
        since: The date of the first commit of the draft, in seconds since 1970. None if it is unknown.
        editors: The authors of commits on the draft branch, without the reconciler.
        rejection: The rejection as a phrase. "" if the draft is not rejected.
        approved_by: The people who have approved the draft, as long as more approvals are necessary.
        refusals: The reasons that block the draft. They can contain the name of the target.
        behind_count: The number of commits on the target branch since the draft branch started.
    """

    target: str
    package: str
    branch: str
    head: str
    published_head: str
    lifecycle: str
    since: int | None = None
    pull_request: int = 0
    editors: tuple[str, ...] = ()
    rejection: str = ""
    refusals: tuple[BlockingReason, ...] = ()
    tenant: str = ""
    approved_by: tuple[str, ...] = ()
    behind_count: int = 0

    @property
    def state(self) -> ChangeState:
        """The state of the draft: whether a person has rejected or proposed it, or whether it is blocked."""
        if self.rejection:
            return "rejected"
        if self.refusals:
            return "blocked"
        return "proposed" if self.lifecycle == "Proposed" else "waiting"


@dataclass(frozen=True)
class VariantContent:
    """The effect of a variant. The names in texts are those of the first target. Secrets are masked.

    Attributes:
        action: The effect on the package, such as `update v1 → v2` or `remove`.
        causes: The dependencies that changed.
        config: The ID of the config for which the draft was created.
        is_removal: Whether the draft removes the package.
        template_effects: The effects of changed templates on pods.
    """

    action: str
    changes: PackageChanges
    risk: Risk
    conflicts: tuple[ConflictEntry, ...] = ()
    causes: tuple[str, ...] = ()
    config: str = ""
    is_removal: bool = False
    template_effects: tuple[str, ...] = ()

    def count_objects(self, change_type: str) -> int:
        """Return the number of resources that are added, changed or removed."""
        return sum(change.change_type == change_type for change in self.changes.objects if not change.is_local_config)


@dataclass(frozen=True)
class IndexedDraft:
    """A draft, the key of its change, and the digest and the content of its variant."""

    member: DraftMember
    change_key: str
    title: str
    owner: str
    variant_digest: str
    content: VariantContent = field(repr=False)


@dataclass(frozen=True)
class ChangeVariant:
    """The drafts of a change with equal effects. `members` are sorted by target."""

    digest: str
    content: VariantContent
    members: tuple[DraftMember, ...]

    @property
    def key(self) -> str:
        """The short form of the digest, for URLs."""
        return shorten_digest(self.digest)


@dataclass(frozen=True)
class ReviewChange:
    """All drafts that have the same cause, on all targets. The variant with the most targets comes first.

    Attributes:
        title: The operation, the package and the version change, such as `update gateway v1 → v2`. Names of targets
            are replaced by `*`.
        owner: The object that requests the packages.
    """

    key: str
    title: str
    owner: str
    variants: tuple[ChangeVariant, ...]

    @cached_property
    def members(self) -> tuple[DraftMember, ...]:
        """All drafts, sorted by variant and target."""
        return tuple(member for variant in self.variants for member in variant.members)

    @cached_property
    def groups(self) -> VariantGroups:
        """The variants in groups. If more than 10 variants change the same fields, one table shows their values."""
        return group_variants(self.variants)

    @cached_property
    def effects(self) -> str:
        """A short digest that changes only if the affected packages, or the effects on them, change."""
        members = [[[member.target, member.package] for member in variant.members] for variant in self.variants]
        return shorten_digest(compute_digest([[variant.digest for variant in self.variants], members]))

    @cached_property
    def version(self) -> str:
        """A digest of everything that pages show of the change. The variants contain the digests of their effects."""
        contents = [
            [variant.digest, content.action, content.config, *content.causes, *content.template_effects]
            for variant in self.variants
            for content in (variant.content,)
        ]
        return compute_digest([self.title, self.owner, contents, repr(self.members)])

    @cached_property
    def risk(self) -> Risk:
        """The highest risk of the variants."""
        return min((variant.content.risk for variant in self.variants), key=lambda risk: risk.rank)

    @property
    def level(self) -> RiskLevel:
        """The level of the risk."""
        return self.risk.level

    @cached_property
    def since(self) -> int | None:
        """The earliest date of a draft, in seconds since 1970. None if it is unknown."""
        return min((member.since for member in self.members if member.since is not None), default=None)

    @cached_property
    def state(self) -> ChangeState:
        """The first state in `CHANGE_STATES` that a draft has."""
        states = {member.state for member in self.members}
        return next(state for state in CHANGE_STATES if state in states)

    @property
    def conflict_count(self) -> int:
        """The number of conflicts in all drafts."""
        return sum(len(variant.content.conflicts) * len(variant.members) for variant in self.variants)

    @property
    def sort_key(self) -> tuple[int, int, int, str]:
        """The sort key: the highest risk first, then the most drafts, then the oldest draft."""
        return self.risk.rank, -len(self.members), self.since or 0, self.key


@dataclass(frozen=True)
class ChangedResource:
    """A resource of a change, with its change as text.

    Attributes:
        title: The resource as `Kind namespace/name`.
        text: The first changed fields with their values. Secrets are masked.
        values: All changed fields with their values, in lower case.
        variant: The short key of a variant that contains this change of the resource.
    """

    change: ReviewChange
    kind: str
    name: str
    title: str
    text: str
    values: str
    variant: str


@dataclass(frozen=True)
class PackageRow:
    """A package of a target.

    Attributes:
        column: The name of the package, with `*` instead of the name of its target. Packages of the same preset have
            the same column.
        owner: The object that requests the package, or the set that creates this object.
        version: The number of the published revision. 0 if the published content has no revision number.
        upstream: The upstream of the published content, or of the draft if nothing is published.
        since: The date of the current content, in seconds since 1970. None if it is unknown.
        reasons: The reasons why the package is blocked or held.
        draft: The open draft. None if there is none.
        publication: The publication of the revision. None if the published content has no revision number.
    """

    target: str
    package: str
    column: str
    owner: str
    state: PackageState
    version: int = 0
    upstream: str = ""
    since: int | None = None
    is_edited: bool = False
    reasons: tuple[BlockingReason, ...] = ()
    draft: IndexedDraft | None = None
    publication: Publication | None = None
    tenant: str = ""


@dataclass(frozen=True)
class TargetEntry:
    """A target with its packages.

    Attributes:
        url: The URL of the repository without credentials.
        directory: The folder of the packages in the repository.
        head: The head of the target branch. "" if there is no branch.
        last_commit_seconds: The date of the newest commit, in seconds since 1970. 0 if there is no commit.
        read_error: The reason why the target cannot be read. "" if it was read.
        definition: The object in the config that defines the target, such as `Repository default/berlin`.
        place: The file and the line of this object. The file is "" if the place is unknown.
    """

    name: str
    labels: Mapping[str, str]
    url: str
    branch: str
    directory: str = ""
    head: str = ""
    packages: tuple[PackageRow, ...] = ()
    last_commit_seconds: int = 0
    read_error: str = ""
    definition: str = ""
    place: SourceLocation = SourceLocation()

    @cached_property
    def by_package(self) -> Mapping[str, PackageRow]:
        """The packages by path."""
        return {row.package: row for row in self.packages}

    @cached_property
    def version(self) -> str:
        """A digest of everything that pages show of the target. Drafts contain the digests of their effects."""
        return compute_digest(repr(self))

    @cached_property
    def search_texts(self) -> tuple[str, ...]:
        """For each package: the names of the target, of the package and of its owner, as one text in lower case."""
        return tuple(f"{self.name}/{row.package} {row.owner}".lower() for row in self.packages)

    @cached_property
    def state_counts(self) -> Mapping[PackageState, int]:
        """The number of packages by state. States without packages are omitted."""
        states = [row.state for row in self.packages]
        return {state: count for state in PACKAGE_STATES if (count := states.count(state))}

    @cached_property
    def drafts(self) -> tuple[IndexedDraft, ...]:
        """The open drafts of the packages."""
        return tuple(row.draft for row in self.packages if row.draft)


@dataclass(frozen=True)
class FleetIndex:
    """The fleet after a pass.

    Attributes:
        number: The number of the index in this process. It increases with each index.
        completed_at: The end of the pass, in seconds since 1970.
        config: The ID of the config, such as a commit ID.
        changes: The changes of open drafts, sorted by `ReviewChange.sort_key`.
        rollouts: The rollouts of override rules.
        owner_places: The file and the line in the config of each object in `PackageRow.owner`, if the config contains
            the object.
        finding_tenants: The tenant of each finding, by the text of its location. Findings that belong to the platform
            team are omitted.
    """

    number: int
    completed_at: int
    config: str
    targets: tuple[TargetEntry, ...] = ()
    changes: tuple[ReviewChange, ...] = ()
    findings: tuple[Finding, ...] = ()
    rollouts: tuple[Rollout, ...] = ()
    owner_places: Mapping[str, SourceLocation] = field(default_factory=dict)
    finding_tenants: Mapping[str, str] = field(default_factory=dict)

    def find_finding_tenant(self, finding: Finding) -> str:
        """Return the tenant that owns the file, the object or the package of a finding. "" for the platform team."""
        return self.finding_tenants.get(str(finding.location), "")

    @cached_property
    def by_target(self) -> Mapping[str, TargetEntry]:
        """The targets by name."""
        return {target.name: target for target in self.targets}

    def find_row(self, target: str, package: str) -> PackageRow | None:
        """Return a package. Return None if the index does not contain it."""
        entry = self.by_target.get(target)
        return entry.by_package.get(package) if entry else None

    @cached_property
    def rows_by_column(self) -> Mapping[tuple[str, str], Sequence[PackageRow]]:
        """The packages of all targets by column and owner."""
        found: dict[tuple[str, str], list[PackageRow]] = {}
        for target in self.targets:
            for row in target.packages:
                found.setdefault((row.column, row.owner), []).append(row)
        return found

    @cached_property
    def by_change(self) -> Mapping[str, ReviewChange]:
        """The changes by key."""
        return {change.key: change for change in self.changes}

    @cached_property
    def changed_resources(self) -> tuple[ChangedResource, ...]:
        """The resources of all changes. A resource that changes differently on several targets occurs several times."""
        found: dict[tuple[str, str], ChangedResource] = {}
        for change in self.changes:
            for variant in change.variants:
                for resource in variant.content.changes.objects:
                    if resource.is_local_config:
                        continue
                    values = "\n".join(resource.list_field_lines()).lower()
                    if (change.key, values) not in found:
                        key, title = resource.key, resource.name
                        text = resource.format_line().removeprefix(f"{title}: ")
                        found[change.key, values] = ChangedResource(
                            change, key.kind, key.name, title, text, values, variant.key
                        )
        return tuple(found.values())

    @cached_property
    def publications(self) -> tuple[tuple[PackageRow, Publication], ...]:
        """The last publication of each package, the newest first."""
        return sort_publications(row for target in self.targets for row in target.packages)

    @cached_property
    def state_counts(self) -> Mapping[PackageState, int]:
        """The number of packages by state. States without packages are omitted."""
        counts = dict.fromkeys(PACKAGE_STATES, 0)
        for target in self.targets:
            for state, count in target.state_counts.items():
                counts[state] += count
        return {state: count for state, count in counts.items() if count}

    @cached_property
    def tenants_by_owner(self) -> Mapping[str, frozenset[str]]:
        """Maps each owner of packages to the tenants of its packages. The tenant "" means packages without a tenant."""
        found: dict[str, set[str]] = {}
        for target in self.targets:
            for row in target.packages:
                found.setdefault(row.owner, set()).add(row.tenant)
        return {owner: frozenset(tenants) for owner, tenants in found.items()}

    @cached_property
    def tenants(self) -> tuple[str, ...]:
        """The names of the tenants that own packages, or files with findings, sorted."""
        names = frozenset(self.finding_tenants.values()).union(*self.tenants_by_owner.values())
        return tuple(sorted(names - {""}))

    @cached_property
    def label_names(self) -> tuple[str, ...]:
        """The names of the labels of all targets, sorted."""
        return tuple(sorted({name for target in self.targets for name in target.labels}))

    @property
    def blocked_count(self) -> int:
        """The number of packages that are blocked or held."""
        return sum(self.state_counts.get(state, 0) for state in BLOCKED_STATES)

    @cached_property
    def package_count(self) -> int:
        """The number of packages."""
        return sum(self.state_counts.values())


def sort_publications(rows: Iterable[PackageRow]) -> tuple[tuple[PackageRow, Publication], ...]:
    """Return the last publication of each package, the newest first."""
    found = [(row, row.publication) for row in rows if row.publication]
    return tuple(sorted(found, key=lambda item: -item[1].seconds))


def shorten_digest(digest: str) -> str:
    """Return the short form of a digest for URLs."""
    return digest.removeprefix("sha256:")[:KEY_CHARACTERS]
