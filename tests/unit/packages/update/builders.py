"""Small packages from text, for the tests of updates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.catalog.files import FileTree
from reconciler.packages.clone import ResolvedUpstream
from reconciler.packages.kptfile import Strategy
from reconciler.packages.update import FetchedPackage, MergeOptions, UpdateResult, update_package
from tests.unit.packages.builders import KPTFILE, tree

SAFE = MergeOptions()


def package(files: Mapping[str, str]) -> FileTree:
    """Return a package called app with these files."""
    return tree({"Kptfile": KPTFILE, **files})


def thing(name: str, value: str = "", kind: str = "ConfigMap") -> str:
    """Return a resource whose field `value` says so."""
    text = f"apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n"
    return f"{text}data:\n  value: {value}\n" if value else text


def sub(name: str, upstream: str = "", lock: str = "", strategy: str = "resource-merge") -> str:
    """Return the Kptfile of a subpackage that follows `repo directory ref`, and has the commit `lock`."""
    text = f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {name}\n"
    if not upstream:
        return text
    repo, directory, ref = upstream.split()
    place = f"  type: git\n  git:\n    repo: {repo}\n    directory: {directory}\n    ref: {ref}\n"
    followed = f"{text}upstream:\n{place}  updateStrategy: {strategy}\n"
    return f"{followed}upstreamLock:\n{place}    commit: {lock}\n" if lock else followed


def run(
    sides: Iterable[FileTree],
    options: MergeOptions = SAFE,
    strategy: Strategy = "resource-merge",
    lock: ResolvedUpstream | None = None,
) -> UpdateResult:
    """Update origin, updated and local, in this order."""
    origin, updated, local = sides
    return update_package(origin, updated, local, strategy, options, lock)


def merged(origin: str, updated: str, local: str, options: MergeOptions = SAFE) -> tuple[str, UpdateResult]:
    """Return what one resource file comes to, and everything about its update."""
    result = run((package({"r.yaml": text} if text else {}) for text in (origin, updated, local)), options)
    return (result.files["r.yaml"].data.decode() if "r.yaml" in result.files else ""), result


class Repositories:
    """Packages by repository and ref; the commit of a ref is the ref itself."""

    def __init__(self, contents: Mapping[tuple[str, str], Mapping[str, str]]) -> None:
        self.contents = {place: tree(files) for place, files in contents.items()}
        self.asked: list[tuple[str, str, str]] = []

    def fetch(self, repo: str, directory: str, ref: str) -> FetchedPackage:
        """Return the files of a directory."""
        self.asked.append((repo, directory, ref))
        return FetchedPackage(self.contents[repo, ref].subtree(directory.strip("/")), ref, ref)
