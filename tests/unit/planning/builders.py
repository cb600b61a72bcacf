"""Builders for the tests of planning: short names for trees, a fake repository, and a variant."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.catalog.files import BlobId, CommitId, FileTree, TreeId
from reconciler.catalog.trace import CatalogView
from reconciler.controllers.results import (
    MutationResult,
    PackageOwner,
    PackageTarget,
    PreviousRender,
    UpstreamPackage,
    Variant,
)
from reconciler.krm.findings import SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.planning.layout.refs import DraftCommit, TaggedRevision
from reconciler.planning.model.config_completeness import ConfigCompleteness
from reconciler.planning.model.state import PackageRecord, RenderedVersion, TargetState
from reconciler.planning.model.targets import Target

GROUP = "config.porch.kpt.dev"
API = f"{GROUP}/v1alpha1"
INCOMPLETE_CONFIG = ConfigCompleteness(frozenset({""}))


def build_tree_id(name: str) -> TreeId:
    return TreeId(name)


def build_commit_id(name: str) -> CommitId:
    return CommitId(name)


def build_owner(name: str = "gw", made_by: str = "") -> PackageOwner:
    maker = ObjectKey(GROUP, "PackageVariantSet", "default", made_by) if made_by else None
    return PackageOwner(ObjectKey(GROUP, "PackageVariant", "default", name), API, maker)


def keep_files(files: FileTree, view: CatalogView, earlier: PreviousRender | None = None) -> MutationResult:
    return MutationResult(files)


def build_upstream(content: str = "up1", ref: str = "gw/v1") -> UpstreamPackage:
    repo = "https://git.example/catalog.git"
    return UpstreamPackage(
        "default", "catalog", repo, repo, "gw", "gw", ref, build_commit_id(f"at-{content}"), build_tree_id(content)
    )


def build_variant(name: str = "gw", package: str = "gw", **fields: Any) -> Variant:
    source = fields.pop("upstream", build_upstream())
    facts = {"variant": name, "upstream": source.fingerprint}
    return Variant(build_owner(name), PackageTarget("default", "berlin", package), source, keep_files, facts, **fields)


def build_target(name: str = "berlin", **fields: Any) -> Target:
    key = ObjectKey(GROUP, "Repository", fields.pop("namespace", "default"), name)
    url = fields.pop("url", "https://git.example/fleet.git")
    whole = {
        "branch": f"clusters/{name}",
        "directory": "",
        "is_deployment": True,
        "location": SourceLocation("r.yaml", 1),
        **fields,
    }
    return Target(key, url, url, **whole)


def build_version(name: str, against: str | None = None, base: str = "up1", merged: str = "") -> RenderedVersion:
    """Return a version whose trees and status are named after it."""
    entered = build_tree_id(merged or base)
    return RenderedVersion(
        build_tree_id(name),
        BlobId(f"status-{name}"),
        build_tree_id(base),
        entered,
        entered,
        "r",
        build_tree_id(against) if against else None,
    )


def build_record(**fields: Any) -> PackageRecord:
    return PackageRecord(**{"owner": build_owner(), "is_owned": True, **fields})


def build_state(*, text: str | None = "b0", **fields: Any) -> TargetState:
    known = {"url": "https://git.example/fleet.git", "branch": "clusters/berlin", "directory": ""}
    return TargetState(**{**known, "observed_commit": text, **fields})


@dataclass
class FakeRepository:
    """A repository: package trees and status blobs by commit, and the first-parent history of the target branch."""

    packages: Mapping[str, Mapping[str, str | None]]
    line: Sequence[str] = ()
    statuses: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    commits: Sequence[DraftCommit] = ()
    more: bool = True
    collide: bool = False
    forks: Mapping[str, str] = field(default_factory=dict)
    dates: Mapping[str, int] = field(default_factory=dict)
    ours: Collection[str] = ()

    def find_tree_at(self, commit: CommitId, path: str) -> TreeId | None:
        assert commit
        result = self.packages.get(commit, {}).get(path)
        return build_tree_id(result) if result else None

    def find_blob_at(self, commit: CommitId, path: str) -> BlobId | None:
        package = path.removeprefix(".reconciler/").removesuffix(".yaml")
        output = self.statuses.get(commit, {}).get(package)
        content = self.packages.get(commit, {}).get(package)
        return BlobId(output or f"status-{content}") if output or content else None

    def find_obstacle(self, commit: CommitId, path: str, *, is_file: bool = False) -> str | None:
        return None

    def read_files(self, tree: TreeId) -> FileTree:
        return FileTree({})

    def list_first_parents(self, old: CommitId, new: CommitId) -> Sequence[CommitId] | None:
        assert old
        if old not in self.line:
            return None
        return [CommitId(item) for item in self.line[self.line.index(old) + 1 : self.line.index(new) + 1]]

    def find_merge_base(self, head: CommitId, branch: CommitId) -> CommitId | None:
        assert branch
        found = self.forks.get(head)
        return CommitId(found) if found else None

    def list_tagged_revisions(self, packages: Collection[str]) -> Mapping[str, Sequence[TaggedRevision]]:
        return {}

    def list_draft_commits(self, head: CommitId, base: CommitId) -> Sequence[DraftCommit]:
        return self.commits

    def has_conflicting_changes(
        self, head: CommitId, base: CommitId, branch: CommitId, outside: Collection[str]
    ) -> bool:
        return self.collide

    def read_commit_seconds(self, commit: CommitId) -> int:
        return self.dates.get(commit, 0)

    def is_reconciler_commit(self, commit: CommitId) -> bool:
        return commit in self.ours

    def has_unpublished_changes(
        self, head: CommitId, base: CommitId, branch: CommitId, besides: Collection[str] = ()
    ) -> bool:
        return self.more


def replace_upstream(value: Variant, content: str, ref: str) -> Variant:
    source = build_upstream(content, ref)
    return replace(value, source=source, dependencies={**value.dependencies, "upstream": source.fingerprint})
