"""The search in targets, packages, changes, owners and finding codes."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.model import FleetIndex
from reconciler.server.console.listing import read_text
from reconciler.server.console.page import PageContent, PageRequest
from reconciler.server.console.urls import build_package_url, build_target_url

_MAX_RESULTS_PER_KIND = 20


@dataclass(frozen=True)
class SearchResult:
    """A page that a search found."""

    kind: str
    title: str
    url: str
    detail: str = ""


def build_page(page: PageRequest) -> PageContent:
    """Build the page with the results of the query parameter `q`."""
    text = read_text(page.request.query_params, "q")
    groups: dict[str, list[SearchResult]] = {}
    counts: dict[str, int] = {}
    for result in search(page.index, text) if text else ():
        counts[result.kind] = counts.get(result.kind, 0) + 1
        if counts[result.kind] <= _MAX_RESULTS_PER_KIND:
            groups.setdefault(result.kind, []).append(result)
    return PageContent("search.html", {"text": text, "groups": groups, "counts": counts}, is_from_index=True)


def search(index: FleetIndex, text: str) -> Iterator[SearchResult]:
    """Yield all pages whose title contains each word of a text. Upper and lower case are equal."""
    words = text.lower().split()

    def matches(*texts: str) -> bool:
        content = " ".join(texts).lower()
        return all(word in content for word in words)

    for change in index.changes:
        if matches(change.title, change.owner):
            yield SearchResult("change", change.title, f"/changes/{change.key}", change.owner)
    for target in index.targets:
        if matches(target.name):
            yield SearchResult("target", target.name, build_target_url(target.name))
    for target in index.targets:
        for row in target.packages:
            if matches(target.name, row.package, row.owner):
                yield SearchResult(
                    "package", f"{target.name}/{row.package}", build_package_url(target.name, row.package), row.owner
                )
    for code in sorted({finding.code for finding in index.findings}):
        if matches(code):
            yield SearchResult("finding", code, f"/findings?code={code}")
