"""Pins: revisions in the config that keep up with a tag by proposals, and not by themselves (porch 14.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.krm.findings import Finding, Where, softened
from reconciler.rules.variant import Pin, RoomResult, Settling
from reconciler.rules.variants.codes import BY_REASON, UPSTREAM_SETTLING
from reconciler.rules.variants.model import Upstream
from reconciler.rules.variants.read_parts import REWRITE
from reconciler.rules.variants.read_set import REVISION_SET_API_VERSION, read_package_variant_set, read_revision_set
from reconciler.rules.variants.read_variant import read_package_variant
from reconciler.rules.variants.revision_names import is_older
from reconciler.rules.variants.settle import settling_of
from reconciler.rules.variants.surroundings import Surroundings, Unreachable, Upstreams
from reconciler.rules.variants.upstream import Resolved, Unresolved
from reconciler.snapshot.catalog import DEFAULT_NAMESPACE, PORCH_GROUP, Catalog, ConfigObject

_KINDS = (
    (PORCH_GROUP, "PackageVariant"),
    (PORCH_GROUP, "PackageVariantSet"),
    (REVISION_SET_API_VERSION.partition("/")[0], "PackageRevisionSet"),
)
_Path = tuple[str | int, ...]


def result_of_pins(catalog: Catalog, around: Surroundings, upstreams: Upstreams) -> RoomResult:
    """Return every revision of a sound object that stands beside a tag to keep up with, and what is told of them.

    What a set generates is not among them: the set's own file is where its revision stands.
    """
    found = [
        _pin(one, path, upstream, around, upstreams)
        for group, kind in _KINDS
        for one in catalog.of_kind(group, kind)
        for path, upstream in _rewritten(one, around)
    ]
    findings = tuple(finding for _, told in found for finding in told)
    return RoomResult(pins=tuple(pin for pin, _ in found), findings=findings)


def _rewritten(one: ConfigObject, around: Surroundings) -> Iterator[tuple[_Path, Upstream]]:
    paths = list(_upstream_paths(one.data))
    # reading is for the few that ask for it: most objects have been read already for what they make
    if not any(_at(one.data, path).get("tagMode") == REWRITE for path in paths):
        return
    for path, upstream in zip(paths, _read_upstreams(one, around), strict=False):
        if upstream.tag:
            yield path, upstream


def _upstream_paths(data: Mapping[str, Any]) -> Iterator[_Path]:
    spec = data.get("spec")
    if not isinstance(spec, dict):
        return
    if isinstance(spec.get("upstream"), dict):
        yield ("spec", "upstream")
    listed = spec.get("upstreams")
    for index, upstream in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(upstream, dict):
            yield ("spec", "upstreams", index)


def _at(data: Any, path: _Path) -> dict[str, Any]:
    for step in path:
        data = data[step]
    found: dict[str, Any] = data
    return found


def _read_upstreams(one: ConfigObject, around: Surroundings) -> Sequence[Upstream]:
    """Return an object's upstreams in the order of its paths; none of an object that is not sound."""
    match one.key.kind:
        case "PackageVariant":
            variant = read_package_variant(one.data).spec
            return (variant.upstream,) if variant else ()
        case "PackageVariantSet":
            made = read_package_variant_set(one.data, around.cel).spec
            return made.upstreams if made else ()
        case _:
            return read_revision_set(one.data).upstreams


def _pin(
    one: ConfigObject, path: _Path, upstream: Upstream, around: Surroundings, upstreams: Upstreams
) -> tuple[Pin, tuple[Finding, ...]]:
    namespace = one.key.namespace or DEFAULT_NAMESPACE
    written = _at(one.data, path).get("revision")
    where = one.where_at((*path, "tag" if written is None else "revision"))
    package = f"{upstream.repo}/{upstream.package}"

    def pin(named: str | int | None = None, **more: Any) -> Pin:
        line = one.document.line
        return Pin(one.key, one.file, line, (*one.path, *path), package, upstream.tag, written, named, where, **more)

    match upstreams.pinned(namespace, upstream):
        case Unreachable():
            # the objects that need the repository tell of it
            return pin(), ()
        case Unresolved(reason, message):
            return pin(), (softened(BY_REASON[reason].finding(message, where)),)
        case Resolved() as named:
            counts = upstreams.resolve(namespace, upstream)
            holds = isinstance(counts, Resolved) and counts.tree == named.tree
            settling = None if holds else settling_of(upstream.followed, named, around.now)
            if settling:
                return pin(settling=settling), tuple(_waits(settling, where))
            backwards = isinstance(counts, Resolved) and is_older(named.suffix, counts.suffix)
            date = around.upstreams.seconds(around.repositories[namespace, upstream.repo], named.commit)
            return pin(_in_style(written, named), holds=holds, backwards=backwards, seconds=date), ()


def _waits(settling: Settling, where: Where) -> Iterable[Finding]:
    yield UPSTREAM_SETTLING.finding(settling.message, where)


def _in_style(written: object, named: Resolved) -> str | int:
    """Return a revision as people spell theirs: 3, "3" or v3."""
    if named.number > 0 and isinstance(written, int):
        return named.number
    if named.number > 0 and isinstance(written, str) and written.isdecimal():
        return str(named.number)
    return named.suffix
