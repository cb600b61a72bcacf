"""The search in changes, their resources, targets, packages, config objects and finding codes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from urllib.parse import urlencode

from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.model import ChangedResource, FleetIndex, PackageRow, ReviewChange, TargetEntry
from reconciler.server.console.urls import build_change_url, build_package_url, build_target_url

RESOURCE_FIELDS = ("kind", "name", "value")
_FIELD = re.compile(rf"({'|'.join(RESOURCE_FIELDS)}):(\S+)", re.IGNORECASE)
_CAPITAL = re.compile("[A-Z]")


@dataclass(frozen=True)
class SearchResult:
    """A page that a search found."""

    kind: str
    title: str
    url: str
    detail: str = ""


@dataclass(frozen=True)
class ConfigObject:
    """A config object that requests packages."""

    name: str
    package_count: int


@dataclass(frozen=True)
class FoundFindingCode:
    """The code of a finding."""

    name: str


Found = ReviewChange | ChangedResource | TargetEntry | PackageRow | ConfigObject | FoundFindingCode
"""A found object."""


def search(index: FleetIndex, text: str) -> Iterator[tuple[str, Sequence[Found]]]:
    """Yield the kinds and objects whose names contain each word of a text. Upper and lower case are equal.

    The initials of a name in camel case are also found, such as `pvs` for PackageVariantSet. The words `kind:…`,
    `name:…` and `value:…` select resources of changes by a part of their kind, name, or changed values.
    """
    fields = [(name.lower(), value.lower()) for name, value in _FIELD.findall(text)]
    words = _FIELD.sub("", text).lower().split()
    candidates = {"resource": _list_resources(index, fields)} if fields else _list_candidates(index)
    for kind, items in candidates.items():
        for word in words:
            items = [item for item in items if word in item[0]]
        found = list(items)
        if words:
            # Names that start with the text come first.
            found.sort(key=lambda item: not item[0].startswith(words[0]))
        if found:
            yield kind, [item for _, item in found]


def _list_candidates(index: FleetIndex) -> dict[str, Iterable[tuple[str, Found]]]:
    owners = Counter(row.owner for target in index.targets for row in target.packages if row.owner)
    return {
        "change": [(f"{change.title} {change.owner}".lower(), change) for change in index.changes],
        "target": [(target.name.lower(), target) for target in index.targets],
        "package": chain.from_iterable(
            zip(target.search_texts, target.packages, strict=True) for target in index.targets
        ),
        "resource": _list_resources(index, ()),
        "object": [(format_search_text(owner), ConfigObject(owner, owners[owner])) for owner in sorted(owners)],
        "finding": [
            (format_search_text(code), FoundFindingCode(code)) for code in sorted({one.code for one in index.findings})
        ],
    }


def _list_resources(index: FleetIndex, fields: Iterable[tuple[str, str]]) -> Iterator[tuple[str, ChangedResource]]:
    """Yield the resources of changes whose kind, name and values contain these texts. Yield each resource once."""
    seen = set()
    for resource in index.changed_resources:
        texts = {"kind": resource.kind, "name": resource.name, "value": resource.values}
        key = resource.change.key, resource.title
        if key not in seen and all(value in texts[name].lower() for name, value in fields):
            seen.add(key)
            yield format_search_text(resource.title), resource


def format_search_text(name: str) -> str:
    """Return a name in lower case. If its first word is in camel case, append the initials of this word."""
    initials = "".join(_CAPITAL.findall(name.partition(" ")[0]))
    return f"{name} {initials}".lower() if len(initials) > 1 else name.lower()


def build_result(kind: str, found: Found) -> SearchResult:
    """Return the result with the page of a found object."""
    match found:
        case ReviewChange():
            return SearchResult(kind, found.title, build_change_url(found.key), found.owner)
        case ChangedResource():
            url = build_change_url(found.change.key, variant=found.variant)
            return SearchResult(kind, found.title, url, f"{found.change.title}: {found.text}")
        case TargetEntry():
            return SearchResult(kind, found.name, build_target_url(found.name))
        case PackageRow():
            title = f"{found.target}/{found.package}"
            return SearchResult(kind, title, build_package_url(found.target, found.package), found.owner)
        case ConfigObject():
            url = f"/targets?{urlencode({'owner': found.name})}"
            return SearchResult(kind, found.name, url, f"requests {format_count(found.package_count, 'package')}")
        case FoundFindingCode():
            return SearchResult(kind, found.name, f"/findings?{urlencode({'code': found.name})}")
