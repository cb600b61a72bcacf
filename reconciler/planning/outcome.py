"""Outcomes: what a reconcile decided for one package; closed, every case handled by `match`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from reconciler.krm.conditions import Condition
from reconciler.krm.conflicts import Conflict
from reconciler.krm.digest import digest
from reconciler.krm.findings import Finding, Where
from reconciler.krm.identity import ObjectKey
from reconciler.packages.update import MergeOptions
from reconciler.planning.conflicts import conflict_data
from reconciler.planning.source import NO_SOURCE, Source
from reconciler.planning.stages import Stage
from reconciler.planning.state import PackageRecord, Seen
from reconciler.rules.overrides.rollout import RuleId
from reconciler.rules.templates.change import TemplateChange
from reconciler.rules.templates.package import TemplatedPackage
from reconciler.rules.variant import Injected, Owner, Variant
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import TreeId
from reconciler.snapshot.trace import Trace

_RENDERED = Condition("Rendered", "True", "Rendered")


def review_digest(
    conditions: Iterable[Condition],
    gates: Iterable[str],
    conflicts: Iterable[Mapping[str, Any]] = (),
    templates: Iterable[Mapping[str, Any]] = (),
) -> str:
    """Return a digest of what makes a commit besides the tree: conditions, gates, conflicts as data (design 10.9).

    Of `templates`, as status files tell of them, those count that no file of the package has: they are only reported,
    and the report has to follow what is inherited (strimzi 8, 11).
    """
    told = {"conditions": [one.as_data() for one in conditions], "gates": list(gates), "conflicts": list(conflicts)}
    reported = [[one["resource"], one["template"]] for one in templates if "template" in one]
    more = {"templates": reported} if reported else {}
    return digest({**{name: value for name, value in told.items() if value or name != "conflicts"}, **more})


@dataclass(frozen=True)
class Rendered:
    """A package as it should stand: its files, and what reviewers are told beside them (design 10.28).

    `conditions` are the Kptfile's and `Rendered`; `gates` the condition types that must be True to publish;
    `results` what each function said. `source` entered the pipeline; `overruled` are edits that the rules undid.
    `overrides` is what policies changed, leaf by leaf, `policies` how each of them was used (kubeadmiral 10.3, 10.4),
    `rules` by which texts of their rules it was made; `templates` is what became of its parents and children where it
    has any, and `template_changes` what that changes on the cluster (strimzi 6, 11);
    `inputs` are the files of objects that were asked for, by kind, namespace and name; `places` are where people mend
    what is generated, by object;
    `has_roles`: it has parents or children of templates, as it stands before those are merged;
    `stages` are the steps between its source and its templates, where a render keeps them;
    `merging` is how it was merged, `reason` the code of what withholds the package, where that is an error of theirs.
    """

    files: FileTree
    conditions: tuple[Condition, ...] = ()
    gates: tuple[str, ...] = ()
    injected: tuple[Injected, ...] = ()
    results: tuple[dict[str, Any], ...] = ()
    findings: tuple[Finding, ...] = ()
    trace: Trace = field(default_factory=dict)
    source: Source = NO_SOURCE
    overruled: tuple[Conflict, ...] = ()
    overrides: tuple[Mapping[str, Any], ...] = ()
    policies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rules: Mapping[RuleId, str] = field(default_factory=dict)
    inputs: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    places: Mapping[str, Where] = field(default_factory=dict)
    reason: str = ""
    merging: MergeOptions = field(default_factory=MergeOptions)
    stages: tuple[Stage, ...] = ()
    has_roles: bool = False
    templates: TemplatedPackage | None = None
    template_changes: tuple[TemplateChange, ...] = ()

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Where people and upstream, or people and a rule, had changed the same (design 10.8)."""
        return (*self.source.conflicts, *self.overruled)

    @cached_property
    def review(self) -> str:
        """What makes a commit besides the tree."""
        effects = self.templates.effects if self.templates else ()
        reported = (one.as_data() for one in effects if one.mode == "report")
        return review_digest(self.conditions, self.gates, map(conflict_data, self.conflicts), reported)

    @property
    def unmet_gates(self) -> tuple[str, ...]:
        """The gates whose condition is missing or not True (porch 7)."""
        met = {condition.type for condition in self.conditions if condition.status == "True"}
        return tuple(gate for gate in self.gates if gate not in met)

    @property
    def render_status(self) -> dict[str, Any]:
        """What the owner is told of the render: `status`, `reason`, `message`, `unmetGates` (porch 10)."""
        one = next((condition for condition in self.conditions if condition.type == "Rendered"), _RENDERED)
        data = {"status": one.status, "reason": one.reason, "message": one.message, "unmetGates": [*self.unmet_gates]}
        return {name: value for name, value in data.items() if value}


@dataclass(frozen=True, slots=True)
class Draft:
    """Content to put on the draft branch: it differs from what stands on the branches and was not declined.

    `before` is what it replaces there, `causes` say why it is made, `task` is porch 15.3's.
    """

    variant: Variant
    rendered: Rendered
    record: PackageRecord
    seen: Seen
    base: TreeId
    plain: TreeId
    merged: TreeId
    task: str
    before: FileTree
    causes: tuple[str, ...]

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the draft: those of its variant when it was created."""
        return self.variant.labels if self.record.put is None else self.record.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations of the draft: those of its variant when it was created."""
        return self.variant.annotations if self.record.put is None else self.record.annotations


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Nothing to write for this package. `withdraw`: the draft offers it, though the branch already has it."""

    variant: Variant
    record: PackageRecord
    why: str
    withdraw: bool = False
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Blocked:
    """Nothing may be written for this package; what stands stays (design 10.26).

    `retry`: the world kept it from being made, so that not even state may take note (design 10.19). `policies` says
    how its render used override policies.
    """

    variant: Variant
    record: PackageRecord | None
    conditions: tuple[Condition, ...]
    findings: tuple[Finding, ...]
    seen: Seen
    trace: Trace = field(default_factory=dict)
    retry: bool = False
    policies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Held:
    """A package that nothing wants any more and that is kept as it is, for the reason in its finding (design 10.15).

    `existing` is how many its set had made when it was first held for that, 0 where it was held for another reason.
    `on_target` is how many published packages its target had when it was first held for the share of those.
    """

    package: str
    record: PackageRecord
    finding: Finding
    existing: int = 0
    on_target: int = 0


How = Literal["proposed", "declined", "withdrawn", "orphaned", "recalled"]


@dataclass(frozen=True)
class Leaving:
    """A package that nothing wants any more, on its way out (porch 6.2).

    `proposed`: it is on a removal draft, `declined`: people want to keep it, `withdrawn`: nothing is published, and it
    is taken out of its draft, `orphaned`: its files are people's from now on, `recalled`: it is wanted again, and its
    removal is frozen. `record` is what is known of it afterwards, `before` the tree that is put up for removal anew.
    """

    package: str
    owner: Owner
    how: How
    record: PackageRecord
    why: str
    before: TreeId | None = None
    finding: Finding | None = None

    @property
    def is_new(self) -> bool:
        """Whether its removal is put up by this pass."""
        return self.before is not None


Outcome = Draft | Unchanged | Blocked


def reconciled_owners(outcomes: Iterable[Outcome]) -> frozenset[ObjectKey]:
    """Return the owners whose package is as they want it, or drafted, without error."""
    return frozenset(one.variant.owner.key for one in outcomes if not isinstance(one, Blocked))
