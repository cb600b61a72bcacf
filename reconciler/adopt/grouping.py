"""Conversion of package requests to PackageVariantSets and PackageVariants, with their Repositories."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.adopt.chart_options import ChartOptions, build_shared_options, count_differences
from reconciler.adopt.expressions import format_expression, generalize
from reconciler.adopt.generated import (
    CATALOG,
    Documents,
    GeneratedConfig,
    GeneratedPackage,
    build_package_set,
    build_targets,
    build_variant,
)
from reconciler.adopt.package_sources import build_literal_options, build_source, build_upstream, describe_sources
from reconciler.adopt.requests import KustomizeRequest, PackageRequest, RepositoryReference, UpstreamReference
from reconciler.adopt.units import MAX_DIFFERENT_LEAVES, Choice, Cluster
from reconciler.catalog.files import File, FileTree
from reconciler.krm.json_text import compute_digest, encode_canonical_json
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.scaffold.documents import build_catalog

_ORIGINALS = RepositoryReference("git", "")
"""The reference to the catalog for overlays of Argo CD and Flux, whose files contain the options."""
_NOT_IN_NAME = re.compile(r"[^-a-z0-9.]+")


@dataclass(frozen=True)
class _Group:
    """Requests that share an upstream and differ in few options."""

    requests: tuple[PackageRequest, ...]

    @property
    def first(self) -> PackageRequest:
        return self.requests[0]

    @property
    def clusters(self) -> tuple[str, ...]:
        return tuple(request.cluster for request in self.requests)


def generate_from_requests(requests: Iterable[PackageRequest], clusters: Sequence[Cluster]) -> GeneratedConfig:
    """Return the config objects for package requests from Argo CD or Flux.

    Similar requests with the same `set_name` become one PackageVariantSet.
    """
    ordered = sorted(requests, key=lambda request: (request.set_name, request.package, request.cluster))
    names = _name_repositories(ordered)
    by_set: dict[str, list[_Group]] = {}
    for group in _divide(ordered, clusters):
        by_set.setdefault(group.first.set_name, []).append(group)
    packages: list[GeneratedPackage] = []
    choices: list[Choice] = []
    used: set[str] = set()
    for set_name, groups in by_set.items():
        for members in _combine(groups):
            label = set_name if len(members) == len(groups) else f"{set_name}-{members[0].first.package}"
            if len(members) == 1 and len(members[0].requests) == 1 and len(groups) > 1:
                label = f"{set_name}-{members[0].first.package}-{members[0].first.cluster}"
            name = _choose_unused_name(label, used)
            package, reasons = _build_package(name, members, clusters, names)
            packages.append(package)
            choices += reasons
    return GeneratedConfig(
        tuple(packages),
        _build_repositories(names),
        {path: data for request in ordered for path, data in request.config_files.items()},
        choices=tuple(choices),
    )


def generate_separately(requests: Iterable[PackageRequest], clusters: Sequence[Cluster]) -> GeneratedConfig:
    """Return one PackageVariant per request, with the options of the request as literal values.

    If the files of an overlay with all its Kustomize options are known, the catalog gets a package with these files.
    The PackageVariant then uses this package, and has no Kustomize options.
    """
    ordered = [*requests]
    names = {_ORIGINALS: CATALOG, **_name_repositories(ordered, CATALOG)}
    packages = []
    for number, request in enumerate(ordered):
        name = f"request-{number}"
        original, overlays = _use_original_overlays(request, name)
        options = build_literal_options(original)
        variant = build_variant(name, build_source(original, names), request.cluster, request.package, options)
        packages.append(GeneratedPackage(name, (request.package,), (request.cluster,), (variant,), overlays))
    files = {path: data for request in ordered for path, data in request.config_files.items()}
    return GeneratedConfig(tuple(packages), _build_repositories(names), files)


def _use_original_overlays(request: PackageRequest, name: str) -> tuple[PackageRequest, FileTree | None]:
    """Move overlays into a new package of the catalog. Return the changed request and the files of the new package.

    An overlay is moved if `KustomizeRequest.original` contains its files. These files already contain its options.
    Therefore, the changed request has no options for this overlay. If no overlay is moved, the files are None.
    """
    files: dict[str, File] = {}

    def use(folder: str, upstream: UpstreamReference, kustomize: KustomizeRequest) -> tuple[Any, Any]:
        if kustomize.original is None:
            return upstream, kustomize
        files.update({f"{folder}/{path}": file for path, file in kustomize.original.items()})
        original = UpstreamReference(_ORIGINALS, f"{name}/{folder}", (("revision", -1),))
        return original, replace(kustomize, fields={})

    if request.kustomize:
        upstream, kustomize = use("overlay", request.upstream, request.kustomize)
        request = replace(request, upstream=upstream, kustomize=kustomize)
    sources = []
    for source in request.sources:
        if source.kustomize:
            upstream, kustomize = use(source.name, source.upstream, source.kustomize)
            source = replace(source, upstream=upstream, kustomize=kustomize)
        sources.append(source)
    return replace(request, sources=tuple(sources)), FileTree(files) if files else None


def _divide(requests: Iterable[PackageRequest], clusters: Sequence[Cluster]) -> Iterator[_Group]:
    labels = {cluster.name: cluster.labels for cluster in clusters}
    by_key: dict[tuple[Any, ...], list[PackageRequest]] = {}
    for request in requests:
        shape = _build_shape(request, labels[request.cluster])
        key = (request.set_name, request.package, request.upstreams, describe_sources(request), shape)
        by_key.setdefault(key, []).append(request)
    for remaining in by_key.values():
        while remaining:
            first = remaining[0]
            near = [request for request in remaining if count_differences(first, request) <= MAX_DIFFERENT_LEAVES]
            yield _Group(tuple(near))
            clusters_in_group = {request.cluster for request in near}
            remaining = [request for request in remaining if request.cluster not in clusters_in_group]


def _build_shape(request: PackageRequest, labels: Mapping[str, str]) -> str:
    """Return a text that is equal for requests that can share one template."""
    if request.helm:
        return ChartOptions.from_request(request, labels).shape
    if request.kustomize:
        parts = generalize(request.kustomize.path, request.cluster, labels)
        return encode_canonical_json([parts, dict(request.kustomize.fields)]).decode()
    return ""


def _combine(groups: Sequence[_Group]) -> Iterator[list[_Group]]:
    """Combine groups with the same clusters, because one PackageVariantSet can have several upstreams.

    A group whose package has several sources is not combined, because it needs its own PackageVariantSet.
    """
    by_clusters: dict[tuple[str, ...], list[_Group]] = {}
    for group in groups:
        if group.first.sources:
            yield [group]
            continue
        by_clusters.setdefault(group.clusters, []).append(group)
    yield from by_clusters.values()


def _build_package(
    name: str, groups: Sequence[_Group], clusters: Sequence[Cluster], names: Mapping[RepositoryReference, str]
) -> tuple[GeneratedPackage, list[Choice]]:
    packages = tuple(group.first.package for group in groups)
    names_of_clusters = groups[0].clusters
    if len(groups) == 1 and len(groups[0].requests) == 1:
        first = groups[0].first
        options = build_literal_options(first)
        variant = build_variant(name, build_source(first, names), first.cluster, first.package, options)
        choice = Choice(name, f"PackageVariant {name}", "only one cluster has this source with these options")
        return GeneratedPackage(name, packages, names_of_clusters, (variant,)), [choice]
    documents: list[Mapping[str, Any]] = []
    choices: list[Choice] = []
    templates: list[dict[str, Any]] = []
    for group in groups:
        request = group.first
        template: dict[str, Any] = {"downstream": {"package": request.package}}
        if request.helm:
            shared = build_shared_options(name, group.requests, clusters, is_alone=len(groups) == 1)
            template["helm"] = shared.helm
            documents += shared.config_maps
            choices += (Choice(name, choice.subject, choice.reason) for choice in shared.choices)
        if request.kustomize and (options := _build_overlay_template(group, clusters)):
            template["kustomize"] = options
        templates.append(template)
    if len(groups) == 1:
        template = {"adoptionPolicy": "adoptExisting", **templates[0]}
        targets, reason = build_targets(names_of_clusters, clusters, template)
        owner = build_package_set(name, build_source(groups[0].first, names), targets)
    else:
        targets, reason = build_targets(names_of_clusters, clusters, {"adoptionPolicy": "adoptExisting"})
        upstreams = [
            {**build_upstream(group.first.upstream, names), "template": template}
            for group, template in zip(groups, templates, strict=True)
        ]
        owner = build_package_set(name, {"upstreams": upstreams}, targets)
    choices.insert(0, Choice(name, f"PackageVariantSet {name}", reason))
    return GeneratedPackage(name, packages, names_of_clusters, (owner, *documents)), choices


def _build_overlay_template(group: _Group, clusters: Sequence[Cluster]) -> dict[str, Any]:
    labels = next(cluster.labels for cluster in clusters if cluster.name == group.first.cluster)
    paths = {request.kustomize.path for request in group.requests if request.kustomize}
    assert group.first.kustomize
    path = group.first.kustomize.path
    if len(paths) > 1:
        fields = {"pathExpr": format_expression(generalize(path, group.first.cluster, labels))}
    else:
        fields = {"path": path} if path else {}
    return {**fields, **group.first.kustomize.fields}


def _name_repositories(requests: Iterable[PackageRequest], *used_names: str) -> Mapping[RepositoryReference, str]:
    names: dict[RepositoryReference, str] = {}
    used: set[str] = {*used_names, *(request.cluster for request in requests)}
    for repository in (upstream.repository for request in requests for upstream in request.upstreams):
        if repository not in names:
            base = posixpath.basename(repository.url.rstrip("/")).removesuffix(".git")
            names[repository] = _choose_unused_name(f"{base}-{repository.branch}".removesuffix("-"), used)
    return names


def _choose_unused_name(text: str, used: set[str]) -> str:
    name = base = _NOT_IN_NAME.sub("-", text.lower()).strip("-.") or f"r-{compute_digest(text)[:8]}"
    number = 2
    while name in used:
        name, number = f"{base}-{number}", number + 1
    used.add(name)
    return name


def _build_repositories(names: Mapping[RepositoryReference, str]) -> Documents:
    return tuple(
        build_catalog(name, repository.type, repository.url, repository.branch, is_insecure=repository.is_insecure)
        for repository, name in sorted(names.items(), key=lambda pair: pair[1])
        if repository != _ORIGINALS
    )
