"""Kinds of Greenhouse: plugin definitions, presets, Plugins, Teams and Catalogs.

The module `greenhouse_overrides` contains the kinds with options for several Plugins.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field

from reconciler.api.base import ApiModel, FieldIssue
from reconciler.api.field_types import NOT_EMPTY, LabelSelectorFields, NonEmptyText, check_text
from reconciler.api.greenhouse_options import (
    OPTION_TYPES,
    VALUE_CODES,
    OpenPluginOptionValues,
    PluginOption,
    PluginOptionValues,
    quote_option_name,
)
from reconciler.api.manifest import Manifest
from reconciler.api.messages import MessageTemplates
from reconciler.krm.field_text import describe_choice, quote_value
from reconciler.krm.names import MAX_LABEL_CHARACTERS, validate_name_segment
from reconciler.krm.objects import ObjectKey
from reconciler.krm.selectors import SELECTOR_FIELDS
from reconciler.redaction import has_credentials, redact_url

GROUP = "greenhouse.sap"
API_VERSION = f"{GROUP}/v1alpha1"
PRESET, PLUGIN, OVERRIDE = "PluginPreset", "Plugin", "PluginOverride"
DEFINITION, CLUSTER_DEFINITION = "PluginDefinition", "ClusterPluginDefinition"
ORGANIZATION, CLUSTER, TEAM, CATALOG = "Organization", "Cluster", "Team", "Catalog"
DefinitionKind = Literal["PluginDefinition", "ClusterPluginDefinition"]
DEFINITION_KINDS: tuple[DefinitionKind, ...] = get_args(DefinitionKind)
DeletionPolicy = Literal["Delete", "Retain"]

PRESET_LABEL = f"{GROUP}/pluginpreset"
OWNED_BY_LABEL = f"{GROUP}/owned-by"
SUPPORT_GROUP_LABEL = f"{GROUP}/support-group"
PROPAGATE_LABELS = f"{GROUP}/propagate-labels"
PROPAGATE_ANNOTATIONS = f"{GROUP}/propagate-annotations"
PREVENT_DELETION_ANNOTATION = f"{GROUP}/prevent-deletion"
SUSPEND_ANNOTATION = f"{GROUP}/suspend"
ADOPT_ANNOTATION = "reconciler.dev/adopt"

_MAX_RELEASE_NAME_LENGTH = 53
_RELEASE_NAME_PATTERN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_RELEASE_NAME = re.compile(_RELEASE_NAME_PATTERN)
_OPTION_LISTS = ("optionValues", "overrides", "pluginOverrides", "options")
OPTION_LIST_TEXTS: Mapping[tuple[str, str], str] = {
    **{("tuple_type", name): "{path} must be a list of mappings" for name in _OPTION_LISTS},
    **{("model_type", f"{name}[]"): "{path} must be a mapping with a name" for name in _OPTION_LISTS},
    ("tuple_type", "clusterOptionOverrides"): "{path} must be a list of mappings",
    ("model_type", "clusterOptionOverrides[]"): "{path} must be a mapping with clusterName and overrides",
    ("missing", "type"): f"{{path}} must be {describe_choice(OPTION_TYPES)}, but is missing",
    ("model_type", "valueFrom"): "{path} must be a mapping with the field secret",
    ("model_type", "secret"): "{path} must be a mapping with a name and a key",
}
OPTION_LIST_TEMPLATES = MessageTemplates(by_field=OPTION_LIST_TEXTS)
_REF_TEXT = "{path} must be set to the name of a plugin definition"
_PATHS_TEXT = "{path} must be a list of paths that is not empty"
_PLUGIN_TEMPLATES = MessageTemplates(
    by_field={
        **OPTION_LIST_TEXTS,
        ("missing", "name"): _REF_TEXT,
        ("string_too_short", "name"): _REF_TEXT,
        ("missing", "paths"): _PATHS_TEXT,
        ("too_short", "paths"): _PATHS_TEXT,
        ("missing", "pluginRef"): "{path} must have the field name or the field pluginPreset, but both are missing",
        ("missing", "clusterSelector"): f"{{path}} must have a non-empty {' or '.join(SELECTOR_FIELDS)}",
        ("missing", "overrides"): "{path} must be a list of options",
    }
)
_OPTION_VALUES = "Option values. Each item has exactly one of value, valueFrom and expression."
_REF_MISSING, _NAME_INVALID, SELECTOR_INVALID = "DefinitionRefMissing", "PluginNameInvalid", "SelectorInvalid"


def validate_release_name(name: str) -> str:
    """Return the reason why a release name is invalid in Helm. Return "" if the name is valid."""
    if len(name) > _MAX_RELEASE_NAME_LENGTH:
        return f"{quote_value(name)} has {len(name)} characters instead of at most {_MAX_RELEASE_NAME_LENGTH}"
    if not _RELEASE_NAME.fullmatch(name):
        return (
            f'{quote_value(name)} must contain only lower-case letters, digits, "-" and ".", and each part between dots'
            " must start and end with a letter or digit"
        )
    return ""


def create_definition_key(kind: str, namespace: str, name: str) -> ObjectKey:
    """Return the identity of a plugin definition. The namespace of a ClusterPluginDefinition is ignored."""
    return ObjectKey(GROUP, kind, namespace if kind == DEFINITION else "", name)


def create_plugin_key(namespace: str, name: str) -> ObjectKey:
    """Return the identity of a Plugin."""
    return ObjectKey(GROUP, PLUGIN, namespace, name)


def format_plugin_name(preset: str, cluster: str) -> str:
    """Return the name of a preset's Plugin on a cluster."""
    return f"{preset}-{cluster}"


class Team(Manifest):
    """A team. A label of a preset can name the team as the owner of the preset."""

    api_versions: ClassVar = (API_VERSION,)
    is_open: ClassVar = True
    label_schemas: ClassVar = {
        SUPPORT_GROUP_LABEL: {
            "examples": ["true"],
            "description": '"true" for a support group. Only a support group can own presets.',
        }
    }


class CatalogSource(ApiModel):
    """A Git repository with plugin definitions."""

    is_open: ClassVar = True

    overrides: Any = Field(
        None,
        description="Overrides of option values. They have no effect.",
        json_schema_extra={"deprecationMessage": "Use a PluginOverride."},
    )


class CatalogSpec(ApiModel):
    """The Git repositories with plugin definitions. The reconciler does not fetch these repositories."""

    is_open: ClassVar = True

    sources: tuple[CatalogSource, ...] = Field((), description="Git repositories with plugin definitions.")


class Catalog(Manifest):
    """A catalog of plugin definitions. The reconciler ignores catalogs."""

    api_versions: ClassVar = (API_VERSION,)
    scope: ClassVar = "default"
    is_open: ClassVar = True
    is_spec_optional: ClassVar = True

    spec: CatalogSpec = Field(default_factory=CatalogSpec)


def _find_credentials(url: str) -> str:
    return f'write "{redact_url(url)}", and let the cluster log in to the repository' if has_credentials(url) else ""


_CHART_REPOSITORY = check_text(
    _find_credentials, "{path} must not contain a user name, password or token", "CredentialInUrl"
)


class HelmChart(ApiModel):
    """The Helm chart that the definition installs. Either helmChart or uiApplication is required."""

    is_open: ClassVar = True

    name: NonEmptyText = Field(description="Name of the chart.")
    repository: Annotated[NonEmptyText, _CHART_REPOSITORY] = Field(description="Address of the chart repository.")
    version: NonEmptyText = Field(description="Version of the chart.")


class UiApplication(ApiModel):
    """The user interface that the dashboard shows."""

    is_open: ClassVar = True

    name: NonEmptyText = Field(description="Name of the application.")
    version: NonEmptyText = Field(description="Version of the application.")


class PluginDefinitionSpec(ApiModel):
    """The chart or application to install, and its options."""

    is_open: ClassVar = True
    confidential_fields: ClassVar = frozenset({"options"})

    version: NonEmptyText = Field(description="Version of the plugin definition.")
    display_name: Any = Field(None, description="Display name.")
    description: Any = Field(None, description="Description.")
    weight: Any = Field(None, description="Position of the Plugin in the dashboard.")
    icon: Any = Field(None, description="Icon.")
    docs_url: Any = Field(None, alias="docsURL", description="URL of the documentation.")
    doc_mark_down_url: Any = Field(
        None, description="URL of the documentation.", json_schema_extra={"deprecationMessage": "Use docsURL."}
    )
    helm_chart: HelmChart | None = None
    ui_application: UiApplication | None = None
    options: tuple[PluginOption, ...] = Field((), description="Options of the Plugin.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for a definition without a chart or UI application, and for each repeated option."""
        if "helmChart" not in data and "uiApplication" not in data:
            text = "{path} is required if uiApplication is missing, because a definition must have something to deploy"
            yield FieldIssue(text, ("helmChart",))
        names: set[str] = set()
        for index, option in _iterate_mappings(data.get("options")):
            name = option.get("name")
            if isinstance(name, str) and name in names:
                text = f"{{path}} must be unique, but an earlier option has the name {quote_option_name(name)} too"
                yield FieldIssue(text, ("options", index, "name"), "DuplicateOptionDefinition")
            elif isinstance(name, str):
                names.add(name)


def _iterate_mappings(items: object) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the index and the value of each mapping in a list that is not validated yet."""
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, Mapping):
            yield index, item


class _DefinitionManifest(Manifest):
    """A chart with its options."""

    api_versions: ClassVar = (API_VERSION,)
    templates: ClassVar = OPTION_LIST_TEMPLATES
    is_open: ClassVar = True
    confidential_fields: ClassVar = frozenset({"spec"})

    spec: PluginDefinitionSpec


class PluginDefinition(_DefinitionManifest):
    """A chart for one organization, with its options."""

    scope: ClassVar = "default"


class ClusterPluginDefinition(_DefinitionManifest):
    """A chart for all organizations, with its options."""


class PluginDefinitionReference(ApiModel):
    """The definition to install."""

    blank_fields: ClassVar = ("kind",)
    field_codes: ClassVar = {"name": _REF_MISSING}

    kind: DefinitionKind = Field("PluginDefinition", description="Kind of the plugin definition.")
    name: NonEmptyText = Field(description="Name of the plugin definition.")

    def create_key(self, namespace: str) -> ObjectKey:
        """Return the identity of the definition. `namespace` is the namespace of the Plugin."""
        return create_definition_key(self.kind, namespace, self.name)


class IgnoredDifference(ApiModel):
    """Fields of objects on the cluster whose differences are ignored."""

    group: str = Field("", description="API group of the objects whose differences are ignored.")
    version: str = Field("", description="API version of the objects whose differences are ignored.")
    kind: str = Field("", description="Kind of the objects whose differences are ignored.")
    name: str = Field("", description="Name of one object. The default is all objects of the kind.")
    paths: Annotated[tuple[str, ...], *NOT_EMPTY] = Field(
        description="Paths of the fields whose differences are ignored."
    )


class WaitForReference(ApiModel):
    """The Plugin to wait for. Use either name or pluginPreset."""

    name: str = Field("", description="Name of the Plugin.")
    plugin_preset: str = Field(
        "",
        description=(
            "Name of a PluginPreset. The entry refers to the Plugin that this preset creates on the same cluster."
        ),
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue unless exactly one of name and pluginPreset is set."""
        if bool(data.get("name")) == bool(data.get("pluginPreset")):
            found = "has both" if data.get("name") else "both are missing"
            yield FieldIssue(
                f"{{path}} must have the field name or the field pluginPreset, but {found}", code="WaitForInvalid"
            )


class WaitForItem(ApiModel):
    """A Plugin that must be ready before the waiting Plugin is installed."""

    field_codes: ClassVar = {"pluginRef": "WaitForInvalid"}

    plugin_ref: WaitForReference

    def get_plugin_name(self, cluster: str) -> str:
        """Return the name of the Plugin to wait for. If the item names a preset, return the name of its Plugin on
        `cluster`.
        """
        return self.plugin_ref.name or format_plugin_name(self.plugin_ref.plugin_preset, cluster)


def _find_repeated_references(items: object) -> Iterator[FieldIssue]:
    """Yield an issue for each item of `waitFor` that refers to the same Plugin or preset as an earlier item."""
    references: set[tuple[str, str]] = set()
    for index, item in _iterate_mappings(items):
        reference = item.get("pluginRef")
        for field in ("name", "pluginPreset"):
            name = reference.get(field) if isinstance(reference, Mapping) else None
            if isinstance(name, str) and (field, name) in references:
                text = f"{{path}} refers to {quote_value(name)} again; remove one of the two entries"
                yield FieldIssue(text, ("waitFor", index, "pluginRef"), "WaitForDuplicate")
            elif isinstance(name, str) and name:
                references.add((field, name))


_DEFINITION_REF = Field(None)
_OPTIONS = Field((), description=_OPTION_VALUES)
_IGNORED = Field(
    (),
    description="Fields in which objects on the cluster can differ from the Helm chart. These differences are ignored.",
)
_WAIT_FOR = Field((), description="Plugins that must be ready before this Plugin is installed.")


class PluginFields(ApiModel):
    """The spec of each Plugin that the preset creates."""

    confidential_fields: ClassVar = frozenset({"optionValues"})

    plugin_definition_ref: PluginDefinitionReference | None = _DEFINITION_REF
    plugin_definition_name: str = Field(
        "", description="Name of a PluginDefinition. This field is a short form of pluginDefinitionRef."
    )
    display_name: str = Field("", description="Display name.")
    option_values: PluginOptionValues = _OPTIONS
    release_namespace: str = Field("", description="Namespace on the cluster for the Helm release.")
    release_name: Annotated[
        str, check_text(validate_release_name, "{path} is not a valid Helm release name", "ReleaseNameInvalid")
    ] = Field(
        "",
        description="Name of the Helm release. The default is the name of the chart.",
        json_schema_extra={"maxLength": _MAX_RELEASE_NAME_LENGTH, "pattern": f"^$|^{_RELEASE_NAME_PATTERN}$"},
    )
    deletion_policy: DeletionPolicy | None = Field(
        None, description="Whether the Helm release is deleted or kept after the Plugin is deleted."
    )
    ignore_differences: tuple[IgnoredDifference, ...] = _IGNORED

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue if no field names the plugin definition, or if two fields contain different names."""
        ref, short_name = data.get("pluginDefinitionRef"), data.get("pluginDefinitionName")
        if ref is None and not short_name:
            yield FieldIssue(_REF_TEXT, ("pluginDefinitionRef", "name"), _REF_MISSING)
        elif isinstance(ref, Mapping) and short_name is not None and short_name != ref.get("name"):
            found = quote_value(short_name)
            text = f"{{path}} must be omitted or have the same name as pluginDefinitionRef, but is {found}"
            yield FieldIssue(text, ("pluginDefinitionName",))

    @cached_property
    def definition(self) -> PluginDefinitionReference:
        """The reference to the plugin definition."""
        return self.plugin_definition_ref or PluginDefinitionReference(name=self.plugin_definition_name)


class ClusterOptionOverride(ApiModel):
    """Option values for one cluster."""

    is_confidential: ClassVar = True

    cluster_name: NonEmptyText = Field(description="Name of the cluster.")
    overrides: PluginOptionValues = Field(
        description="Option values that override the values of the preset on this cluster."
    )


class PluginPresetSpec(ApiModel):
    """The Plugin to create, and the clusters on which it is created."""

    blank_fields: ClassVar = ("deletionPolicy",)
    field_codes: ClassVar = {"clusterSelector": "SelectorEmpty"}
    subtree_codes: ClassVar = {"clusterSelector": SELECTOR_INVALID}
    confidential_fields: ClassVar = frozenset({"plugin", "clusterOptionOverrides"})

    plugin: PluginFields
    cluster_selector: LabelSelectorFields = Field(
        description="Labels that a cluster must have. An empty selector is an error.",
        json_schema_extra={"minProperties": 1},
    )
    cluster_option_overrides: tuple[ClusterOptionOverride, ...] = Field(
        (), description="Option values that apply only to one cluster each."
    )
    wait_for: tuple[WaitForItem, ...] = _WAIT_FOR
    deletion_policy: DeletionPolicy = Field(
        "Delete", description="Whether the Helm releases are deleted or kept after the preset is deleted."
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for an empty selector, and for each repeated reference in `waitFor`."""
        selector = data.get("clusterSelector")
        if isinstance(selector, Mapping) and not any(selector.values()):
            # Reject an empty selector. Greenhouse rejects it only in a new preset. If an update makes the selector
            # empty, Greenhouse selects all clusters.
            text = f"{{path}} must have a non-empty {' or '.join(SELECTOR_FIELDS)}, but is {quote_value(selector)}"
            yield FieldIssue(text, ("clusterSelector",), "SelectorEmpty")
        yield from _find_repeated_references(data.get("waitFor"))


def _get_name(data: Mapping[str, Any]) -> str:
    return str(data["metadata"].get("name")) if isinstance(data.get("metadata"), Mapping) else ""


_OWNER_SCHEMAS = {
    OWNED_BY_LABEL: {
        "description": "Name of the Team that owns this Plugin, or the Plugins of this preset. Each of these Plugins"
        " gets the name as an option."
    }
}


class PluginPreset(Manifest):
    """Creates a Plugin for each selected cluster."""

    api_versions: ClassVar = (API_VERSION,)
    templates: ClassVar = _PLUGIN_TEMPLATES
    lenient_codes: ClassVar = VALUE_CODES
    scope: ClassVar = "default"
    confidential_fields: ClassVar = frozenset({"spec"})
    label_schemas: ClassVar = _OWNER_SCHEMAS
    annotation_schemas: ClassVar = {
        "reconciler.dev/ack-deletions": {
            "description": "Hash from the message about a held deletion. It confirms all deletions in the message.",
        },
        PROPAGATE_LABELS: {
            "examples": ["team,example.com/*"],
            "description": "Comma-separated keys of labels that are copied to the Plugins. A key can end with /* to"
            " match a prefix.",
        },
        PROPAGATE_ANNOTATIONS: {"description": "Comma-separated keys of annotations that are copied to the Plugins."},
        PREVENT_DELETION_ANNOTATION: {"description": "Any value prevents the deletion of the Plugins of the preset."},
    }

    spec: PluginPresetSpec

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for a preset name that is not valid as a prefix of Plugin names or as a label value."""
        name = _get_name(data)
        if error := validate_name_segment(name):
            text = f"{{path}} is not a valid prefix of Plugin names: {error}"
            yield FieldIssue(text, ("metadata", "name"), _NAME_INVALID)
        elif len(name) > MAX_LABEL_CHARACTERS:
            text = (
                f"{{path}} must have at most {MAX_LABEL_CHARACTERS} characters, because the name is also a label value;"
                f" {quote_value(name)} has {len(name)}"
            )
            yield FieldIssue(text, ("metadata", "name"), _NAME_INVALID)


class OpenDefinitionReference(PluginDefinitionReference):
    """The definition to install."""

    is_open: ClassVar = True


class OpenIgnoredDifference(IgnoredDifference):
    """Fields of objects on the cluster whose differences are ignored."""

    is_open: ClassVar = True


class OpenWaitForReference(WaitForReference):
    """The Plugin to wait for. Use either name or pluginPreset."""

    is_open: ClassVar = True


class OpenWaitForItem(WaitForItem):
    """A Plugin that must be ready before the waiting Plugin is installed."""

    is_open: ClassVar = True

    plugin_ref: OpenWaitForReference


class PluginSpec(PluginFields):
    """The plugin definition and the option values of the Plugin."""

    is_open: ClassVar = True

    plugin_definition_ref: OpenDefinitionReference | None = _DEFINITION_REF
    option_values: OpenPluginOptionValues = _OPTIONS
    ignore_differences: tuple[OpenIgnoredDifference, ...] = _IGNORED
    wait_for: tuple[OpenWaitForItem, ...] = _WAIT_FOR
    cluster_name: str = Field(
        "", description="Cluster on which the Plugin is installed. The default is the setting `rules.central_cluster`."
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield the issues of `PluginFields`, and an issue for each repeated reference in `waitFor`."""
        yield from super().find_issues(data)
        yield from _find_repeated_references(data.get("waitFor"))


class Plugin(Manifest):
    """One Plugin on one cluster."""

    api_versions: ClassVar = (API_VERSION,)
    templates: ClassVar = _PLUGIN_TEMPLATES
    lenient_codes: ClassVar = VALUE_CODES
    scope: ClassVar = "default"
    is_open: ClassVar = True
    confidential_fields: ClassVar = frozenset({"spec"})
    label_schemas: ClassVar = _OWNER_SCHEMAS
    annotation_schemas: ClassVar = {
        ADOPT_ANNOTATION: {
            "examples": ["true"],
            "description": '"true" adopts an existing package that has no owner.',
        },
        SUSPEND_ANNOTATION: {"description": "Any value prevents changes and the deletion of the Plugin."},
    }

    spec: PluginSpec

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for an object name that is not valid as the name of a folder."""
        if error := validate_name_segment(_get_name(data)):
            yield FieldIssue(f"{{path}} is not a valid folder name: {error}", ("metadata", "name"), _NAME_INVALID)
