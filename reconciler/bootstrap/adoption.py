"""The effects of `reconciler adopt`: reading the source, rendering the new config, and writing the output folder.

The render uses an empty fleet repository, so that the result depends only on the new config and its upstreams.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from reconciler.adopt.config_files import build_config_files
from reconciler.adopt.generated import REVISION, GeneratedConfig
from reconciler.adopt.units import Cluster
from reconciler.bootstrap.inputs import Progress
from reconciler.bootstrap.package_services import build_package_services
from reconciler.bootstrap.publishers import build_dry_run_publisher
from reconciler.bootstrap.services import build_services
from reconciler.catalog.files import FALLBACK_COMMIT_SECONDS, FileTree
from reconciler.git import folder as git_folder
from reconciler.git.errors import PathRefusedError
from reconciler.git.local_repository import create_repository
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit, PutFile
from reconciler.git.push_outcomes import PushUnit, RefUpdate
from reconciler.git.source import FolderSource, resolve_source
from reconciler.krm.findings import Finding, Severity
from reconciler.lazy_dataclasses import dataclass
from reconciler.planning.model.outcomes import Blocked, Draft
from reconciler.reconcile.reconcile_pass import run_pass
from reconciler.settings import Settings

CATALOG_FOLDER = "catalog.git"


@dataclass(frozen=True)
class AdoptionSource:
    """The files of the source.

    Attributes:
        branch: The branch in a Git repository, or "" for a plain folder.
    """

    files: FileTree
    url: str
    branch: str = ""


@dataclass(frozen=True)
class RenderedFleet:
    """The rendered packages by cluster and package path, or the reason why a package was not rendered.

    Attributes:
        findings: The errors and warnings of the config.
    """

    packages: Mapping[tuple[str, str], FileTree | str]
    findings: tuple[Finding, ...]


def read_source(settings: Settings, source: str, path: str) -> AdoptionSource:
    """Read the folder `path` of a source: a folder, or a Git repository with an optional `#BRANCH`.

    Raises:
        GitError: The source cannot be read.
    """
    url, _, branch = source.partition("#")
    location = resolve_source(url)
    if isinstance(location, FolderSource) and not branch:
        return AdoptionSource(git_folder.read_package(location.path / path), url)
    services = build_package_services(settings, Path.cwd(), url)
    with services.upstreams as upstreams:
        ref = branch or upstreams.find_default_branch(url)
        return AdoptionSource(upstreams.fetch(url, path, ref).files, url, ref)


def render_config(
    settings: Settings, generated: GeneratedConfig, clusters: tuple[Cluster, ...], report_progress: Progress
) -> RenderedFleet:
    """Render all packages of a new config in a temporary folder.

    Raises:
        GitError: A temporary repository cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="reconciler-adopt-") as name:
        folder = Path(name)
        fleet = folder / "fleet.git"
        create_repository(fleet)
        if generated.catalog:
            write_catalog(folder / CATALOG_FOLDER, generated.catalog, folder / "cache")
        files = build_config_files(
            generated,
            clusters,
            str(folder / CATALOG_FOLDER),
            lambda cluster: {"repo": str(fleet), "branch": f"clusters/{cluster.name}"},
        )
        git_folder.write_new_package(folder / "config", files)
        changes = {
            "config": settings.config.model_copy(update={"url": str(folder / "config")}),
            "fleet": settings.fleet.model_copy(update={"url": str(fleet)}),
            "cache": str(folder / "cache"),
        }
        return _run_pass(settings.model_copy(update=changes), report_progress)


def _run_pass(settings: Settings, report_progress: Progress) -> RenderedFleet:
    services = build_services(
        settings, settings.config.url, should_treat_missing_as_empty=True, report_progress=report_progress
    )
    packages: dict[tuple[str, str], FileTree | str] = {}
    with services.remotes as remotes:
        plan = run_pass(services.source, remotes, services.pass_services, build_dry_run_publisher()).plan
        for target, outcome in plan.list_outcomes():
            key = (target.name, outcome.variant.target.package)
            if isinstance(outcome, Draft):
                packages[key] = outcome.rendered.files
            elif isinstance(outcome, Blocked):
                errors = [finding.message for finding in outcome.findings if finding.severity is Severity.ERROR]
                packages[key] = "; ".join(errors) or "; ".join(text.message for text in outcome.conditions)
    return RenderedFleet(packages, plan.list_findings())


def write_catalog(folder: Path, packages: Mapping[str, FileTree], cache: Path) -> None:
    """Create a bare repository with one folder and one revision tag per package. Equal packages give equal commits.

    Raises:
        GitError: The repository cannot be written.
    """
    create_repository(folder)
    puts = tuple(
        PutFile(f"{name}/{path}", file.data, file.mode)
        for name, files in sorted(packages.items())
        for path, file in files.items()
    )
    mirror = Mirror.open(cache, str(folder))
    (commit,) = mirror.write_commits(
        [NewCommit((), puts, "catalog: import existing packages", FALLBACK_COMMIT_SECONDS)]
    )
    refs = ["refs/heads/main", *(f"refs/tags/{name}/{REVISION}" for name in sorted(packages))]
    report = mirror.push([PushUnit("catalog", tuple(RefUpdate(ref, commit, None) for ref in refs))])
    assert report.is_complete


def check_output_folder(folder: Path) -> None:
    """Check that the output folder does not exist or is empty.

    Raises:
        PathRefusedError: The folder has content.
    """
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise PathRefusedError(
            f"{folder} must not exist, or must be an empty folder: the import writes its files there"
        )


def write_output(folder: Path, files: FileTree, packages: Mapping[str, FileTree]) -> None:
    """Write the output folder as a whole: first to a folder next to it, which is then renamed.

    Raises:
        GitError: The folder has content, or the catalog cannot be written.
        OSError: A file cannot be written.
    """
    check_output_folder(folder)
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".reconciler-", dir=folder.absolute().parent) as name:
        staged = Path(name) / "output"
        git_folder.write_new_package(staged, files)
        if packages:
            write_catalog(staged / CATALOG_FOLDER, packages, Path(name) / "cache")
        if folder.exists():
            folder.rmdir()
        staged.rename(folder)
