"""What an explanation is made of: a package, its values, the steps that led to each, and who gave what was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.plugin_presets.option_layers import OptionLayer
from reconciler.controllers.results import PackageOwner, Variant
from reconciler.krm.findings import Finding
from reconciler.krm.isolation import ExpectedError
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey
from reconciler.planning.attribution.re_render import RemovableLayer as Removable
from reconciler.planning.model.outcomes import PackageRender

ResourceLocation: TypeAlias = tuple[str, str]
"""A resource: its file, and `Kind/namespace/name`."""


class ValueNotFoundError(ExpectedError):
    """Somebody names a resource or a place in it that is not there; the text says which there are."""


@dataclass(frozen=True)
class ExplainedPackage:
    """What is known of one package at `place`, as `repository/package`, by one config: `objects` are that config's.

    `rendered` is None where it was not made, or must not be used. `trouble` says why it waits or is withheld,
    `findings` are the errors of that. `at` is the commit of its branch, where it was made again as it stands there;
    `is_sure`: what was made is what stands there. `folder` is the package's on the branches of its destination.
    """

    target: str
    config: str
    objects: Mapping[ObjectKey, ConfigObject]
    owner: PackageOwner | None = None
    variant: Variant | None = None
    rendered: PackageRender | None = None
    blocked_reason: str = ""
    findings: tuple[Finding, ...] = ()
    commit: str = ""
    is_reproduced: bool = True
    folder: str = ""


@dataclass(frozen=True)
class AblationResult:
    """What stands there in the end if a layer is taken away; `trouble` says why the package could not be made then."""

    value: Any = ABSENT
    blocked_reason: str = ""


@dataclass(frozen=True)
class ExpressionInput:
    """What an expression read: a variable's field by `name`, on which `layer` it was given, by which object, and where.

    `by` is "" where nobody gave it. `removable` and `without` are as for a step.
    """

    name: str
    layer: str
    by: str = ""
    file: str = ""
    line: int = 0
    field: str = ""
    removable_layer: Removable | None = None
    ablation: AblationResult | None = None


@dataclass(frozen=True)
class ValueStep:
    """One change of a value: the object, function or person `by` which it came, and the value before and after it.

    `layer` is the id of a layer; `line` is 0 where `field` is not in today's text, `commit` that of `file` where it is
    not the config's. What may not be seen is masked. `instance` is that of an addon, `loop` the expression that gave
    the items of which this is done for one, `config` that of a function. `removable` is how to do without it, and
    `without` what comes of that, where it was tried.
    """

    by: str
    op: str
    before: Any = ABSENT
    after: Any = ABSENT
    layer: str = ""
    file: str = ""
    line: int = 0
    field: str = ""
    expression: Any = ABSENT
    instance: str = ""
    loop: str = ""
    expression_inputs: tuple[ExpressionInput, ...] = ()
    commit: str = ""
    config: str = ""
    removable_layer: Removable | None = None
    ablation: AblationResult | None = None


@dataclass(frozen=True)
class ExplainedValue:
    """A value of a resource with the steps that led to it, the last of which won; `option` is that of a Plugin.

    `is_plain`: it is as its source has it, and no rule, function or person set it. What is gone is at its pointer in
    the resource as it was before, which is `lost_from`; ABSENT for what is there.
    """

    file: str
    resource: str
    pointer: str
    steps: tuple[ValueStep, ...]
    option: str = ""
    is_plain: bool = False
    removed_from: Any = field(default=ABSENT, repr=False)

    @property
    def has_nested_values(self) -> bool:
        """Whether there is, or was, more in it than a place of its own."""
        last = self.steps[-1]
        return bool(self.option) or any(isinstance(one, dict | list) for one in (last.before, last.after))

    @property
    def location(self) -> ResourceLocation:
        """The resource that it is in."""
        return self.file, self.resource


UPSTREAM, GENERATED, RESOURCE = "upstream", "generated", "resource"
SOURCES = frozenset({UPSTREAM, GENERATED, RESOURCE})
"""Layers of the source: an upstream package, what a room makes as a whole, a resource of the config."""


@dataclass(frozen=True)
class PackageExplanation:
    """What is told of a package, of a resource of it, or of a place in that one.

    `layers` is the one ordering of a Plugin's options, and `said` are those of them that had a say in these values.
    `children` are those whose templates were merged, as status files tell of them. `about` is the resource that was
    asked for, "" for all of them.
    """

    explained: ExplainedPackage
    values: tuple[ExplainedValue, ...] = ()
    layers: tuple[OptionLayer, ...] = ()
    children: tuple[Mapping[str, Any], ...] = ()
    resource: str = ""

    @property
    def effective_layers(self) -> frozenset[str]:
        """The layers that had a say."""
        return frozenset(step.layer for one in self.values for step in one.steps if step.layer)
