"""What the summary of the status branch says is not well; everybody may edit it, so what is no record is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.krm.findings import Severity
from reconciler.reporting.package_status import text
from reconciler.reporting.sections import items, section
from reconciler.reporting.standing import totals_words
from reconciler.reporting.values import count

_WITHOUT_PLURAL = ("not ready",)
_ORDER = ("not ready", *(one.value for one in Severity))


@dataclass(frozen=True)
class Trouble:
    """One thing that is not well: how bad, where, a word for tools, a sentence for people."""

    kind: str
    place: str
    reason: str
    message: str


def troubles_of(summary: Mapping[str, Any]) -> tuple[Trouble, ...]:
    """Return the objects that are not ready, and the findings, errors first."""
    return tuple(sorted(_troubles(summary), key=lambda one: _ORDER.index(one.kind)))


def totals_of(summary: Mapping[str, Any]) -> str:
    """Return the totals of the summary in words; "" where it has none."""
    totals = {name: number for name, number in section(summary, "totals").items() if isinstance(number, int)}
    return totals_words(totals) if totals.keys() >= {"packages", "destinations"} else ""


def count_words(troubles: Iterable[Trouble]) -> str:
    """Return how many troubles of each kind there are, in a phrase; "" without any."""
    numbers = Counter(one.kind for one in troubles)
    return ", ".join(_number(numbers[kind], kind) for kind in _ORDER if numbers[kind])


def _number(number: int, kind: str) -> str:
    return f"{number} {kind}" if kind in _WITHOUT_PLURAL else count(number, kind)


def _troubles(summary: Mapping[str, Any]) -> Iterator[Trouble]:
    for one in items(summary, "notReady"):
        yield Trouble("not ready", text(one, "object"), text(one, "reason"), text(one, "message"))
    for one in items(summary, "findings"):
        if (severity := text(one, "severity")) in _ORDER:
            yield Trouble(severity, _place(one), text(one, "code"), text(one, "message"))


def _place(finding: Mapping[str, Any]) -> str:
    file, line = text(finding, "file"), finding.get("line")
    where = f"{file}:{line}" if file and isinstance(line, int) else file or text(finding, "object")
    return " ".join(filter(None, (text(finding, "package"), where)))
