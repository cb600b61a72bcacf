"""Clusters, and ways to choose among them, as values (kubeadmiral 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cluster:
    """A cluster that resources go to: its name and its labels, of all that is known of it (design 10.3)."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Requirement:
    """One entry of matchExpressions or matchFields."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Term:
    """Requirements that must all be met, on labels and on the name; one without any is met by no cluster."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True)
class Targets:
    """Which clusters a rule applies to; every part that is empty lets all through (kubeadmiral 3, 12)."""

    clusters: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    selector: Mapping[str, str] = field(default_factory=dict)
    affinity: tuple[Term, ...] = ()
