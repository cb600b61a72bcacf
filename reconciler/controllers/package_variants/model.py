"""Immutable models of valid PackageVariants and PackageVariantSets.

The methods `as_data` return normalized data: equal specs have equal data, even if their YAML differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from reconciler.controllers.results import AdoptionPolicy, ConflictPolicy, DeletionPolicy, UpdateStrategy
from reconciler.krm.selectors import LabelSelector
from reconciler.krm.times import parse_duration_seconds

ErrorPolicy = Literal["stopAll", "skipTarget"]


def omit_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy without the fields whose value is None, "", [] or {}."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


@dataclass(frozen=True)
class RevisionReference:
    """A reference to a tag by its last segment, the suffix. `number` is N if the suffix is "vN". Otherwise it is -1."""

    suffix: str
    number: int


@dataclass(frozen=True)
class BranchHeadReference:
    """A reference to the head of the upstream Repository's branch. In the config, it is `revision: -1`."""


@dataclass(frozen=True)
class WorkspaceReference:
    """A reference to the published revision that was created from a workspace.

    If the branch of the Repository has the name of the workspace, the reference is the head of the branch.
    """

    name: str


@dataclass(frozen=True)
class TagReference:
    """A reference by a name that can move between revisions: a channel, a Git tag such as `stable`, or `latest`."""

    name: str


UpstreamReference = RevisionReference | BranchHeadReference | WorkspaceReference | TagReference


@dataclass(frozen=True)
class UpstreamSpec:
    """The upstream package, and the reference to its revision.

    Attributes:
        settle: How long a moved reference must stay unchanged before the new revision is used, e.g. "10m". With "", the
            new revision is used immediately.
        tag: The tag of an upstream with `tagMode: rewrite`. When the tag moves, the daemon proposes the new revision in
            the config. It is "" in any other mode. With a tag, `reference` is the revision in the config. If the config
            has no revision yet, `reference` is the tag.
    """

    repo: str
    package: str
    reference: UpstreamReference
    settle: str = ""
    tag: str = ""

    @property
    def settle_seconds(self) -> int:
        """The `settle` duration in seconds. It is 0 with `tagMode: rewrite`, because a person merges each update."""
        return 0 if self.tag else parse_duration_seconds(self.settle) or 0

    @property
    def with_followed_tag(self) -> UpstreamSpec:
        """The same upstream package with the tag of `tagMode: rewrite` as its reference, even if the config has a
        revision.
        """
        return replace(self, reference=TagReference(self.tag), tag="") if self.tag else self

    @property
    def is_awaiting_revision(self) -> bool:
        """Whether `tagMode` is `rewrite` and the config has no revision yet."""
        return bool(self.tag) and self.reference == TagReference(self.tag)

    def as_data(self) -> dict[str, Any]:
        """Return the upstream in the format of the API field `spec.upstream`."""
        rewrite = {"tag": self.tag, "tagMode": "rewrite"} if self.tag else {}
        policy = {"tagPolicy": {"settle": self.settle}} if self.settle else {}
        return {"repo": self.repo, "package": self.package, **_format_reference(self.reference), **rewrite, **policy}


def _format_reference(reference: UpstreamReference) -> dict[str, Any]:
    match reference:
        case RevisionReference(suffix):
            return {"revision": suffix}
        case BranchHeadReference():
            return {"revision": -1}
        case WorkspaceReference(name):
            return {"workspaceName": name}
        case TagReference(name):
            return {"tag": name}


@dataclass(frozen=True)
class Downstream:
    """The package to create: the name of a Repository, and the package path in it."""

    repo: str
    package: str

    def as_data(self) -> dict[str, str]:
        """Return the downstream in the format of the API field `spec.downstream`."""
        return {"repo": self.repo, "package": self.package}


@dataclass(frozen=True)
class PipelineFunction:
    """One function of a Kptfile pipeline (type `Function` in kpt). YAML comments are not included."""

    image: str = ""
    exec: str = ""
    name: str = ""
    tag: str = ""
    config_path: str = ""
    config_map: Mapping[str, str] = field(default_factory=dict)
    selectors: tuple[Mapping[str, Any], ...] = ()
    exclude: tuple[Mapping[str, Any], ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return the function in the format of a Kptfile pipeline."""
        return omit_empty(
            {
                "image": self.image,
                "exec": self.exec,
                "tag": self.tag,
                "name": self.name,
                "configPath": self.config_path,
                "configMap": dict(self.config_map),
                "selectors": [dict(selector) for selector in self.selectors],
                "exclude": [dict(selector) for selector in self.exclude],
            }
        )


@dataclass(frozen=True)
class PipelineSpec:
    """The functions that a PackageVariant inserts before the functions of the package."""

    mutators: tuple[PipelineFunction, ...] = ()
    validators: tuple[PipelineFunction, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return the functions in the format of the API field `spec.pipeline`."""
        mutators = [function.as_data() for function in self.mutators]
        return omit_empty({"mutators": mutators, "validators": [function.as_data() for function in self.validators]})


@dataclass(frozen=True)
class Injector:
    """A selector of config objects for injection. If `group`, `version` or `kind` is None, it matches any value.

    The empty group "" matches only the core group.
    """

    name: str
    group: str | None = None
    version: str | None = None
    kind: str | None = None

    def admits(self, group: str, version: str, kind: str) -> bool:
        """Return whether this injector applies to injection points of this group, version and kind."""
        conditions = ((self.group, group), (self.version, version), (self.kind, kind))
        return all(expected is None or expected == actual for expected, actual in conditions)

    def as_data(self) -> dict[str, str]:
        """Return the injector in the format of the API. Keep an empty group, because it means the core group."""
        fields = {"group": self.group, "version": self.version, "kind": self.kind, "name": self.name}
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True)
class PackageContext:
    """Changes to the `data` of the package context, which is the ConfigMap `kptfile.kpt.dev` of a package."""

    data: Mapping[str, str] = field(default_factory=dict)
    remove_keys: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return the changes in the format of the API field `spec.packageContext`."""
        return omit_empty({"data": dict(self.data), "removeKeys": list(self.remove_keys)})


@dataclass(frozen=True)
class PackageVariantSpec:
    """The valid and normalized spec of a PackageVariant.

    If `update_strategy` is None, the Kptfile determines it. If `conflict_policy` is None, the settings determine it.
    """

    upstream: UpstreamSpec
    downstream: Downstream
    adoption_policy: AdoptionPolicy = "adoptNone"
    deletion_policy: DeletionPolicy = "delete"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    package_context: PackageContext = PackageContext()
    pipeline: PipelineSpec = PipelineSpec()
    injectors: tuple[Injector, ...] = ()
    update_strategy: UpdateStrategy | None = None
    conflict_policy: ConflictPolicy | None = None

    def as_data(self) -> dict[str, Any]:
        """Return the spec in the format of the API. Equivalent specs have equal data."""
        return {
            "upstream": self.upstream.as_data(),
            "downstream": self.downstream.as_data(),
            "adoptionPolicy": self.adoption_policy,
            "deletionPolicy": self.deletion_policy,
            **omit_empty(
                {
                    "labels": dict(self.labels),
                    "annotations": dict(self.annotations),
                    "packageContext": self.package_context.as_data(),
                    "pipeline": self.pipeline.as_data(),
                    "injectors": [injector.as_data() for injector in self.injectors],
                    "updateStrategy": self.update_strategy,
                    "conflictPolicy": self.conflict_policy,
                }
            ),
        }


@dataclass(frozen=True)
class TemplateText:
    """A text in the template of a PackageVariantSet: a literal or a CEL expression.

    `path` is the location of an expression in the PackageVariantSet, for messages. `can_use_repository` is False only
    for `repoExpr`, because its result determines the variable `repository`.
    """

    text: str
    path: str = ""
    is_expression: bool = False
    can_use_repository: bool = True

    @property
    def path_in_template(self) -> str:
        """The part of the path that starts with `template`. Use it in messages that already name the target."""
        return self.path[self.path.index("template") :]


@dataclass(frozen=True)
class MapTemplateEntry:
    """One MapExpr of the API: a key and a value. Each of them is a literal or a CEL expression."""

    key: TemplateText
    value: TemplateText


@dataclass(frozen=True)
class MapTemplate:
    """A map with fixed keys, and entries that are added later. Each entry overwrites an earlier value of its key."""

    static: Mapping[str, str] = field(default_factory=dict)
    entries: tuple[MapTemplateEntry, ...] = ()


def _iterate_entry_texts(entries: Iterable[MapTemplateEntry]) -> Iterator[TemplateText]:
    for entry in entries:
        yield from (entry.key, entry.value)


@dataclass(frozen=True)
class FunctionTemplate:
    """A pipeline function whose `configMap` can contain CEL expressions."""

    function: PipelineFunction
    config: tuple[MapTemplateEntry, ...] = ()


@dataclass(frozen=True)
class InjectorTemplate:
    """An injector whose name can be a CEL expression."""

    name: TemplateText
    group: str | None = None
    version: str | None = None
    kind: str | None = None


@dataclass(frozen=True)
class VariantTemplate:
    """The template of a target: the fields that each generated PackageVariant gets. An absent field has its default."""

    repo: TemplateText | None = None
    package: TemplateText | None = None
    adoption_policy: str | None = None
    deletion_policy: str | None = None
    labels: MapTemplate = MapTemplate()
    annotations: MapTemplate = MapTemplate()
    context: MapTemplate = MapTemplate()
    remove_keys: tuple[TemplateText, ...] = ()
    injectors: tuple[InjectorTemplate, ...] = ()
    validators: tuple[FunctionTemplate, ...] = ()
    mutators: tuple[FunctionTemplate, ...] = ()
    update_strategy: UpdateStrategy | None = None
    conflict_policy: ConflictPolicy | None = None

    def iterate_texts(self) -> Iterator[TemplateText]:
        """Yield every text of the template that can be a CEL expression."""
        yield from (text for text in (self.repo, self.package) if text)
        for template in (self.labels, self.annotations, self.context):
            yield from _iterate_entry_texts(template.entries)
        yield from self.remove_keys
        yield from (injector.name for injector in self.injectors)
        for function in (*self.mutators, *self.validators):
            yield from _iterate_entry_texts(function.config)


@dataclass(frozen=True)
class RepositoryEntry:
    """A Repository name in a target. If `package_names` is empty, the package gets the path of the upstream package."""

    name: str
    package_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class RepositoryList:
    """The field `repositories` of a target: a list of Repositories."""

    entries: tuple[RepositoryEntry, ...]


@dataclass(frozen=True)
class ObjectSelection:
    """A selector of config objects of one kind, from the field `objectSelector` or `repositorySelector` of a target."""

    api_version: str
    kind: str
    selector: LabelSelector
    name: str = ""
    package_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class SetTarget:
    """One entry of `spec.targets` in a PackageVariantSet.

    If an upstream has its own template, `upstream_templates` contains the template of the target merged with it. The
    key is the index of the upstream.
    """

    selection: RepositoryList | ObjectSelection
    template: VariantTemplate = VariantTemplate()
    upstream_templates: Mapping[int, VariantTemplate] = field(default_factory=dict)

    @property
    def has_package_names(self) -> bool:
        """Whether the target specifies package names."""
        match self.selection:
            case RepositoryList(entries):
                return any(entry.package_names for entry in entries)
            case ObjectSelection():
                return bool(self.selection.package_names)


@dataclass(frozen=True)
class PackageVariantSetSpec:
    """The valid and normalized spec of a PackageVariantSet."""

    upstreams: tuple[UpstreamSpec, ...]
    targets: tuple[SetTarget, ...]
    upstream_sets: tuple[str, ...] = ()
    error_policy: ErrorPolicy = "stopAll"
