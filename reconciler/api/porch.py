"""Kinds of Porch: Repository, PackageVariant and PackageVariantSet.

An error that Porch reports too has the same message as in Porch.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StrictBool

from reconciler.api.base import ApiModel, Deprecation, FieldIssue, ReadResult, issue, read_model
from reconciler.api.field_types import (
    NOT_EMPTY,
    Annotations,
    Duration,
    Labels,
    LabelSelectorFields,
    NonEmptyText,
    PackagePath,
    check_text,
)
from reconciler.api.helm_options import CONFIG_SOURCE, HelmOptions, HelmOptionsTemplate
from reconciler.api.json_schema import SchemaOf
from reconciler.api.kpt import FunctionSelector, FunctionSpec, UpdateStrategy
from reconciler.api.kustomize_options import KustomizeOptions, KustomizeOptionsTemplate
from reconciler.api.manifest import KUBERNETES_VERSION_SCHEMA, Manifest, Metadata
from reconciler.api.messages import MessageTemplates
from reconciler.api.package_sources import (
    ChartName,
    ChartVersion,
    Digest,
    HelmRepository,
    OciRepository,
    RepositoryType,
    SourceKind,
)
from reconciler.krm.field_text import quote_value
from reconciler.krm.names import (
    validate_dns_label,
    validate_dns_subdomain,
    validate_ref_name,
    validate_tree_path,
    validate_workspace_name,
)
from reconciler.krm.selectors import LabelSelector
from reconciler.krm.times import parse_duration_seconds
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.redaction import has_credentials, redact_url

PORCH_TEMPLATES = MessageTemplates(
    {
        "api_version": "unsupported {kind} apiVersion {found}; use {versions}",
        "missing": "missing required field {path}",
        "string_too_short": "missing required field {path}",
        "unknown_field": 'unknown field "{path}" (allowed: {allowed}{suggestion})',
        "literal_error": "{path} can only be one of {allowed}{found}{suggestion}",
    },
    {
        ("missing", "name"): "{path} must not be empty",
        ("string_too_short", "name"): "{path} must not be empty",
        ("literal_error", "adoptionPolicy"): '{path} field can only be "adoptNone" or "adoptExisting"',
        ("literal_error", "deletionPolicy"): '{path} can only be "orphan" or "delete"',
    },
)
PORCH_API_VERSION = "config.porch.kpt.dev/v1alpha1"
LATEST_REVISION_LABEL = "kpt.dev/latest-revision"
RESERVED_CONTEXT_KEYS = ("name", "package-path")
BRANCH_HEAD = -1
"""The value of `revision` that means the head of the branch."""
_NUMBERED_REVISION = re.compile(r"v?([1-9][0-9]*)")
_REVISION_LIKE = re.compile(r"v?[0-9]+")

_ADOPTION = "Behavior if the package already exists. adoptNone reports an error, adoptExisting adopts the package."
_DELETION = (
    "Behavior if no object requests the package. delete proposes its deletion, orphan keeps it without an owner."
)
_STRATEGY = "Strategy for merging upstream changes and local changes. The default is the strategy in the Kptfile."
_CONFLICTS = "Winning side of a conflict between an upstream change and a local change. The default is in the settings."
_INJECTORS = "Config objects to inject at the injection points of the package. The first match is used."

_REPEATED = (
    "Behavior if two of the sources contain the same resource. refuse: an error. lastWins: the resource of the later "
    "source is used, with a warning."
)

AdoptionPolicy = Literal["adoptNone", "adoptExisting"]
RepeatedResourcePolicy = Literal["refuse", "lastWins"]
DeletionPolicy = Literal["delete", "orphan"]
ConflictPolicy = Literal["upstream", "local", "block"]


def _normalize_revision(value: object) -> object:
    """Normalize a revision: -1 is the branch head, a number N becomes `vN`, and other tag suffixes stay unchanged."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        # Reject other numbers, because YAML reads 1.10 without quotes as the number 1.1.
        raise issue(
            f"{{path}} must be a string or an integer, not {format_compact_json(value)}: put the value in quotes"
        )
    text = str(value)
    if text.strip() in ("", "0"):
        raise issue("{path} must not be 0 or empty")
    if text == str(BRANCH_HEAD):
        return BRANCH_HEAD
    if numbered := _NUMBERED_REVISION.fullmatch(text):
        return f"v{numbered[1]}"
    if reason := validate_ref_name(text):
        raise issue(f"{{path}} is invalid: {reason}")
    return text


def format_compact_json(value: object) -> str:
    """Return a value as compact JSON with sorted keys, as Porch quotes values."""
    return json.dumps(
        _convert_keys_to_text(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str
    )


def _convert_keys_to_text(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _convert_keys_to_text(item) for key, item in value.items()}
    return [_convert_keys_to_text(item) for item in value] if isinstance(value, list | tuple) else value


def is_revision_name(name: str) -> bool:
    """Return whether a name has the syntax of a revision, such as "v3". Such a name must not be a tag of a package."""
    return _REVISION_LIKE.fullmatch(name) is not None


Revision = Annotated[str | int, BeforeValidator(_normalize_revision)]
WorkspaceName = Annotated[str, check_text(validate_workspace_name, "{path} is invalid")]
TagName = Annotated[str, check_text(validate_workspace_name, "{path} is invalid")]


@dataclass(frozen=True)
class RevisionReference:
    """A revision, which is the suffix of a Git tag, e.g. "v3". `number` is N for "vN", and -1 for any other suffix."""

    suffix: str
    number: int


@dataclass(frozen=True)
class BranchHeadReference:
    """The head of the upstream Repository's branch: revision -1."""


@dataclass(frozen=True)
class WorkspaceReference:
    """The published revision of a workspace, or the branch head for a workspace with the name of the branch."""

    name: str


@dataclass(frozen=True)
class TagReference:
    """A name that can move: a channel, a tag such as `stable`, or `latest`."""

    name: str


@dataclass(frozen=True)
class VersionReference:
    """An exact version or a version range, in the syntax of Helm."""

    range: str


@dataclass(frozen=True)
class DigestReference:
    """The digest of an OCI artifact, without a tag or version."""

    digest: str


UpstreamReference = (
    RevisionReference | BranchHeadReference | WorkspaceReference | TagReference | VersionReference | DigestReference
)


class TagPolicy(ApiModel):
    """Rules for moved tags."""

    settle: Duration = Field("", description="Minimum time without a change of the tag before its new commit is used.")


class UpstreamSpec(ApiModel):
    """The upstream package and its revision. Use one of revision, tag, version and workspaceName.

    Which fields are allowed depends on the type of the Repository: revision and workspaceName require a Git repository,
    and chart requires a chart repository.
    """

    deprecated_names: ClassVar = {"ref": Deprecation("tag", "Use tag.")}
    blank_fields: ClassVar = ("tagMode",)

    repo: NonEmptyText = Field(description="Name of the Repository that contains the package.")
    package: PackagePath = Field("", description="Path of the package in that Repository. Charts use the field chart.")
    revision: Revision | None = Field(
        None,
        description="Revision of the package, for example v1 or 1. -1 is the head of the branch.",
        json_schema_extra={"not": {"enum": [0, ""]}},
        examples=["v1", -1],
    )
    workspace_name: WorkspaceName = Field(
        "", description="Name of a Porch workspace. The revision that was published from this workspace is used."
    )
    tag: TagName = Field(
        "", description="Name of a channel, or of a tag that can move, such as stable.", examples=["stable"]
    )
    tag_mode: Literal["follow", "rewrite"] = Field(
        "follow",
        description=(
            "follow: the revision that the tag names is used. rewrite: the reconciler proposes a change of "
            "the config that sets the field revision to this revision."
        ),
    )
    tag_policy: TagPolicy = Field(TagPolicy(), description="Rules for a tag that has moved to another commit.")
    chart: ChartName = Field("", description="Name of the chart in a Repository of type helm.")
    version: ChartVersion = Field(
        "",
        description=(
            "Version of a chart or of an OCI artifact, or a version range such as ~5.27. The highest matching version "
            "is used."
        ),
        examples=["5.27.0", ">=5.20.0 <6.0.0"],
    )
    digest: Digest = Field(
        "",
        description=(
            "Required digest: of the manifest for OCI, and of the archive for other chart repositories. For OCI, the "
            "digest can replace the version or tag."
        ),
    )
    kind: SourceKind | None = Field(
        None, description="How the files become a package. By default, the names of the files decide."
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for no reference, for several references, and for `tagMode: rewrite` without a tag."""
        count = _count_references(data)
        if "package" not in data and not data.get("chart"):
            yield FieldIssue("missing required field {path}", ("package",), rule="missing")
        if data.get("package") and data.get("chart"):
            yield FieldIssue("{path} must specify only one of package and chart")
        if count == 0 and data.get("chart"):
            yield FieldIssue("{path} must be set, because the upstream is a chart", ("version",))
        elif count == 0 and not data.get("digest"):
            yield FieldIssue("{path} must specify one of revision, workspaceName or tag", rule="no_reference")
        if count > 1:
            names = "workspaceName, tag and version" if data.get("version") else "workspaceName and tag"
            yield FieldIssue(f"{{path}} must specify only one of revision, {names}")
        if data.get("tagMode") == "rewrite" and not data.get("tag"):
            yield FieldIssue('{path} "rewrite" requires a tag in {parent}.tag', ("tagMode",))

    @property
    def reference(self) -> UpstreamReference:
        """The revision, or the name of the workspace or tag that determines the revision."""
        if self.revision == BRANCH_HEAD:
            return BranchHeadReference()
        if self.revision is not None:
            suffix = str(self.revision)
            numbered = _NUMBERED_REVISION.fullmatch(suffix)
            return RevisionReference(suffix, int(numbered[1]) if numbered else -1)
        if self.version:
            return VersionReference(self.version)
        if self.digest and not self.tag:
            return DigestReference(self.digest)
        return WorkspaceReference(self.workspace_name) if self.workspace_name else TagReference(self.tag)

    @property
    def package_name(self) -> str:
        """The chart name, or the path of the package in the Repository."""
        return self.chart or self.package

    @property
    def has_resources(self) -> bool:
        """Whether the files are resources of the package, and not only values files."""
        return True

    @property
    def rewritten_tag(self) -> str:
        """The tag whose moves are proposed as config changes. "" if `tagMode` is not `rewrite`."""
        return self.tag if self.tag_mode == "rewrite" else ""

    @property
    def settle_seconds(self) -> int:
        """The `settle` duration in seconds. 0 for `tagMode: rewrite`, because a person merges each new revision."""
        return 0 if self.rewritten_tag else parse_duration_seconds(self.tag_policy.settle) or 0

    @property
    def with_followed_tag(self) -> Self:
        """A copy of the upstream with `tagMode: follow` and without a revision, if `tagMode` is `rewrite`."""
        return self.model_copy(update={"revision": None, "tag_mode": "follow"}) if self.rewritten_tag else self

    @property
    def is_awaiting_revision(self) -> bool:
        """Whether `tagMode` is `rewrite` and the config has no revision yet."""
        return bool(self.rewritten_tag) and self.revision is None

    def as_data(self) -> dict[str, Any]:
        """Return the upstream in the notation of the API. The default `tagMode` is omitted."""
        data = super().as_data()
        return data if self.rewritten_tag else {name: value for name, value in data.items() if name != "tagMode"}


def _count_references(upstream: Mapping[str, Any]) -> int:
    """Return how many of revision, workspaceName, tag and version have a value.

    With `tagMode: rewrite`, a tag and a revision count as one reference, because the tag defines the next revision.
    """
    names = [name for name in ("workspaceName", "tag", "version") if upstream.get(name) not in (None, "")]
    is_pair = "tag" in names and "revision" in upstream and upstream.get("tagMode") == "rewrite"
    return ("revision" in upstream) + len(names) - is_pair


class SourceUpstream(UpstreamSpec):
    """The location and revision of one of several sources of a package."""

    # Unlike in an upstream, `ref` is not another name of the field `tag`.
    deprecated_names: ClassVar = {}

    ref: StrictBool = Field(
        False,
        description=(
            "Whether only values files of charts are read from the source, with $<name>/path in valuesFiles. The field "
            "package can then be absent, which is the root folder."
        ),
    )

    @property
    def has_resources(self) -> bool:
        """Whether the files are resources of the package, and not only values files."""
        return not self.ref


def _validate_source_name(name: str) -> str | None:
    if name == CONFIG_SOURCE:
        return f'"{CONFIG_SOURCE}" is the name of the config repository'
    return validate_dns_label(name)


def _check_source_directory(directory: str) -> str:
    if directory and (directory.startswith("/") or validate_tree_path(directory)):
        rule = 'the path of a folder in the package, without "..", and without a slash at its start and end'
        raise issue(f"{{path}} must be {rule}, not {quote_value(directory)}", "PathInvalid")
    return directory


class SourceSpec(SourceUpstream):
    """One of several sources of a package. It has the fields of an upstream."""

    name: Annotated[NonEmptyText, check_text(_validate_source_name, "{path} is invalid")] = Field(
        description="Unique name of the source. $<name>/path in valuesFiles is a file of the source."
    )
    directory: Annotated[str, AfterValidator(_check_source_directory)] = Field(
        "", description="Folder of the package that receives the files. The default is the root folder of the package."
    )
    helm: HelmOptions | None = Field(
        None, description="How a Helm chart is rendered. These options replace the options for all sources."
    )

    kustomize: KustomizeOptions | None = Field(None, description="How a Kustomize overlay is built.")

    @classmethod
    def convert(cls, data: dict[str, Any], notify: Callable[[str, str], None]) -> dict[str, Any]:
        """Set `kind` to `kustomize` if options for Kustomize are present."""
        return _set_kustomize_kind(data) if data.get("kustomize") and data.get("ref") is not True else data

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield the issues of an upstream, and an issue for each field that a source of values files cannot have."""
        if data.get("ref") is not True:
            yield from super().find_issues(data)
            return
        yield from super().find_issues({"package": "", **data})
        for name in ("directory", "helm", "kustomize", "kind"):
            if name in data:
                yield FieldIssue("{path} has no effect with {parent}.ref true; remove one of them", (name,))

    @cached_property
    def upstream(self) -> SourceUpstream:
        """The location and revision of the source, without its name and its options."""
        return SourceUpstream.model_construct(**{name: getattr(self, name) for name in SourceUpstream.model_fields})

    def as_data(self) -> dict[str, Any]:
        """Return the source in the notation of the API, without default values."""
        data = super().as_data()
        return data if self.ref else {name: value for name, value in data.items() if name != "ref"}


def _find_source_issues(data: Mapping[str, Any], others: Sequence[str]) -> Iterator[FieldIssue]:
    """Yield the issues of the fields `sources` and `onRepeatedResource`.

    Args:
        others: The fields that cannot be used together with `sources`.
    """
    if "sources" not in data:
        if "onRepeatedResource" in data:
            yield FieldIssue("{path} requires {parent}.sources", ("onRepeatedResource",))
        return
    for name in others:
        if name in data:
            yield FieldIssue("{path} must not be specified together with {parent}.sources", (name,))
    entries = data["sources"]
    sources = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list | tuple) else []
    if sources and all(entry.get("ref") is True for entry in sources):
        yield FieldIssue("{path} must contain a source without ref true", ("sources",))
    names = [entry.get("name") for entry in sources]
    for name in dict.fromkeys(name for name in names if isinstance(name, str) and names.count(name) > 1):
        yield FieldIssue(f"{{path}} must not contain two sources with the name {quote_value(name)}", ("sources",))


Sources = Annotated[
    tuple[SourceSpec, ...],
    *NOT_EMPTY,
    Field(description="Sources of the package, instead of one upstream. Their files form one package."),
]


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
    adoption_policy: AdoptionPolicy = Field("adoptNone", description=_ADOPTION)
    deletion_policy: DeletionPolicy = Field("delete", description=_DELETION)
    labels: RevisionLabels = Field({}, description="Labels of the package revision.")
    annotations: Annotations = Field({}, description="Annotations of the package revision.")
    package_context: PackageContext = PackageContext()
    pipeline: PipelineSpec = PipelineSpec()
    injectors: tuple[Injector, ...] = Field((), description=_INJECTORS)
    update_strategy: UpdateStrategy | None = Field(None, description=_STRATEGY)
    conflict_policy: ConflictPolicy | None = Field(None, description=_CONFLICTS)
    helm: HelmOptions | None = None
    kustomize: KustomizeOptions | None = None
    sources: Sources = ()
    on_repeated_resource: RepeatedResourcePolicy = Field("refuse", description=_REPEATED)

    @classmethod
    def convert(cls, data: dict[str, Any], notify: Callable[[str, str], None]) -> dict[str, Any]:
        """Set `upstream.kind` to `kustomize` if options for Kustomize are present."""
        return {**data, "upstream": _set_kustomize_kind(data.get("upstream"))} if data.get("kustomize") else data

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for a package without a source or with two notations, or that is its own source."""
        yield from _find_source_issues(data, ("upstream",))
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
        """Return the spec in the notation of the API. The field `onRepeatedResource` requires sources."""
        data = super().as_data()
        return data if self.sources else {name: value for name, value in data.items() if name != "onRepeatedResource"}


def get_main_source(sources: Sequence[SourceSpec]) -> SourceSpec:
    """Return the first source with resources."""
    return next(source for source in sources if source.has_resources)


def _set_kustomize_kind(upstream: Any) -> Any:
    """Return an upstream with the kind `kustomize`. An upstream with a kind, or an invalid upstream, is not changed."""
    # The folder of the overlay can be below the package, so that the files of the package do not determine the kind.
    if not isinstance(upstream, Mapping) or upstream.get("kind"):
        return upstream
    return {**upstream, "kind": "kustomize"}


def _get_package(data: object) -> tuple[object, object]:
    fields = data if isinstance(data, Mapping) else {}
    return fields.get("repo"), fields.get("package")


SET_TEMPLATES = MessageTemplates(
    {
        **PORCH_TEMPLATES.by_type,
        "missing": "{path} is a required field",
        "string_too_short": "{path} is a required field",
        "no_reference": "either {path}.revision or {path}.workspaceName or {path}.tag must be specified",
    },
    {
        ("literal_error", "adoptionPolicy"): '{path} can only be "adoptNone" or "adoptExisting"',
        ("literal_error", "deletionPolicy"): '{path} can only be "orphan" or "delete"',
        ("missing", "name"): "{path} cannot be empty",
        ("string_too_short", "name"): "{path} cannot be empty",
        ("missing", "apiVersion"): "{lower_parent}.{name} cannot be empty",
        ("missing", "kind"): "{lower_parent}.{name} cannot be empty",
        ("string_too_short", "apiVersion"): "{lower_parent}.{name} cannot be empty",
        ("string_too_short", "kind"): "{lower_parent}.{name} cannot be empty",
        ("too_short", "targets"): "must specify at least one item in {path}",
        ("missing", "targets"): "must specify at least one item in {path}",
        ("too_short", "upstreams"): "must specify at least one item in {path}",
        ("missing", "upstreams"): "must specify at least one item in {path}",
        ("too_short", "repositories"): "{path} must not be an empty list if specified",
    },
)


@dataclass(frozen=True)
class TemplateExpression:
    """A CEL expression of a template.

    Attributes:
        path: Path of the field, relative to the template.
        text: The expression.
        can_use_repository: Whether the variable `repository` is available. Only `repoExpr` cannot use it, because it
            determines the repository.
    """

    path: DataPath
    text: str
    can_use_repository: bool = True


class MapExpr(ApiModel):
    """An entry of a map, whose key and value can be CEL expressions."""

    key: str = Field("", description="Literal key. Use either key or keyExpr.")
    key_expr: str = Field("", description="CEL expression that returns the key.")
    value: str | None = Field(None, description="Literal value. Use either value or valueExpr.")
    value_expr: str = Field("", description="CEL expression that returns the value.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue unless exactly one of key and keyExpr, and exactly one of value and valueExpr, is set."""
        # An empty value is valid, but an empty key is not valid.
        for name, has_literal in (("key", bool(data.get("key"))), ("value", "value" in data)):
            has_expression = bool(data.get(f"{name}Expr"))
            if has_literal and has_expression:
                yield FieldIssue(f"{{path}} may specify only one of `{name}` and `{name}Expr`")
            if not has_literal and not has_expression:
                yield FieldIssue(f"{{path}} must specify `{name}` or `{name}Expr`")

    def iterate_expressions(self, path: DataPath) -> Iterator[TemplateExpression]:
        """Yield the expressions of the entry at `path`."""
        for name, text in (("keyExpr", self.key_expr), ("valueExpr", self.value_expr)):
            if text:
                yield TemplateExpression((*path, name), text)


def _iterate_map_expressions(entries: Sequence[MapExpr], path: DataPath) -> Iterator[TemplateExpression]:
    for index, entry in enumerate(entries):
        yield from entry.iterate_expressions((*path, index))


class FunctionTemplate(PipelineFunction):
    """A pipeline function, whose configMap can have expressions."""

    deprecated_lists: ClassVar = ("configMapExprs",)

    config_map_exprs: tuple[MapExpr, ...] = Field(
        (),
        description=(
            "Entries of configMap whose keys or values are CEL expressions. They override the entries in the "
            "field configMap."
        ),
    )


class PipelineTemplate(ApiModel):
    """Functions that run before the functions of the package."""

    mutators: tuple[FunctionTemplate, ...] = Field(
        (), description="Functions that change resources, in the order of execution."
    )
    validators: tuple[FunctionTemplate, ...] = Field(
        (), description="Functions that validate resources, in the order of execution."
    )


class InjectorTemplate(InjectedType):
    """A selector of config objects for injection, whose name can be a CEL expression."""

    name: str = Field("", description="Name of the object. Use either name or nameExpr.")
    name_expr: str = Field("", description="CEL expression that returns the name of the object.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue unless exactly one of name and nameExpr is set."""
        has_literal, has_expression = bool(data.get("name")), bool(data.get("nameExpr"))
        if has_literal and has_expression:
            yield FieldIssue("{path} may specify only one of `name` and `nameExpr`")
        if not has_literal and not has_expression:
            yield FieldIssue("{path} must specify either `name` or `nameExpr`")


class DownstreamTemplate(ApiModel):
    """Location of the package, if this location differs from the target."""

    repo: str = Field("", description="Name of the Repository.")
    repo_expr: str = Field(
        "",
        description=(
            "CEL expression that returns the name of the Repository. The expression cannot use the variable repository."
        ),
    )
    package: str = Field("", description="Path of the package in the Repository.")
    package_expr: str = Field("", description="CEL expression that returns the path of the package.")

    @property
    def repo_expression(self) -> TemplateExpression | None:
        """The expression for the name of the Repository."""
        path = ("downstream", "repoExpr")
        return TemplateExpression(path, self.repo_expr, can_use_repository=False) if self.repo_expr else None

    @property
    def package_expression(self) -> TemplateExpression | None:
        """The expression for the path of the package."""
        return TemplateExpression(("downstream", "packageExpr"), self.package_expr) if self.package_expr else None


class PackageContextTemplate(ApiModel):
    """Changes to the package context (package-context.yaml)."""

    deprecated_lists: ClassVar = ("dataExprs",)

    data: dict[str, str] = Field({}, description="Keys to set in the package context, with their values.")
    data_exprs: tuple[MapExpr, ...] = Field(
        (),
        description="Keys to set whose names or values are CEL expressions. They override the keys in the field data.",
    )
    remove_keys: tuple[str, ...] = Field((), description="Keys to remove from the package context.")
    remove_key_exprs: tuple[str, ...] = Field((), description="CEL expressions that return the keys to remove.")

    @property
    def remove_key_expressions(self) -> tuple[TemplateExpression, ...]:
        """The expressions for keys to remove."""
        return tuple(
            TemplateExpression(("packageContext", "removeKeyExprs", index), text)
            for index, text in enumerate(self.remove_key_exprs)
        )


KUSTOMIZE_PATH_EXPRESSION = ("kustomize", "pathExpr")
"""Path of the expression for the folder of an overlay in a template."""


class PackageVariantTemplate(ApiModel):
    """The spec of the PackageVariants for a target. Most fields also accept expressions."""

    deprecated_lists: ClassVar = ("labelExprs", "annotationExprs", "injectors", "injectorExprs")
    deprecated_names: ClassVar = {"injectorExprs": Deprecation("injectors", "Use injectors.", is_merged=True)}
    blank_fields: ClassVar = ("adoptionPolicy", "deletionPolicy", "updateStrategy", "conflictPolicy")

    downstream: DownstreamTemplate = DownstreamTemplate()
    adoption_policy: AdoptionPolicy | None = Field(None, description=_ADOPTION)
    deletion_policy: DeletionPolicy | None = Field(None, description=_DELETION)
    labels: dict[str, str] = Field({}, description="Labels of the package revision.")
    label_exprs: tuple[MapExpr, ...] = Field(
        (), description="Labels whose keys or values are CEL expressions. They override the labels in the field labels."
    )
    annotations: dict[str, str] = Field({}, description="Annotations of the package revision.")
    annotation_exprs: tuple[MapExpr, ...] = Field(
        (),
        description=(
            "Annotations whose keys or values are CEL expressions. They override the annotations in the "
            "field annotations."
        ),
    )
    package_context: PackageContextTemplate = PackageContextTemplate()
    helm: HelmOptionsTemplate | None = None
    kustomize: KustomizeOptionsTemplate | None = None
    pipeline: PipelineTemplate = PipelineTemplate()
    injectors: tuple[InjectorTemplate, ...] = Field((), description=_INJECTORS)
    update_strategy: UpdateStrategy | None = Field(None, description=_STRATEGY)
    conflict_policy: ConflictPolicy | None = Field(None, description=_CONFLICTS)

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for each part of `downstream` that is both a literal and an expression."""
        downstream = data.get("downstream")
        fields = downstream if isinstance(downstream, Mapping) else {}
        for name in ("repo", "package"):
            if fields.get(name) and fields.get(f"{name}Expr"):
                names = f"`downstream.{name}` and `downstream.{name}Expr`"
                yield FieldIssue(f"{{parent}} may specify only one of {names}", ("downstream",))

    def iterate_expressions(self) -> Iterator[TemplateExpression]:
        """Yield all CEL expressions of the template, in the order of the fields in the API."""
        if expression := self.downstream.repo_expression:
            yield expression
        if expression := self.downstream.package_expression:
            yield expression
        yield from _iterate_map_expressions(self.label_exprs, ("labelExprs",))
        yield from _iterate_map_expressions(self.annotation_exprs, ("annotationExprs",))
        yield from _iterate_map_expressions(self.package_context.data_exprs, ("packageContext", "dataExprs"))
        yield from self.package_context.remove_key_expressions
        for index, injector in enumerate(self.injectors):
            if injector.name_expr:
                yield TemplateExpression(("injectors", index, "nameExpr"), injector.name_expr)
        for name, functions in (("mutators", self.pipeline.mutators), ("validators", self.pipeline.validators)):
            for index, function in enumerate(functions):
                path = ("pipeline", name, index, "configMapExprs")
                yield from _iterate_map_expressions(function.config_map_exprs, path)
        for helm_path, text in self.helm.iterate_expressions() if self.helm else ():
            yield TemplateExpression(("helm", *helm_path), text)
        if self.kustomize and self.kustomize.path_expr:
            yield TemplateExpression(KUSTOMIZE_PATH_EXPRESSION, self.kustomize.path_expr)


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
        """Yield an issue for no selection, for several selections, and for packageNames that no selector can use."""
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
    on_repeated_resource: RepeatedResourcePolicy = Field("refuse", description=_REPEATED)
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
        """Set `kind` of the upstreams to `kustomize` if their templates have options for Kustomize."""
        targets, upstreams = data.get("targets"), data.get("upstreams")
        is_overlay = isinstance(targets, list) and any(map(_has_kustomize_template, targets))
        if is_overlay and "upstream" in data:
            data = {**data, "upstream": _set_kustomize_kind(data["upstream"])}
        if isinstance(upstreams, list):
            converted = [
                _set_kustomize_kind(upstream) if is_overlay or _has_kustomize_template(upstream) else upstream
                for upstream in upstreams
            ]
            data = {**data, "upstreams": converted}
        return data

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue if the set has no upstream, or upstreams in both notations."""
        yield from _find_source_issues(data, ("upstream", "upstreams", "upstreamSets"))
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
        """The merged templates by (target index, upstream index), for each upstream that has a template."""
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
        """The upstreams in `upstream` or `upstreams`, or all sources.

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


def _merge_template(
    template: PackageVariantTemplate, overrides: Mapping[str, Any], target_index: int, upstream_index: int
) -> ReadResult[PackageVariantTemplate]:
    """Return the template of a target with the overrides of an upstream. Each error names both templates."""
    data = _merge_mappings(template.model_dump(by_alias=True, exclude_unset=True), overrides)
    result = read_model(PackageVariantTemplate, data, SET_TEMPLATES, ("spec", "targets", target_index, "template"))
    path = f"spec.targets[{target_index}].template"
    both = f"{path} with spec.upstreams[{upstream_index}].template"
    return replace(result, errors=tuple(replace(error, text=error.text.replace(path, both)) for error in result.errors))


def _merge_mappings(below: Any, above: Any) -> Any:
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return above
    return {**below, **{name: _merge_mappings(below.get(name), value) for name, value in above.items()}}


class PorchMetadata(Metadata):
    """Metadata of the object. Kubernetes defines its other fields."""

    name: Annotated[str, check_text(validate_dns_subdomain, "{path} is invalid")] = Field(
        "", description="Name of the object."
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for an absent or empty name."""
        if data.get("name", "") == "":
            yield FieldIssue(f"{{path}} is invalid: {validate_dns_subdomain('')}", ("name",))


class PorchManifest(Manifest):
    """An object of Porch. Its name must be a DNS subdomain."""

    metadata: PorchMetadata = PorchMetadata()

    @classmethod
    def convert(cls, data: dict[str, Any], notify: Callable[[str, str], None]) -> dict[str, Any]:
        """Add an empty `metadata` and an empty `spec` if they are absent."""
        return {"metadata": {}, "spec": {}, **data}


def _check_repository_url(url: str) -> str:
    if has_credentials(url):
        advice = "put the credentials into a file that the setting `git.credentials` names. In a path, write @ as %40"
        text = f'must not contain a user name, password or token. Write "{redact_url(url)}"; {advice}'
        raise issue(f"{{path}} {text}", "CredentialInUrl")
    return url


def _check_directory(directory: str) -> str:
    if ".." in directory.split("/"):
        raise issue(f'{{path}} must not contain "..", but is {quote_value(directory)}')
    return directory


class RepositoryGit(ApiModel):
    """The Git repository."""

    is_open: ClassVar = True

    repo: Annotated[NonEmptyText, AfterValidator(_check_repository_url)] = Field(
        description="URL or path of the repository. A relative path starts at the parent folder of the config.",
        examples=["https://git.example.com/fleet.git", "./fleet.git"],
    )
    branch: str = Field(
        "",
        description=(
            "Branch of the repository. The default is clusters/<name> for a target cluster, and main for "
            "other repositories."
        ),
    )
    directory: Annotated[str, AfterValidator(_check_directory)] = Field(
        "", description="Folder of the repository that contains the packages. The default is the root folder."
    )
    tag_prefix: str | None = Field(
        None,
        description=(
            "Prefix of the tags that mark published revisions. The default is <name>/ for a target cluster, "
            "and no prefix for other repositories."
        ),
    )


class RepositorySpec(ApiModel):
    """The Git repository, chart repository or OCI registry, and whether it is a target cluster."""

    is_open: ClassVar = True

    type: RepositoryType = Field(
        "git", description="Type of the repository. The spec contains exactly the block with the same name."
    )
    description: Any = Field(None, description="Description.")
    deployment: StrictBool = Field(
        False,
        description=(
            "true: the repository is a target cluster, and its branch contains published packages. false: "
            "the repository contains upstream packages."
        ),
    )
    git: RepositoryGit | None = None
    helm: HelmRepository | None = None
    oci: OciRepository | None = None

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue unless the spec contains exactly the block of its type."""
        repository_type = data.get("type", "git")
        if repository_type not in _REPOSITORY_TYPES:
            return
        others = [name for name in _REPOSITORY_TYPES if name != repository_type and name in data]
        for name in others:
            message = f"{{path}} is not allowed, because {{parent}}.type is {repository_type}; use {repository_type}"
            yield FieldIssue(message, (name,))
        if repository_type not in data and not others:
            yield FieldIssue("{path} must be set", (repository_type,), rule="missing")
        if data.get("deployment") is True and repository_type != "git":
            yield FieldIssue("{path} true requires {parent}.type git", ("deployment",))


_REPOSITORY_TYPES = get_args(RepositoryType)


class Repository(Manifest):
    """A repository with upstream packages. If deployment is true, it is a target cluster."""

    api_versions: ClassVar = (PORCH_API_VERSION,)
    is_open: ClassVar = True
    templates: ClassVar = MessageTemplates(
        by_field={
            (error, "repo"): "{path} is required and must be the URL of a Git repository"
            for error in ("missing", "string_too_short")
        }
    )
    annotation_schemas: ClassVar = KUBERNETES_VERSION_SCHEMA

    spec: RepositorySpec


class PackageVariant(PorchManifest):
    """One package on one target cluster, from an upstream package or from several sources."""

    api_versions: ClassVar = (PORCH_API_VERSION,)
    templates: ClassVar = PORCH_TEMPLATES

    spec: PackageVariantSpec


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
