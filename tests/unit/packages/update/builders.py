"""Builders of small packages from text, for the tests of updates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.api.kpt import UpdateStrategy
from reconciler.catalog.files import FileTree
from reconciler.packages.clone import ResolvedUpstream
from reconciler.packages.update.fetching import FetchedPackage
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.sides import UpdateResult
from reconciler.packages.update.three_way import update_package
from tests.unit.packages.builders import KPTFILE, build_tree

SAFE = MergeOptions()


def build_package(files: Mapping[str, str]) -> FileTree:
    """Return a package with the name app and these files."""
    return build_tree({"Kptfile": KPTFILE, **files})


def format_resource(name: str, value: str = "", kind: str = "ConfigMap") -> str:
    """Return a resource with this value in the field `value`."""
    text = f"apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n"
    return f"{text}data:\n  value: {value}\n" if value else text


def format_kptfile(name: str, upstream: str = "", lock: str = "", strategy: str = "resource-merge") -> str:
    """Return the Kptfile of a subpackage with the upstream `repo directory ref` and the locked commit `lock`."""
    text = f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {name}\n"
    if not upstream:
        return text
    repo, directory, ref = upstream.split()
    place = f"  type: git\n  git:\n    repo: {repo}\n    directory: {directory}\n    ref: {ref}\n"
    followed = f"{text}upstream:\n{place}  updateStrategy: {strategy}\n"
    return f"{followed}upstreamLock:\n{place}    commit: {lock}\n" if lock else followed


def run_update(
    sides: Iterable[FileTree],
    options: MergeOptions = SAFE,
    strategy: UpdateStrategy = "resource-merge",
    lock: ResolvedUpstream | None = None,
) -> UpdateResult:
    """Update a package from origin, updated and local, in this order."""
    origin, updated, local = sides
    return update_package(origin, updated, local, strategy, options, lock)


def update_resource_file(
    origin: str, updated: str, local: str, options: MergeOptions = SAFE
) -> tuple[str, UpdateResult]:
    """Return the merged text of one resource file, and the result of the update."""
    result = run_update((build_package({"r.yaml": text} if text else {}) for text in (origin, updated, local)), options)
    return (result.files["r.yaml"].data.decode() if "r.yaml" in result.files else ""), result


class FakeRepositories:
    """Packages by repository and ref. The commit of a ref is the ref itself."""

    def __init__(self, contents: Mapping[tuple[str, str], Mapping[str, str]]) -> None:
        self.contents = {place: build_tree(files) for place, files in contents.items()}
        self.asked: list[tuple[str, str, str]] = []

    def fetch(self, repo: str, directory: str, ref: str) -> FetchedPackage:
        """Return the files of a directory."""
        self.asked.append((repo, directory, ref))
        return FetchedPackage(self.contents[repo, ref].subtree(directory.strip("/")), ref, ref)
