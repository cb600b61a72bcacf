"""What sets came to in their last pass, so that the next one costs what has changed (design 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from reconciler.expressions import Limits
from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.rules.remembered import Remembered, Unmoved
from reconciler.rules.variant import ConfigStatus, RoomResult, Stalled, Variant
from reconciler.rules.variants.inputs import Described
from reconciler.rules.variants.model import Upstream
from reconciler.rules.variants.sets import Expansion, SetFailure, SetWorld
from reconciler.rules.variants.upstream import Unresolved
from reconciler.snapshot.catalog import ConfigObject

Placed = tuple[tuple[Variant | Stalled, ...], tuple[ConfigStatus, ...]]
"""The variants of a set, and the statuses of the PackageVariants that it makes."""


class Memory:
    """What can be taken over from one pass of the room to the next; a pass with an empty one comes to the same.

    A set looks at what it asks for and at nothing else: while its text is untouched, and each of its questions has the
    same answer, it comes to what it came to.
    """

    def __init__(self) -> None:
        self._expanded: dict[ObjectKey, _Expanded] = {}
        self.placed: Remembered[Placed] = Remembered()
        self.results: Unmoved[RoomResult] = Unmoved()
        self.deployments: Unmoved[tuple[bool | None, ...]] = Unmoved()
        self.warnings: Unmoved[tuple[Finding, ...]] = Unmoved()
        self.acyclic: tuple[object, ...] = ()

    def end(self, sets: Iterable[ObjectKey]) -> None:
        """End a pass over these sets; what is known of others is forgotten."""
        kept = {*sets}
        self._expanded = {key: one for key, one in self._expanded.items() if key in kept}
        for one in (self.placed, self.results, self.deployments, self.warnings):
            one.turn()

    def expansion(
        self,
        one: ConfigObject,
        world: SetWorld,
        cel: Limits,
        ground: Callable[[str], object | None],
        expand: Callable[[SetWorld], Expansion | SetFailure],
    ) -> Expansion | SetFailure:
        """Return what a set comes to in a world, expanded now if it is not known, or asks and hears otherwise.

        `ground` is what the answers to a question follow from, by the name of the question: on the same ground it need
        not be asked again.
        """
        known = self._expanded.get(one.key)
        if known is None or known.one is not one or known.cel != cel or not known.holds(world, ground):
            asked = _Asking(world)
            known = _Expanded(one, cel, asked.answers, expand(asked))
        grounds = {name: ground(name) for name in known.answers}
        self._expanded[one.key] = replace(known, grounds=grounds)
        return known.outcome


Answer = TypeVar("Answer")
Answers = Mapping[str, Mapping[tuple[Any, ...], Any]]
"""What a world said, by the name of its method, and by the arguments."""


@dataclass(frozen=True)
class _Expanded:
    one: ConfigObject
    cel: Limits
    answers: Answers
    outcome: Expansion | SetFailure
    grounds: Mapping[str, object | None] = field(default_factory=dict)

    def holds(self, world: SetWorld, ground: Callable[[str], object | None]) -> bool:
        """Return whether a world gives the same answers."""
        firm = {name for name, known in self.grounds.items() if known is not None and ground(name) is known}
        return all(
            getattr(world, name)(*words) == answer
            for name, answers in self.answers.items()
            if name not in firm
            for words, answer in answers.items()
        )


@dataclass
class _Asking:
    """A world that remembers what it was asked, and what it said."""

    world: SetWorld
    answers: dict[str, dict[tuple[Any, ...], Any]] = field(default_factory=dict)

    def repository(self, name: str) -> Described | None:
        return self._note("repository", self.world.repository(name), name)

    def upstream(self, upstream: Upstream) -> Mapping[str, Any] | Unresolved:
        return self._note("upstream", self.world.upstream(upstream), upstream)

    def revision_set(self, name: str) -> Mapping[str, Any] | None:
        return self._note("revision_set", self.world.revision_set(name), name)

    def knows_kind(self, api_version: str, kind: str) -> bool:
        return self._note("knows_kind", self.world.knows_kind(api_version, kind), api_version, kind)

    def select(self, api_version: str, kind: str) -> Sequence[Described]:
        return self._note("select", self.world.select(api_version, kind), api_version, kind)

    def _note(self, name: str, answer: Answer, *words: Any) -> Answer:
        self.answers.setdefault(name, {})[words] = answer
        return answer
