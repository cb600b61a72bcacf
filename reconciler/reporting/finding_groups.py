"""Groups of similar findings: one mistake that many clusters have in common is shown once, with a few examples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reconciler.krm.findings import Finding
from reconciler.krm.messages import MAX_EXAMPLES

_WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


@dataclass(frozen=True)
class FindingGroup:
    """Findings with the same code and severity, whose messages differ only in the names of objects and packages.

    A group has one finding or more than five, because up to five similar findings are shown one by one.
    """

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """The finding that is shown in full."""
        return self.findings[0]

    @property
    def examples(self) -> tuple[str, ...]:
        """Up to five different places, that of the first finding included; empty for a single finding."""
        if len(self.findings) == 1:
            return ()
        places = dict.fromkeys(_place(one) for one in self.findings)
        return tuple(places)[:MAX_EXAMPLES]

    @property
    def summary(self) -> str:
        """What the other findings of the group are: `the same at 100 places: a, b, c, d, e, … and 95 more`."""
        if len(self.findings) == 1:
            return ""
        rest = len(self.findings) - len(self.examples)
        more = [f"… and {rest} more"] if rest else []
        return f"the same at {len(self.findings)} places: {', '.join([*self.examples, *more])}"


def group_findings(findings: Sequence[Finding]) -> Iterator[FindingGroup]:
    """Yield the findings in their order, more than five similar ones as one group at the place of the first."""
    kinds: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        kinds.setdefault((one.code, one.severity.value), []).append(one)
    groups = {id(one): group for same in kinds.values() for group in _groups_of(same) for one in group[:1]}
    for one in findings:
        if group := groups.get(id(one)):
            yield FindingGroup(tuple(group))


def _groups_of(same: Sequence[Finding]) -> list[list[Finding]]:
    if len(same) <= MAX_EXAMPLES:
        return [[one] for one in same]
    names = frozenset(name for one in same for name in _names(one))
    alike: dict[str, list[Finding]] = {}
    for one in same:
        alike.setdefault(_without(names, one.message), []).append(one)
    found: list[list[Finding]] = []
    for group in alike.values():
        found += [group] if len(group) > MAX_EXAMPLES else [[one] for one in group]
    return found


def _names(finding: Finding) -> Iterator[str]:
    where = finding.where
    yield from where.package.split("/")
    yield where.object.rpartition("/")[2]
    yield where.owner.rpartition("/")[2]


def _without(names: frozenset[str], message: str) -> str:
    return _WORD.sub(lambda word: "*" if word[0] in names else word[0], message)


def _place(finding: Finding) -> str:
    where = finding.where
    if where.package:
        return where.package
    if where.file:
        return f"{where.file}:{where.line}" if where.line else where.file
    return where.object
