"""The topics of pages: the parts of the fleet that a page shows.

An open page loads again only if one of its topics changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote, unquote

from reconciler.krm.findings import Finding
from reconciler.krm.json_text import compute_digest
from reconciler.output.fleet.model import FleetIndex, shorten_digest

FLEET_TOPIC = "fleet"
"""The topic of pages that show the whole fleet. It changes with each index."""
MAX_TOPICS = 8


def build_change_topic(key: str) -> str:
    """Return the topic of pages that show one change."""
    return f"change:{quote(key, safe='')}"


def build_target_topic(target: str) -> str:
    """Return the topic of pages that show one target with all its packages."""
    return f"target:{quote(target, safe='')}"


def build_package_topic(target: str, package: str) -> str:
    """Return the topic of pages that show one package of a target."""
    return f"package:{quote(target, safe='')}/{quote(package, safe='/')}"


def compute_version(index: FleetIndex, topics: Sequence[str]) -> str:
    """Return the version of the parts of the fleet that `topics` name. It changes if one of these parts changes.

    If a topic is unknown, or if there are more than `MAX_TOPICS` topics, the version changes with each index.
    """
    parts = [topic.partition(":") for topic in topics]
    if not parts or len(parts) > MAX_TOPICS or any(kind not in _DESCRIPTIONS for kind, _, _ in parts):
        return f"{index.completed_at}.{index.number}"
    return shorten_digest(compute_digest([_DESCRIPTIONS[kind](index, name) for kind, _, name in parts]))


def list_target_findings(index: FleetIndex, target: str) -> Sequence[Finding]:
    """Return the findings about a target and its packages."""
    return [
        finding
        for finding in index.findings
        if finding.location.package.partition("/")[0] == target or finding.location.object.endswith(f"/{target}")
    ]


def list_package_findings(index: FleetIndex, target: str, package: str) -> Sequence[Finding]:
    """Return the findings about a package."""
    return [finding for finding in index.findings if finding.location.package == f"{target}/{package}"]


def _describe_change(index: FleetIndex, name: str) -> object:
    change = index.by_change.get(unquote(name))
    if change is None:
        return None
    members = [(index.by_target[member.target], member) for member in change.members]
    rows = (target.by_package[member.package] for target, member in members)
    return [
        change.version,
        [[sorted(target.labels.items()), target.url] for target, _ in members],
        # The page shows on how many targets of a stage the package is published.
        [
            [row.target, row.package, row.state]
            for column in sorted({(row.column, row.owner) for row in rows})
            for row in index.rows_by_column[column]
        ],
    ]


def _describe_target(index: FleetIndex, name: str) -> object:
    target = index.by_target.get(unquote(name))
    if target is None:
        return None
    changes = (index.by_change[draft.change_key] for draft in target.drafts)
    shown = [[change.key, change.title, change.level, change.state, len(change.members)] for change in changes]
    return [target.version, shown, _describe_findings(index, list_target_findings(index, target.name))]


def _describe_package(index: FleetIndex, name: str) -> object:
    target_name, _, package = name.partition("/")
    target = index.by_target.get(unquote(target_name))
    row = target.by_package.get(unquote(package)) if target else None
    if target is None or row is None:
        return None
    findings = list_package_findings(index, target.name, row.package)
    # Include the head, because a local change moves the head of the target, but the row can stay equal.
    return [repr(row), target.head, target.url, target.read_error, _describe_findings(index, findings)]


def _describe_findings(index: FleetIndex, findings: Sequence[Finding]) -> object:
    # Findings link to their files at the commit of the config.
    return [index.config, *map(repr, findings)] if findings else []


_DESCRIPTIONS: Mapping[str, Callable[[FleetIndex, str], object]] = {
    "change": _describe_change, "target": _describe_target, "package": _describe_package,
}  # fmt: skip
