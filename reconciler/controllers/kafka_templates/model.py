"""Values of template merges: operator settings, merge rules, parents and children, and descriptions of results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from reconciler.krm.findings import FindingCode
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath
from reconciler.packages.package import PackageResource

TEMPLATE_RULE_GROUP = "reconciler.dev"
TEMPLATE_RULE_API_VERSION = f"{TEMPLATE_RULE_GROUP}/v1alpha1"
TEMPLATE_RULE_KIND = "TemplateMergeRule"
MODE_ANNOTATION = f"{TEMPLATE_RULE_GROUP}/template-mode"
MATERIALISED_ANNOTATION = f"{TEMPLATE_RULE_GROUP}/materialised-template"
TemplateMode = Literal["materialise", "report"]


@dataclass(frozen=True)
class StrimziOperator:
    """Settings of a Strimzi operator that affect the result of templates.

    `is_restricted`: its security provider is the restricted profile. `pod_labels` are added to all Kafka pods
    (STRIMZI_CUSTOM_KAFKA_LABELS).
    """

    is_restricted: bool = False
    pod_labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RuleSide:
    """The parent's or child's half of a rule: the kind, the path of its template, and its name in reports."""

    group: str
    kind: str
    path: DataPath
    label: str
    versions: tuple[str, ...] = ()

    def is_kind_of(self, resource: PackageResource) -> bool:
        """Return whether a document has this kind, in any version."""
        return (resource.group, resource.kind) == (self.group, self.kind)

    def can_merge_version_of(self, resource: PackageResource) -> bool:
        """Return whether the rule supports the version of a document."""
        return not self.versions or resource.version in self.versions


@dataclass(frozen=True)
class TemplateMergeRule:
    """How a child's template is merged from the parent's and its own.

    The label `parent_label` of a child names its parent in the same namespace. `parent_only` are properties of the
    parent's template that a child cannot have.
    """

    name: str
    parent: RuleSide
    child: RuleSide
    parent_label: str
    properties: tuple[str, ...]
    parent_only: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The rule's name in provenance."""
        return f"{TEMPLATE_RULE_KIND}/_cluster/{self.name}"


@dataclass(frozen=True)
class TemplateOptions:
    """Settings of the operator: the mode of merging, and the setup of operators in the clusters.

    `strict` are codes of warnings that are upgraded to errors.
    """

    mode: TemplateMode = "materialise"
    strict: frozenset[str] = frozenset()
    operator: StrimziOperator = field(default_factory=StrimziOperator)


@dataclass(frozen=True)
class TemplateResource:
    """A document of a package that is a parent or a child in a rule."""

    rule: TemplateMergeRule
    package: str
    resource: PackageResource

    @property
    def key(self) -> ObjectKey:
        """The document's identity."""
        return self.resource.key


@dataclass(frozen=True)
class TemplateRemark:
    """An issue in a property of an effective template, or without a property, of the child itself.

    With `is_warning`, it is reported as a warning, because operators accept it against their documentation.
    """

    code: FindingCode
    message: str
    property: str = ""
    path: DataPath = ()
    is_warning: bool = False


@dataclass(frozen=True)
class OperatorObjects:
    """One or more equal objects that an operator creates: names, metadata, and fields of the pod."""

    kind: str
    names: tuple[str, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        """Return the data for status files, without empty parts."""
        parts = {"labels": dict(self.labels), "annotations": dict(self.annotations), "fields": dict(self.fields)}
        return {"kind": self.kind, "names": [*self.names], **{name: part for name, part in parts.items() if part}}


@dataclass(frozen=True)
class TemplateDescription:
    """The known results of an effective template.

    Attributes:
        settings: Other settings with the same inheritance, each with its source.
        restarting_properties: The properties whose change restarts pods; None if unknown.
        affected_kinds: The kinds of objects that each property affects.
    """

    remarks: tuple[TemplateRemark, ...] = ()
    objects: tuple[OperatorObjects, ...] = ()
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    restarting_properties: frozenset[str] | None = None
    affected_kinds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
