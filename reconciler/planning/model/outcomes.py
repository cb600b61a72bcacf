"""Results of rendering and deciding: stages of a render, rendered packages, and the outcome of each package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from reconciler.catalog.files import FileTree, TreeId
from reconciler.catalog.trace import Trace
from reconciler.controllers.kafka_templates.package_templates import TemplatedPackage
from reconciler.controllers.kafka_templates.template_effects import TemplateChange
from reconciler.controllers.override_policies.resource_overrides import OverriddenResource
from reconciler.controllers.override_policies.rollout import RuleId
from reconciler.controllers.results import ConfigInjection, PackageOwner, Variant
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.json_text import compute_digest
from reconciler.krm.merge3.rules import Conflict
from reconciler.krm.objects import Condition, ObjectKey
from reconciler.packages.functions.function import Item
from reconciler.packages.kptfile import FunctionSpec
from reconciler.packages.update import MergeOptions
from reconciler.planning.model.sources import EMPTY_SOURCE, PackageSource, serialize_conflict
from reconciler.planning.model.state import ObservedPackage, PackageRecord

RenderLayer = Literal[
    "source",
    "edit",
    "draft",
    "clone",
    "context",
    "pipeline",
    "injection",
    "function",
    "policy",
    "strip",
    "template",
    "room",
    "since",
]
"""Steps that set values, in their order.

- `source`: the source without local changes.
- `edit`, `draft`: local changes on the target branch and on the draft.
- `clone`, `context`: cloning, and the package context.
- `pipeline`: functions that the variant adds to the Kptfile.
- `injection`, `function`, `policy`: config injection, functions of the pipeline, override policies.
- `strip`: removal of fields that name policies and clusters.
- `template`: merged templates.
- `room`: restored content of a generated package. The value is part of the output format.
- `since`: local changes on the branch after the render.
"""


@dataclass(frozen=True)
class FilesStage:
    """All files of the package after one step."""

    layer: RenderLayer
    files: FileTree


@dataclass(frozen=True)
class FunctionStage:
    """All resources after one mutator: number `mutator_index` in the Kptfile of `package`, "" for the root package."""

    package: str
    mutator_index: int
    function_spec: FunctionSpec
    items: tuple[Item, ...]


@dataclass(frozen=True)
class PolicyStage:
    """The resources with override policies, with the result of each override rule."""

    resources: tuple[OverriddenResource, ...]


RenderStage = FilesStage | FunctionStage | PolicyStage


_RENDERED = Condition("Rendered", "True", "Rendered")


def compute_review_digest(
    conditions: Iterable[Condition],
    gates: Iterable[str],
    conflicts: Iterable[Mapping[str, Any]] = (),
    templates: Iterable[Mapping[str, Any]] = (),
) -> str:
    """Return a digest of everything besides the tree whose change requires a new commit.

    Args:
        conditions: Conditions of the package.
        gates: Condition types of the readiness gates.
        conflicts: Conflicts as data.
        templates: Merged templates as in the status file. Only entries with a template count: these are reported and
            not written to a file, so that the tree does not change with them.
    """
    data = {
        "conditions": [condition.as_data() for condition in conditions],
        "gates": list(gates),
        "conflicts": list(conflicts),
    }
    reported = [[entry["resource"], entry["template"]] for entry in templates if "template" in entry]
    more = {"templates": reported} if reported else {}
    return compute_digest({**{name: value for name, value in data.items() if value or name != "conflicts"}, **more})


@dataclass(frozen=True)
class PackageRender:
    """A rendered package: its files, and the information for reviewers.

    Attributes:
        conditions: Conditions of the Kptfile, and `Rendered`.
        readiness_gates: Condition types that must be True before the package is published.
        function_results: Result of each function.
        source: Input of the pipeline.
        overruled_changes: Local changes that a rule replaced.
        overrides: Values that override policies changed, one entry per value.
        policy_usage: How each override policy was used.
        rule_texts: Texts of the override rules that were applied.
        input_files: Files of the config objects that the render read, by kind, namespace and name.
        source_locations: Location in the config of each generated object.
        blocking_code: Finding code that blocks the package, "" for the default reason.
        merge_options: Options that the source was merged with.
        stages: Steps between the source and the templates, if the renderer keeps them.
        has_template_roles: Whether the package contains parents or children of templates.
        templates: Result of the template merge for a package with parents or children.
        template_changes: Effects of changed templates on the cluster.
    """

    files: FileTree
    conditions: tuple[Condition, ...] = ()
    readiness_gates: tuple[str, ...] = ()
    injections: tuple[ConfigInjection, ...] = ()
    function_results: tuple[dict[str, Any], ...] = ()
    findings: tuple[Finding, ...] = ()
    trace: Trace = field(default_factory=dict)
    source: PackageSource = EMPTY_SOURCE
    overruled_changes: tuple[Conflict, ...] = ()
    overrides: tuple[Mapping[str, Any], ...] = ()
    policy_usage: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rule_texts: Mapping[RuleId, str] = field(default_factory=dict)
    input_files: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    source_locations: Mapping[str, SourceLocation] = field(default_factory=dict)
    blocking_code: str = ""
    merge_options: MergeOptions = field(default_factory=MergeOptions)
    stages: tuple[RenderStage, ...] = ()
    has_template_roles: bool = False
    templates: TemplatedPackage | None = None
    template_changes: tuple[TemplateChange, ...] = ()

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Conflicts of local changes with upstream, and with rules."""
        return (*self.source.conflicts, *self.overruled_changes)

    @cached_property
    def review_digest(self) -> str:
        """Digest of everything besides the tree whose change requires a new commit."""
        effects = self.templates.effects if self.templates else ()
        reported = (effect.as_data() for effect in effects if effect.mode == "report")
        return compute_review_digest(
            self.conditions, self.readiness_gates, map(serialize_conflict, self.conflicts), reported
        )

    @property
    def unmet_gates(self) -> tuple[str, ...]:
        """The readiness gates whose condition is missing or not True."""
        met = {condition.type for condition in self.conditions if condition.status == "True"}
        return tuple(gate for gate in self.readiness_gates if gate not in met)

    @property
    def render_status(self) -> dict[str, Any]:
        """Render result for the owner's status: `status`, `reason`, `message`, `unmetGates`."""
        rendered = next((condition for condition in self.conditions if condition.type == "Rendered"), _RENDERED)
        data = {
            "status": rendered.status,
            "reason": rendered.reason,
            "message": rendered.message,
            "unmetGates": [*self.unmet_gates],
        }
        return {name: value for name, value in data.items() if value}


@dataclass(frozen=True, slots=True)
class Draft:
    """Content for the draft branch. It differs from the content of the branches, and was not declined.

    Attributes:
        base_tree, plain_tree, merged_tree: As in `RenderedVersion`.
        task: Kind of the change, as in Porch's task types: clone, update, edit and others.
        previous_files: Files that the draft replaces.
        causes: Reasons for the new version: changed dependencies, `variant`, `branch` or `downgrade`.
    """

    variant: Variant
    rendered: PackageRender
    record: PackageRecord
    observed: ObservedPackage
    base_tree: TreeId
    plain_tree: TreeId
    merged_tree: TreeId
    task: str
    previous_files: FileTree
    causes: tuple[str, ...]

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels that the draft was created with."""
        return self.variant.labels if self.record.draft_version is None else self.record.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations that the draft was created with."""
        return self.variant.annotations if self.record.draft_version is None else self.record.annotations


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Nothing to write for this package.

    Attributes:
        reason: State of the package: `published`, `drafted`, `adopted` or `declined`, for example.
        should_withdraw: The draft contains the package, although the target branch already has this version.
    """

    variant: Variant
    record: PackageRecord
    reason: str
    should_withdraw: bool = False
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Blocked:
    """Nothing may be written for this package. The content of the branches stays.

    Attributes:
        should_retry: A temporary error of the environment. The outcome is not recorded, so that the next pass tries
            again.
        policy_usage: How the render used each override policy.
    """

    variant: Variant
    record: PackageRecord | None
    conditions: tuple[Condition, ...]
    findings: tuple[Finding, ...]
    observed: ObservedPackage
    trace: Trace = field(default_factory=dict)
    should_retry: bool = False
    policy_usage: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class HeldRemoval:
    """A package that is no longer requested, and that is kept for the reason in its finding.

    Attributes:
        set_package_count: Number of packages of the set when its deletion limit first applied, 0 for other reasons.
        target_package_count: Number of published packages of the target when its deletion limit first applied.
    """

    package: str
    record: PackageRecord
    finding: Finding
    set_package_count: int = 0
    target_package_count: int = 0


RemovalKind = Literal["proposed", "declined", "withdrawn", "orphaned", "recalled"]


@dataclass(frozen=True)
class RemovalOutcome:
    """The removal of a package that is no longer requested.

    Attributes:
        kind: `proposed`: it is on a removal draft. `declined`: the removal was rejected. `withdrawn`: it was never
            published, and is deleted from its draft. `orphaned`: its files are kept without an owner. `recalled`: it
            is requested again, but its removal draft must not be changed.
        record: The record after this pass.
        removed_tree: Published tree, if this pass proposes the removal.
    """

    package: str
    owner: PackageOwner
    kind: RemovalKind
    record: PackageRecord
    reason: str
    removed_tree: TreeId | None = None
    finding: Finding | None = None

    @property
    def is_new(self) -> bool:
        """Whether this pass proposes the removal."""
        return self.removed_tree is not None


PackageOutcome = Draft | Unchanged | Blocked


def find_reconciled_owners(outcomes: Iterable[PackageOutcome]) -> frozenset[ObjectKey]:
    """Return the owners whose package is published or drafted as requested, without an error."""
    return frozenset(outcome.variant.owner.key for outcome in outcomes if not isinstance(outcome, Blocked))


# Nephio's annotations for the approval of drafts.
APPROVAL_POLICY_ANNOTATION = "approval.nephio.org/policy"
APPROVAL_DELAY_ANNOTATION = "approval.nephio.org/delay"
