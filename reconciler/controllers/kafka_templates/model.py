"""Data types of template merges: merge rules, parents and children, options, and effects of a merged template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from reconciler.krm.findings import FindingCode
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.packages.package import PackageResource

TEMPLATE_RULE_GROUP = "reconciler.dev"
TEMPLATE_RULE_API_VERSION = f"{TEMPLATE_RULE_GROUP}/v1alpha1"
TEMPLATE_RULE_KIND = "TemplateMergeRule"
MODE_ANNOTATION = f"{TEMPLATE_RULE_GROUP}/template-mode"
MATERIALISED_ANNOTATION = f"{TEMPLATE_RULE_GROUP}/materialised-template"
TemplateMode = Literal["materialise", "report"]


@dataclass(frozen=True)
class StrimziOperator:
    """Settings of a Strimzi operator that affect its pods.

    `is_restricted` is True if the operator uses the security provider `restricted`. `pod_labels` are the labels that
    the operator adds to all Kafka pods (variable STRIMZI_CUSTOM_KAFKA_LABELS).
    """

    is_restricted: bool = False
    pod_labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RuleSide:
    """The parent or the child of a merge rule: its kind, the path of its template, and its name in reports."""

    group: str
    kind: str
    path: DataPath
    label: str
    versions: tuple[str, ...] = ()

    def is_kind_of(self, resource: PackageResource) -> bool:
        """Return whether a resource has this kind, in any API version."""
        return (resource.group, resource.kind) == (self.group, self.kind)

    def can_merge_version_of(self, resource: PackageResource) -> bool:
        """Return whether the merge rule supports the API version of a resource."""
        return not self.versions or resource.version in self.versions


@dataclass(frozen=True)
class TemplateMergeRule:
    """A rule to merge the template of a child, e.g. a KafkaNodePool, with the template of its parent, e.g. a Kafka.

    The label `parent_label` of a child contains the name of its parent in the same namespace. `parent_only` are
    properties that only the template of a parent can have.
    """

    name: str
    parent: RuleSide
    child: RuleSide
    parent_label: str
    properties: tuple[str, ...]
    parent_only: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The name of the rule in the provenance of a value."""
        return f"{TEMPLATE_RULE_KIND}/_cluster/{self.name}"


@dataclass(frozen=True)
class TemplateOptions:
    """Options of template merges.

    Attributes:
        mode: Whether merged templates are written to the packages or only reported.
        strict: Codes of warnings that become errors.
    """

    mode: TemplateMode = "materialise"
    strict: frozenset[str] = frozenset()
    operator: StrimziOperator = field(default_factory=StrimziOperator)


@dataclass(frozen=True)
class TemplateResource:
    """A resource of a package that is a parent or a child according to a merge rule."""

    rule: TemplateMergeRule
    package: str
    resource: PackageResource

    @property
    def key(self) -> ObjectKey:
        """The object key of the resource."""
        return self.resource.key


@dataclass(frozen=True)
class TemplateRemark:
    """An issue in an effective template. If `property` is empty, the issue is in another field of the child.

    In findings, the path of the field precedes `message`. Therefore, `message` starts with a verb, e.g. "must be".
    `is_warning` is True if the operator accepts the value, although the Strimzi documentation forbids the value.
    """

    code: FindingCode
    message: str
    property: str = ""
    path: DataPath = ()
    is_warning: bool = False


@dataclass(frozen=True)
class OperatorObjects:
    """Objects of one kind that an operator creates. They differ in their names, but all other attributes are equal.

    Attributes:
        labels: The labels of each object.
        annotations: The annotations of each object.
        fields: The pod fields of each object.
    """

    kind: str
    names: tuple[str, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        """Return the objects in the format of status files. Omit empty labels, annotations and fields."""
        parts = {"labels": dict(self.labels), "annotations": dict(self.annotations), "fields": dict(self.fields)}
        return {"kind": self.kind, "names": [*self.names], **{name: part for name, part in parts.items() if part}}


@dataclass(frozen=True)
class TemplateDescription:
    """Effects of a child's effective template on the cluster.

    Attributes:
        settings: Maps names of settings outside of the template, e.g. `jvmOptions`, to their values and sources. Each
            child inherits such a setting as a whole.
        restarting_properties: The properties whose change restarts pods. None if they are unknown.
        affected_kinds: For each property, the kinds of objects that it affects.
    """

    remarks: tuple[TemplateRemark, ...] = ()
    objects: tuple[OperatorObjects, ...] = ()
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    restarting_properties: frozenset[str] | None = None
    affected_kinds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
