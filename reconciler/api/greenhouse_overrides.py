"""Kinds with options for several Plugins: Organization, Cluster, and the PluginOverride of this project."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, ValidationInfo

from reconciler.api.base import ApiModel, issue
from reconciler.api.field_types import NOT_EMPTY, LabelSelectorFields
from reconciler.api.greenhouse import (
    API_VERSION,
    DEFINITION_KINDS,
    GROUP,
    OPTION_LIST_TEMPLATES,
    OPTION_LIST_TEXTS,
    SELECTOR_INVALID,
)
from reconciler.api.greenhouse_options import VALUE_CODES, PluginOptionValues
from reconciler.api.manifest import KUBERNETES_VERSION_SCHEMA, Manifest
from reconciler.api.messages import MessageTemplates
from reconciler.krm.field_text import describe_choice, quote_value
from reconciler.krm.selectors import SELECTOR_FIELDS, LabelSelector

PLUGIN_DELETION_ANNOTATION = f"{GROUP}/plugin-deletion"
_OVERRIDES_TEXT = "{path} must be a list of options that is not empty"
_OVERRIDE_TEMPLATES = MessageTemplates(
    by_field={
        **OPTION_LIST_TEXTS,
        ("missing", "overrides"): _OVERRIDES_TEXT,
        ("too_short", "overrides"): _OVERRIDES_TEXT,
    }
)


class PluginOverridesSpec(ApiModel):
    """The spec of an Organization or a Cluster. The reconciler reads only pluginOverrides."""

    is_open: ClassVar = True
    confidential_fields: ClassVar = frozenset({"pluginOverrides"})

    plugin_overrides: PluginOptionValues = Field(
        (), description="Option values for all Plugins whose definitions have these options."
    )


class _ObjectWithOptions(Manifest):
    """An object with options for several Plugins."""

    api_versions: ClassVar = (API_VERSION,)
    templates: ClassVar = OPTION_LIST_TEMPLATES
    lenient_codes: ClassVar = VALUE_CODES
    is_open: ClassVar = True
    is_spec_optional: ClassVar = True

    spec: PluginOverridesSpec = Field(default_factory=PluginOverridesSpec)


class Cluster(_ObjectWithOptions):
    """A cluster with its labels, and options for all Plugins on the cluster."""

    annotation_schemas: ClassVar = {
        PLUGIN_DELETION_ANNOTATION: {
            "examples": ["Retain"],
            "description": "Retain keeps the Plugins of the cluster if presets do not request them any more.",
        },
        **KUBERNETES_VERSION_SCHEMA,
    }


class Organization(_ObjectWithOptions):
    """An organization, which is a namespace, and options for all Plugins in this namespace."""


class ClusterLabelSelector(LabelSelectorFields):
    """A label selector that selects clusters, without names of clusters."""

    subtree_codes: ClassVar = dict.fromkeys(SELECTOR_FIELDS, SELECTOR_INVALID)


class ClusterSelection(ApiModel):
    """Clusters by labels and by name, without the ignored clusters."""

    subtree_codes: ClassVar = {"labelSelector": SELECTOR_INVALID}

    label_selector: LabelSelectorFields = Field(
        default_factory=LabelSelectorFields, description="Labels that a cluster must have."
    )
    cluster_names: tuple[str, ...] = Field(
        (), description="Names of the clusters that are selected. No other cluster is selected."
    )
    ignore_clusters: tuple[str, ...] = Field((), description="Names of clusters that the item does not select.")

    @cached_property
    def selector(self) -> LabelSelector | None:
        """The label selector. None if it is empty, because an empty selector means the same as an absent one."""
        selector = self.label_selector.selector
        return None if selector == LabelSelector() else selector

    @property
    def is_for_all(self) -> bool:
        """Whether the selection has no label selector and no cluster names. It then selects all clusters."""
        return self.selector is None and not self.cluster_names

    def selects(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the cluster names or the label selector select a cluster. Do not apply `ignore_clusters`."""
        if self.is_for_all or name in self.cluster_names:
            return True
        return self.selector is not None and self.selector.matches(labels)


def _read_selection(value: Any, info: ValidationInfo) -> ClusterSelection:
    if value is None:
        return ClusterSelection()
    if isinstance(value, Mapping) and any(name in value for name in SELECTOR_FIELDS):
        return ClusterSelection(label_selector=ClusterLabelSelector.model_validate(value, context=info.context))
    return ClusterSelection.model_validate(value, context=info.context)


def _read_single_selection(value: Any, info: ValidationInfo) -> Any:
    return value if isinstance(value, list) else (_read_selection(value, info),)


_Selection = ClusterSelection | LabelSelectorFields
_ClusterSelections = Annotated[
    tuple[Annotated[ClusterSelection, BeforeValidator(_read_selection, json_schema_input_type=_Selection | None)], ...],
    BeforeValidator(_read_single_selection, json_schema_input_type=_Selection | tuple[_Selection | None, ...]),
]


def _check_definition_name(text: str) -> str:
    kind, slash, name = text.rpartition("/")
    if not name or (slash and kind not in DEFINITION_KINDS):
        allowed = describe_choice(("NAME", *(f"{definition_kind}/NAME" for definition_kind in DEFINITION_KINDS)))
        raise issue(f"{{path}} must have the form {allowed}, but is {quote_value(text)}")
    return text


_DefinitionName = Annotated[
    str,
    AfterValidator(_check_definition_name),
    Field(json_schema_extra={"pattern": "^((Cluster)?PluginDefinition/)?[^/]+$"}),
]


class PluginOverrideTargets(ApiModel):
    """The Plugins to which a PluginOverride applies, by definition and by cluster."""

    is_open: ClassVar = True

    plugin_definition_names: tuple[_DefinitionName, ...] = Field(
        (),
        description=(
            "Plugin definitions whose Plugins get the values, as NAME or KIND/NAME. An empty list selects "
            "all plugin definitions."
        ),
    )
    cluster_selector: _ClusterSelections = Field(
        (),
        description=(
            "Clusters whose Plugins get the values: a label selector, or a list of mappings that each select "
            "or exclude clusters by name. The default is all clusters."
        ),
    )

    @cached_property
    def ignored_clusters(self) -> tuple[str, ...]:
        """Names of clusters that an item of `cluster_selector` excludes. Other items cannot select these clusters."""
        return tuple(name for selection in self.cluster_selector for name in selection.ignore_clusters)

    @property
    def cluster_names(self) -> tuple[str, ...]:
        """All cluster names in `cluster_selector`, of both selected and ignored clusters."""
        names = (name for selection in self.cluster_selector for name in selection.cluster_names)
        return (*names, *self.ignored_clusters)

    @property
    def is_for_all_clusters(self) -> bool:
        """Whether `cluster_selector` selects all clusters. Plugins without a cluster are then selected too."""
        return not self.ignored_clusters and all(selection.is_for_all for selection in self.cluster_selector)

    def selects_cluster(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether `cluster_selector` selects a cluster."""
        if name in self.ignored_clusters:
            return False
        selections = self.cluster_selector
        return not selections or any(selection.selects(name, labels) for selection in selections)

    def selects_definition(self, kind: str, name: str) -> bool:
        """Return whether the override applies to the Plugins of a definition."""
        names = self.plugin_definition_names
        return not names or name in names or f"{kind}/{name}" in names


class PluginOverrideSpec(PluginOverrideTargets):
    """The option values, and the Plugins and clusters to which they apply."""

    is_open: ClassVar = False
    blank_fields: ClassVar = ("mode",)
    confidential_fields: ClassVar = frozenset({"overrides"})

    mode: Literal["Override", "Default"] = Field(
        "Override",
        description=(
            "Override: the values replace the values of presets. Default: the values apply only to options "
            "that presets do not set."
        ),
    )
    priority: StrictInt = Field(
        0,
        description=(
            "Priority. If two PluginOverrides set the same option, the value of the PluginOverride with the "
            "higher priority applies."
        ),
    )
    overrides: Annotated[PluginOptionValues, *NOT_EMPTY] = Field(description="The option values.")


class PluginOverride(Manifest):
    """Option values for Plugins of several presets."""

    api_versions: ClassVar = (API_VERSION,)
    templates: ClassVar = _OVERRIDE_TEMPLATES
    lenient_codes: ClassVar = VALUE_CODES
    scope: ClassVar = "default"
    confidential_fields: ClassVar = frozenset({"spec"})

    spec: PluginOverrideSpec
