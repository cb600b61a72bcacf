"""What a PackageVariantSet asks for, once read: upstreams, targets and the template of each (porch 11.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from reconciler.krm.selectors import LabelSelector
from reconciler.rules.variant import ConflictPolicy, UpdateStrategy
from reconciler.rules.variants.model import Function, Upstream

ErrorPolicy = Literal["stopAll", "skipTarget"]


@dataclass(frozen=True)
class Text:
    """A text of a template: as it stands, or a CEL expression.

    `path` is where an expression was written, for messages; only that of the repository does not know the repository.
    """

    text: str
    path: str = ""
    expression: bool = False
    knows_repository: bool = True

    @property
    def path_in_template(self) -> str:
        """The path from the template on: messages of a rendering already name the target (porch 11.3)."""
        return self.path[self.path.index("template") :]


@dataclass(frozen=True)
class MapEntry:
    """One MapExpr: a key and a value, each as it stands or by expression."""

    key: Text
    value: Text


@dataclass(frozen=True)
class MapTemplate:
    """A static map, overwritten by entries in their order."""

    static: Mapping[str, str] = field(default_factory=dict)
    entries: tuple[MapEntry, ...] = ()


def _texts(entries: Iterable[MapEntry]) -> Iterator[Text]:
    for entry in entries:
        yield from (entry.key, entry.value)


@dataclass(frozen=True)
class FunctionTemplate:
    """A pipeline entry whose configMap may be overlaid by expressions."""

    function: Function
    config: tuple[MapEntry, ...] = ()


@dataclass(frozen=True)
class InjectorTemplate:
    """An injector whose name may be an expression."""

    name: Text
    group: str | None = None
    version: str | None = None
    kind: str | None = None


@dataclass(frozen=True)
class Template:
    """How the variants of one target differ from the plain ones."""

    repo: Text | None = None
    package: Text | None = None
    adoption_policy: str | None = None
    deletion_policy: str | None = None
    labels: MapTemplate = MapTemplate()
    annotations: MapTemplate = MapTemplate()
    context: MapTemplate = MapTemplate()
    remove_keys: tuple[Text, ...] = ()
    injectors: tuple[InjectorTemplate, ...] = ()
    validators: tuple[FunctionTemplate, ...] = ()
    mutators: tuple[FunctionTemplate, ...] = ()
    update_strategy: UpdateStrategy | None = None
    conflict_policy: ConflictPolicy | None = None

    def texts(self) -> Iterator[Text]:
        """Yield every text that may be an expression, in the order of porch 11.1."""
        yield from (text for text in (self.repo, self.package) if text)
        for template in (self.labels, self.annotations, self.context):
            yield from _texts(template.entries)
        yield from self.remove_keys
        yield from (injector.name for injector in self.injectors)
        for function in (*self.mutators, *self.validators):
            yield from _texts(function.config)


@dataclass(frozen=True)
class RepositoryEntry:
    """A repository by name; no package names means the upstream's."""

    name: str
    package_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class RepositoryList:
    """Targets listed one by one."""

    entries: tuple[RepositoryEntry, ...]


@dataclass(frozen=True)
class ObjectSelection:
    """Targets selected among the objects of one kind; Repositories too are selected this way."""

    api_version: str
    kind: str
    selector: LabelSelector
    name: str = ""
    package_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """One entry of spec.targets. `overlaid` holds the template as the upstream of that index changes it (14.3)."""

    selection: RepositoryList | ObjectSelection
    template: Template = Template()
    overlaid: Mapping[int, Template] = field(default_factory=dict)

    @property
    def names_packages(self) -> bool:
        """Whether the target says how its packages are called."""
        match self.selection:
            case RepositoryList(entries):
                return any(entry.package_names for entry in entries)
            case ObjectSelection():
                return bool(self.selection.package_names)


@dataclass(frozen=True)
class PackageVariantSetSpec:
    """The spec of a PackageVariantSet, valid and in one spelling."""

    upstreams: tuple[Upstream, ...]
    targets: tuple[Target, ...]
    upstream_sets: tuple[str, ...] = ()
    error_policy: ErrorPolicy = "stopAll"
