"""Models of valid PackageVariants and PackageVariantSets: frozen values in normalized form.

`as_data` returns the canonical notation, so that equal specs have equal data.
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
    """Return the fields that are not None, empty text, an empty list or an empty mapping."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


@dataclass(frozen=True)
class RevisionReference:
    """A tag suffix; `number` is N for "vN" and -1 for any other suffix."""

    suffix: str
    number: int


@dataclass(frozen=True)
class BranchHeadReference:
    """The head of the upstream Repository's branch: revision -1."""


@dataclass(frozen=True)
class WorkspaceReference:
    """The published revision of a workspace, or the branch head if the branch has that name."""

    name: str


@dataclass(frozen=True)
class TagReference:
    """A name that can move: a channel, a tag such as `stable`, or `latest`."""

    name: str


UpstreamReference = RevisionReference | BranchHeadReference | WorkspaceReference | TagReference


@dataclass(frozen=True)
class UpstreamSpec:
    """The upstream package, and the reference to its revision.

    Attributes:
        settle: Duration that a moved reference must be unchanged before it is followed; "" follows at once.
        tag: The tag whose moves are proposed as revisions (`tagMode: rewrite`); "" for none. `reference` is then the
            revision in the config, or the tag while the config has no revision.
    """

    repo: str
    package: str
    reference: UpstreamReference
    settle: str = ""
    tag: str = ""

    @property
    def settle_seconds(self) -> int:
        """The `settle` duration in seconds; 0 with `tagMode: rewrite`, because a person merges the move."""
        return 0 if self.tag else parse_duration_seconds(self.settle) or 0

    @property
    def with_followed_tag(self) -> UpstreamSpec:
        """The same package with the tag as its reference, also if the config has a revision beside it."""
        return replace(self, reference=TagReference(self.tag), tag="") if self.tag else self

    @property
    def is_awaiting_revision(self) -> bool:
        """Whether `tagMode` is `rewrite` and the config has no revision yet."""
        return bool(self.tag) and self.reference == TagReference(self.tag)

    def as_data(self) -> dict[str, Any]:
        """Return the upstream in the notation of the API."""
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
    """The package to create: a Repository and a path in it."""

    repo: str
    package: str

    def as_data(self) -> dict[str, str]:
        """Return the downstream in the notation of the API."""
        return {"repo": self.repo, "package": self.package}


@dataclass(frozen=True)
class PipelineFunction:
    """One entry of a pipeline (kpt: `Function`), without comments."""

    image: str = ""
    exec: str = ""
    name: str = ""
    tag: str = ""
    config_path: str = ""
    config_map: Mapping[str, str] = field(default_factory=dict)
    selectors: tuple[Mapping[str, Any], ...] = ()
    exclude: tuple[Mapping[str, Any], ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return the function in the notation of the API."""
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
    """The functions that a variant inserts before those of the package."""

    mutators: tuple[PipelineFunction, ...] = ()
    validators: tuple[PipelineFunction, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return the pipeline in the notation of the API."""
        mutators = [function.as_data() for function in self.mutators]
        return omit_empty({"mutators": mutators, "validators": [function.as_data() for function in self.validators]})


@dataclass(frozen=True)
class Injector:
    """A selector of context objects for injection. None matches any value; an empty group is the core group."""

    name: str
    group: str | None = None
    version: str | None = None
    kind: str | None = None

    def admits(self, group: str, version: str, kind: str) -> bool:
        """Return whether this injector can select objects for injection points of a type."""
        conditions = ((self.group, group), (self.version, version), (self.kind, kind))
        return all(expected is None or expected == actual for expected, actual in conditions)

    def as_data(self) -> dict[str, str]:
        """Return the injector in the notation of the API. An empty group is kept, because it means the core group."""
        fields = {"group": self.group, "version": self.version, "kind": self.kind, "name": self.name}
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True)
class PackageContext:
    """Changes to the data of the package context ConfigMap."""

    data: Mapping[str, str] = field(default_factory=dict)
    remove_keys: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return the changes in the notation of the API."""
        return omit_empty({"data": dict(self.data), "removeKeys": list(self.remove_keys)})


@dataclass(frozen=True)
class PackageVariantSpec:
    """The valid and normalized spec of a PackageVariant.

    If `update_strategy` or `conflict_policy` is None, the Kptfile or the settings decide.
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
        """Return the spec in the notation of the API. Equivalent specs have equal data."""
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
    """A text of a template: a literal or a CEL expression.

    `path` is the path of an expression in the object, for messages. Only the expression for the repository cannot use
    the variable `repository`.
    """

    text: str
    path: str = ""
    is_expression: bool = False
    can_use_repository: bool = True

    @property
    def path_in_template(self) -> str:
        """The path from `template` on, because render messages already name the target."""
        return self.path[self.path.index("template") :]


@dataclass(frozen=True)
class MapTemplateEntry:
    """One MapExpr: a key and a value, each a literal or an expression."""

    key: TemplateText
    value: TemplateText


@dataclass(frozen=True)
class MapTemplate:
    """A static map and entries that overwrite it in order."""

    static: Mapping[str, str] = field(default_factory=dict)
    entries: tuple[MapTemplateEntry, ...] = ()


def _iterate_entry_texts(entries: Iterable[MapTemplateEntry]) -> Iterator[TemplateText]:
    for entry in entries:
        yield from (entry.key, entry.value)


@dataclass(frozen=True)
class FunctionTemplate:
    """A pipeline function whose configMap can have expressions."""

    function: PipelineFunction
    config: tuple[MapTemplateEntry, ...] = ()


@dataclass(frozen=True)
class InjectorTemplate:
    """An injector whose name can be an expression."""

    name: TemplateText
    group: str | None = None
    version: str | None = None
    kind: str | None = None


@dataclass(frozen=True)
class VariantTemplate:
    """The template of a target: the fields that differ from a PackageVariant with defaults."""

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
        """Yield every text that can be an expression, in the order of the API."""
        yield from (text for text in (self.repo, self.package) if text)
        for template in (self.labels, self.annotations, self.context):
            yield from _iterate_entry_texts(template.entries)
        yield from self.remove_keys
        yield from (injector.name for injector in self.injectors)
        for function in (*self.mutators, *self.validators):
            yield from _iterate_entry_texts(function.config)


@dataclass(frozen=True)
class RepositoryEntry:
    """A Repository by name. Without package names, the package has the upstream's path."""

    name: str
    package_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class RepositoryList:
    """A target with a list of Repositories."""

    entries: tuple[RepositoryEntry, ...]


@dataclass(frozen=True)
class ObjectSelection:
    """A target that selects objects of one kind. A `repositorySelector` is also an object selection."""

    api_version: str
    kind: str
    selector: LabelSelector
    name: str = ""
    package_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class SetTarget:
    """One entry of spec.targets.

    `upstream_templates` are the templates merged with that of an upstream, by the upstream's index.
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
