"""Why targets choose no cluster, in the words of the clusters that there are (kubeadmiral 3)."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.rules.clusters.model import Cluster, Requirement, Targets
from reconciler.rules.fields import meant
from reconciler.rules.near import equalities, why_none


def why_no_cluster(targets: Targets, known: Mapping[str, Cluster]) -> str:
    """Return why no cluster is a target, as the end of a sentence."""
    named = [name for name in targets.clusters if name not in known]
    if targets.clusters and len(named) == len(targets.clusters):
        return f"no cluster is called {' or '.join(named)}{meant(named[0], sorted(known))}"
    # where names leave some clusters, labels are looked for among those
    candidates = [known[name] for name in targets.clusters if name in known] or [*known.values()]
    labelled = [one.labels for one in candidates if one.name not in targets.excluded]
    return why_none([*equalities(targets.selector.items()), *_of_the_only_term(targets)], labelled, "cluster")


def _of_the_only_term(targets: Targets) -> tuple[Requirement, ...]:
    return targets.affinity[0].expressions if len(targets.affinity) == 1 else ()
