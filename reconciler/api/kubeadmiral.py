"""Kinds of KubeAdmiral: override policies, propagation policies, and the selection of clusters that they share."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from reconciler.api.base import ApiModel, FieldIssue, issue
from reconciler.api.field_types import (
    NOT_EMPTY,
    Duration,
    LabelSelectorFields,
    NonEmptyText,
    Unparsed,
    raise_issues,
)
from reconciler.api.manifest import KUBERNETES_VERSION_SCHEMA, Manifest
from reconciler.api.messages import MessageTemplates
from reconciler.krm.field_text import format_path, quote_value
from reconciler.krm.json_pointer import PointerError, parse_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.names import (
    validate_annotation_key,
    validate_dns_label,
    validate_image_digest,
    validate_image_tag,
    validate_label_key,
    validate_label_value,
)
from reconciler.krm.numbers import parse_int64

KUBEADMIRAL_GROUP = "core.kubeadmiral.io"
KUBEADMIRAL_API_VERSION = f"{KUBEADMIRAL_GROUP}/v1alpha1"
_SELECTOR_INVALID = "SelectorInvalid"

ClusterOperator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]


class ClusterRequirementFields(ApiModel):
    """One requirement on the labels of a cluster."""

    field_codes: ClassVar = {"operator": _SELECTOR_INVALID}

    key: NonEmptyText = Field(description="Key of the label.")
    operator: ClusterOperator = Field(description="Operator of the comparison. Gt and Lt compare integers.")
    values: tuple[str, ...] = Field(
        (), description="Values that the label is compared with. The operators Gt and Lt take exactly one value."
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for an invalid key, and for values that the operator does not allow."""
        key, operator, values = data.get("key"), data.get("operator"), data.get("values") or ()
        if isinstance(key, str) and key and (reason := validate_label_key(key)):
            yield FieldIssue(f"{{path}} must be a valid label key: {reason}", ("key",), _SELECTOR_INVALID)
        if isinstance(values, list | tuple) and all(isinstance(value, str) for value in values):
            for reason in _find_value_errors(str(operator), tuple(values)):
                yield FieldIssue(f"{{path}} {reason}", ("values",), _SELECTOR_INVALID)


def _find_value_errors(operator: str, values: tuple[str, ...]) -> Iterator[str]:
    yield from (f"must be valid label values: {reason}" for reason in map(validate_label_value, values) if reason)
    if operator in ("In", "NotIn") and not values:
        yield f"must not be empty for the operator {operator}"
    if operator in ("Exists", "DoesNotExist") and values:
        yield f"must be empty for the operator {operator}, but is {quote_value(values)}"
    if operator in ("Gt", "Lt") and (len(values) != 1 or parse_int64(values[0]) is None):
        yield f"must be one 64-bit integer for the operator {operator}, but is {quote_value(values)}"


class ClusterFieldRequirement(ApiModel):
    """One requirement on the name of a cluster."""

    field_codes: ClassVar = dict.fromkeys(("key", "operator", "values"), _SELECTOR_INVALID)

    key: Literal["metadata.name"] = Field(
        description="Field of the cluster that is compared. The only allowed value is metadata.name."
    )
    operator: Literal["In", "NotIn"] = Field(description="Operator of the comparison.")
    values: tuple[str, ...] = Field(description="Exactly one name.", json_schema_extra={"minItems": 1, "maxItems": 1})

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue unless the requirement has exactly one value."""
        values = data.get("values")
        if isinstance(values, list | tuple) and len(values) != 1:
            text = f"{{path}} must be a list with one cluster name, but is {quote_value(values)}"
            yield FieldIssue(text, ("values",), _SELECTOR_INVALID)


class ClusterAffinityFields(ApiModel):
    """Requirements of one term. A cluster must meet all of them. A term without requirements matches no cluster."""

    match_expressions: tuple[ClusterRequirementFields, ...] = Field(
        (), description="Requirements on the labels of the cluster."
    )
    match_fields: tuple[ClusterFieldRequirement, ...] = Field(
        (), description="Requirements on the name of the cluster."
    )


def _check_cluster_labels(labels: dict[str, str]) -> dict[str, str]:
    reasons = (validate_label_key(key) or validate_label_value(value) for key, value in labels.items())
    text = "{path} must be a mapping of valid labels"
    raise_issues((FieldIssue(f"{text}: {reason}", code=_SELECTOR_INVALID) for reason in reasons if reason), labels)
    return labels


def _check_no_selector(value: object) -> object:
    if isinstance(value, Mapping) and not value.keys().isdisjoint(("matchLabels", "matchExpressions")):
        raise issue(
            "{path} must be a mapping of labels, for example {region: us-east}; matchLabels and "
            "matchExpressions are not allowed"
        )
    return value


ClusterLabels = Annotated[
    dict[str, str],
    BeforeValidator(_check_no_selector),
    AfterValidator(_check_cluster_labels),
    Field(description="Labels that a selected cluster must have, with their values."),
]
ClusterAffinity = Annotated[
    tuple[ClusterAffinityFields, ...],
    Field(
        description=(
            "Terms with requirements on the labels and the name of a cluster. A selected cluster must match at "
            "least one term."
        )
    ),
]


class TargetClusters(ApiModel):
    """The selected clusters. A cluster must match all fields that are set."""

    clusters: tuple[str, ...] = Field(
        (), description="Names of the clusters that are selected. No other cluster is selected."
    )
    exclude_clusters: tuple[str, ...] = Field(
        (), description="Names of clusters that are not selected, even if other fields select them."
    )
    cluster_selector: ClusterLabels = Field({})
    cluster_affinity: ClusterAffinity = ()


ImageComponent = Literal["Registry", "Repository", "Tag", "Digest"]
ImageOperator = Literal["addIfAbsent", "overwrite", "delete"]
MapOperator = Literal["addIfAbsent", "overwrite", "delete", "set"]
ListOperator = Literal["append", "overwrite", "delete"]
PatchOperator = Literal["add", "remove", "replace", "set"]
FORBIDDEN_PATHS = ("/kind", "/metadata/name", "/metadata/namespace", "/metadata/generateName")
"""JSON pointers to the fields that identify an object."""
_OPERATOR_UNSUPPORTED, _VALUE_REQUIRED = "OperatorUnsupported", "ValueRequired"


def _check_pointer(code: str, *, is_optional: bool = False) -> AfterValidator:
    """Return a validator for a JSON pointer that is not empty. If `is_optional`, "" means an absent field."""

    def check(value: str) -> str:
        if is_optional and not value:
            return value
        if not value:
            raise issue('{path} must begin with "/", because an override of the whole document is not allowed', code)
        if not value.startswith("/"):
            raise issue(f'{{path}} must be a JSON pointer that begins with "/", but is {quote_value(value)}', code)
        try:
            parse_pointer(value)
        except PointerError as error:
            text = f'{{path}} must be a JSON pointer with 0 or 1 after each "~", but is {quote_value(value)}'
            raise issue(text, code) from error
        return value

    return AfterValidator(check)


class ImageOperationFields(ApiModel):
    """One change of an image reference."""

    blank_fields: ClassVar = ("operator",)
    field_codes: ClassVar = {"operator": _OPERATOR_UNSUPPORTED}

    image_component: ImageComponent = Field(description="Component of the image reference.")
    operator: ImageOperator = Field("overwrite", description="Operation on this component of the image reference.")
    value: str = Field(
        "",
        description=(
            "New value of this component of the image reference. The value can contain ${cluster.name} and "
            "${cluster.labels['…']}."
        ),
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for an absent value, and for an invalid tag or digest."""
        component, operator, value = data.get("imageComponent"), data.get("operator", "overwrite"), data.get("value")
        if operator == "delete":
            return
        if value in (None, ""):
            text = (
                f"{{path}} must not be empty for the operator {operator}; to remove {component}, use the"
                " operator delete"
            )
            yield FieldIssue(text, ("value",), _VALUE_REQUIRED)
        elif isinstance(value, str) and component == "Tag" and (reason := validate_image_tag(value)):
            yield FieldIssue(f"{{path}} {reason}, but is {quote_value(value)}", ("value",), "TagInvalid")
        elif isinstance(value, str) and component == "Digest" and (reason := validate_image_digest(value)):
            yield FieldIssue(f"{{path}} {reason}, but is {quote_value(value)}", ("value",), "DigestInvalid")


class ImageOverrider(ApiModel):
    """Changes to the images of containers."""

    container_names: tuple[str, ...] = Field((), description="Names of the containers. The default is all containers.")
    image_path: Annotated[str, _check_pointer("ImagePathInvalid", is_optional=True)] = Field(
        "",
        description="JSON pointer to an image reference that is not in a container.",
        json_schema_extra={"pattern": "^$|^/"},
    )
    operations: tuple[ImageOperationFields, ...] = Field(description="Changes to components of the image reference.")


class _ContainerOverrider(ApiModel):
    blank_fields: ClassVar = ("operator",)
    field_codes: ClassVar = {"operator": _OPERATOR_UNSUPPORTED, "value": _VALUE_REQUIRED}

    container_name: NonEmptyText = Field(description="Name of the container.")


class ListOverrider(_ContainerOverrider):
    """A change of the command or the arguments of a container."""

    operator: ListOperator = Field("overwrite", description="Operation on the command or on the list of arguments.")
    value: tuple[str, ...] = Field(description="Items that the operation adds, sets or removes.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for the operator `append` without values."""
        if data.get("operator") == "append" and data.get("value") == []:
            yield FieldIssue("{path} must not be empty for the operator append", ("value",), _VALUE_REQUIRED)


class EnvVariable(ApiModel):
    """A variable. Additional fields are allowed, because newer versions of Kubernetes define more fields."""

    is_open: ClassVar = True

    name: NonEmptyText = Field(description="Name of the variable.")
    value: str = Field("", description="Value of the variable.")
    value_from: Any = Field(None, description="Source of the value.")


def _find_empty_value(data: Mapping[str, Any]) -> Iterator[FieldIssue]:
    if data.get("operator") == "addIfAbsent" and data.get("value") in ([], {}):
        yield FieldIssue("{path} must not be empty for the operator addIfAbsent", ("value",), _VALUE_REQUIRED)


class EnvOverrider(_ContainerOverrider):
    """A change of the environment variables of a container."""

    operator: MapOperator = Field("overwrite", description="Operation on the environment variables in the field value.")
    value: tuple[Annotated[dict[str, Any], Unparsed(EnvVariable)], ...] = Field(description="The variables.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for the operator `addIfAbsent` without values."""
        return _find_empty_value(data)


class _MapOverrider(ApiModel):
    blank_fields: ClassVar = ("operator",)
    field_codes: ClassVar = {"operator": _OPERATOR_UNSUPPORTED, "value": _VALUE_REQUIRED}

    operator: MapOperator = Field("overwrite", description="Operation on the keys in the field value.")
    value: dict[str, str] = Field(description="Labels or annotations: keys with their values.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for `addIfAbsent` without values, and for each invalid entry. For `delete`, do not check the
        entries.
        """
        yield from _find_empty_value(data)
        value = data.get("value")
        if data.get("operator") == "delete" or not isinstance(value, Mapping):
            return
        for key, text in value.items():
            if isinstance(key, str) and isinstance(text, str) and (reason := cls._find_entry_error(key, text)):
                yield FieldIssue(f"{{path}} is invalid, because {reason}", ("value",))

    @staticmethod
    def _find_entry_error(key: str, text: str) -> str | None:
        raise NotImplementedError


class LabelOverrider(_MapOverrider):
    """A change of the labels of an object."""

    @staticmethod
    def _find_entry_error(key: str, text: str) -> str | None:
        return validate_label_key(key) or validate_label_value(text)


class AnnotationOverrider(_MapOverrider):
    """A change of the annotations of an object."""

    @staticmethod
    def _find_entry_error(key: str, text: str) -> str | None:
        return validate_annotation_key(key)


class _PatchFields(ApiModel):
    blank_fields: ClassVar = ("operator",)
    field_codes: ClassVar = {
        "operator": _OPERATOR_UNSUPPORTED, "path": "PatchPathInvalid", "subPath": "PatchPathInvalid",
    }  # fmt: skip
    nullable_fields: ClassVar = frozenset({"value"})

    operator: PatchOperator = Field("replace", description="Operation at the path.")
    value: Any = Field(
        default_factory=lambda: ABSENT, description="New value of the field. Only the operation remove has no value."
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for an operation that requires a value and has none."""
        operator = data.get("operator", "replace")
        if "value" not in data and operator in ("add", "replace", "set"):
            text = f"{{path}} is required for the operator {quote_value(operator)}; null is allowed"
            yield FieldIssue(text, ("value",), "PatchValueMissing")


class TextOperation(_PatchFields):
    """A change of a value in an embedded text."""

    sub_path: Annotated[str, _check_pointer("PatchPathInvalid")] = Field(
        description="JSON pointer to the value in the parsed text.", json_schema_extra={"pattern": "^/"}
    )


_TEXT_FORMATS = ("yaml", "json", "toml", "ini")


class FieldOverrider(ApiModel):
    """Changes of values in a field that contains a text in one of four formats."""

    field_codes: ClassVar = {"fieldPath": "FieldPathInvalid"}

    field_path: Annotated[str, _check_pointer("FieldPathInvalid")] = Field(
        description="JSON pointer to the field of the object that contains the text.",
        json_schema_extra={"pattern": "^/"},
    )
    yaml: tuple[TextOperation, ...] = Field((), description="Changes to values in the text, if its format is YAML.")
    json_: tuple[TextOperation, ...] = Field(
        (), alias="json", description="Changes to values in the text, if its format is JSON."
    )
    toml: tuple[TextOperation, ...] = Field((), description="Changes to values in the text, if its format is TOML.")
    ini: tuple[TextOperation, ...] = Field((), description="Changes to values in the text, if its format is INI.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue unless the item has operations for exactly one text format."""
        if sum(bool(data.get(name)) for name in _TEXT_FORMATS) != 1:
            yield FieldIssue(f"{{path}} must have a list of operations in exactly one of {', '.join(_TEXT_FORMATS)}")


def _check_patch_path(value: str) -> str:
    if value in FORBIDDEN_PATHS:
        raise issue(f"{{path}} must not be one of {', '.join(FORBIDDEN_PATHS)}", "ForbiddenPath")
    return value


class PatchOverrider(_PatchFields):
    """A change of any field of the object."""

    operator: PatchOperator = Field(
        "replace",
        description="Operation on the field at the path. The operation set also creates missing parent fields.",
    )
    path: Annotated[str, _check_pointer("PatchPathInvalid"), AfterValidator(_check_patch_path)] = Field(
        description="JSON pointer to the field. Fields that identify the object are not allowed.",
        examples=["/spec/replicas"],
        json_schema_extra={"pattern": "^/", "not": {"enum": [*FORBIDDEN_PATHS]}},
    )


class Overriders(ApiModel):
    """The changes to the resources. They are applied in the order of these fields, and not in the order of the file."""

    image: tuple[ImageOverrider, ...] = Field((), description="Images of containers.")
    command: tuple[ListOverrider, ...] = Field((), description="Commands of containers.")
    args: tuple[ListOverrider, ...] = Field((), description="Arguments of containers.")
    envs: tuple[EnvOverrider, ...] = Field((), description="Environment variables of containers.")
    annotations: tuple[AnnotationOverrider, ...] = Field((), description="Annotations of the object.")
    labels: tuple[LabelOverrider, ...] = Field((), description="Labels of the object.")
    fields_: tuple[FieldOverrider, ...] = Field(
        (), alias="fields", description="Changes to values in an embedded text: YAML, JSON, TOML or INI."
    )
    jsonpatch: tuple[PatchOverrider, ...] = Field((), description="Changes to any fields of the object.")


class RuleContent(ApiModel):
    """The part of a rule that the state of a cluster stores: the clusters and the changes."""

    target_clusters: TargetClusters = Field(
        TargetClusters(), description="Clusters that the rule applies to. The default is all clusters."
    )
    overriders: Overriders = Overriders()


class RolloutFields(ApiModel):
    """The rollout of the rule: a change of the rule is applied to one group of clusters (wave) after the other."""

    waves: Annotated[tuple[TargetClusters, ...], *NOT_EMPTY] = Field(
        description="Clusters of each wave. Clusters that belong to no wave come last."
    )
    soak: Duration = Field(
        "", description="Minimum time between the completion of a wave and the start of the next wave."
    )


def _check_rule_name(value: str) -> str:
    if reason := validate_dns_label(value):
        raise issue(f"{{path}} must be a DNS label: {reason}")
    if value.isdigit():
        text = f"must not be the number {quote_value(value)}, because numbers identify rules that have no name"
        raise issue(f"{{path}} {text}")
    return value


class OverrideRuleFields(RuleContent):
    """One override rule: the clusters and the changes."""

    name: Annotated[NonEmptyText, AfterValidator(_check_rule_name)] | None = Field(
        None,
        description="Name of the rule. A rollout identifies the rule by this name.",
        json_schema_extra={"pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63},
    )
    rollout: RolloutFields | None = None


class ResourceSelectorFields(ApiModel):
    """A selector of resources."""

    api_version: NonEmptyText = Field(
        description="API group and version of the resources. Resources of all versions are selected.",
        examples=["apps/v1"],
    )
    kind: NonEmptyText = Field(description="Kind of the resources.", examples=["Deployment"])
    namespace: str = Field(
        "", description="Namespace of the resources. A namespaced policy can use only its own namespace."
    )
    name: str = Field("", description="Name of one resource. It cannot be combined with labelSelector.")
    label_selector: LabelSelectorFields | None = Field(None, description="Labels that the resources must have.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for a selector that has a name and labels."""
        if data.get("name") and "labelSelector" in data:
            yield FieldIssue("{path} must be absent, because the selector has a name", ("labelSelector",))


class PolicySelectors(ApiModel):
    """The fields of an override policy that select resources."""

    is_open: ClassVar = True

    resource_selectors: tuple[ResourceSelectorFields, ...] = Field(
        (),
        description=(
            "Resources that the policy applies to, in addition to the resources that name the policy in a label."
        ),
    )


class OverridePolicySpec(PolicySelectors):
    """The resources that the policy selects, and the overrides for clusters."""

    is_open: ClassVar = False

    override_rules: tuple[OverrideRuleFields, ...] = Field(
        (), description="Override rules, in the order in which they are applied."
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for each rule with the same name as an earlier rule."""
        rules = data.get("overrideRules")
        indexes: dict[str, int] = {}
        for index, rule in enumerate(rules if isinstance(rules, list) else ()):
            name = rule.get("name") if isinstance(rule, Mapping) else None
            if isinstance(name, str) and name and indexes.setdefault(name, index) != index:
                first = format_path(("overrideRules", indexes[name]))
                text = f"{{path}} must be unique, but spec.{first} also has the name {quote_value(name)}"
                yield FieldIssue(text, ("overrideRules", index, "name"))


POLICY_TEMPLATES = MessageTemplates(
    by_field={
        (error_type, "waves"): "{path} must be a list of at least one wave" for error_type in ("missing", "too_short")
    }
)


class OverridePolicyManifest(Manifest):
    """An override policy, namespaced or cluster-scoped."""

    api_versions: ClassVar = (KUBEADMIRAL_API_VERSION,)
    templates: ClassVar = POLICY_TEMPLATES

    spec: OverridePolicySpec

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue if a resource selector of a namespaced policy names a different namespace."""
        yield from super().find_issues(data)
        metadata, spec = data.get("metadata"), data.get("spec")
        if cls.scope == "cluster" or not isinstance(metadata, Mapping) or not isinstance(spec, Mapping):
            return
        namespace, selectors = metadata.get("namespace") or "default", spec.get("resourceSelectors")
        for index, selector in enumerate(selectors if isinstance(selectors, list) else ()):
            selected = selector.get("namespace") if isinstance(selector, Mapping) else None
            if selected not in (None, "", namespace):
                text = f"{{path}} must be absent or {quote_value(namespace)}, the namespace of the policy"
                path = ("spec", "resourceSelectors", index, "namespace")
                yield FieldIssue(f"{text}, but is {quote_value(selected)}", path)


class OverridePolicy(OverridePolicyManifest):
    """Overrides for resources of one namespace on selected clusters."""

    scope: ClassVar = "default"


class ClusterOverridePolicy(OverridePolicyManifest):
    """Overrides for resources of all namespaces on selected clusters."""

    scope: ClassVar = "cluster"


_NO_EFFECT = "This field of the KubeAdmiral scheduler is preserved but has no effect."


def _describe_ignored() -> Any:
    return Field(None, description=_NO_EFFECT)


class ReplicaRescheduling(ApiModel):
    """This field is preserved but has no effect."""

    avoid_disruption: Any = Field(None, description="This field is preserved but has no effect.")


class MigrationConditions(ApiModel):
    """This field of the KubeAdmiral scheduler is preserved but has no effect."""

    pod_unschedulable_for: Any = _describe_ignored()


class AutoMigration(ApiModel):
    """This field of the KubeAdmiral scheduler is preserved but has no effect."""

    when: MigrationConditions | None = None
    keep_unschedulable_replicas: Any = _describe_ignored()


class RescheduleConditions(ApiModel):
    """This field of the KubeAdmiral scheduler is preserved but has no effect."""

    cluster_api_resources_changed: Any = Field(None, alias="clusterAPIResourcesChanged", description=_NO_EFFECT)
    cluster_joined: Any = _describe_ignored()
    cluster_labels_changed: Any = _describe_ignored()
    policy_content_changed: Any = _describe_ignored()


class ReschedulePolicy(ApiModel):
    """This field of the KubeAdmiral scheduler is preserved but has no effect."""

    disable_rescheduling: Any = _describe_ignored()
    replica_rescheduling: ReplicaRescheduling | None = None
    reschedule_when: RescheduleConditions | None = None


class Toleration(ApiModel):
    """This field of the KubeAdmiral scheduler is preserved but has no effect."""

    effect: Any = _describe_ignored()
    key: Any = _describe_ignored()
    operator: Any = _describe_ignored()
    toleration_seconds: Any = _describe_ignored()
    value: Any = _describe_ignored()


class PlacementPreferences(ApiModel):
    """This field of the KubeAdmiral scheduler is preserved but has no effect."""

    max_replicas: Any = _describe_ignored()
    min_replicas: Any = _describe_ignored()
    priority: Any = _describe_ignored()
    weight: Any = _describe_ignored()


class PlacementEntry(ApiModel):
    """A cluster that gets the resources."""

    cluster: NonEmptyText = Field(description="Name of the cluster.")
    preferences: PlacementPreferences | None = None


class PropagationPolicySpec(ApiModel):
    """The clusters that get the resources. A cluster must match each of placement, clusterSelector and clusterAffinity
    that is set.
    """

    ineffective_fields: ClassVar = (
        "autoMigration", "disableFollowerScheduling", "maxClusters", "replicaRescheduling", "replicasStrategy",
        "reschedulePolicy", "schedulingProfile", "stickyCluster", "tolerations",
    )  # fmt: skip
    """Fields for the KubeAdmiral scheduler. The reconciler ignores these fields."""
    blank_fields: ClassVar = ("schedulingMode",)

    placement: tuple[PlacementEntry, ...] = Field((), description="Clusters that get the resources, by name.")
    cluster_selector: ClusterLabels = Field({})
    cluster_affinity: ClusterAffinity = ()
    scheduling_mode: Literal["Duplicate", "Divide"] = Field(
        "Duplicate",
        description=(
            "Distribution of replicas among clusters. Only Duplicate is supported: each cluster gets the whole "
            "resource."
        ),
    )
    auto_migration: AutoMigration | None = None
    disable_follower_scheduling: Any = _describe_ignored()
    max_clusters: Any = _describe_ignored()
    replica_rescheduling: ReplicaRescheduling | None = None
    replicas_strategy: Any = _describe_ignored()
    reschedule_policy: ReschedulePolicy | None = None
    scheduling_profile: Any = _describe_ignored()
    sticky_cluster: Any = _describe_ignored()
    tolerations: tuple[Toleration, ...] = Field((), description=_NO_EFFECT)


class PropagationPolicyManifest(Manifest):
    """A propagation policy, namespaced or cluster-scoped."""

    api_versions: ClassVar = (KUBEADMIRAL_API_VERSION,)
    annotation_schemas: ClassVar = {
        "reconciler.dev/ack-deletions": {
            "description": "Hash from the message about a held deletion. It confirms all deletions in the message."
        }
    }

    spec: PropagationPolicySpec


class PropagationPolicy(PropagationPolicyManifest):
    """Selects clusters for the resources in its namespace that refer to it."""

    scope: ClassVar = "default"


class ClusterPropagationPolicy(PropagationPolicyManifest):
    """Selects clusters for the resources that refer to it."""

    scope: ClassVar = "cluster"


class FederatedCluster(Manifest):
    """A cluster with its labels."""

    api_versions: ClassVar = (KUBEADMIRAL_API_VERSION,)
    is_open: ClassVar = True
    annotation_schemas: ClassVar = KUBERNETES_VERSION_SCHEMA
