"""Values for the tests of planning: short names for trees, a repository of tables, a variant."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.krm.findings import Where
from reconciler.krm.identity import ObjectKey
from reconciler.planning.branches import Step
from reconciler.planning.destination import Destination
from reconciler.planning.state import DestinationState, Offer, PackageRecord
from reconciler.planning.tags import TaggedRevision
from reconciler.rules.variant import Earlier, Mutated, Owner, Place, Upstream, Variant
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import BlobId, CommitId, TreeId
from reconciler.snapshot.trace import View

GROUP = "config.porch.kpt.dev"
API = f"{GROUP}/v1alpha1"


def tree(name: str) -> TreeId:
    return TreeId(name)


def commit(name: str) -> CommitId:
    return CommitId(name)


def owner(name: str = "gw", made_by: str = "") -> Owner:
    maker = ObjectKey(GROUP, "PackageVariantSet", "default", made_by) if made_by else None
    return Owner(ObjectKey(GROUP, "PackageVariant", "default", name), API, maker)


def unmutated(files: FileTree, view: View, earlier: Earlier | None = None) -> Mutated:
    return Mutated(files)


def upstream(content: str = "up1", ref: str = "gw/v1") -> Upstream:
    repo = "https://git.example/catalog.git"
    return Upstream("default", "catalog", repo, repo, "gw", "gw", ref, commit(f"at-{content}"), tree(content))


def variant(name: str = "gw", package: str = "gw", **fields: Any) -> Variant:
    source = fields.pop("upstream", upstream())
    facts = {"variant": name, "upstream": source.fact}
    return Variant(owner(name), Place("default", "berlin", package), source, unmutated, facts, **fields)


def destination(name: str = "berlin", **fields: Any) -> Destination:
    key = ObjectKey(GROUP, "Repository", fields.pop("namespace", "default"), name)
    url = fields.pop("url", "https://git.example/fleet.git")
    whole = {"branch": f"clusters/{name}", "directory": "", "deployment": True, "where": Where("r.yaml", 1), **fields}
    return Destination(key, url, url, **whole)


def offer(name: str, against: str | None = None, base: str = "up1", merged: str = "") -> Offer:
    """An offer whose trees and status are named after it."""
    entered = tree(merged or base)
    return Offer(
        tree(name), BlobId(f"status-{name}"), tree(base), entered, entered, "r", tree(against) if against else None
    )


def record(**fields: Any) -> PackageRecord:
    return PackageRecord(**{"owner": owner(), "owned": True, **fields})


def state(*, seen: str | None = "b0", **fields: Any) -> DestinationState:
    known = {"url": "https://git.example/fleet.git", "branch": "clusters/berlin", "directory": ""}
    return DestinationState(**{**known, "seen": seen, **fields})


@dataclass
class Tables:
    """A repository: package trees and status blobs by commit, and the first-parent line of the cluster branch."""

    packages: Mapping[str, Mapping[str, str | None]]
    line: Sequence[str] = ()
    statuses: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    commits: Sequence[Step] = ()
    more: bool = True
    collide: bool = False
    forks: Mapping[str, str] = field(default_factory=dict)
    dates: Mapping[str, int] = field(default_factory=dict)
    ours: Collection[str] = ()

    def tree_at(self, commit: CommitId, path: str) -> TreeId | None:
        found = self.packages.get(commit, {}).get(path)
        return tree(found) if found else None

    def blob_at(self, commit: CommitId, path: str) -> BlobId | None:
        package = path.removeprefix(".reconciler/").removesuffix(".yaml")
        found = self.statuses.get(commit, {}).get(package)
        content = self.packages.get(commit, {}).get(package)
        return BlobId(found or f"status-{content}") if found or content else None

    def obstacle(self, commit: CommitId, path: str, *, is_file: bool = False) -> str | None:
        return None

    def files(self, tree: TreeId) -> FileTree:
        return FileTree({})

    def first_parents(self, old: CommitId, new: CommitId) -> Sequence[CommitId] | None:
        if old not in self.line:
            return None
        return [CommitId(one) for one in self.line[self.line.index(old) + 1 : self.line.index(new) + 1]]

    def fork(self, head: CommitId, branch: CommitId) -> CommitId | None:
        found = self.forks.get(head)
        return CommitId(found) if found else None

    def tagged(self, packages: Collection[str]) -> Mapping[str, Sequence[TaggedRevision]]:
        return {}

    def steps(self, head: CommitId, base: CommitId) -> Sequence[Step]:
        return self.commits

    def collides(self, head: CommitId, base: CommitId, branch: CommitId, outside: Collection[str]) -> bool:
        return self.collide

    def seconds(self, commit: CommitId) -> int:
        return self.dates.get(commit, 0)

    def is_ours(self, commit: CommitId) -> bool:
        return commit in self.ours

    def offers_more(self, head: CommitId, base: CommitId, branch: CommitId, besides: Collection[str] = ()) -> bool:
        return self.more


def with_upstream(one: Variant, content: str, ref: str) -> Variant:
    source = upstream(content, ref)
    return replace(one, source=source, facts={**one.facts, "upstream": source.fact})
