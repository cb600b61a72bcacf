"""Packages that a PackageVariant or a set may ask for while it is not ready, by its text alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

_ANY_REPOSITORY = ("repositorySelector", "objectSelector", "objects", "repoExpr")
_ANY_PACKAGE = ("packageExpr", "upstreamSets")


Claim = Literal["no", "possible", "named"]


def claim_of(data: Mapping[str, Any], repository: str, package: str) -> Claim:
    """Return whether an object that is not ready asks for a package on a repository.

    `named`: its text has both names. `possible`: a selector or an expression may lead anywhere, and so may a spec that
    names nothing.
    """
    spec = data.get("spec")
    if not isinstance(spec, dict):
        return "possible"
    found = list(_fields(spec))
    names = {name for _, name, _ in found}
    repositories = {value for parent, name, value in found if (parent, name) in _REPOSITORY_FIELDS}
    packages = {value for parent, name, value in found if (parent, name) in _PACKAGE_FIELDS}
    is_any_repository = not repositories or not names.isdisjoint(_ANY_REPOSITORY)
    is_any_package = not packages or not names.isdisjoint(_ANY_PACKAGE)
    if repository in repositories and package in packages:
        return "named"
    is_possible = (is_any_repository or repository in repositories) and (is_any_package or package in packages)
    return "possible" if is_possible else "no"


_REPOSITORY_FIELDS = frozenset({("downstream", "repo"), ("repositories", "name")})
_PACKAGE_FIELDS = frozenset(
    {("downstream", "package"), ("upstream", "package"), ("upstreams", "package"), ("packageNames", "")}
)


def _fields(data: Any, parent: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield the fields of nested data: the field or list that each is in, its name, its value if that is text."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield parent, str(name), value if isinstance(value, str) else None
            yield from _fields(value, str(name))
    elif isinstance(data, list):
        for item in data:
            if isinstance(item, str):
                yield parent, "", item
            yield from _fields(item, parent)
