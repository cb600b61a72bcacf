"""Which clusters a selector means (kubeadmiral 3)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from reconciler.rules.clusters.model import Cluster, Requirement, Targets, Term

_DIGITS = re.compile(r"-?[0-9]+", re.ASCII)
_INT64 = 2**63
_INT64_DIGITS = 300


def int64(text: str) -> int | None:
    """Return the whole number that a text is in base 10, None for any other text, and beyond 64 bits."""
    if not _DIGITS.fullmatch(text) or len(text) > _INT64_DIGITS:
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None


def is_target(targets: Targets, cluster: Cluster) -> bool:
    """Tell whether a rule is for a cluster: by name, by labels and by affinity, each of which may be left out.

    A cluster that is excluded stays so, whatever else lets it through (kubeadmiral 12).
    """
    return (
        (not targets.clusters or cluster.name in targets.clusters)
        and cluster.name not in targets.excluded
        and all(cluster.labels.get(key) == value for key, value in targets.selector.items())
        and (not targets.affinity or any(_meets(term, cluster) for term in targets.affinity))
    )


def _meets(term: Term, cluster: Cluster) -> bool:
    if not term.expressions and not term.fields:
        return False
    # of an object's fields only the name can be asked for
    names = all((cluster.name in one.values) == (one.operator == "In") for one in term.fields)
    return names and all(_matches(one, cluster.labels) for one in term.expressions)


def _matches(one: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(one.key)
    match one.operator:
        case "In":
            return value in one.values
        case "NotIn":
            return value not in one.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return _compares(one, value)


def _compares(one: Requirement, value: str | None) -> bool:
    wanted, found = int64(one.values[0]), None if value is None else int64(value)
    if wanted is None or found is None:
        return False
    return found > wanted if one.operator == "Gt" else found < wanted
