"""What the room needs besides the catalog and the inventory: its ports, and the settings that it obeys."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from reconciler.expressions import Limits
from reconciler.krm.identity import ObjectKey
from reconciler.rules.guards import Unit
from reconciler.rules.variant import Owner


class Before(Protocol):
    """What clusters have of components, by their states."""

    def owned(self) -> Mapping[Unit, Owner]:
        """Return the owners of the packages that were drafted or published, and are not on their way out."""
        ...

    def inputs(self) -> Mapping[Unit, Collection[str]]:
        """Return what each of them was last made of."""
        ...


@dataclass(frozen=True)
class Surroundings:
    """What a pass of the room is given.

    `held` says by owner of packages that were held before how many there were then; `engine` changes when rendering
    may. `runtime` lets components without a type be (openchoreo 13.2); `reserved` are the kinds that rooms read, which
    no type may make (design 10.22).
    """

    before: Before
    max_delete_percent: int = 30
    engine: str = ""
    held: Mapping[ObjectKey, Mapping[Unit, int]] = field(default_factory=dict)
    runtime: bool = True
    crd_group: str = "platform"
    reserved: frozenset[str] = frozenset()
    limits: Limits = field(default_factory=Limits)
