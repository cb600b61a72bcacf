"""Detection of upstream cycles: packages that would be created from themselves, directly or through other packages."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.catalog.catalog import Catalog
from reconciler.controllers.package_variants import status
from reconciler.controllers.package_variants.codes import VariantCodes
from reconciler.controllers.package_variants.inputs import PackageVariantInputs
from reconciler.controllers.repositories import format_kptfile_url
from reconciler.controllers.results import ControllerResult, PackageTarget, StalledVariant, Variant
from reconciler.krm.findings import SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.package import join_path

_MAX_LISTED = 20

BranchPath = tuple[str, str, str]


@dataclass(frozen=True)
class UpstreamLink:
    """A connection from an upstream package (`start`) to the package that is created from it (`end`).

    `start` and `end` contain the URL, branch and path instead of the Repository name, because several Repositories can
    have the same URL.
    """

    key: ObjectKey
    start: BranchPath
    end: BranchPath
    summary: str = ""


def stall_cycles(result: ControllerResult, catalog: Catalog, inputs: PackageVariantInputs) -> ControllerResult:
    """Return the controller result after every package variant on an upstream cycle is replaced by a stalled variant.

    A package variant that is not on a cycle is not changed, even if it depends on a cycle. If several package variants
    request one target, all these package variants are checked. Planning decides later which package variant may create
    the package.
    """
    variants: dict[ObjectKey, Variant | StalledVariant] = {variant.owner.key: variant for variant in result.variants}
    variants |= {variant.owner.key: variant for variant in result.stalled}
    locations = _Locations(inputs)
    links = [link for variant in variants.values() for link in _iterate_links(variant, locations)]
    messages: dict[ObjectKey, str] = {}
    for cycle in find_cycles(links):
        for link in cycle:
            messages.setdefault(link.key, _format_message(cycle))
    if not messages:
        return result
    on_cycles = [_stall(variants[key], message, catalog) for key, message in messages.items()]
    return replace(
        result,
        variants=tuple(variant for variant in result.variants if variant.owner.key not in messages),
        stalled=(*(variant for variant in result.stalled if variant.owner.key not in messages), *on_cycles),
    )


def find_cycles(links: Iterable[UpstreamLink]) -> Iterator[Sequence[UpstreamLink]]:
    """Yield the cycles of the links, so that each link on a cycle is in at least one result.

    Each result is the shortest cycle through one of its links. The result starts at the link with the lowest key.
    """
    candidates = _remove_dead_ends(sorted(links, key=lambda link: link.key))
    links_by_start: dict[BranchPath, list[UpstreamLink]] = {}
    for link in candidates:
        links_by_start.setdefault(link.start, []).append(link)
    reported: set[ObjectKey] = set()
    for link in candidates:
        if link.key not in reported and (cycle := _find_shortest_cycle(link, links_by_start)):
            reported.update(member.key for member in cycle)
            yield _rotate_to_lowest_key(cycle)


def _remove_dead_ends(links: Sequence[UpstreamLink]) -> Sequence[UpstreamLink]:
    """Return the links that remain if links without a predecessor or successor are removed repeatedly.

    The remaining links are on cycles or on paths between cycles.
    """
    while True:
        starts, ends = {link.start for link in links}, {link.end for link in links}
        remaining = [link for link in links if link.start in ends and link.end in starts]
        if len(remaining) == len(links):
            return remaining
        links = remaining


def _find_shortest_cycle(
    first: UpstreamLink, links_by_start: Mapping[BranchPath, Sequence[UpstreamLink]]
) -> Sequence[UpstreamLink]:
    """Return the shortest cycle that begins with the link `first`. Return () if there is no such cycle."""
    link_to: dict[BranchPath, UpstreamLink] = {first.end: first}
    pending = deque([first.end])
    while pending and first.start not in link_to:
        for link in links_by_start.get(pending.popleft(), ()):
            if link.end not in link_to:
                link_to[link.end] = link
                pending.append(link.end)
    if first.start not in link_to:
        return ()
    path = [link_to[first.start]]
    while path[-1] is not first:
        path.append(link_to[path[-1].start])
    return path[::-1]


def _rotate_to_lowest_key(cycle: Sequence[UpstreamLink]) -> Sequence[UpstreamLink]:
    start = min(range(len(cycle)), key=lambda index: cycle[index].key)
    return (*cycle[start:], *cycle[:start])


def _format_message(cycle: Sequence[UpstreamLink]) -> str:
    more = f", and {len(cycle) - _MAX_LISTED} more" if len(cycle) > _MAX_LISTED else ""
    summaries = ", ".join(link.summary for link in cycle[:_MAX_LISTED])
    return f"a package cannot be created from itself; change one of these upstreams: {summaries}{more}"


class _Locations:
    """Locations of package targets. The URL of each Repository is resolved only once."""

    def __init__(self, inputs: PackageVariantInputs) -> None:
        self._inputs = inputs
        self._urls: dict[tuple[str, str], str] = {}

    def find_location(self, target: PackageTarget) -> BranchPath | None:
        """Return the URL, branch and path of a target. Return None if its Repository does not exist."""
        repository_key = (target.namespace, target.repository)
        repository = self._inputs.repositories.get(repository_key)
        if repository is None or repository.artifacts:
            return None
        if repository_key not in self._urls:
            self._urls[repository_key] = format_kptfile_url(self._inputs.upstreams.get_url(repository))
        return self._urls[repository_key], repository.branch, join_path(repository.directory, target.package)


def _iterate_links(variant: Variant | StalledVariant, locations: _Locations) -> Iterator[UpstreamLink]:
    target, key = variant.target, variant.owner.key
    end = locations.find_location(target) if target else None
    for upstream_target in _list_upstream_targets(variant) if end else ():
        if end and (start := locations.find_location(upstream_target)):
            summary = f"{key.namespace}/{key.name} creates {target} from {upstream_target}"
            yield UpstreamLink(key, start, end, summary)


def _list_upstream_targets(variant: Variant | StalledVariant) -> tuple[PackageTarget, ...]:
    if isinstance(variant, StalledVariant):
        return (variant.upstream_target,) if variant.upstream_target else ()
    packages = variant.upstream.packages if variant.upstream else ()
    return tuple(PackageTarget(package.namespace, package.repository, package.package) for package in packages)


def _stall(variant: Variant | StalledVariant, message: str, catalog: Catalog) -> StalledVariant:
    conditions = status.build_stalled_conditions(VariantCodes.UPSTREAM_CYCLE.name, message)
    finding = VariantCodes.UPSTREAM_CYCLE.finding(message, _locate(variant, catalog))
    return StalledVariant(
        variant.owner, conditions, (finding,), variant.target, next(iter(_list_upstream_targets(variant)), None)
    )


def _locate(variant: Variant | StalledVariant, catalog: Catalog) -> SourceLocation:
    # Use the location of the set if a set generated the PackageVariant, because the path exists only in a
    # PackageVariant.
    manifest = catalog.get(variant.owner.parent or variant.owner.key)
    assert manifest is not None, "the config contains every owner of a package variant"
    return manifest.location if variant.owner.parent else manifest.location_of(("spec", "upstream"))
