"""Sets of clusters in words: by a label where one says it, else by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from reconciler.reporting.values import count, one_line

Labels = Mapping[str, Mapping[str, str]]
_VALUES_NAMED = 3


@dataclass(frozen=True)
class Clusters:
    """The clusters of a fleet, with their labels by name."""

    labels: Labels

    @cached_property
    def _by_label(self) -> Mapping[str, Mapping[str, frozenset[str]]]:
        found: dict[str, dict[str, set[str]]] = {}
        for name, labels in self.labels.items():
            for key, value in labels.items():
                found.setdefault(key, {}).setdefault(value, set()).add(name)
        return {key: {value: frozenset(names) for value, names in found[key].items()} for key in sorted(found)}

    def label_of(self, names: Collection[str]) -> str:
        """Return the label, of few values, that these clusters have and no others: `region=eu`; "" where none is."""
        wanted = frozenset(names)
        told = (self._told(key, wanted) for key in self._by_label) if len(wanted) > 1 else iter(())
        return min((one for one in told if one), key=lambda one: (one.count(" or "), one), default="")

    def _told(self, key: str, wanted: frozenset[str]) -> str:
        values = {self.labels[name].get(key) for name in wanted if name in self.labels}
        # one that nearly every cluster has a value of its own for is a name, too
        if None in values or len(values) > min(_VALUES_NAMED, len(wanted) // 2):
            return ""
        having = [self._by_label[key][value] for value in values if value is not None]
        told = " or ".join(f"{key}={value}" for value in sorted(filter(None, values)))
        return one_line(told) if frozenset().union(*having) == wanted else ""

    def words(self, names: Collection[str]) -> str:
        """Return how many clusters these are, and which label says so: `all 40 clusters with region=eu`."""
        known = {*names} & self.labels.keys()
        if len(known) > 1 and known == self.labels.keys() == {*names}:
            return _all(len(known))
        label = self.label_of(names)
        return f"{_all(len({*names}))} with {label}" if label else count(len({*names}), "cluster")


def _all(number: int) -> str:
    return "both clusters" if number == 2 else f"all {number} clusters"


def some(names: Collection[str], most: int) -> str:
    """Return the first names, and how many more there are."""
    listed = [one_line(one) for one in names]
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
