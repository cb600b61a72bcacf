"""Destinations: where a Repository's packages go, and who may not share a place (design 10.3, 10.12)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.krm.findings import Finding, Where
from reconciler.krm.identity import ObjectKey
from reconciler.rules.codes import DESTINATION_CONFLICT
from reconciler.rules.repository import API_VERSION as REPOSITORY_API_VERSION
from reconciler.rules.variant import ConfigSources

STATUS_FOLDER = ".reconciler"


@dataclass(frozen=True)
class Destination:
    """One Repository, or cluster of the fleet repository, that receives packages. `directory` ends without a slash.

    `key` is the object that says so, with its `api_version`. `url` names the remote, `url_text` is what people wrote,
    without credentials; `tag_prefix` is what the tags of its revisions start with. `repository` is the normal form of
    the URL, equal for all spellings of one repository; "" where the URL is one. `definition` are the config files with
    its Repository and with the objects of its cluster.
    """

    key: ObjectKey
    url: str
    url_text: str
    branch: str
    directory: str
    deployment: bool
    where: Where
    tag_prefix: str = ""
    api_version: str = REPOSITORY_API_VERSION
    repository: str = ""
    definition: ConfigSources = field(default_factory=dict, compare=False)

    @property
    def repository_id(self) -> str:
        """The repository, whichever way its URL is written."""
        return self.repository or self.url

    @property
    def title(self) -> str:
        """What it is and what it is called, for people."""
        return f"{self.key.kind} {self.name}"

    @property
    def name(self) -> str:
        """The Repository's name; for a deployment repository also the cluster's."""
        return self.key.name

    def path(self, package: str) -> str:
        """Return the folder of a package."""
        return f"{self.directory}/{package}" if self.directory else package

    def status_path(self, package: str) -> str:
        """Return the path of a package's status file."""
        return self.path(f"{STATUS_FOLDER}/{package}.yaml")


def draft_branch(template: str, destination: Destination, package: str) -> str:
    """Return the name of the draft branch that carries a package; `{package}` writes "/" as "_" (git.md 3)."""
    return template.format(repository=destination.name, branch=destination.branch, package=package.replace("/", "_"))


def are_nested(one: str, other: str) -> bool:
    """Return whether two paths are equal, or one lies below the other; "" is above everything."""
    return one == other or not one or not other or one.startswith(other + "/") or other.startswith(one + "/")


def conflicts(destinations: Iterable[Destination], templates: Sequence[str]) -> Mapping[ObjectKey, Finding]:
    """Return a finding for each destination that must not be written to.

    Two deployment repositories of one name, or with equal or nested directories on one branch of one URL,
    would each take the other's packages for people's (design 10.3), and so would two with one draft branch.
    `templates` are those of the names of such branches.
    """
    found: dict[ObjectKey, Finding] = {}
    for one, other, why in clashes(destinations, templates):
        found.setdefault(one.key, _conflict(one, other, why))
        found.setdefault(other.key, _conflict(other, one, why))
    return found


def clashes(
    destinations: Iterable[Destination], templates: Sequence[str]
) -> Iterator[tuple[Destination, Destination, str]]:
    """Yield each pair of destinations that may not both be written to, in order, and what the second one has."""
    known = sorted(destinations, key=lambda destination: destination.key)
    for one, other in _pairs(known):
        if why := _clash(one, other, templates):
            yield one, other, why


def _pairs(known: list[Destination]) -> Iterable[tuple[Destination, Destination]]:
    # only those that share a name or a branch can clash: a fleet of thousands must not be compared pairwise
    groups: dict[tuple[str, ...], list[Destination]] = {}
    for destination in known:
        groups.setdefault((destination.name,), []).append(destination)
        groups.setdefault((destination.repository_id, destination.branch), []).append(destination)
    for group in groups.values():
        yield from ((one, other) for index, one in enumerate(group) for other in group[index + 1 :])


def _clash(one: Destination, other: Destination, templates: Iterable[str]) -> str:
    if one.name == other.name and one.deployment and other.deployment:
        return "has the same name, and a cluster is its name"
    is_one_branch = (one.repository_id, one.branch) == (other.repository_id, other.branch)
    if is_one_branch and are_nested(one.directory, other.directory):
        return f"has an equal or nested directory on branch {one.branch}"
    # only of one branch: what names neither a repository nor a branch is no template
    names = (template for template in templates if draft_branch(template, one, "") == draft_branch(template, other, ""))
    if is_one_branch and (name := next(names, None)):
        return f"has its drafts on the same branch, for its name, {name}, has no {{repository}}"
    return ""


def _full(one: Destination) -> str:
    return f"{one.key.kind} {one.key.namespace}/{one.name}" if one.key.namespace else one.title


def _conflict(one: Destination, other: Destination, why: str) -> Finding:
    message = f"{_full(one)} cannot be written to: {_full(other)} {why}"
    return DESTINATION_CONFLICT.finding(message, one.where)


class Packages:
    """Packages of one destination, of which those above and below another are found without a look at them all.

    No package may lie in another (porch 5.1).
    """

    def __init__(self, packages: Iterable[str] = ()) -> None:
        self._packages: set[str] = set()
        self._below: dict[str, list[str]] = {}
        for one in packages:
            self.add(one)

    def add(self, package: str) -> None:
        """Add a package."""
        if package not in self._packages:
            self._packages.add(package)
            for folder in folders_above(package):
                self._below.setdefault(folder, []).append(package)

    def nested(self, package: str) -> tuple[str, ...]:
        """Return those that lie above or below a package, in order; it is none of them itself."""
        above = (one for one in folders_above(package) if one in self._packages)
        return tuple(sorted((*above, *self._below.get(package, ()))))


def folders_above(package: str) -> Iterator[str]:
    """Yield the folders that a package lies in; "" is the outermost."""
    segments = package.split("/") if package else []
    yield from ("/".join(segments[:count]) for count in range(len(segments)))
