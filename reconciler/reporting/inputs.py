"""Inputs: what a package was made from, and one digest for everything of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reconciler.caching import cached
from reconciler.krm.digest import digest
from reconciler.krm.schema import scope
from reconciler.krm.secrets import MASK
from reconciler.planning.outcome import Rendered
from reconciler.reporting.secrets import mask_trace
from reconciler.rules.overrides.model import CLUSTER_KIND, GROUP
from reconciler.rules.variant import Variant
from reconciler.snapshot.trace import ABSENT, Trace

# the status file and the message of a draft tell it, one soon after the other
_REMEMBERED_TRACES = 16


def inputs_digest(trace: Trace) -> str:
    """Return the digest of a trace, `sha256:<hex>`; what a Secret says is not in it (design 10.29)."""
    return _digest(tuple(trace.items()))


@cached(_REMEMBERED_TRACES)
def _digest(asked: tuple[tuple[str, str], ...]) -> str:
    return digest(mask_trace(dict(asked)))


def inputs_data(variant: Variant, rendered: Rendered, trace: Trace, config: str) -> dict[str, Any]:
    """Return `inputs` of the status file: the config, the digest of all that was asked, and the objects by name.

    These are what the render asked for, and what the room had made the package of before.
    """
    made_of = variant.provenance.objects() if variant.provenance else []
    objects = [*_objects(rendered, trace), *({name: one[name] for name in one if one[name]} for one in made_of)]
    return {"config": config, "digest": inputs_digest(trace), "objects": objects}


def _objects(rendered: Rendered, trace: Trace) -> Iterator[dict[str, str]]:
    for one in objects_asked(trace):
        if one.answer != ABSENT:
            file = rendered.inputs.get((one.kind, one.namespace, one.name))
            hashed = MASK if one.kind == "Secret" else one.answer
            said = {"kind": one.kind, "namespace": one.home, "name": one.name, "file": file, "hash": hashed}
            yield {name: value for name, value in said.items() if value}


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
