"""What an explanation is made of: a package, its values, the steps that led to each, and who gave what was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.krm.isolation import ExpectedError
from reconciler.planning.outcome import Rendered
from reconciler.planning.without import Layer as Removable
from reconciler.rules.presets.layers import Layer
from reconciler.rules.variant import Owner, Variant
from reconciler.snapshot.catalog import ConfigObject

Place: TypeAlias = tuple[str, str]
"""A resource: its file, and `Kind/namespace/name`."""


class NothingToExplainError(ExpectedError):
    """Somebody names a resource or a place in it that is not there; the text says which there are."""


@dataclass(frozen=True)
class Explained:
    """What is known of one package at `place`, as `repository/package`, by one config: `objects` are that config's.

    `rendered` is None where it was not made, or must not be used. `trouble` says why it waits or is withheld,
    `findings` are the errors of that. `at` is the commit of its branch, where it was made again as it stands there;
    `is_sure`: what was made is what stands there. `folder` is the package's on the branches of its destination.
    """

    place: str
    config: str
    objects: Mapping[ObjectKey, ConfigObject]
    owner: Owner | None = None
    variant: Variant | None = None
    rendered: Rendered | None = None
    trouble: str = ""
    findings: tuple[Finding, ...] = ()
    at: str = ""
    is_sure: bool = True
    folder: str = ""


@dataclass(frozen=True)
class Without:
    """What stands there in the end if a layer is taken away; `trouble` says why the package could not be made then."""

    value: Any = ABSENT
    trouble: str = ""


@dataclass(frozen=True)
class Given:
    """What an expression read: a variable's field by `name`, on which `layer` it was given, by which object, and where.

    `by` is "" where nobody gave it. `removable` and `without` are as for a step.
    """

    name: str
    layer: str
    by: str = ""
    file: str = ""
    line: int = 0
    field: str = ""
    removable: Removable | None = None
    without: Without | None = None


@dataclass(frozen=True)
class Step:
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
    given: tuple[Given, ...] = ()
    commit: str = ""
    config: str = ""
    removable: Removable | None = None
    without: Without | None = None


@dataclass(frozen=True)
class Value:
    """A value of a resource with the steps that led to it, the last of which won; `option` is that of a Plugin.

    `is_plain`: it is as its source has it, and no rule, function or person set it. What is gone is at its pointer in
    the resource as it was before, which is `lost_from`; ABSENT for what is there.
    """

    file: str
    resource: str
    pointer: str
    steps: tuple[Step, ...]
    option: str = ""
    is_plain: bool = False
    lost_from: Any = field(default=ABSENT, repr=False)

    @property
    def has_more(self) -> bool:
        """Whether there is, or was, more in it than a place of its own."""
        last = self.steps[-1]
        return bool(self.option) or any(isinstance(one, dict | list) for one in (last.before, last.after))

    @property
    def place(self) -> Place:
        """The resource that it is in."""
        return self.file, self.resource


UPSTREAM, GENERATED, RESOURCE = "upstream", "generated", "resource"
SOURCES = frozenset({UPSTREAM, GENERATED, RESOURCE})
"""Layers of the source: an upstream package, what a room makes as a whole, a resource of the config."""


@dataclass(frozen=True)
class Explanation:
    """What is told of a package, of a resource of it, or of a place in that one.

    `layers` is the one ordering of a Plugin's options, and `said` are those of them that had a say in these values.
    `children` are those whose templates were merged, as status files tell of them. `about` is the resource that was
    asked for, "" for all of them.
    """

    explained: Explained
    values: tuple[Value, ...] = ()
    layers: tuple[Layer, ...] = ()
    children: tuple[Mapping[str, Any], ...] = ()
    about: str = ""

    @property
    def said(self) -> frozenset[str]:
        """The layers that had a say."""
        return frozenset(step.layer for one in self.values for step in one.steps if step.layer)
