"""Results of renders and decisions: the package after each step of a render, and the outcome of each package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal

from reconciler.api.kpt import FunctionSpec
from reconciler.catalog.files import FileTree, TreeId
from reconciler.catalog.trace import Trace
from reconciler.controllers.kafka_templates.effective_templates import TemplateChange
from reconciler.controllers.kafka_templates.package_templates import TemplatedPackage
from reconciler.controllers.override_policies.resource_overrides import OverriddenResource
from reconciler.controllers.override_policies.rollout import RuleId
from reconciler.controllers.results import ConfigInjection, PackageOwner, Variant
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.json_text import compute_digest
from reconciler.krm.merge3.rules import Conflict
from reconciler.krm.objects import Condition, ObjectKey
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.packages.functions.function import Item
from reconciler.packages.update.options import MergeOptions
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
    "controller",
    "since",
]
"""Steps of a render that set values, in the order of the render.

- `source`: the source without local changes.
- `edit`: local changes on the target branch.
- `draft`: local changes on the draft.
- `clone`: the clone of the upstream package, as in kpt.
- `context`: the package context.
- `pipeline`: functions that the variant adds to the Kptfile.
- `injection`: injected config objects.
- `function`: functions of the pipeline.
- `policy`: override policies.
- `strip`: removal of fields that name policies and clusters.
- `template`: merged Kafka templates.
- `controller`: content of a generated package that its controller restored.
- `since`: local changes on the branch after the render.
"""


@dataclass(frozen=True)
class FilesStage:
    """All files of a package after one step of its render."""

    layer: RenderLayer
    files: FileTree


@dataclass(frozen=True)
class FunctionStage:
    """All resources of a package after one mutator function.

    Attributes:
        package: The path of the subpackage whose Kptfile lists the mutator, or "" for the root package.
        mutator_index: The index of the mutator in this Kptfile.
        function_spec: The entry of the mutator in this Kptfile.
        items: The resources after the mutator.
    """

    package: str
    mutator_index: int
    function_spec: FunctionSpec
    items: tuple[Item, ...]


@dataclass(frozen=True)
class PolicyStage:
    """The resources of a package after each override rule."""

    resources: tuple[OverriddenResource, ...]


RenderStage = FilesStage | FunctionStage | PolicyStage


_RENDERED = Condition("Rendered", "True", "Rendered")


def compute_review_digest(
    conditions: Iterable[Condition],
    gates: Iterable[str],
    conflicts: Iterable[Mapping[str, Any]] = (),
    templates: Iterable[Mapping[str, Any]] = (),
) -> str:
    """Return a digest of the data that reviewers see in addition to the files.

    If this data changes, the draft needs a new commit even if no file changes.

    Args:
        gates: The condition types of the readiness gates.
        conflicts: The conflicts of local changes, in serialized form.
        templates: The `templates` list of the status file. Only entries with the key `template` are included, because
            these templates are reported and not written to a file.
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
        conditions: The conditions of the Kptfile, and the condition `Rendered`.
        readiness_gates: The condition types that must be True before the package is published.
        source: The input of the function pipeline.
        overruled_changes: The local changes that a controller, function or policy replaced.
        overrides: The values that override policies changed, one entry per value.
        policy_usage: For each override policy: the resources that refer to it, and the rules that select the cluster.
        rule_texts: Maps each override rule that was applied to its content.
        input_files: Maps the kind, namespace and name of each config object that the render read to its file.
        source_locations: Maps each generated object to its location in the config.
        blocking_code: The finding code that blocks the package, or "" for the default reason.
        merge_options: The options that the source was merged with.
        stages: The package after each step between the source and the templates, if the renderer records the steps.
        has_template_roles: Whether the package contains parents or children of Kafka templates.
        templates: The result of the template merge. None if the package has no parents or children.
        template_changes: The effects of changed templates on other resources of the cluster.
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
        """Conflicts between local changes and the upstream, and between local changes and the config."""
        return (*self.source.conflicts, *self.overruled_changes)

    @cached_property
    def review_digest(self) -> str:
        """The digest of the data that reviewers see in addition to the files (`compute_review_digest`)."""
        effects = self.templates.effects if self.templates else ()
        reported = (effect.as_data() for effect in effects if effect.mode == "report")
        return compute_review_digest(
            self.conditions, self.readiness_gates, map(serialize_conflict, self.conflicts), reported
        )

    @property
    def unmet_gates(self) -> tuple[str, ...]:
        """The readiness gates whose condition is missing or is not True."""
        met = {condition.type for condition in self.conditions if condition.status == "True"}
        return tuple(gate for gate in self.readiness_gates if gate not in met)

    @property
    def render_status(self) -> dict[str, Any]:
        """The result of the render for the status of the owner: `status`, `reason`, `message`, `unmetGates`."""
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
    """A new version of a package, which the pass writes to the draft branch.

    Attributes:
        base_tree, plain_tree, merged_tree: The source trees, as in `RenderedVersion`.
        task: The kind of the change, named like the task types of Porch: clone, update, edit and others.
        previous_files: The files that the draft replaces.
        causes: The reasons for the new version: the names of changed dependencies and facts. The facts include
            `variant`, which is also the only reason for a new package. `downgrade` means that the new upstream version
            is older. `branch` means that only the content of a branch changed.
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
        """The labels of the draft. They stay the same until the draft is published or deleted."""
        return self.variant.labels if self.record.draft_version is None else self.record.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations of the draft. They stay the same until the draft is published or deleted."""
        return self.variant.annotations if self.record.draft_version is None else self.record.annotations


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The outcome of a package that needs no new version.

    Attributes:
        reason: The state of the package: `published`, `published with edits`, `drafted`, `adopted` or `declined`.
        should_withdraw: Whether the package must be deleted from its draft, because the draft is not needed any more.
    """

    variant: Variant
    record: PackageRecord
    reason: str
    should_withdraw: bool = False
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Blocked:
    """The outcome of a package that cannot be processed now. The pass does not change its branches.

    Attributes:
        should_retry: Whether the error can be temporary. Then the outcome is not recorded, and the next pass tries
            again.
        policy_usage: For each override policy: the resources that use it, and its rules that select the cluster.
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
        set_package_count: The size of the owner's set when the deletion limit of the set first blocked the deletion. 0
            if this limit did not block the deletion.
        target_package_count: The number of published packages of the target when the deletion limit of the target first
            blocked the deletion. 0 if this limit did not block the deletion.
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
        kind: The state of the removal.
            `proposed`: A removal draft deletes the package.
            `declined`: A person rejected the removal.
            `withdrawn`: The package was never published, and is deleted from its draft.
            `orphaned`: The files of the package stay without an owner.
            `recalled`: The package is requested again, but its removal draft must not be changed.
        record: The record of the package after this pass.
        removed_tree: The published tree, if this pass proposes the removal.
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
        """Whether the removal is first proposed in this pass."""
        return self.removed_tree is not None


PackageOutcome = Draft | Unchanged | Blocked


def find_reconciled_owners(outcomes: Iterable[PackageOutcome]) -> frozenset[ObjectKey]:
    """Return the owners that have a published or drafted package without an error."""
    return frozenset(outcome.variant.owner.key for outcome in outcomes if not isinstance(outcome, Blocked))


def format_rival_message(variant: Variant, rival: Variant) -> str:
    """Return the message about a package that cannot be written, because another owner requests its path.

    Args:
        rival: The package variant of the other owner, with the same path or a nested path.
    """
    is_same = rival.target == variant.target
    requested = "the same package" if is_same else f"package {rival.target}, and packages cannot be nested"
    return (
        f"package {variant.target} is not written, because {rival.owner.key} requests {requested}. Next step: change"
        " the package name in one of the two objects"
    )


# Nephio's annotations for the approval of drafts.
APPROVAL_POLICY_ANNOTATION = "approval.nephio.org/policy"
APPROVAL_DELAY_ANNOTATION = "approval.nephio.org/delay"
