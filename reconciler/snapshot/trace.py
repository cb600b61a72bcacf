"""Traces: the questions a render asked of the catalog, and a hash of each answer, absent included (design 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.krm.digest import digest
from reconciler.krm.findings import Where
from reconciler.snapshot.catalog import Catalog, ConfigObject

ABSENT = "absent"
PRESENT = "present"

Trace = Mapping[str, str]


_OF_THE_CATALOG = ("type", "object", "kind")


@dataclass(frozen=True)
class Answers:
    """Who answers the questions of renders: the catalog, and for what rules make of it, `more`.

    `more` are functions by the first word of a question, of its other words; "" is their answer to nonsense.
    """

    catalog: Catalog
    more: Mapping[str, Callable[[Sequence[str]], str]] = field(default_factory=dict)

    def knows(self, name: str) -> bool:
        """Return whether a name in a trace is a question that can be asked again."""
        first, blank, _ = name.partition(" ")
        return name == "whole" or (bool(blank) and (first in _OF_THE_CATALOG or first in self.more))

    def to(self, question: str) -> str:
        """Return today's answer to a recorded question; "", which is no answer, where nobody could have asked it."""
        match [word.replace("%20", " ").replace("%25", "%") for word in question.split(" ")]:
            case ["type", api_version, kind, namespace]:
                return PRESENT if (api_version, kind, namespace) in self.catalog.types else ABSENT
            case ["object", api_version, kind, namespace, name]:
                one = self.catalog.named.get((api_version, kind, namespace, name))
                return one.digest if one else ABSENT
            case ["kind", group, kind]:
                found = self.catalog.of_kind(group, kind)
                return digest([each.digest for each in found]) if found else ABSENT
            case ["whole"]:
                return PRESENT if self.catalog.is_whole else ABSENT
            case [first, *words] if first in self.more:
                return self.more[first](words)
            case _:
                # state is a branch, and others can write to it
                return ""


class View:
    """The config as one render sees it: every question is recorded with its answer.

    `files` are those of the objects that were found, by kind, namespace and name, `places` where each stands.
    """

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.trace: dict[str, str] = {}
        self.files: dict[tuple[str, str, str], str] = {}
        self.places: dict[str, Where] = {}

    def type_exists(self, api_version: str, kind: str, namespace: str) -> bool:
        """Return whether any object of this type can be seen from `namespace`."""
        return self.ask("type", api_version, kind, namespace) == PRESENT

    def named(self, api_version: str, kind: str, namespace: str, name: str) -> ConfigObject | None:
        """Return one object by type, namespace and name."""
        self.ask("object", api_version, kind, namespace, name)
        found = self._answers.catalog.named.get((api_version, kind, namespace, name))
        if found:
            self.files[kind, namespace, name] = found.file
            self.places[str(found.key)] = found.where
        return found

    def of_kind(self, group: str, kind: str) -> tuple[ConfigObject, ...]:
        """Return all objects of one kind."""
        self.ask("kind", group, kind)
        return self._answers.catalog.of_kind(group, kind)

    def is_whole(self) -> bool:
        """Return whether what is not in the catalog does not exist; else it may be in a file that cannot be read."""
        return self.ask("whole") == PRESENT

    def ask(self, *words: str) -> str:
        """Return the answer to a question by its words, as `Answers` knows it."""
        asked = question(*words)
        self.trace[asked] = answer = self._answers.to(asked)
        return answer


def question(*words: str) -> str:
    """Return a question as traces spell it."""
    # names are what people write: one with a blank must not be taken for two words
    return " ".join(word.replace("%", "%25").replace(" ", "%20") for word in words)


def changed_answers(trace: Trace, facts: Trace, answers: Answers) -> tuple[str, ...]:
    """Return the questions of `trace` that are answered differently today, and facts that are new or gone.

    `facts` are what is known without asking (the variant, its upstream, the engine); every other question of the trace
    is asked again. Nothing changed means that the output would be equal.
    """
    moved = [
        name
        for name in sorted({*facts, *(q for q in trace if not answers.knows(q))})
        if facts.get(name) != trace.get(name)
    ]
    moved += [q for q in sorted(trace) if answers.knows(q) and answers.to(q) != trace[q]]
    return tuple(moved)
