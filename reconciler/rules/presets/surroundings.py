"""What the room needs besides the catalog and the inventory (design 10.7, 10.15, 10.31)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from reconciler.expressions import Limits
from reconciler.krm.identity import ObjectKey
from reconciler.rules.guards import Unit
from reconciler.rules.variant import Owner


class Before(Protocol):
    """What clusters have of Plugins, by the state of their branches."""

    def owned(self) -> Mapping[Unit, Owner]:
        """Return the owners of the Plugins that were drafted or published, and are not on their way out."""
        ...

    def inputs(self) -> Mapping[Unit, Collection[str]]:
        """Return the objects that each of them was last made of, as text; there may be more."""
        ...

    def published(self, cluster: str) -> Mapping[str, Mapping[str, Any]]:
        """Return the Plugins on the branch of a cluster by package, ours or not; {} for one that cannot be read."""
        ...


@dataclass(frozen=True)
class Surroundings:
    """What the room needs besides the catalog and the inventory.

    `held` says of packages that were held before, by preset, how many there were then; `engine` changes when rendering
    may. `base_domain` and `central_cluster` are settings, "" where they are not made; with `expressions` False options
    given by expressions are errors. `outputs` are the files that are wanted beside each Plugin's own.
    """

    before: Before
    max_delete_percent: int = 30
    engine: str = ""
    held: Mapping[ObjectKey, Mapping[Unit, int]] = field(default_factory=dict)
    base_domain: str = ""
    central_cluster: str = ""
    expressions: bool = True
    limits: Limits = field(default_factory=Limits)
    outputs: frozenset[str] = frozenset()
