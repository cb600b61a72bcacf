"""Options for the render of a Helm chart: the field `helm` of PackageVariants and of templates of PackageVariantSets.

The field names are those of Flux HelmReleases and of Argo CD. This module does not read values files or other objects.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, Field, StrictBool

from reconciler.api.base import UNSUPPORTED_CODE, ApiModel, Deprecation, FieldIssue, find_either_issues, issue
from reconciler.api.field_types import NonEmptyText, check_text
from reconciler.krm.field_text import quote_value
from reconciler.krm.helm_paths import check_option_name
from reconciler.krm.json_text import has_finite_numbers
from reconciler.krm.names import validate_dns_label, validate_dns_subdomain
from reconciler.krm.version_ranges import parse_version
from reconciler.krm.yaml import DataPath

CONFIG_SOURCE: Final = "config"
"""The name in `$config/path`, which means a file of the config repository."""
DEFAULT_VALUES_KEY: Final = "values.yaml"
MAX_RELEASE_NAME_CHARACTERS: Final = 53

_PATH_INVALID = "PathInvalid"
_CLUSTER_AGENT = "remove the field, because the agent of the cluster installs and upgrades releases"


def _validate_release_name(name: str) -> str | None:
    if len(name) > MAX_RELEASE_NAME_CHARACTERS:
        return f'"{name}" must have at most {MAX_RELEASE_NAME_CHARACTERS} characters'
    return validate_dns_subdomain(name)


def _validate_kubernetes_version(text: str) -> str | None:
    return None if parse_version(text) else f'"{text}" is not a version such as "1.34.0"'


def _check_values_file(path: str) -> str:
    if "://" in path:
        reason = "values files cannot be URLs; copy the file into the config repository and use $config/path"
        raise issue(f"{{path}} {quote_value(path)} is not supported: {reason}", UNSUPPORTED_CODE)
    source, file = split_values_file(path)
    if not file or file.startswith("/") or ".." in file.split("/") or (path.startswith("$") and not source):
        rule = 'path in the chart, $config/path or $<source>/path, without ".."'
        raise issue(f"{{path}} must be a relative {rule}, but is {quote_value(path)}", _PATH_INVALID)
    return path


def split_values_file(path: str) -> tuple[str, str]:
    """Split the path of a values file into the name of its source and the path in this source.

    The name is "config" for the config repository, and "" for the chart.
    """
    if not path.startswith("$"):
        return "", path
    source, _, file = path[1:].partition("/")
    return source, file


def _check_json(value: Any) -> Any:
    if not has_finite_numbers(value):
        raise issue("{path} must contain only numbers that JSON can represent, and not .inf or .nan")
    return value


def _check_parameter_name(name: str) -> str:
    if name and (reason := check_option_name(name)):
        raise issue(f"{{path}} {reason}: {quote_value(name)}")
    return name


ValuesFile = Annotated[str, Field(min_length=1), AfterValidator(_check_values_file)]
ReleaseName = Annotated[str, check_text(_validate_release_name, "{path} is invalid")]
_CHECK_NAMESPACE = check_text(validate_dns_label, "{path} is invalid")
_CHECK_PARAMETER_NAME = AfterValidator(_check_parameter_name)
ParameterName = Annotated[str, _CHECK_PARAMETER_NAME]
HelmValues = Annotated[dict[str, Any], AfterValidator(_check_json)]
JsonValue = Annotated[Any, AfterValidator(_check_json)]
_SkipCrds = Annotated[bool, Field(description="Whether the resources in the folder crds/ are left out.")]


class _ReferenceFields(ApiModel):
    """An object of the config repository in the same namespace. Its values are merged into the values of the chart."""

    api_version: str = Field("v1", description="API group and version of the object.")
    kind: NonEmptyText = Field(description="Kind of the object, for example ConfigMap.", examples=["ConfigMap"])
    values_key: NonEmptyText = Field(
        DEFAULT_VALUES_KEY, description="Key of the ConfigMap or Secret that contains the values."
    )
    field_path: str = Field(
        "",
        description=(
            "Field of an object of another kind, as a JSON pointer or as a path with dots. It contains a map or, with "
            "targetPath, any value."
        ),
        examples=["spec.helm", "/spec/helm"],
    )
    target_path: ParameterName = Field(
        "",
        description="Path in the values, in the syntax of `helm --set`. By default, the map is merged into the values.",
    )
    optional: StrictBool = Field(False, description="Whether a missing object, key or field is allowed.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for a missing `fieldPath`, and for a field that the kind of the object does not allow.

        A ConfigMap or Secret does not allow `fieldPath`. All other kinds require `fieldPath` and do not allow
        `valuesKey`.
        """
        kind = data.get("kind")
        if not isinstance(kind, str) or not kind:
            return
        if is_key_value_kind(data.get("apiVersion", "v1"), kind):
            if data.get("fieldPath"):
                yield FieldIssue(
                    f"{{path}} cannot be used for the kind {kind}; use {{parent}}.valuesKey", ("fieldPath",)
                )
            return
        if not data.get("fieldPath"):
            yield FieldIssue(f"{{path}} must be set for an object of the kind {kind}", ("fieldPath",))
        if data.get("valuesKey"):
            yield FieldIssue(
                f"{{path}} can only be used for the kinds ConfigMap and Secret, but the kind is {kind}; use "
                "{parent}.fieldPath",
                ("valuesKey",),
            )


def is_key_value_kind(api_version: object, kind: str) -> bool:
    """Return whether a kind is ConfigMap or Secret of Kubernetes. Such an object contains one text per key."""
    return api_version == "v1" and kind in ("ConfigMap", "Secret")


class ValuesReference(_ReferenceFields):
    """An object of the config repository in the same namespace. Its values are merged into the values of the chart."""

    name: NonEmptyText = Field(description="Name of the object.")

    def as_data(self) -> dict[str, Any]:
        """Return the reference in the notation of the API, without default values."""
        return _list_changed_fields(self)


class Parameter(ApiModel):
    """One value. It overrides all other values at its path."""

    nullable_fields: ClassVar = frozenset({"value"})

    name: Annotated[NonEmptyText, _CHECK_PARAMETER_NAME] = Field(
        description="Path of the value, in the syntax of `helm --set`.", examples=["ingress.hosts[0].host"]
    )
    value: JsonValue = Field(description="The value: any JSON value. null removes the default of the chart.")

    def as_data(self) -> dict[str, Any]:
        """Return the parameter in the notation of the API. An empty value is kept."""
        return {"name": self.name, "value": self.value}


def _list_changed_fields(model: ApiModel) -> dict[str, Any]:
    """Return the fields of a model that differ from their defaults, in the notation of the API."""
    fields = type(model).model_fields
    data = ApiModel.as_data(model)
    return {
        info.alias or name: data[info.alias or name]
        for name, info in fields.items()
        if (info.alias or name) in data and getattr(model, name) != info.default
    }


_UNSUPPORTED_FIELDS: Final = {
    "fileParameters": "use valuesFiles",
    "postRenderers": "use pipeline.mutators",
    "postRenderer": "use pipeline.mutators",
    "passCredentials": "set spec.helm.passCredentials of the Repository",
    "nameTemplate": "use releaseName",
    **dict.fromkeys(("install", "upgrade", "rollback", "test", "driftDetection"), _CLUSTER_AGENT),
    "version": "remove the field, because only Helm 3 and newer are supported",
}


class _HelmFields(ApiModel):
    """The options that PackageVariants and templates have in common."""

    deprecated_names: ClassVar = {
        name: Deprecation(current, f"Use {current}.")
        for name, current in {
            "targetNamespace": "namespace",
            "releaseNamespace": "namespace",
            "valueFiles": "valuesFiles",
            "ignoreMissingValueFiles": "ignoreMissingValuesFiles",
            "valuesObject": "values",
            "valuesInline": "values",
            "disableSchemaValidation": "skipSchemaValidation",
        }.items()
    } | {
        name: Deprecation("", "Use includeCRDs, with the opposite value.", type=_SkipCrds)
        for name in ("skipCrds", "skipCRDs")
    }
    unsupported_fields: ClassVar = _UNSUPPORTED_FIELDS

    release_name: ReleaseName = Field(
        "", description="Name of the release. The default is the last segment of the package path in the Repository."
    )
    set_namespace: Literal["missing", "none"] = Field(
        "missing",
        description=(
            "missing: resources that have no namespace, but need one, get the namespace of the release. none: they "
            "stay as rendered."
        ),
    )
    create_namespace: StrictBool = Field(
        False, description="Whether the package contains the Namespace of the release."
    )
    values_files: tuple[ValuesFile, ...] = Field(
        (),
        description=(
            "Files with values, from the lowest to the highest precedence: a path in the chart, $config/path for a "
            "file of the config repository, or $<source>/path for a file of another source."
        ),
        examples=["values-production.yaml", "$config/values/berlin.yaml"],
    )
    ignore_missing_values_files: StrictBool = Field(False, description="Whether values files may be missing.")
    values: HelmValues = Field(
        {}, description="Values of the chart. They override the values in valuesFiles and valuesFrom."
    )
    parameters: tuple[Parameter, ...] = Field((), description="Single values. They override the values in values.")
    kube_version: Annotated[str, check_text(_validate_kubernetes_version, "{path} is invalid")] = Field(
        "",
        description=(
            "Kubernetes version for the chart (`.Capabilities.KubeVersion`). The default is the annotation "
            "reconciler.dev/kubernetes-version of the cluster, or else the setting sources.helm.kube_version."
        ),
        examples=["1.34.0"],
    )
    api_versions: tuple[NonEmptyText, ...] = Field(
        (),
        description=(
            "APIs that are added to `.Capabilities.APIVersions`. The default is the annotation "
            "reconciler.dev/api-versions of the cluster."
        ),
        examples=["monitoring.coreos.com/v1"],
    )
    include_crds: StrictBool = Field(
        True, alias="includeCRDs", description="Whether the package contains the resources in the folder crds/."
    )
    skip_tests: StrictBool = Field(True, description="Whether resources with a test hook are left out.")
    hooks: Literal["keep", "drop", "argocd"] | None = Field(
        None,
        description=(
            "Which hooks are written. keep: hooks for installation and upgrade. drop: none. argocd: all hooks that "
            "Argo CD runs. The default is the setting `sources.helm.hooks`."
        ),
    )
    skip_schema_validation: StrictBool = Field(
        False, description="Whether the values are not validated with values.schema.json of the chart."
    )
    on_nondeterminism: Literal["refuse", "fixed"] = Field(
        "refuse",
        description=(
            "Behavior if the output depends on the time or on random values. refuse: an error. fixed: a fixed time and "
            "fixed texts are used, except for secrets."
        ),
    )
    output: Literal["manifests", "helmRelease"] = Field(
        "manifests",
        description="manifests: the rendered resources. helmRelease: a HelmRelease of Flux with the values.",
    )

    @classmethod
    def convert(cls, data: dict[str, Any], notify: Callable[[str, str], None]) -> dict[str, Any]:
        """Replace `skipCrds` by `includeCRDs` with the opposite value, and remove `version: v3` of Argo CD."""
        for name in ("skipCrds", "skipCRDs"):
            if isinstance(data.get(name), bool) and "includeCRDs" not in data:
                notify(name, "{path} is read as {parent}includeCRDs, with the opposite value")
                data = {key: value for key, value in data.items() if key != name} | {"includeCRDs": not data[name]}
        if data.get("version") == "v3":
            notify("version", '{path} "v3" has no effect; remove the field')
            data = {key: value for key, value in data.items() if key != "version"}
        return data

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for each field `skipCrds` or `skipCRDs` that `convert` did not replace by `includeCRDs`."""
        for name in ("skipCrds", "skipCRDs"):
            if name in data and "includeCRDs" in data:
                yield FieldIssue(f"{{path}} may specify only one of includeCRDs and {name}")
            elif name in data:
                yield FieldIssue(f"{{path}} must be true or false, but is {quote_value(data[name])}", (name,))

    def as_data(self) -> dict[str, Any]:
        """Return the options in the notation of the API, without default values."""
        return _list_changed_fields(self)


class HelmOptions(_HelmFields):
    """How a Helm chart is rendered.

    The order of values is, from the lowest to the highest precedence: values.yaml of the chart, valuesFiles,
    valuesFrom, values, parameters. Maps are merged, lists are replaced, and null removes a key.
    """

    namespace: Annotated[NonEmptyText, _CHECK_NAMESPACE] = Field(description="Namespace of the release.")
    values_from: tuple[ValuesReference, ...] = Field(
        (),
        description="Objects of the config repository that contain values, from the lowest to the highest precedence.",
    )


class ValuesReferenceTemplate(_ReferenceFields):
    """A reference to an object that contains Helm values. A CEL expression can return the name of the object."""

    name: str = Field("", description="Name of the object. Use either name or nameExpr.")
    name_expr: str = Field("", description="CEL expression that returns the name of the object.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield the issues of a reference, and an issue unless exactly one of name and nameExpr is set."""
        yield from super().find_issues(data)
        yield from find_either_issues(data, "name", is_required=True)

    def as_data(self) -> dict[str, Any]:
        """Return the reference in the notation of the API, without default values."""
        return _list_changed_fields(self)


class ParameterExpression(ApiModel):
    """One value, whose path and value can be CEL expressions."""

    nullable_fields: ClassVar = frozenset({"value"})

    name: ParameterName = Field("", description="Path of the value. Use either name or nameExpr.")
    name_expr: str = Field("", description="CEL expression that returns the path of the value.")
    value: JsonValue = Field(None, description="Literal value. Use either value or valueExpr.")
    value_expr: str = Field("", description="CEL expression that returns the value. It can return any JSON value.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue unless exactly one of name and nameExpr, and exactly one of value and valueExpr, is set."""
        yield from find_either_issues(data, "name", is_required=True)
        has_expression = bool(data.get("valueExpr"))
        if ("value" in data) is has_expression:
            rule = (
                "may specify only one of `value` and `valueExpr`"
                if has_expression
                else "must specify `value` or `valueExpr`"
            )
            yield FieldIssue(f"{{path}} {rule}")

    def as_data(self) -> dict[str, Any]:
        """Return the parameter in the notation of the API. An empty value is kept."""
        name = {"nameExpr": self.name_expr} if self.name_expr else {"name": self.name}
        return {**name, **({"valueExpr": self.value_expr} if self.value_expr else {"value": self.value})}


class HelmOptionsTemplate(_HelmFields):
    """How a Helm chart is rendered for a target of the set. Some fields also accept expressions."""

    namespace: Annotated[str, _CHECK_NAMESPACE] = Field(
        "", description="Namespace of the release. Use either namespace or namespaceExpr."
    )
    namespace_expr: str = Field("", description="CEL expression that returns the namespace of the release.")
    release_name_expr: str = Field("", description="CEL expression that returns the name of the release.")
    values_files_exprs: tuple[NonEmptyText, ...] = Field(
        (), description="CEL expressions that return paths of values files. They are appended to valuesFiles."
    )
    values_from: tuple[ValuesReferenceTemplate, ...] = Field(
        (),
        description="Objects of the config repository that contain values, from the lowest to the highest precedence.",
    )
    parameter_exprs: tuple[ParameterExpression, ...] = Field(
        (), description="Parameters whose names or values are CEL expressions. They are appended to parameters."
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield the issues of the options. Yield an issue for each field that is set together with its expression."""
        yield from super().find_issues(data)
        for name in ("namespace", "releaseName"):
            yield from find_either_issues(data, name, is_required=False)

    def iterate_expressions(self) -> Iterator[tuple[DataPath, str]]:
        """Yield the path and the text of each CEL expression, in the order of evaluation.

        The paths are relative to the field `helm`.
        """
        for name, text in (("namespaceExpr", self.namespace_expr), ("releaseNameExpr", self.release_name_expr)):
            if text:
                yield (name,), text
        for index, text in enumerate(self.values_files_exprs):
            yield ("valuesFilesExprs", index), text
        for index, reference in enumerate(self.values_from):
            if reference.name_expr:
                yield ("valuesFrom", index, "nameExpr"), reference.name_expr
        for index, parameter in enumerate(self.parameter_exprs):
            for name, text in (("nameExpr", parameter.name_expr), ("valueExpr", parameter.value_expr)):
                if text:
                    yield ("parameterExprs", index, name), text
