"""Application of override policies to one resource for one cluster. The input is the resource before any override.

To add an overrider, change these modules: `api/kubeadmiral.py` (its fields), `OVERRIDERS` in `model.py` (its position),
`read_rules.py` (its items) and this module (its effect).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from reconciler.controllers.clusters.selection import Cluster, is_cluster_selected
from reconciler.controllers.nested_values import get_value
from reconciler.controllers.override_policies.attachment import (
    AttachedPolicies,
    MissingPolicyMode,
    strip_control_metadata,
)
from reconciler.controllers.override_policies.codes import PolicyCodes
from reconciler.controllers.override_policies.containers import POD_SPEC_PATHS, PodSpecLocation, apply_envs, apply_list
from reconciler.controllers.override_policies.effective_rules import EffectiveRule, RuleTexts, find_effective_rules
from reconciler.controllers.override_policies.image import apply_image
from reconciler.controllers.override_policies.json_patch import FINALIZERS, apply_patch_item, normalize_finalizers
from reconciler.controllers.override_policies.metadata import apply_map
from reconciler.controllers.override_policies.model import (
    EnvItem,
    FieldItem,
    ImageItem,
    ListItem,
    MapItem,
    OverrideEffect,
    OverrideItem,
    OverridePolicy,
    Overrider,
    OverrideRule,
    PatchItem,
)
from reconciler.controllers.override_policies.read_rules import resolve_rule
from reconciler.controllers.override_policies.text_fields import apply_field
from reconciler.controllers.provenance import ProvenanceStep, compute_embedded_steps, compute_steps, format_steps
from reconciler.controllers.resource_findings import ResourceIssue, create_finding
from reconciler.krm.field_text import quote_value
from reconciler.krm.findings import Finding, select_errors
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath, Document, YamlError
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.packages.package import PackageResource
from reconciler.packages.parsing import edit_document
from reconciler.packages.resource import ResourceData
from reconciler.packages.sealed_secrets import format_scope_change, read_scope
from reconciler.packages.sops import SopsMacError, check_sops_edit
from reconciler.packages.sops_files import create_mac_finding, locate_document
from reconciler.packages.source_codes import SourceCodes

MAX_ANNOTATIONS_BYTES = 262_144
_IDENTITY_PATHS: tuple[DataPath, ...] = (
    ("kind",),
    ("metadata", "name"),
    ("metadata", "namespace"),
    ("metadata", "generateName"),
)


@dataclass(frozen=True)
class OverrideOptions:
    """Settings for overrides: the handling of missing policies, and the path of the pod spec for each kind."""

    on_missing: MissingPolicyMode = "fail"
    pod_spec_paths: Mapping[tuple[str, str], DataPath] = field(default_factory=lambda: POD_SPEC_PATHS)


@dataclass(frozen=True)
class MatchedPolicy:
    """An override policy for a resource, with the effective rules that select the cluster."""

    policy: OverridePolicy
    effective_rules: tuple[EffectiveRule, ...]
    issues: tuple[ResourceIssue, ...] = ()

    @property
    def rule_numbers(self) -> tuple[int, ...]:
        """The indexes of the effective rules in `spec.overrideRules`."""
        return tuple(rule.number for rule in self.effective_rules)

    @property
    def has_variables(self) -> bool:
        """Whether one of the rules contains cluster variables."""
        return any(entry.rule.template is not None for entry in self.effective_rules)


@dataclass(frozen=True)
class OverrideStage:
    """The data of a resource after one item of a policy was applied to it.

    The first stage contains the original data. Its `policy` and `item_path` are "".
    """

    policy: str
    item_path: str
    data: Any


@dataclass(frozen=True)
class OverriddenResource:
    """A resource after the override policies are applied for a cluster.

    If one of the findings is an error, the resource is unchanged and must not be published.

    Attributes:
        candidate_policies: All policies that the resource refers to or that select the resource.
        matched_policies: The policies for the resource, in the order in which they are applied.
        stages: The original data of the resource, and its data after each applied item of a policy.
    """

    resource: PackageResource
    document: Document
    findings: tuple[Finding, ...] = ()
    steps: tuple[ProvenanceStep, ...] = ()
    candidate_policies: tuple[ObjectKey, ...] = ()
    matched_policies: tuple[MatchedPolicy, ...] = ()
    stages: tuple[OverrideStage, ...] = ()

    @property
    def has_errors(self) -> bool:
        """Whether one of the findings is an error, so that the resource must not be published."""
        return bool(select_errors(self.findings))

    def as_data(self) -> list[dict[str, Any]]:
        """Return the changed values as entries of the field `overrides` in a status file."""
        return format_steps(self.resource.file, self.resource.key.reference, self.steps)


def apply_overrides(
    resource: PackageResource,
    attached: AttachedPolicies,
    matched: tuple[MatchedPolicy, ...],
    cluster: Cluster,
    options: OverrideOptions,
) -> OverriddenResource:
    """Return a resource after all rules in `matched` are applied for a cluster."""
    pod_spec = PodSpecLocation(resource.group, resource.kind, options.pod_spec_paths)
    evaluation = _Evaluation(
        resource, _strip_control_metadata(resource), [create_finding(resource, issue) for issue in attached.issues]
    )
    if not attached.has_errors:
        evaluation.apply(matched, pod_spec, cluster)
    evaluation.write()
    document = resource.document if select_errors(evaluation.findings) else evaluation.document
    return OverriddenResource(
        resource,
        document,
        tuple(evaluation.findings),
        tuple(evaluation.steps),
        attached.candidate_policies,
        matched,
        tuple(evaluation.stages),
    )


def match_rules(policy: OverridePolicy, cluster: Cluster, texts: RuleTexts) -> MatchedPolicy:
    """Return a policy and those of its effective rules that select the cluster.

    For a rule with a rollout, `texts` contains the version of the rule that is effective on the cluster.
    """
    rules, issues = find_effective_rules(policy, texts)
    return MatchedPolicy(
        policy, tuple(rule for rule in rules if is_cluster_selected(rule.rule.targets, cluster)), issues
    )


@dataclass(frozen=True)
class _ItemApplication:
    """One overrider item of a rule, and its position in the policy."""

    policy: OverridePolicy
    rule: EffectiveRule
    overrider: Overrider
    number: int
    item: OverrideItem

    @property
    def _position(self) -> str:
        return f"spec.overrideRules[{self.rule.number}].overriders.{self.overrider}[{self.number}]"

    @cached_property
    def item_path(self) -> str:
        """The position in the policy, as in the field `overrides` of a state."""
        return f"{self._position} (earlier text)" if self.rule.is_earlier else self._position

    @cached_property
    def label(self) -> str:
        """The policy and the position for messages."""
        return f"{self.policy.label} {self._position}{_describe_age(self.rule)}"

    def apply(self, data: Any, pod_spec: PodSpecLocation) -> OverrideEffect:
        """Return the effect of the item on the data of a resource."""
        match self.item, self.overrider:
            case ImageItem() as item, _:
                return apply_image(data, item, pod_spec)
            case ListItem() as item, "command" | "args" as field_name:
                return apply_list(data, item, pod_spec, field_name)
            case EnvItem() as item, _:
                return apply_envs(data, item, pod_spec)
            case MapItem() as item, "annotations" | "labels" as field_name:
                return apply_map(data, item, field_name)
            case FieldItem() as item, _:
                return apply_field(data, item)
            case PatchItem() as item, _:
                return apply_patch_item(data, item)
        raise AssertionError(f"the overrider {self.overrider} does not support items of {type(self.item)}")


def _list_applications(
    policy: OverridePolicy, effective_rule: EffectiveRule, rule: OverrideRule
) -> Iterator[_ItemApplication]:
    for overrider, items in rule.overriders:
        for index, item in enumerate(items):
            yield _ItemApplication(policy, effective_rule, overrider, index, item)


def _describe_age(rule: EffectiveRule) -> str:
    return " (earlier version of the rule)" if rule.is_earlier else ""


class _Evaluation:
    """State during the application of policies to one resource: data, findings, provenance steps and stages."""

    def __init__(self, resource: PackageResource, data: Any, findings: list[Finding]) -> None:
        self.resource = resource
        self.original_data = data
        self.data = data
        self.findings = findings
        self.steps: list[ProvenanceStep] = []
        self.stages = [OverrideStage("", "", data)]
        self.document = resource.document

    def apply(self, matched: tuple[MatchedPolicy, ...], pod_spec: PodSpecLocation, cluster: Cluster) -> None:
        """Apply all overrider items in order. Stop at the first item that fails."""
        self.findings += (create_finding(self.resource, issue) for policy in matched for issue in policy.issues)
        applications = self._list_applications(matched, cluster)
        if select_errors(self.findings):
            return
        for application in applications:
            effect = application.apply(self.data, pod_spec)
            self.findings += (create_finding(self.resource, issue, application.label) for issue in effect.issues)
            if effect.has_errors or not self._keeps_mac(effect, application):
                return
            self._set_data(effect, application.policy.label, application.item_path)
        self._normalize_finalizers()
        self._check_result(applications)

    def _keeps_mac(self, effect: OverrideEffect, application: _ItemApplication) -> bool:
        """Check whether SOPS can decrypt the resource after an overrider item has changed it.

        Return False and add an error if the change would break the message authentication code (MAC).
        """
        try:
            check_sops_edit(self.resource.document, effect.data)
        except SopsMacError as error:
            location = locate_document(self.resource, error.path)
            self.findings.append(create_mac_finding(error, location, application.label))
            return False
        return True

    def _list_applications(self, matched: tuple[MatchedPolicy, ...], cluster: Cluster) -> list[_ItemApplication]:
        applications: list[_ItemApplication] = []
        for policy, effective_rule in (
            (matched_policy.policy, effective_rule)
            for matched_policy in matched
            for effective_rule in matched_policy.effective_rules
        ):
            rule = resolve_rule(effective_rule.rule, effective_rule.number, cluster)
            if isinstance(rule, OverrideRule):
                applications += _list_applications(policy, effective_rule, rule)
            else:
                self.findings += (
                    create_finding(self.resource, issue, f"{policy.label}{_describe_age(effective_rule)}")
                    for issue in rule
                )
        return applications

    def write(self) -> None:
        """Build the YAML document that contains the current data."""
        try:
            self.document = edit_document(self.resource.document, self.data)
        except YamlError as error:
            self._add_issue(
                ResourceIssue(
                    PolicyCodes.OVERRIDE_RESULT_UNWRITABLE,
                    f'the changed resource cannot be written as YAML. The YAML writer reports: "{error}"',
                )
            )

    def _set_data(self, effect: OverrideEffect, source_name: str, source_item: str) -> None:
        if effect.inside:
            self.steps += compute_embedded_steps(self.data, effect.inside, source_name, source_item)
        else:
            self.steps += compute_steps(self.data, effect.data, source_name, source_item)
        self.data = effect.data
        self.stages.append(OverrideStage(source_name, source_item, effect.data))

    def _normalize_finalizers(self) -> None:
        finalizer_steps = [step for step in self.steps if step.path[: len(FINALIZERS)] == FINALIZERS]
        if finalizer_steps:
            self._set_data(
                OverrideEffect(normalize_finalizers(self.data)),
                finalizer_steps[-1].source_name,
                finalizer_steps[-1].source_item,
            )

    def _check_result(self, applications: list[_ItemApplication]) -> None:
        for path in _IDENTITY_PATHS:
            if not is_equal_data(get_value(self.original_data, path), get_value(self.data, path)):
                self._add_issue(self._describe_identity_change(path, applications))
        self._check_sealed_scope(applications)
        annotations = get_value(self.data, ("metadata", "annotations"))
        if (
            annotations is not get_value(self.original_data, ("metadata", "annotations"))
            and _compute_annotations_size(annotations) > MAX_ANNOTATIONS_BYTES
        ):
            message = (
                f"the keys and values in metadata.annotations must have at most {MAX_ANNOTATIONS_BYTES} bytes in total"
            )
            self._add_issue(ResourceIssue(PolicyCodes.ANNOTATIONS_TOO_LARGE, message, ("metadata", "annotations")))
        if applications and is_equal_data(self.original_data, self.data):
            names = " and ".join(dict.fromkeys(application.policy.label for application in applications))
            self._add_issue(
                ResourceIssue(
                    PolicyCodes.POLICY_NO_EFFECT, f"the rules of {names} apply, but do not change the resource"
                )
            )

    def _check_sealed_scope(self, applications: list[_ItemApplication]) -> None:
        scope = read_scope(self.resource)
        new_scope = read_scope(ResourceData(self.data)) if scope else None
        if scope and new_scope and scope != new_scope:
            names = " and ".join(dict.fromkeys(application.policy.label for application in applications))
            message = format_scope_change(names, scope, new_scope, "policy")
            self._add_issue(ResourceIssue(SourceCodes.SEALED_SECRET_SCOPE, message, ("metadata", "annotations")))

    def _describe_identity_change(self, path: DataPath, applications: list[_ItemApplication]) -> ResourceIssue:
        last_step = next(step for step in reversed(self.steps) if _are_overlapping(step.path, path))
        original, changed = get_value(self.original_data, path), get_value(self.data, path)
        source = next(
            application.label
            for application in applications
            if (application.policy.label, application.item_path) == (last_step.source_name, last_step.source_item)
        )
        message = f"{source}: an override must not {_describe_change(format_pointer(path), original, changed)}"
        return ResourceIssue(PolicyCodes.IDENTITY_CHANGED, message, path)

    def _add_issue(self, issue: ResourceIssue) -> None:
        self.findings.append(create_finding(self.resource, issue))


def _strip_control_metadata(resource: PackageResource) -> Any:
    """Return the data without the labels and annotations that control policies.

    Return the data unchanged if it is a SOPS document, and the removal would make its MAC invalid.
    """
    data = strip_control_metadata(resource.data)
    try:
        check_sops_edit(resource.document, data)
    except SopsMacError:
        return resource.data
    return data


def _are_overlapping(first: DataPath, second: DataPath) -> bool:
    shorter = min(len(first), len(second))
    return first[:shorter] == second[:shorter]


def _describe_change(pointer: str, original: Any, changed: Any) -> str:
    if original is ABSENT:
        return f"add {pointer} with the value {quote_value(changed)}"
    if changed is ABSENT:
        return f"remove {pointer} with the value {quote_value(original)}"
    return f"change {pointer} from {quote_value(original)} to {quote_value(changed)}"


def _compute_annotations_size(annotations: Any) -> int:
    entries = annotations.items() if isinstance(annotations, dict) else ()
    return sum(len(text.encode()) for entry in entries for text in entry if isinstance(text, str))
