"""The search in targets, packages, changes, owners and finding codes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from urllib.parse import urlencode

from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.model import FleetIndex, PackageRow, ReviewChange, TargetEntry
from reconciler.server.console.urls import build_package_url, build_target_url


@dataclass(frozen=True)
class SearchResult:
    """A page that a search found."""

    kind: str
    title: str
    url: str
    detail: str = ""


Found = ReviewChange | TargetEntry | PackageRow | str
"""A found object. A text is a finding code."""


def search(index: FleetIndex, text: str) -> Iterator[tuple[str, Sequence[Found]]]:
    """Yield the kinds and objects whose names contain each word of a text. Upper and lower case are equal."""
    words = text.lower().split()
    candidates: dict[str, Iterable[tuple[str, Found]]] = {
        "change": [(f"{change.title} {change.owner}".lower(), change) for change in index.changes],
        "target": [(target.name.lower(), target) for target in index.targets],
        "package": chain.from_iterable(
            zip(target.search_texts, target.packages, strict=True) for target in index.targets
        ),
        "finding": [(code.lower(), code) for code in sorted({finding.code for finding in index.findings})],
    }
    for kind, items in candidates.items():
        for word in words:
            items = [item for item in items if word in item[0]]
        if found := [item for _, item in items]:
            yield kind, found


def build_result(kind: str, found: Found) -> SearchResult:
    """Return the result with the page of a found object."""
    match found:
        case ReviewChange():
            return SearchResult(kind, found.title, f"/changes/{found.key}", found.owner)
        case TargetEntry():
            return SearchResult(kind, found.name, build_target_url(found.name))
        case PackageRow():
            title = f"{found.target}/{found.package}"
            return SearchResult(kind, title, build_package_url(found.target, found.package), found.owner)
        case str():
            return SearchResult(kind, found, f"/findings?{urlencode({'code': found})}")
