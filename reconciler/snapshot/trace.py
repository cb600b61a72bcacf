"""Traces: the questions a render asked of the catalog, and a hash of each answer, absent included (design 5)."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.krm.digest import digest
from reconciler.snapshot.catalog import Catalog, ConfigObject

ABSENT = "absent"
PRESENT = "present"

Trace = Mapping[str, str]


class View:
    """The catalog as one render sees it: every question is recorded with its answer."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.trace: dict[str, str] = {}

    def type_exists(self, api_version: str, kind: str, namespace: str) -> bool:
        """Return whether any object of this type can be seen from `namespace`."""
        return self._ask("type", api_version, kind, namespace) == PRESENT

    def named(self, api_version: str, kind: str, namespace: str, name: str) -> ConfigObject | None:
        """Return one object by type, namespace and name."""
        self._ask("object", api_version, kind, namespace, name)
        return self._catalog.named.get((api_version, kind, namespace, name))

    def of_kind(self, group: str, kind: str) -> tuple[ConfigObject, ...]:
        """Return all objects of one kind."""
        self._ask("kind", group, kind)
        return self._catalog.of_kind(group, kind)

    def _ask(self, *words: str) -> str:
        # names are what people write: one with a blank must not be taken for two words
        question = " ".join(word.replace("%", "%25").replace(" ", "%20") for word in words)
        self.trace[question] = answer = answer_to(self._catalog, question)
        return answer


def answer_to(catalog: Catalog, question: str) -> str:
    """Return today's answer to a recorded question; "", which is no answer, where nobody could have asked it."""
    match [word.replace("%20", " ").replace("%25", "%") for word in question.split(" ")]:
        case ["type", api_version, kind, namespace]:
            return PRESENT if (api_version, kind, namespace) in catalog.types else ABSENT
        case ["object", api_version, kind, namespace, name]:
            one = catalog.named.get((api_version, kind, namespace, name))
            return one.digest if one else ABSENT
        case ["kind", group, kind]:
            found = catalog.of_kind(group, kind)
            return digest([each.digest for each in found]) if found else ABSENT
        case _:
            # state is a branch, and others can write to it
            return ""


def changed_answers(trace: Trace, facts: Trace, catalog: Catalog) -> tuple[str, ...]:
    """Return the questions of `trace` that are answered differently today, and facts that are new or gone.

    `facts` are the answers that are known without asking (the variant, its upstream, the engine); every
    other question of the trace is asked again. Nothing changed means that the output would be equal.
    """
    moved = [
        name
        for name in sorted({*facts, *(q for q in trace if not _is_question(q))})
        if facts.get(name) != trace.get(name)
    ]
    moved += [q for q in sorted(trace) if _is_question(q) and answer_to(catalog, q) != trace[q]]
    return tuple(moved)


def _is_question(name: str) -> bool:
    return name.startswith(("type ", "object ", "kind "))
