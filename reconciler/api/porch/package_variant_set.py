"""The kind PackageVariantSet: its upstreams, and its targets with their selectors."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from reconciler.api.base import ApiModel, Deprecation, FieldIssue, ReadResult, issue, read_model
from reconciler.api.field_types import NOT_EMPTY, LabelSelectorFields, NonEmptyText
from reconciler.api.json_schema import SchemaOf
from reconciler.api.porch.manifest import PORCH_API_VERSION, PorchManifest
from reconciler.api.porch.messages import SET_TEMPLATES
from reconciler.api.porch.package_variant_template import PackageVariantTemplate
from reconciler.api.porch.policies import REPEATED_RESOURCE_DESCRIPTION, RepeatedResourcePolicy
from reconciler.api.porch.sources import Sources, find_source_issues
from reconciler.api.porch.upstream import UpstreamSpec, set_kustomize_kind
from reconciler.krm.selectors import LabelSelector
from reconciler.lazy_dataclasses import dataclass, replace


def _check_package_name(value: str) -> str:
    if not value:
        raise issue("{path} cannot be empty")
    return value


PackageNames = Annotated[
    tuple[Annotated[str, AfterValidator(_check_package_name), Field(json_schema_extra={"minLength": 1})], ...],
    Field(description="Names of the packages to create. The default is the name of the upstream package."),
]


class RepositoryEntry(ApiModel):
    """A Repository that receives packages, selected by name."""

    name: NonEmptyText = Field(description="Name of the Repository.")
    package_names: PackageNames = ()


class RepositorySelector(LabelSelectorFields):
    """Repositories that receive packages, selected by labels."""

    package_names: PackageNames = ()


class ObjectSelector(LabelSelectorFields):
    """Objects of one kind, selected by labels. The name of each object is the name of a Repository that receives
    packages.
    """

    package_names: PackageNames = ()
    api_version: NonEmptyText = Field(description="API group and version of the objects.")
    kind: NonEmptyText = Field(description="Kind of the objects.")
    name: str = Field("", description="Name of one object. The default is all objects that match the labels.")


@dataclass(frozen=True)
class RepositoryList:
    """A target that lists its Repositories by name."""

    entries: tuple[RepositoryEntry, ...]


@dataclass(frozen=True)
class ObjectSelection:
    """A target that selects objects of one kind. A `repositorySelector` is also an object selection."""

    api_version: str
    kind: str
    selector: LabelSelector
    name: str = ""
    package_names: tuple[str, ...] = ()


_SELECTIONS = ("repositories", "repositorySelector", "objectSelector")


class SetTarget(ApiModel):
    """A target of the set. It has exactly one of repositories, repositorySelector and objectSelector."""

    deprecated_names: ClassVar = {
        "packageNames": Deprecation("", "Use packageNames in the selector.", type=PackageNames)
    }

    repositories: Annotated[tuple[RepositoryEntry, ...] | None, *NOT_EMPTY] = Field(
        None, description="Repositories that receive the packages, by name."
    )
    repository_selector: RepositorySelector | None = None
    object_selector: ObjectSelector | None = None
    template: PackageVariantTemplate = PackageVariantTemplate()

    @classmethod
    def convert(cls, data: dict[str, Any], notify: Callable[[str, str], None]) -> dict[str, Any]:
        """Move `packageNames` of the target into its selector."""
        selectors = [name for name in _SELECTIONS[1:] if isinstance(data.get(name), Mapping)]
        if "packageNames" not in data or len(selectors) != 1 or "repositories" in data:
            return data
        selector = selectors[0]
        notify("packageNames", f"{{path}} is read as {{parent}}{selector}.packageNames")
        names, fields = data["packageNames"], {key: item for key, item in data.items() if key != "packageNames"}
        if data[selector].get("packageNames") not in (None, [], names):
            return data
        return fields | {selector: {**data[selector], "packageNames": names}}

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for a missing or ambiguous selection, and for `packageNames` outside of a selector."""
        if sum(name in data for name in _SELECTIONS) != 1:
            yield FieldIssue("{path} must specify one of `repositories`, `repositorySelector`, or `objectSelector`")
        if "packageNames" in data:
            yield FieldIssue(
                "{path}.packageNames requires a selector in the same target"
                if "repositories" in data
                else "{path}: packageNames of the target and of its selector must not differ"
            )

    @property
    def selection(self) -> RepositoryList | ObjectSelection:
        """The selected Repositories or objects."""
        if self.repositories is not None:
            return RepositoryList(self.repositories)
        if selector := self.object_selector:
            return ObjectSelection(
                selector.api_version, selector.kind, selector.selector, selector.name, selector.package_names
            )
        repositories = self.repository_selector or RepositorySelector()
        return ObjectSelection(PORCH_API_VERSION, "Repository", repositories.selector, "", repositories.package_names)

    @property
    def has_package_names(self) -> bool:
        """Whether the target specifies package names."""
        entries = self.repositories or ()
        selectors = (self.repository_selector, self.object_selector)
        return any(entry.package_names for entry in entries) or any(
            selector.package_names for selector in selectors if selector
        )


class SetUpstream(UpstreamSpec):
    """An upstream of a set. Its template overrides fields of the target's template."""

    template: Annotated[dict[str, Any] | None, SchemaOf(PackageVariantTemplate)] = Field(
        None, description="Fields that override the template of the target for this package."
    )

    @property
    def without_template(self) -> UpstreamSpec:
        """A copy of this upstream that contains only the package and its revision, and not the field `template`."""
        return UpstreamSpec.model_construct(**{name: getattr(self, name) for name in UpstreamSpec.model_fields})


class PackageVariantSetSpec(ApiModel):
    """The upstream packages and the targets. Use either upstream, or sources, or upstreams and upstreamSets."""

    blank_fields: ClassVar = ("errorPolicy",)

    upstream: UpstreamSpec | None = None
    sources: Sources = ()
    on_repeated_resource: RepeatedResourcePolicy = Field("refuse", description=REPEATED_RESOURCE_DESCRIPTION)
    upstreams: tuple[SetUpstream, ...] = Field(
        (), description="Upstream packages. The set creates each of them on each target."
    )
    upstream_sets: tuple[str, ...] = Field(
        (), description="Names of PackageRevisionSets that contain more upstream packages."
    )
    targets: Annotated[tuple[SetTarget, ...], *NOT_EMPTY] = Field(
        description=(
            "Targets of the packages. Each item has exactly one of the fields repositories, "
            "repositorySelector and objectSelector."
        ),
    )
    error_policy: Literal["stopAll", "skipTarget"] = Field(
        "stopAll",
        description=(
            "Behavior if an expression fails for a target. stopAll: all packages of the set stay unchanged. "
            "skipTarget: only the packages of this target stay unchanged."
        ),
    )

    @classmethod
    def convert(cls, data: dict[str, Any], notify: Callable[[str, str], None]) -> dict[str, Any]:
        """Set `kind` of each upstream with Kustomize options in its template to `kustomize`.

        If the template of any target contains Kustomize options, set the kind of all upstreams.
        """
        targets, upstreams = data.get("targets"), data.get("upstreams")
        is_overlay = isinstance(targets, list) and any(map(_has_kustomize_template, targets))
        if is_overlay and "upstream" in data:
            data = {**data, "upstream": set_kustomize_kind(data["upstream"])}
        if isinstance(upstreams, list):
            converted = [
                set_kustomize_kind(upstream) if is_overlay or _has_kustomize_template(upstream) else upstream
                for upstream in upstreams
            ]
            data = {**data, "upstreams": converted}
        return data

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue if the set has no upstream, or upstreams in both notations."""
        yield from find_source_issues(data, ("upstream", "upstreams", "upstreamSets"))
        if "upstreams" not in data and "upstreamSets" not in data:
            if "upstream" not in data and "sources" not in data:
                yield FieldIssue("{path} is a required field", ("upstream",))
            return
        if "upstream" in data:
            yield FieldIssue(
                "{path} must not be specified together with {parent}.upstreams or {parent}.upstreamSets", ("upstream",)
            )
        if not data.get("upstreams") and not data.get("upstreamSets"):
            yield FieldIssue("must specify at least one item in {path} or {parent}.upstreamSets", ("upstreams",))

    @cached_property
    def merged_templates(self) -> dict[tuple[int, int], ReadResult[PackageVariantTemplate]]:
        """Maps (target index, upstream index) to the merged template, for each upstream that has a template."""
        return {
            (target_index, upstream_index): _merge_template(
                target.template, upstream.template, target_index, upstream_index
            )
            for target_index, target in enumerate(self.targets)
            for upstream_index, upstream in enumerate(self.upstreams)
            if upstream.template is not None
        }

    def get_template(self, target_index: int, upstream_index: int) -> PackageVariantTemplate:
        """Return the template of a target. If the upstream has a template, its fields take precedence."""
        merged = self.merged_templates.get((target_index, upstream_index))
        return merged.model if merged and merged.model else self.targets[target_index].template

    @property
    def all_upstreams(self) -> tuple[UpstreamSpec, ...]:
        """The upstreams of all `sources`. If the set has no `sources`, the upstreams in `upstream` or `upstreams`.

        Upstreams in PackageRevisionSets are not included.
        """
        if self.sources:
            return tuple(source.upstream for source in self.sources)
        return (self.upstream,) if self.upstream else tuple(upstream.without_template for upstream in self.upstreams)

    def describe_upstream(self, upstream: UpstreamSpec) -> dict[str, Any]:
        """Return the fields of a PackageVariant that specify its source: one upstream of the set, or all sources."""
        if not self.sources:
            return {"upstream": upstream.as_data()}
        sources = [source.as_data() for source in self.sources]
        return {"sources": sources, "onRepeatedResource": self.on_repeated_resource}


def _has_kustomize_template(data: object) -> bool:
    template = data.get("template") if isinstance(data, Mapping) else None
    return isinstance(template, Mapping) and bool(template.get("kustomize"))


def format_merged_template(target_index: int, upstream_index: int) -> str:
    """Return the name of the template of a target and of an upstream for messages."""
    return f"spec.targets[{target_index}].template (merged with spec.upstreams[{upstream_index}].template)"


def _merge_template(
    template: PackageVariantTemplate, overrides: Mapping[str, Any], target_index: int, upstream_index: int
) -> ReadResult[PackageVariantTemplate]:
    """Return the template of a target with the overrides of an upstream. Each error names both templates."""
    data = _merge_mappings(template.model_dump(by_alias=True, exclude_unset=True), overrides)
    result = read_model(PackageVariantTemplate, data, SET_TEMPLATES, ("spec", "targets", target_index, "template"))
    path = f"spec.targets[{target_index}].template"
    both = format_merged_template(target_index, upstream_index)
    return replace(result, errors=tuple(replace(error, text=error.text.replace(path, both)) for error in result.errors))


def _merge_mappings(below: Any, above: Any) -> Any:
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return above
    return {**below, **{name: _merge_mappings(below.get(name), value) for name, value in above.items()}}


class PackageVariantSet(PorchManifest):
    """Creates a PackageVariant for each target."""

    api_versions: ClassVar = ("config.porch.kpt.dev/v1alpha2",)
    annotation_schemas: ClassVar = {
        "reconciler.dev/ack-deletions": {
            "description": "Hash from the message about a held deletion. It confirms all deletions in the message."
        },
        "reconciler.dev/allow-empty": {
            "description": ('"true" allows a selection without targets, so that all packages of the set are deleted.'),
            "examples": ["true"],
        },
    }
    templates: ClassVar = SET_TEMPLATES

    spec: PackageVariantSetSpec
