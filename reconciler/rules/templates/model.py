"""Template merge rules as values: which kinds share a template, and which of its properties (strimzi 13)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from reconciler.krm.findings import Code
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import Path
from reconciler.packages.package import PackageResource
from reconciler.rules.templates.strimzi.operator import Operator

GROUP = "reconciler.dev"
API_VERSION = f"{GROUP}/v1alpha1"
KIND = "TemplateMergeRule"
MODE_ANNOTATION = f"{GROUP}/template-mode"
MARK = f"{GROUP}/materialised-template"

Mode = Literal["materialise", "report"]


@dataclass(frozen=True)
class Side:
    """The parent's or the child's half of a rule: its kind, where its template stands, and its name in reports."""

    group: str
    kind: str
    path: Path
    called: str
    versions: tuple[str, ...] = ()

    def means(self, resource: PackageResource) -> bool:
        """Tell whether a document is of this kind, whatever its version."""
        return (resource.group, resource.kind) == (self.group, self.kind)

    def knows(self, resource: PackageResource) -> bool:
        """Tell whether the rule is for the version of such a document."""
        return not self.versions or resource.version in self.versions


@dataclass(frozen=True)
class MergeRule:
    """How a child's template is made of its parent's and its own.

    A child names its parent, which is in its namespace, by `parent_label`. `parent_only` are properties of the parent's
    template that no child can have.
    """

    name: str
    parent: Side
    child: Side
    parent_label: str
    properties: tuple[str, ...]
    parent_only: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The rule as provenance names it."""
        return f"{KIND}/_cluster/{self.name}"


@dataclass(frozen=True)
class Options:
    """What those who run the program decide: what becomes of templates, and how operators are set up.

    `strict` are codes of warnings that are errors here, as those are that tell what operators take and their
    documentation does not (`codes.STRICT`).
    """

    mode: Mode = "materialise"
    strict: frozenset[str] = frozenset()
    operator: Operator = field(default_factory=Operator)


@dataclass(frozen=True)
class Member:
    """A document of a package that is a parent or a child by a rule."""

    rule: MergeRule
    package: str
    resource: PackageResource

    @property
    def key(self) -> ObjectKey:
        """Its identity."""
        return self.resource.key


@dataclass(frozen=True)
class Remark:
    """What is to be said of a value in a property of an effective template, or, without a property, of the child.

    A `mild` one is told as a warning: operators take it, only their documentation does not.
    """

    code: Code
    message: str
    property: str = ""
    path: Path = ()
    mild: bool = False
