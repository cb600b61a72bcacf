"""The fields of a PackageVariant for its upstream or its sources, with literal options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.adopt.requests import (
    HelmRequest,
    KustomizeRequest,
    PackageRequest,
    RepositoryReference,
    SourceRequest,
    UpstreamReference,
)
from reconciler.krm.json_text import encode_canonical_json

Names = Mapping[RepositoryReference, str]


def build_source(request: PackageRequest, names: Names) -> dict[str, Any]:
    """Return the field `upstream`, or the fields for several sources.

    If several sources contain the same resource, the package uses the resource of the last source, as Argo CD does.

    Args:
        names: The names of the Repositories.
    """
    if not request.sources:
        return {"upstream": build_upstream(request.upstream, names)}
    sources = [_build_source_entry(source, names) for source in request.sources]
    return {"sources": sources, "onRepeatedResource": "lastWins"}


def build_upstream(upstream: UpstreamReference, names: Names) -> dict[str, Any]:
    """Return the fields of an upstream."""
    kind = "chart" if upstream.repository.type == "helm" else "package"
    package = {kind: upstream.package} if upstream.package else {}
    return {"repo": names[upstream.repository], **package, **dict(upstream.fields)}


def _build_source_entry(source: SourceRequest, names: Names) -> dict[str, Any]:
    return {"name": source.name, **build_upstream(source.upstream, names), **_build_source_options(source)}


def _build_source_options(source: SourceRequest) -> dict[str, Any]:
    options: dict[str, Any] = {"directory": source.directory} if source.directory else {}
    if not source.has_resources:
        options["ref"] = True
    if source.helm:
        options["helm"] = _build_helm(source.helm)
    if source.kustomize:
        options |= _build_kustomize(source.kustomize)
    return options


def describe_sources(request: PackageRequest) -> str:
    """Return the names and options of all sources as text, without the upstreams of the sources."""
    return encode_canonical_json([[source.name, _build_source_options(source)] for source in request.sources]).decode()


def build_literal_options(request: PackageRequest) -> dict[str, Any]:
    """Return the fields `helm` and `kustomize` for one cluster."""
    options = {"helm": _build_helm(request.helm)} if request.helm else {}
    return {**options, **_build_kustomize(request.kustomize)} if request.kustomize else options


def _build_helm(request: HelmRequest) -> dict[str, Any]:
    options: dict[str, Any] = {"releaseName": request.release_name, "namespace": request.namespace, **request.flags}
    if request.values_files:
        options["valuesFiles"] = [*request.values_files]
    if request.values:
        options["values"] = dict(request.values)
    return options


def _build_kustomize(request: KustomizeRequest) -> dict[str, Any]:
    path = {"path": request.path} if request.path else {}
    options = {**path, **request.fields}
    return {"kustomize": options} if options else {}
