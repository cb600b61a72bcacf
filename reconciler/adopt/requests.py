"""Package requests: packages that Argo CD or Flux installs on clusters, in a form that does not depend on the tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from reconciler.adopt.units import NotImported
from reconciler.api.package_sources import RepositoryType
from reconciler.catalog.files import FileTree
from reconciler.lazy_dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class RepositoryReference:
    """A repository with upstream packages.

    Attributes:
        branch: The branch, or "" if the type is not `git`.
        is_insecure: Whether a chart repository or registry is read with plain HTTP.
    """

    type: RepositoryType
    url: str
    branch: str = ""
    is_insecure: bool = False


@dataclass(frozen=True)
class UpstreamReference:
    """A package of a repository.

    Attributes:
        package: The path of the folder, or the name of the chart or artifact.
        fields: The fields of `spec.upstream` besides the repository and the package, such as the version.
    """

    repository: RepositoryReference
    package: str
    fields: tuple[tuple[str, str | int], ...]


@dataclass(frozen=True)
class HelmRequest:
    """The options of a chart render.

    Attributes:
        values: The values that override `values_files`. They include the parameters.
        flags: Other fields of `spec.helm`, such as `includeCRDs`.
    """

    release_name: str
    namespace: str
    values_files: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class KustomizeRequest:
    """The options of a Kustomize build.

    Attributes:
        path: The folder of the overlay, relative to the upstream package, or "".
        fields: Other fields of `spec.kustomize`, such as `images`.
        original: The files of the package, as Argo CD and Flux change them before the build: they write `fields` to the
            kustomization file of the overlay. None if there are no fields, or if the files are unknown.
    """

    path: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    original: FileTree | None = None


@dataclass(frozen=True)
class SourceRequest:
    """One of several sources of a package.

    Attributes:
        upstream: The upstream. Its package is "" for the root folder of a repository with values files.
        directory: The folder of the package that receives the files.
        has_resources: Whether the files are resources of the package, and not only values files.
        helm: The options of a chart. None if the options of the package apply.
    """

    name: str
    upstream: UpstreamReference
    directory: str = ""
    has_resources: bool = True
    helm: HelmRequest | None = None
    kustomize: KustomizeRequest | None = None


@dataclass(frozen=True)
class PackageRequest:
    """A package that Argo CD or Flux installs on a cluster.

    Attributes:
        set_name: The name of the object that creates the requests of several clusters, e.g. an ApplicationSet. Without
            such an object, the same as `name`.
        upstream: The upstream. For a package with several sources, the upstream of the first source with resources.
        helm: The options of the only chart.
        sources: All sources of a package with several sources. Empty for a package with one upstream.
        name: The name of the Application, Kustomization or HelmRelease.
        package: The path of the package on the cluster.
        namespace: The namespace of resources without a namespace.
        config_files: Files that are copied into the config, because the chart does not contain them.
    """

    set_name: str
    name: str
    cluster: str
    package: str
    upstream: UpstreamReference
    helm: HelmRequest | None = None
    namespace: str = ""
    config_files: Mapping[str, bytes] = field(default_factory=dict)
    file: str = ""
    kustomize: KustomizeRequest | None = None
    sources: tuple[SourceRequest, ...] = ()

    @property
    def upstreams(self) -> tuple[UpstreamReference, ...]:
        """The upstream, or the upstreams of all sources."""
        return tuple(source.upstream for source in self.sources) or (self.upstream,)

    def change_upstreams(self, change: Callable[[UpstreamReference], UpstreamReference]) -> PackageRequest:
        """Return the request with changed upstreams."""
        sources = tuple(replace(source, upstream=change(source.upstream)) for source in self.sources)
        return replace(self, upstream=change(self.upstream), sources=sources)


class RepositoryReader(Protocol):
    """Reads the repositories that the imported objects name."""

    def __call__(self, url: str, revision: str) -> FileTree | str:
        """Return the files of a Git repository at a revision, or the reason why they cannot be read."""
        ...


@dataclass(frozen=True)
class ReadRequests:
    """The package requests in the imported files, the labels of clusters, and the parts that cannot be imported."""

    requests: tuple[PackageRequest, ...]
    labels: Mapping[str, Mapping[str, str]]
    not_imported: tuple[NotImported, ...]
