"""Traces: the questions a render asked of the catalog, and a hash of each answer, absent included (design 5)."""

from __future__ import annotations

from collections.abc import Mapping

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
        return self._ask(f"type {api_version} {kind} {namespace}") == PRESENT

    def named(self, api_version: str, kind: str, namespace: str, name: str) -> ConfigObject | None:
        """Return one object by type, namespace and name."""
        self._ask(f"object {api_version} {kind} {namespace} {name}")
        return self._catalog.named.get((api_version, kind, namespace, name))

    def _ask(self, question: str) -> str:
        self.trace[question] = answer = answer_to(self._catalog, question)
        return answer


def answer_to(catalog: Catalog, question: str) -> str:
    """Return today's answer to a recorded question."""
    what, api_version, kind, namespace, *name = question.split(" ")
    if what == "type":
        return PRESENT if (api_version, kind, namespace) in catalog.types else ABSENT
    found = catalog.named.get((api_version, kind, namespace, name[0]))
    return found.digest if found else ABSENT


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
    return name.startswith(("type ", "object "))
