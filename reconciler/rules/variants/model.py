"""What a PackageVariant asks for, once read: frozen values in one spelling (porch 2, design 10.21)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.krm.durations import duration_seconds
from reconciler.rules.variant import AdoptionPolicy, ConflictPolicy, DeletionPolicy, UpdateStrategy


def written(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that say something: no None, no empty text, list or mapping."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


@dataclass(frozen=True)
class Revision:
    """A tag suffix as it is looked up; `number` is N for "vN", -1 for any other suffix (porch 2.1)."""

    suffix: str
    number: int


@dataclass(frozen=True)
class Head:
    """The head of the upstream Repository's branch: revision -1."""


@dataclass(frozen=True)
class Workspace:
    """The published revision of a workspace, or the branch head when that is its name."""

    name: str


@dataclass(frozen=True)
class FloatingTag:
    """A name that moves: a channel, a tag such as `stable`, or `latest` (porch 14.1)."""

    name: str


Reference = Revision | Head | Workspace | FloatingTag


@dataclass(frozen=True)
class Upstream:
    """The package to vary, and which of its revisions (design 10.21).

    `settle` is the duration that a moved reference must have stood before it is followed; "" follows at once.
    `tag` is the floating tag whose moves are proposed to the config as revisions (tagMode rewrite), "" for none; the
    reference is then the revision that counts, or that tag itself as long as no revision is written.
    """

    repo: str
    package: str
    reference: Reference
    settle: str = ""
    tag: str = ""

    @property
    def settle_seconds(self) -> int:
        """How long a moved reference must have stood; a revision that people take over has no need to."""
        return 0 if self.tag else duration_seconds(self.settle) or 0

    @property
    def followed(self) -> Upstream:
        """The same package with its tag followed: what the tag means, whatever revision stands beside it."""
        return replace(self, reference=FloatingTag(self.tag), tag="") if self.tag else self

    @property
    def awaits_revision(self) -> bool:
        """Whether no revision is written yet beside a tag that is not followed."""
        return bool(self.tag) and self.reference == FloatingTag(self.tag)

    def as_data(self) -> dict[str, Any]:
        """Return it as it is written to YAML."""
        rewrite = {"tag": self.tag, "tagMode": "rewrite"} if self.tag else {}
        policy = {"tagPolicy": {"settle": self.settle}} if self.settle else {}
        return {"repo": self.repo, "package": self.package, **_reference_data(self.reference), **rewrite, **policy}


def _reference_data(reference: Reference) -> dict[str, Any]:
    match reference:
        case Revision(suffix):
            return {"revision": suffix}
        case Head():
            return {"revision": -1}
        case Workspace(name):
            return {"workspaceName": name}
        case FloatingTag(name):
            return {"tag": name}


@dataclass(frozen=True)
class Downstream:
    """The package to make: a Repository and a path in it."""

    repo: str
    package: str

    def as_data(self) -> dict[str, str]:
        """Return it as it is written to YAML."""
        return {"repo": self.repo, "package": self.package}


@dataclass(frozen=True)
class Function:
    """One entry of a pipeline (kpt's Function), without the comments it may have had."""

    image: str = ""
    exec: str = ""
    name: str = ""
    tag: str = ""
    config_path: str = ""
    config_map: Mapping[str, str] = field(default_factory=dict)
    selectors: tuple[Mapping[str, Any], ...] = ()
    exclude: tuple[Mapping[str, Any], ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return it as it is written to YAML."""
        return written(
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
class Pipeline:
    """The functions that a variant puts before those of the package."""

    mutators: tuple[Function, ...] = ()
    validators: tuple[Function, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return it as it is written to YAML."""
        mutators = [function.as_data() for function in self.mutators]
        return written({"mutators": mutators, "validators": [function.as_data() for function in self.validators]})


@dataclass(frozen=True)
class Injector:
    """Which context object may be injected; None means any, an empty group is the core group (porch 2.3)."""

    name: str
    group: str | None = None
    version: str | None = None
    kind: str | None = None

    def admits(self, group: str, version: str, kind: str) -> bool:
        """Tell whether this injector speaks of injection points of that type."""
        asked = ((self.group, group), (self.version, version), (self.kind, kind))
        return all(wanted is None or wanted == found for wanted, found in asked)

    def as_data(self) -> dict[str, str]:
        """Return it as it is written to YAML; an empty group says something, so it stays."""
        fields = {"group": self.group, "version": self.version, "kind": self.kind, "name": self.name}
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True)
class PackageContext:
    """Changes to the data of the package context ConfigMap."""

    data: Mapping[str, str] = field(default_factory=dict)
    remove_keys: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return it as it is written to YAML."""
        return written({"data": dict(self.data), "removeKeys": list(self.remove_keys)})


@dataclass(frozen=True)
class PackageVariantSpec:
    """The spec of a PackageVariant, valid and in one spelling. None: the Kptfile or the settings decide."""

    upstream: Upstream
    downstream: Downstream
    adoption_policy: AdoptionPolicy = "adoptNone"
    deletion_policy: DeletionPolicy = "delete"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    package_context: PackageContext = PackageContext()
    pipeline: Pipeline = Pipeline()
    injectors: tuple[Injector, ...] = ()
    update_strategy: UpdateStrategy | None = None
    conflict_policy: ConflictPolicy | None = None

    def as_data(self) -> dict[str, Any]:
        """Return the spec as it is written to YAML: specs that ask the same are equal here."""
        return {
            "upstream": self.upstream.as_data(),
            "downstream": self.downstream.as_data(),
            "adoptionPolicy": self.adoption_policy,
            "deletionPolicy": self.deletion_policy,
            **written(
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
