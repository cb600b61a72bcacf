"""Root causes: which findings are consequences of another finding, so that the cause is printed first, and once.

A finding is a consequence of an error about an object that its message names: a set names a Repository that cannot be
used, a resource names a policy that is invalid.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.krm.findings import Finding, errors

# An object as messages name it: `Kind/namespace/name`, or a Repository by its name alone.
_OBJECT = re.compile(r"\b[A-Z][A-Za-z]*/[a-z0-9_.-]+/[a-z0-9.-]*[a-z0-9]")
_REPOSITORY = re.compile(r"\b(?:Repository ['\"]?|repo(?:sitory)? ['\"])([a-z0-9.-]*[a-z0-9])")


@dataclass(frozen=True)
class RootCause:
    """A finding that no other one explains, with the findings that it explains, in their order."""

    finding: Finding
    consequences: tuple[Finding, ...] = ()


def root_causes(findings: Sequence[Finding]) -> list[RootCause]:
    """Return the root causes in the order of the findings; each finding is in one of them, once."""
    causes = causes_of(findings)
    below: dict[Finding, list[Finding]] = {}
    for one in findings:
        if one in causes:
            below.setdefault(causes[one], []).append(one)
    return [RootCause(one, tuple(below.get(one, ()))) for one in findings if one not in causes]


def causes_of(findings: Iterable[Finding]) -> Mapping[Finding, Finding]:
    """Return the root cause of each finding that is a consequence of another one."""
    known = list(dict.fromkeys(findings))
    by_object: dict[str, Finding] = {}
    for one in errors(known):
        if one.where.object and not one.where.package:
            by_object.setdefault(one.where.object, one)
    if not by_object:
        return {}
    repositories = {name.rpartition("/")[2]: one for name, one in by_object.items() if name.startswith("Repository/")}
    direct = {one: cause for one in known if (cause := _direct_cause(one, by_object, repositories))}
    return {one: _root(one, direct) for one in direct if _root(one, direct) is not one}


def _direct_cause(
    finding: Finding, by_object: Mapping[str, Finding], repositories: Mapping[str, Finding]
) -> Finding | None:
    where = finding.where
    about = {where.object, where.owner} if not where.package else set()
    found = [by_object.get(name) for name in _OBJECT.findall(finding.message)]
    found += [repositories.get(name) for name in _REPOSITORY.findall(finding.message)]
    return next((one for one in found if one and one is not finding and one.where.object not in about), None)


def _root(finding: Finding, direct: Mapping[Finding, Finding]) -> Finding:
    """Return the end of the chain of causes; of findings that name each other, the first of the cycle by its place."""
    chain = [finding]
    while (cause := direct.get(chain[-1])) is not None:
        if cause in chain:
            return min(chain[chain.index(cause) :], key=lambda one: (one.where, one.code, one.message))
        chain.append(cause)
    return chain[-1]
