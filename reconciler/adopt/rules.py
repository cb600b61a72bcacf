"""Rules that set the value of a field on each cluster: by label if a label determines the value, or by cluster name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from reconciler.lazy_dataclasses import dataclass

MIN_CLUSTERS_PER_LABEL = 2


@dataclass(frozen=True)
class ValueRule:
    """A value for the clusters with a label, or for the clusters in a list.

    Attributes:
        label: The key and value of a label, or None for a list of clusters.
        value: The value as a text. Equal values have equal texts.
    """

    value: str
    label: tuple[str, str] | None = None
    clusters: tuple[str, ...] = ()


def choose_rules(
    values: Mapping[str, str], labels: Mapping[str, Mapping[str, str]], default: str
) -> tuple[ValueRule, ...]:
    """Return rules that give each cluster its value. A later rule overrides an earlier rule.

    A rule selects clusters by a value of one label, or by name. The result has the smallest possible number of rules.
    Among results of equal size, prefer rules with a label, because they also apply to new clusters.

    Args:
        values: The value of each cluster.
        labels: The labels of each cluster.
        default: The value of clusters without a rule.
    """
    keys = sorted({key for name in values for key in labels[name]})
    candidates = [tuple(_list_rules_by_label(values, labels, default, key)) for key in keys]
    candidates.append(tuple(_list_rules_by_cluster(values, dict.fromkeys(values, default))))
    return min(candidates, key=len)


def _list_rules_by_label(
    values: Mapping[str, str], labels: Mapping[str, Mapping[str, str]], default: str, key: str
) -> Iterator[ValueRule]:
    groups: dict[str, list[str]] = {}
    for name in values:
        if key in labels[name]:
            groups.setdefault(labels[name][key], []).append(name)
    expected = dict.fromkeys(values, default)
    for label_value, names in sorted(groups.items()):
        value, count = Counter(values[name] for name in names).most_common(1)[0]
        is_majority = count * 2 > len(names) and count >= MIN_CLUSTERS_PER_LABEL
        if value != default and is_majority:
            yield ValueRule(value, (key, label_value))
            expected |= dict.fromkeys(names, value)
    yield from _list_rules_by_cluster(values, expected)


def _list_rules_by_cluster(values: Mapping[str, str], expected: Mapping[str, str]) -> Iterator[ValueRule]:
    groups: dict[str, list[str]] = {}
    for name, value in values.items():
        if value != expected[name]:
            groups.setdefault(value, []).append(name)
    for value, names in sorted(groups.items()):
        yield ValueRule(value, None, tuple(sorted(names)))
