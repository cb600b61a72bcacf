"""Test environment of the package variant controller: a config in memory, fake upstreams, and a function that runs
the controller.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import CommitId, File, FileTree, TreeId
from reconciler.cel import ExpressionLimits
from reconciler.controllers.checked_commits import CheckedCommit
from reconciler.controllers.package_variants.controller import PackageVariantInputs, generate_package_variants
from reconciler.controllers.package_variants.set_targets import DownstreamKey
from reconciler.controllers.package_variants.upstream_resolution import PackageDirectory
from reconciler.controllers.repositories import Repository, format_kptfile_url, read_repositories
from reconciler.controllers.results import ControllerResult
from reconciler.krm.objects import ObjectKey

REPOSITORIES = """\
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: catalog}
spec: {git: {repo: "https://git.example/catalog", directory: packages}}
---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: away}
spec: {git: {repo: https://git.example/away}}
---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: berlin, labels: {region: north}}
spec: {deployment: true, git: {repo: https://git.example/fleet}}
---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: lisbon, labels: {region: south}}
spec: {deployment: true, git: {repo: https://git.example/fleet}}
"""
TAGS = {"gateway/v1": "c1", "gateway/v2": "c2", "gateway/stable": "c1"}
TAGGED = 1_000_000_000
KPTFILE = b"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: gateway, labels: {tier: edge}}\n"


@dataclass(frozen=True)
class FakeRefs:
    """One upstream: its tags, the head of main, and one tree for each existing package."""

    commits: Mapping[str, str]
    files: Mapping[str, bytes]
    packages: frozenset[str] = frozenset({"gateway"})
    skipped: tuple[str, ...] = ()
    checks: Mapping[str, CheckedCommit] = field(default_factory=dict)

    def find_tag(self, name: str) -> CommitId | None:
        return CommitId(self.commits[name]) if name in self.commits else None

    def find_branch(self, name: str) -> CommitId | None:
        return CommitId("head") if name == "main" else None

    def check_tag(self, name: str, commit: CommitId) -> CheckedCommit:
        return self.checks.get(name, CheckedCommit(commit))

    def check_branch(self, name: str, commit: CommitId) -> CheckedCommit:
        return self.checks.get(name, CheckedCommit(commit))

    def list_tags(self, prefix: str) -> Iterable[str]:
        return [name for name in self.commits if name.startswith(prefix)]

    def find_package(self, commit: CommitId, directory: str, package: str) -> PackageDirectory | None:
        return PackageDirectory(TreeId(f"{commit}:{package}"), self.skipped) if package in self.packages else None

    def read_package(self, tree: TreeId) -> FileTree | str:
        return FileTree({path: File(data) for path, data in self.files.items()})

    def read_kptfiles(self, tree: TreeId) -> Iterable[bytes]:
        return ()

    def read_file(self, commit: CommitId, path: str) -> bytes | None:
        return self.files.get(path)

    def read_tag_seconds(self, name: str) -> int:
        return TAGGED

    def read_change_seconds(self, commit: CommitId, path: str) -> int:
        return TAGGED


@dataclass
class FakeUpstreams:
    """Fake of all upstreams: one catalog, and one repository that cannot be read. `files` are the files of the
    catalog. It records each requested repository.
    """

    files: Mapping[str, bytes] = field(default_factory=dict)
    requested: list[str] = field(default_factory=list)
    skipped: tuple[str, ...] = ()
    checks: Mapping[str, CheckedCommit] = field(default_factory=dict)

    def get_refs(self, repository: Repository) -> FakeRefs | str:
        self.requested.append(repository.key.name)
        if repository.key.name == "away":
            return "Repository away cannot be read: no route to host"
        return FakeRefs(
            TAGS, {"packages/gateway/Kptfile": KPTFILE, **self.files}, skipped=self.skipped, checks=self.checks
        )

    def get_url(self, repository: Repository) -> str:
        # The URL identifies a remote. The Repository names do not matter.
        return f"remote of {format_kptfile_url(repository.url).rpartition('/')[2].removesuffix('.git')}"

    def get_commit_seconds(self, repository: Repository, commit: CommitId) -> int:
        return {"c1": 1_000, "c2": 2_000}.get(commit, 0)


V1 = "repo: catalog, package: gateway, revision: v1"
BERLIN = "repo: berlin, package: gateway"


def build_variant(name: str, upstream: str = V1, downstream: str = BERLIN, extra: str = "") -> str:
    """Return a PackageVariant of eight lines; `extra` contains more lines of its spec."""
    return (
        "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: PackageVariant\n"
        f"metadata:\n  name: {name}\nspec:\n"
        f"  upstream: {{{upstream}}}\n  downstream: {{{downstream}}}\n" + textwrap.indent(textwrap.dedent(extra), "  ")
    )


def build_variant_set(name: str, targets: str, extra: str = "", upstream: str = V1, annotations: str = "{}") -> str:
    """Return a PackageVariantSet; `targets` is a flow list, `extra` contains more lines of its spec."""
    return (
        "apiVersion: config.porch.kpt.dev/v1alpha2\nkind: PackageVariantSet\n"
        f"metadata:\n  name: {name}\n  annotations: {annotations}\nspec:\n"
        f"  upstream: {{{upstream}}}\n  targets: {targets}\n" + textwrap.indent(textwrap.dedent(extra), "  ")
    )


def run_controller(
    *documents: str,
    upstreams: FakeUpstreams | None = None,
    children: Mapping[ObjectKey, list[DownstreamKey]] | None = None,
    engine: str = "engine 1",
    cel: ExpressionLimits | None = None,
    content: str = "",
    now: int = 0,
) -> ControllerResult:
    """Run the controller on the Repositories, these documents in `variants.yaml`, and `content` in another file."""
    texts = {"repositories": REPOSITORIES, "variants": "---\n".join(documents), "others": content}
    catalog = read_catalog(FileTree({f"{name}.yaml": File(text.encode()) for name, text in texts.items()}))
    assert (catalog.unreadable, catalog.findings) == ((), ())
    repositories, findings = read_repositories(catalog)
    assert findings == ()
    inputs = PackageVariantInputs(
        repositories, upstreams or FakeUpstreams(), children or {}, 30, engine, cel or ExpressionLimits(), now
    )
    return generate_package_variants(catalog, inputs)
