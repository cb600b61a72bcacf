"""Inputs: what a package was made from, and one digest for everything of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.krm.digest import digest
from reconciler.krm.schema import scope
from reconciler.reporting.secrets import mask_trace
from reconciler.rules.overrides.model import CLUSTER_KIND, GROUP
from reconciler.snapshot.trace import Trace


def inputs_digest(trace: Trace) -> str:
    """Return the digest of a trace, `sha256:<hex>`; what a Secret says is not in it (design 10.29)."""
    return digest(mask_trace(trace))


@dataclass(frozen=True)
class Asked:
    """An object of the config that a render asked for, and what it was answered."""

    api_version: str
    kind: str
    namespace: str
    name: str
    answer: str

    @property
    def home(self) -> str:
        """The namespace that it lives in; "" for kinds that live in none, which are asked for as if in the default."""
        return home(self.api_version, self.kind, self.namespace)


def home(api_version: str, kind: str, namespace: str) -> str:
    """Return the namespace of an object as people know it; "" for kinds that live in none."""
    group = api_version.rpartition("/")[0]
    lives_in_none = scope(group, kind) == "cluster" or (group, kind) == (GROUP, CLUSTER_KIND)
    return "" if lives_in_none else namespace


def objects_asked(trace: Trace) -> Iterator[Asked]:
    """Yield the objects that a trace tells of, sorted; of a policy only what it says to a cluster was asked."""
    for question, answer in sorted(trace.items()):
        match question.split(" ", 4):
            case ["object", api_version, kind, namespace, name]:
                yield Asked(api_version, kind, namespace, name, answer)
            case ["policy", api_version, kind, namespace, place]:
                yield Asked(api_version, kind, namespace, place.partition(" ")[0], answer)
