"""Targets: the branches that receive packages, and the paths of packages in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.api.porch.manifest import PORCH_API_VERSION
from reconciler.controllers.results import ConfigSources
from reconciler.krm.findings import SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field

STATUS_FOLDER = ".reconciler"


@dataclass(frozen=True)
class Target:
    """A location that receives packages: a Repository, or the branch of a cluster in the fleet repository.

    Attributes:
        key: The object that defines the target.
        display_url: The URL as written in the config, without credentials.
        directory: The folder of the packages, without a trailing slash, or "" for the root of the repository.
        tag_prefix: The prefix of the tags of published revisions.
        normalized_url: The normal form of the URL, which is equal for all spellings. "" if `url` is in normal form.
        definition_sources: The config files of the Repository, and of the objects of the cluster.
    """

    key: ObjectKey
    url: str
    display_url: str
    branch: str
    directory: str
    is_deployment: bool
    location: SourceLocation
    tag_prefix: str = ""
    api_version: str = PORCH_API_VERSION
    normalized_url: str = ""
    definition_sources: ConfigSources = field(default_factory=dict, compare=False)

    @property
    def repository_id(self) -> str:
        """Identity of the repository. All spellings of the URL of a repository have the same identity."""
        return self.normalized_url or self.url

    @property
    def title(self) -> str:
        """Kind and name of the object that defines the target, for messages."""
        return f"{self.key.kind} {self.name}"

    @property
    def name(self) -> str:
        """Name of the object that defines the target.

        For a deployment repository, this is also the name of the cluster.
        """
        return self.key.name

    def get_package_path(self, package: str) -> str:
        """Return the path of a package's folder."""
        return f"{self.directory}/{package}" if self.directory else package

    def get_status_file_path(self, package: str) -> str:
        """Return the path of a package's status file."""
        return self.get_package_path(f"{STATUS_FOLDER}/{package}.yaml")


def are_paths_nested(path: str, other: str) -> bool:
    """Return whether two paths are equal, or one is inside the other. Every path is inside the path ""."""
    return path == other or not path or not other or path.startswith(other + "/") or other.startswith(path + "/")


class PackagePathIndex:
    """Package paths of one target.

    The index finds nested packages, which are not allowed, without comparing all paths.
    """

    def __init__(self, packages: Iterable[str] = ()) -> None:
        self._packages: set[str] = set()
        self._below: dict[str, list[str]] = {}
        for package in packages:
            self.add(package)

    def add(self, package: str) -> None:
        """Add a package path."""
        if package not in self._packages:
            self._packages.add(package)
            for folder in list_folders_above(package):
                self._below.setdefault(folder, []).append(package)

    def find_nested(self, package: str) -> tuple[str, ...]:
        """Return the sorted packages that contain the package, or are inside the package."""
        above = (folder for folder in list_folders_above(package) if folder in self._packages)
        return tuple(sorted((*above, *self._below.get(package, ()))))


def list_folders_above(package: str) -> Iterator[str]:
    """Yield the parent folders of a package. The first one is "", which is the root."""
    segments = package.split("/") if package else []
    yield from ("/".join(segments[:count]) for count in range(len(segments)))
