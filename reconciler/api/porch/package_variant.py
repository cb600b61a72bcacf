"""The kind PackageVariant: one package on one target cluster."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, ConfigDict, Field

from reconciler.api.base import ApiModel, FieldIssue, issue, omit_empty, to_data
from reconciler.api.field_types import Annotations, Labels, NonEmptyText, PackagePath
from reconciler.api.helm_options import HelmOptions
from reconciler.api.kpt import FunctionSelector, FunctionSpec, UpdateStrategy
from reconciler.api.kustomize_options import KustomizeOptions
from reconciler.api.porch.manifest import PORCH_API_VERSION, PorchManifest
from reconciler.api.porch.messages import PORCH_TEMPLATES, format_compact_json
from reconciler.api.porch.policies import (
    ADOPTION_DESCRIPTION,
    CONFLICT_DESCRIPTION,
    DELETION_DESCRIPTION,
    REPEATED_RESOURCE_DESCRIPTION,
    UPDATE_STRATEGY_DESCRIPTION,
    AdoptionPolicy,
    ConflictPolicy,
    DeletionPolicy,
    RepeatedResourcePolicy,
)
from reconciler.api.porch.sources import Sources, find_source_issues, get_main_source
from reconciler.api.porch.upstream import UpstreamSpec, set_kustomize_kind

LATEST_REVISION_LABEL = "kpt.dev/latest-revision"
RESERVED_CONTEXT_KEYS = ("name", "package-path")


class Downstream(ApiModel):
    """The location of the package to create."""

    repo: NonEmptyText = Field(description="Name of the Repository for the package.")
    package: PackagePath = Field(description="Path of the package in the Repository.")


class PipelineSelector(FunctionSelector):
    """Properties that a resource must have to be selected."""

    model_config = ConfigDict(extra="ignore")
    is_open: ClassVar = False


class PipelineFunction(FunctionSpec):
    """One entry of a pipeline (kpt: `Function`)."""

    model_config = ConfigDict(extra="ignore")
    is_open: ClassVar = False

    name: str = Field(
        "",
        description="Name of the function in this pipeline. The name must not contain dots.",
        json_schema_extra={"pattern": "^[^.]*$"},
    )
    config_map: dict[str, str] = Field({}, description="Data of the ConfigMap that configures the function.")
    # Unlike a Kptfile, a PackageVariant can have null in these lists.
    selectors: tuple[PipelineSelector | None, ...] = Field(  # type: ignore[assignment]
        (), description="Resources that are passed to the function. The default is all resources."
    )
    exclude: tuple[PipelineSelector | None, ...] = Field(  # type: ignore[assignment]
        (), description="Resources that are not passed to the function."
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for a function without a program, with two programs, or with two configurations."""
        if not data.get("image") and not data.get("exec"):
            yield FieldIssue("{path} must not be empty", ("image",))
        if data.get("image") and data.get("exec"):
            yield FieldIssue("{path} may specify only one of image and exec")
        if "." in str(data.get("name", "")):
            yield FieldIssue("{path} must not contain '.'", ("name",))
        if data.get("configPath") and any(data.get(name) for name in ("configMap", "configMapExprs")):
            yield FieldIssue("{path} may specify only one of configPath and configMap")


class PipelineSpec(ApiModel):
    """Functions that run before the functions of the package."""

    mutators: tuple[PipelineFunction, ...] = Field(
        (), description="Functions that change resources, in the order of execution."
    )
    validators: tuple[PipelineFunction, ...] = Field(
        (), description="Functions that validate resources, in the order of execution."
    )


class InjectedType(ApiModel):
    """The type of the objects that are injected."""

    group: str | None = Field(
        None,
        description=(
            "API group of the objects. An empty value is the core group. If the field is absent, all groups match."
        ),
    )
    version: str | None = Field(None, description="Version of the objects. If the field is absent, all versions match.")
    kind: str | None = Field(None, description="Kind of the objects. If the field is absent, all kinds match.")


INJECTORS_DESCRIPTION = "Config objects to inject at the injection points of the package. The first match is used."


class Injector(InjectedType):
    """A selector of config objects for injection. An absent field matches any value."""

    name: NonEmptyText = Field(description="Name of the object.")

    def admits(self, group: str, version: str, kind: str) -> bool:
        """Return whether this injector can select objects for injection points with this group, version and kind."""
        conditions = ((self.group, group), (self.version, version), (self.kind, kind))
        return all(expected is None or expected == actual for expected, actual in conditions)

    def as_data(self) -> dict[str, Any]:
        """Return the injector in the notation of the API. An empty group is kept, because it means the core group."""
        return self.model_dump(by_alias=True, exclude_none=True)


_NOT_RESERVED: dict[str, Any] = {"not": {"enum": [*RESERVED_CONTEXT_KEYS]}}


class PackageContext(ApiModel):
    """Changes to the package context (package-context.yaml)."""

    data: dict[str, str] = Field(
        {},
        description=(
            "Keys to set in the package context, with their values. The keys name and package-path are reserved."
        ),
        json_schema_extra={"propertyNames": _NOT_RESERVED},
    )
    remove_keys: tuple[Annotated[str, Field(json_schema_extra=_NOT_RESERVED)], ...] = Field(
        (), description="Keys to remove from the package context. The keys name and package-path are reserved."
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for each reserved key, and for each key that is both set and removed."""
        values, remove_keys = data.get("data", {}), data.get("removeKeys", [])
        if not isinstance(values, Mapping) or not isinstance(remove_keys, list | tuple):
            return
        for name, value in (("data", values), ("removeKeys", remove_keys)):
            for key in RESERVED_CONTEXT_KEYS:
                if key in value:
                    quoted = format_compact_json(value)
                    yield FieldIssue(f'{{path}}: Invalid value: {quoted}: must not contain the key "{key}"', (name,))
        removed = {key for key in remove_keys if isinstance(key, str)}
        for key in sorted(removed & {key for key in values if isinstance(key, str)}):
            yield FieldIssue(f'{{path}}: key "{key}" is in both data and removeKeys')


def _check_revision_labels(labels: dict[str, str]) -> dict[str, str]:
    if LATEST_REVISION_LABEL in labels:
        raise issue(f'{{path}} must not contain the key "{LATEST_REVISION_LABEL}"')
    return labels


RevisionLabels = Annotated[
    Labels,
    AfterValidator(_check_revision_labels),
    Field(json_schema_extra={"propertyNames": {"not": {"const": LATEST_REVISION_LABEL}}}),
]


class PackageVariantSpec(ApiModel):
    """The upstream package or several sources, the location of the new package, and the changes to this package.

    If `updateStrategy` is absent, the strategy in the Kptfile applies. If `conflictPolicy` is absent, the policy in the
    settings applies.
    """

    deprecated_lists: ClassVar = ("injectors",)
    # Accept `adopt`, because some documentation of Porch uses this value.
    deprecated_values: ClassVar = {"adoptionPolicy": {"adopt": "adoptExisting"}}
    blank_fields: ClassVar = ("adoptionPolicy", "deletionPolicy", "updateStrategy", "conflictPolicy")

    upstream: UpstreamSpec | None = None
    downstream: Downstream
    adoption_policy: AdoptionPolicy = Field("adoptNone", description=ADOPTION_DESCRIPTION)
    deletion_policy: DeletionPolicy = Field("delete", description=DELETION_DESCRIPTION)
    labels: RevisionLabels = Field({}, description="Labels of the package revision.")
    annotations: Annotations = Field({}, description="Annotations of the package revision.")
    package_context: PackageContext = PackageContext()
    pipeline: PipelineSpec = PipelineSpec()
    injectors: tuple[Injector, ...] = Field((), description=INJECTORS_DESCRIPTION)
    update_strategy: UpdateStrategy | None = Field(None, description=UPDATE_STRATEGY_DESCRIPTION)
    conflict_policy: ConflictPolicy | None = Field(None, description=CONFLICT_DESCRIPTION)
    helm: HelmOptions | None = None
    kustomize: KustomizeOptions | None = None
    sources: Sources = ()
    on_repeated_resource: RepeatedResourcePolicy = Field("refuse", description=REPEATED_RESOURCE_DESCRIPTION)

    @classmethod
    def convert(cls, data: dict[str, Any], notify: Callable[[str, str], None]) -> dict[str, Any]:
        """Set `upstream.kind` to `kustomize` if options for Kustomize are present."""
        return {**data, "upstream": set_kustomize_kind(data.get("upstream"))} if data.get("kustomize") else data

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue if the package has no source or is its own source, and for fields that exclude each other."""
        yield from find_source_issues(data, ("upstream",))
        if "sources" in data and "kustomize" in data:
            yield FieldIssue("{path} requires {parent}.upstream; use {parent}.sources[].kustomize", ("kustomize",))
        if "upstream" not in data and "sources" not in data:
            yield FieldIssue("missing required field {path}", ("upstream",), rule="missing")
        downstream = _get_package(data.get("downstream"))
        if all(downstream) and _get_package(data.get("upstream")) == downstream:
            yield FieldIssue("{path} must differ from {parent}.upstream", ("downstream",))
        sources = data.get("sources")
        if all(downstream) and isinstance(sources, list | tuple) and downstream in map(_get_package, sources):
            yield FieldIssue("{path} must differ from the packages in {parent}.sources", ("downstream",))

    @property
    def main_upstream(self) -> UpstreamSpec:
        """The upstream, or the first source with resources."""
        return self.upstream or get_main_source(self.sources).upstream

    @property
    def all_upstreams(self) -> tuple[UpstreamSpec, ...]:
        """The upstream, or all sources."""
        return (self.upstream,) if self.upstream else tuple(source.upstream for source in self.sources)

    @property
    def all_helm_options(self) -> tuple[HelmOptions, ...]:
        """The options for all charts, and those of single sources."""
        options = (self.helm, *(source.helm for source in self.sources))
        return tuple(entry for entry in options if entry)

    def as_data(self) -> dict[str, Any]:
        """Return the spec in the notation of the API. Omit `onRepeatedResource` if there is no field `sources`."""
        data = super().as_data()
        return data if self.sources else {name: value for name, value in data.items() if name != "onRepeatedResource"}

    @cached_property
    def shared_data(self) -> Mapping[str, Any]:
        """The result of `as_data`. Specs that share models also share the data of these models."""
        if self.sources:
            return self.as_data()
        values = self.__dict__
        fields = zip(self._attributes, self.field_names, strict=True)
        return omit_empty({
            alias: value.shared_data if isinstance(value := values[name], ApiModel) else to_data(value)
            for name, alias in fields
            if name != "on_repeated_resource"
        })  # fmt: skip


def _get_package(data: object) -> tuple[object, object]:
    fields = data if isinstance(data, Mapping) else {}
    return fields.get("repo"), fields.get("package")


class PackageVariant(PorchManifest):
    """One package on one target cluster, from an upstream package or from several sources."""

    api_versions: ClassVar = (PORCH_API_VERSION,)
    templates: ClassVar = PORCH_TEMPLATES

    spec: PackageVariantSpec
