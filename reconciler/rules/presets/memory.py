"""What the room worked out in its last pass, so that the next one costs what has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar, cast

from reconciler.rules.clusters.model import Cluster
from reconciler.rules.presets.layers import Contributor
from reconciler.rules.presets.outcome import Failed, Made
from reconciler.rules.presets.published import Published
from reconciler.rules.presets.surroundings import Surroundings
from reconciler.rules.remembered import Remembered, Same
from reconciler.snapshot.catalog import ConfigObject

_Read = TypeVar("_Read")
# what changes from pass to pass, and is looked at in every one
_OF_THE_PASS = ("before", "held", "max_delete_percent")


class Memory:
    """What can be taken over from one pass of the room to the next; a pass with an empty one comes to the same.

    Everything is kept by what it was made of, and by nothing else: objects of the config, labels of clusters, what is
    published. Between passes it holds what the last one asked for, and no more.
    """

    def __init__(self) -> None:
        self._rules: tuple[object, ...] = ()
        self._read: Remembered[Any] = Remembered()
        self._clusters: Remembered[Cluster] = Remembered()
        self._published: Remembered[Published] = Remembered()
        self.lists: Remembered[Contributor] = Remembered()
        self.plugins: Remembered[Made | Failed] = Remembered()

    def begin(self, around: Surroundings) -> None:
        """Begin a pass; one by other settings takes over no Plugin."""
        rules = tuple(getattr(around, one.name) for one in fields(around) if one.name not in _OF_THE_PASS)
        if rules != self._rules:
            self._rules, self.plugins = rules, Remembered()

    def end(self) -> None:
        """End a pass: what it has not asked for is forgotten."""
        for one in (self._read, self._clusters, self._published, self.lists, self.plugins):
            one.turn()

    def read(self, reader: Callable[[ConfigObject], _Read], one: ConfigObject) -> _Read:
        """Return what a reader makes of an object, of which it looks at nothing else."""
        return cast("_Read", self._read.of((reader, one), lambda: reader(one)))

    def cluster(self, cluster: Cluster) -> Cluster:
        """Return the cluster; of equal ones always the same."""
        return self._clusters.of((cluster.name, *cluster.labels.items()), lambda: cluster)

    def published(self, data: Mapping[str, Any]) -> Published:
        """Return what stands on a branch; of the same data always the same."""
        return self._published.of(Same(data), lambda: Published(data))
