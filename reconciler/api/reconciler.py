"""Kinds of this project: PackageRevisionSet, TemplateMergeRule, Environment and Build."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from reconciler.api.base import ApiModel, FieldIssue, issue
from reconciler.api.field_types import NOT_EMPTY, ExtensibleModel, FreeMapping, LabelSelectorFields, NonEmptyText
from reconciler.api.manifest import CheckedManifest, Manifest
from reconciler.api.messages import MessageTemplates
from reconciler.api.porch.manifest import PorchManifest
from reconciler.api.porch.messages import SET_TEMPLATES
from reconciler.api.porch.upstream import UpstreamSpec
from reconciler.krm.field_text import quote_value
from reconciler.krm.yaml import DataPath

RECONCILER_API_VERSION = "reconciler.dev/v1alpha1"


class PackageRevisionSetSpec(ApiModel):
    """The upstream packages of the set."""

    upstreams: Annotated[tuple[UpstreamSpec, ...], *NOT_EMPTY] = Field(
        description="Upstream packages and their revisions."
    )


class PackageRevisionSet(PorchManifest):
    """Upstreams for several PackageVariantSets."""

    api_versions: ClassVar = (RECONCILER_API_VERSION,)
    templates: ClassVar = SET_TEMPLATES

    spec: PackageRevisionSetSpec


_IDENTITY_FIELDS = ("apiVersion", "kind", "metadata")


def _check_template_path(value: str) -> str:
    steps = value.split(".")
    if not all(steps) or steps[0] in _IDENTITY_FIELDS:
        text = "must be the path of the template, such as spec.template, outside of apiVersion, kind and metadata"
        raise issue(f"{{path}} {text}, but is {quote_value(value)}")
    return value


class MergeRuleParent(ApiModel):
    """The parent kind, whose objects contain the template."""

    api_group: str = Field("", description="API group of the kind. An empty value is the core group.")
    kind: NonEmptyText = Field(description="The name of the kind.")
    versions: tuple[str, ...] = Field((), description="Versions of the kind. The default is all versions.")
    path: Annotated[NonEmptyText, AfterValidator(_check_template_path)] = Field(
        description="Path of the field that contains the template.", examples=["spec.template"]
    )
    called: str = Field("", description="Name of the kind in reports. The default is the kind in lower case.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for the kind Secret, because status files, plans and explanations show the merged template."""
        if data.get("kind") == "Secret" and not data.get("apiGroup"):
            yield FieldIssue("{path} must not be Secret, because values of Secrets must not be shown", ("kind",))

    @property
    def steps(self) -> DataPath:
        """The field path of the template."""
        return tuple(self.path.split("."))


class MergeRuleChild(MergeRuleParent):
    """The child kind, whose objects inherit the template."""

    parent_label: NonEmptyText = Field(description="Key of the label with which a child names its parent.")


def _check_unique(names: tuple[str, ...]) -> tuple[str, ...]:
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise issue(f"{{path}} must not contain {quote_value(duplicates[0])} twice")
    return names


_PropertyNames = Annotated[
    tuple[str, ...], AfterValidator(_check_unique), Field(json_schema_extra={"uniqueItems": True})
]


class TemplateMergeRuleSpec(ApiModel):
    """The parent kind, the child kind, and the properties that children inherit."""

    blank_fields: ClassVar = ("nullMeans", "emptyMeans")

    parent: MergeRuleParent
    child: MergeRuleChild
    properties: Annotated[_PropertyNames, *NOT_EMPTY] = Field(
        description="Template properties that exist both in the parent kind and in the child kind."
    )
    parent_only: _PropertyNames = Field((), description="Template properties that exist only in the parent kind.")
    null_means: Literal["inherit"] = Field(
        "inherit", description="Effect of the value null in a child. inherit: the value of the parent applies."
    )
    empty_means: Literal["reset"] = Field(
        "reset", description="Effect of the value {} in a child. reset: no value of the parent applies."
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue if parent and child have the same kind.

        Also yield an issue for each property that is in both `properties` and `parentOnly`.
        """
        parent, child = data.get("parent"), data.get("child")
        if isinstance(parent, Mapping) and isinstance(child, Mapping):
            kinds = [(side.get("apiGroup") or "", side.get("kind")) for side in (parent, child)]
            if kinds[0] == kinds[1] and kinds[0][1]:
                text = f"{{path}} must differ from the parent's kind {quote_value(kinds[0][1])}"
                yield FieldIssue(text, ("child", "kind"))
        shared, parent_only = _get_names(data, "properties"), _get_names(data, "parentOnly")
        for name in sorted(shared & parent_only):
            yield FieldIssue(
                f"{{path}} must not contain {quote_value(name)}, which is also in properties", ("parentOnly",)
            )


def _get_names(data: Mapping[str, Any], field: str) -> set[str]:
    names = data.get(field)
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


class TemplateMergeRule(Manifest):
    """Defines that a kind inherits the template of another kind, property by property."""

    api_versions: ClassVar = (RECONCILER_API_VERSION,)
    templates: ClassVar = MessageTemplates(
        by_field={
            (
                error_type,
                "properties",
            ): "{path} must contain the properties that exist both in the parent kind and in the child kind"
            for error_type in ("missing", "too_short")
        }
    )
    scope: ClassVar = "cluster"

    spec: TemplateMergeRuleSpec


SPEC_REQUIRED = MessageTemplates(by_field={("missing", "spec"): "{path} must be a mapping"})


class EnvironmentSpec(ExtensibleModel):
    """The clusters of the environment, selected by name and by labels."""

    subtree_codes: ClassVar = {"clusterSelector": "SelectorInvalid"}

    clusters: tuple[str, ...] = Field((), description="Names of clusters in this environment.")
    cluster_selector: LabelSelectorFields | None = Field(
        None, description="Labels that select more clusters for this environment."
    )
    context: FreeMapping = Field({}, description="Data that templates read with the variable env.")


class Environment(CheckedManifest):
    """The clusters of an environment, and its data for templates."""

    api_versions: ClassVar = (RECONCILER_API_VERSION,)
    templates: ClassVar = SPEC_REQUIRED

    spec: EnvironmentSpec


class BuildSpec(ApiModel):
    """The output of a build, with any structure. Templates read it in the variable `build`."""

    is_open: ClassVar = True

    image: Any = Field(
        None, description="Container image of the component.", examples=["registry.example.com/shop:1.4"]
    )
    tag: Any = Field(None, description="Tag of the image.")
    workload: FreeMapping = Field({}, description="Data that templates read with the variable workload.")


class Build(CheckedManifest):
    """Build output for the component with the same name, or for <component>.<environment>."""

    api_versions: ClassVar = (RECONCILER_API_VERSION,)
    templates: ClassVar = SPEC_REQUIRED
    scope: ClassVar = "default"

    spec: BuildSpec
