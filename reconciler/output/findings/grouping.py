"""Finds the root causes of findings with their consequences, and groups similar findings.

A finding is a consequence if its message names an object that has an error. For example, the finding of a set names a
Repository with an error, or the finding of a resource names an invalid policy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.krm.findings import MAX_EXAMPLES, Finding, select_errors
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.text import format_object_reference

# Matches an object in a message, as `Kind namespace/name` or `Kind/namespace/name`.
_OBJECT = re.compile(r"\b([A-Z][A-Za-z]*)[ /]([a-z0-9_.-]+/[a-z0-9.-]*[a-z0-9])")
_CLUSTER_SCOPED_OBJECT = re.compile(r"\b([A-Z][A-Za-z]*) ([a-z0-9.-]*[a-z0-9])(?![a-z0-9/])")
_REPOSITORY = re.compile(r"\b(?:Repository ['\"]?|repo(?:sitory)? ['\"])([a-z0-9.-]*[a-z0-9])")
_WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


@dataclass(frozen=True)
class RootCause:
    """A finding that is not a consequence of another finding, with the findings that are its consequences."""

    finding: Finding
    consequences: tuple[Finding, ...] = ()


def find_root_causes(findings: Sequence[Finding]) -> list[RootCause]:
    """Return the root causes in the order of the findings. Each finding belongs to exactly one root cause."""
    causes = map_root_causes(findings)
    consequences: dict[Finding, list[Finding]] = {}
    for finding in findings:
        if finding in causes:
            consequences.setdefault(causes[finding], []).append(finding)
    return [RootCause(finding, tuple(consequences.get(finding, ()))) for finding in findings if finding not in causes]


def map_root_causes(findings: Iterable[Finding]) -> Mapping[Finding, Finding]:
    """Return the root cause of each finding that is a consequence of another finding."""
    unique = list(dict.fromkeys(findings))
    errors: dict[str, Finding] = {}
    for error in select_errors(unique):
        if error.location.object and not error.location.package:
            errors.setdefault(error.location.object, error)
    if not errors:
        return {}
    repositories = {name.rpartition("/")[2]: error for name, error in errors.items() if name.startswith("Repository/")}
    causes = {finding: cause for finding in unique if (cause := _find_direct_cause(finding, errors, repositories))}
    return {finding: root for finding in causes if (root := _follow_causes(finding, causes)) is not finding}


def _find_direct_cause(
    finding: Finding, errors: Mapping[str, Finding], repositories: Mapping[str, Finding]
) -> Finding | None:
    """Return the error about the first object that the message refers to. The object of the finding itself is skipped.

    Args:
        errors: The error of each object, by `Kind/namespace/name`.
        repositories: The error of each Repository, by name.
    """
    location, message = finding.location, finding.message
    own_objects = {location.object, location.owner} if not location.package else set()
    candidates = [errors.get(f"{kind}/{name}") for kind, name in _OBJECT.findall(message)]
    candidates += [errors.get(f"{kind}/_cluster/{name}") for kind, name in _CLUSTER_SCOPED_OBJECT.findall(message)]
    candidates += [repositories.get(name) for name in _REPOSITORY.findall(message)]
    return next(
        (error for error in candidates if error and error is not finding and error.location.object not in own_objects),
        None,
    )


def _follow_causes(finding: Finding, causes: Mapping[Finding, Finding]) -> Finding:
    """Return the last finding in the chain of causes.

    If the chain ends in a cycle, return the finding of the cycle with the lowest location.
    """
    chain = [finding]
    while (cause := causes.get(chain[-1])) is not None:
        if cause in chain:
            return min(chain[chain.index(cause) :], key=lambda error: (error.location, error.code, error.message))
        chain.append(cause)
    return chain[-1]


@dataclass(frozen=True)
class FindingGroup:
    """Findings with equal code and severity whose messages differ only in the names of objects and packages.

    Six or more such findings form one group. Otherwise, each finding forms a group of its own.
    """

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """The finding whose message is shown for the whole group."""
        return self.findings[0]

    @property
    def examples(self) -> tuple[str, ...]:
        """Up to five different locations of the findings, starting with the first finding. () for a single finding."""
        if len(self.findings) == 1:
            return ()
        locations = dict.fromkeys(_format_short_location(finding) for finding in self.findings)
        return tuple(locations)[:MAX_EXAMPLES]

    @property
    def summary(self) -> str:
        """The number of findings and examples, such as `the same at 100 locations: a, b, c, d, e and 95 more`."""
        if len(self.findings) == 1:
            return ""
        rest = len(self.findings) - len(self.examples)
        more = f" and {rest} more" if rest else ""
        return f"the same finding at {len(self.findings)} locations: {', '.join(self.examples)}{more}"


def group_findings(findings: Sequence[Finding]) -> Iterator[FindingGroup]:
    """Yield groups of similar findings, in the order of the first finding of each group.

    More than five similar findings form one group. Other findings form groups of one finding.
    """
    by_code: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        by_code.setdefault((finding.code, finding.severity.value), []).append(finding)
    groups = {id(group[0]): group for same_code in by_code.values() for group in _split_by_message(same_code)}
    for finding in findings:
        if group := groups.get(id(finding)):
            yield FindingGroup(tuple(group))


def _split_by_message(findings: Sequence[Finding]) -> list[list[Finding]]:
    if len(findings) <= MAX_EXAMPLES:
        return [[finding] for finding in findings]
    names = frozenset(name for finding in findings for name in _list_names(finding))
    by_message: dict[str, list[Finding]] = {}
    for finding in findings:
        by_message.setdefault(_mask_names(names, finding.message), []).append(finding)
    groups: list[list[Finding]] = []
    for group in by_message.values():
        groups += [group] if len(group) > MAX_EXAMPLES else [[finding] for finding in group]
    return groups


def _list_names(finding: Finding) -> Iterator[str]:
    location = finding.location
    yield from location.package.split("/")
    yield location.object.rpartition("/")[2]
    yield location.owner.rpartition("/")[2]


def _mask_names(names: frozenset[str], message: str) -> str:
    return _WORD.sub(lambda word: "*" if word[0] in names else word[0], message)


def _format_short_location(finding: Finding) -> str:
    location = finding.location
    if location.package:
        return location.package
    if location.file:
        return f"{location.file}:{location.line}" if location.line else location.file
    return format_object_reference(location.object)
