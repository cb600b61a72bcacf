"""Models of KRM function configurations with their own kind, e.g. SetLabels. Other functions use a ConfigMap."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, StrictBool, WithJsonSchema

from reconciler.api.base import ApiModel
from reconciler.api.manifest import KrmObject
from reconciler.api.messages import MessageTemplates


def _decode_scalar(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value) if isinstance(value, int | float) else value


ScalarText = Annotated[
    str, BeforeValidator(_decode_scalar), WithJsonSchema({"type": ["string", "number", "boolean", "null"]})
]
"""A string. Numbers, booleans and null are converted to strings, as in the original Go functions."""


class FieldSpecEntry(ApiModel):
    """A selector of fields that a function changes."""

    is_open: ClassVar = True

    path: str = Field(
        "",
        description=(
            "Path of the field. If the path contains a list, the path selects the field in all items of the list."
        ),
        examples=["spec/selector/app"],
    )
    kind: str = Field("", description="Kind of the resources. The default is all kinds.")
    group: str = Field("", description="API group of the resources. The default is all groups.")
    version: str = Field("", description="API version of the resources. The default is all versions.")
    create: StrictBool = Field(
        False, description="Whether the function creates mappings of the path that do not exist."
    )


def _describe_fields(text: str) -> Any:
    return Field((), description=f"Additional fields that {text}, and that the function also changes.")


_OLD_FIELDS: Any = Field((), description="Additional fields that the function changes, under the old name of the list.")


class FunctionConfigObject(KrmObject):
    """The configuration of a function."""

    api_versions: ClassVar = ("fn.kpt.dev/v1alpha1",)
    is_open: ClassVar = True
    is_name_optional: ClassVar = True
    templates: ClassVar = MessageTemplates(
        {
            "string_type": "the configuration's {path} must be a string{found}; put it in quotes",
            "bool_type": "the configuration's {path} must be true or false{found}",
            "dict_type": "the configuration's {path} must be a mapping of strings{found}",
            "model_type": "the configuration's {path} must be a mapping{found}",
            "tuple_type": "the configuration's {path} must be a list of field specs{found}",
        }
    )


class SetLabels(FunctionConfigObject):
    """Configuration of the function set-labels."""

    labels: dict[str, str] = Field({}, description="Labels to set.")


class SetAnnotations(FunctionConfigObject):
    """Configuration of the function set-annotations."""

    annotations: dict[str, ScalarText] = Field({}, description="Annotations to set.")
    additional_annotation_fields: tuple[FieldSpecEntry, ...] = _describe_fields("contain annotations")
    field_specs: tuple[FieldSpecEntry, ...] = _OLD_FIELDS


class SetNamespace(FunctionConfigObject):
    """Configuration of the function set-namespace."""

    namespace: str = Field("", description="Namespace to set.")
    namespace_matcher: str = Field(
        "", description="Namespace that the function replaces. The default is all namespaces."
    )
    additional_namespace_fields: tuple[FieldSpecEntry, ...] = _describe_fields("contain a namespace")


class SetImage(FunctionConfigObject):
    """Configuration of the function set-image."""

    image: dict[str, str] = Field(
        {}, description="Image to change: a mapping with the fields name, newName, newTag and digest."
    )
    additional_image_fields: tuple[FieldSpecEntry, ...] = _describe_fields("contain an image")


class EnsureNameSubstring(FunctionConfigObject):
    """Configuration of the function ensure-name-substring."""

    edit_mode: str = Field("", description="Position of the text in a name: prepend or append. The default is prepend.")
    substring: str = Field("", description="Text that each name must contain.")
    additional_name_fields: tuple[FieldSpecEntry, ...] = _describe_fields("contain a name")
    field_specs: tuple[FieldSpecEntry, ...] = _OLD_FIELDS


class StarlarkRun(FunctionConfigObject):
    """Configuration of the function starlark."""

    source: str = Field("", description="Starlark script.")


class HelmGlobals(ApiModel):
    """Options for all charts of the function render-helm-chart."""

    chart_home: str = Field("tmp/charts", description="Folder of the package that contains the folders of the charts.")
    config_home: str = Field("", description="Not supported: Helm gets an empty configuration.")


class ChartArguments(ApiModel):
    """The chart that the function render-helm-chart renders."""

    name: str = Field(min_length=1, description="Name of the chart, and of its folder in chartHome.")
    version: str = Field(
        "", description="Version of the chart. With repo or registry, it must be an exact version, such as 1.2.3."
    )
    repo: str = Field(
        "",
        description=(
            "URL of a Repository with type helm, from which the chart is downloaded before the render. A chart in "
            "chartHome has priority."
        ),
    )
    registry: str = Field("", description="The same as repo, for an OCI registry. The prefix oci:// is optional.")
    auth: dict[str, Any] | None = Field(
        None, description="Not supported: the Repository contains the reference to the credentials."
    )


class ChartValueOptions(ApiModel):
    """The values for a chart of the function render-helm-chart."""

    values_files: tuple[str, ...] = Field(
        (), description="Files of the package with values. A later file overrides an earlier file."
    )
    values_inline: dict[str, Any] = Field({}, description="Values of the chart.")
    values_merge: Literal["override", "merge", "replace"] = Field(
        "override",
        description=(
            "override: valuesInline override the files. merge: the files override valuesInline. replace: the files are "
            "not used."
        ),
    )


class ChartTemplateOptions(ApiModel):
    """How the function render-helm-chart renders a chart."""

    api_versions: tuple[str, ...] = Field((), description="APIs that are added to `.Capabilities.APIVersions`.")
    release_name: str = Field("", description="Name of the release. It is required.")
    namespace: str = Field("default", description="Namespace of the release.")
    name_template: str = Field("", description="Not supported: use releaseName.")
    include_crds: StrictBool = Field(
        False, alias="includeCRDs", description="Whether the resources in the folder crds/ of the chart are included."
    )
    skip_tests: StrictBool = Field(False, description="Whether resources with a test hook are left out.")
    values: ChartValueOptions = ChartValueOptions()


class HelmChartEntry(ApiModel):
    """One chart of the function render-helm-chart."""

    chart_args: ChartArguments
    template_options: ChartTemplateOptions = ChartTemplateOptions()


class RenderHelmChart(FunctionConfigObject):
    """Configuration of the function render-helm-chart."""

    helm_globals: HelmGlobals = HelmGlobals()
    helm_charts: tuple[HelmChartEntry, ...] = Field((), description="The charts that the function renders.")


KINDS: tuple[type[FunctionConfigObject], ...] = (
    SetLabels, SetAnnotations, SetNamespace, SetImage, EnsureNameSubstring, StarlarkRun, RenderHelmChart,
)  # fmt: skip
