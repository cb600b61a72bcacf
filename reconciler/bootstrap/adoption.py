"""The effects of `reconciler adopt`: reading the files to import, rendering the new config, and writing the output.

The render uses an empty fleet repository, so that the result depends only on the new config and its upstreams.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from reconciler.adopt.config_files import build_config_files
from reconciler.adopt.generated import REVISION, GeneratedConfig
from reconciler.adopt.requests import ReadRequests, UpstreamReference
from reconciler.adopt.results import Rendered
from reconciler.adopt.units import Cluster
from reconciler.bootstrap.inputs import Progress
from reconciler.bootstrap.package_services import build_package_services
from reconciler.bootstrap.publishers import build_dry_run_publisher
from reconciler.bootstrap.services import build_services
from reconciler.catalog.files import FALLBACK_COMMIT_SECONDS, FileTree
from reconciler.git import folder as git_folder
from reconciler.git.errors import GitError, PathRefusedError
from reconciler.git.local_repository import create_repository
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit, PutFile
from reconciler.git.push_outcomes import PushUnit, RefUpdate
from reconciler.git.source import FolderSource, resolve_source
from reconciler.git.upstream_packages import UpstreamPackages
from reconciler.krm.findings import select_errors
from reconciler.krm.git_formats import is_same_repository
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.planning.model.outcomes import Blocked, Draft
from reconciler.reconcile.reconcile_pass import run_pass
from reconciler.settings import Settings

CATALOG_FOLDER = "catalog.git"
DEFAULT_BRANCH = "main"


@dataclass(frozen=True)
class AdoptionSource:
    """The files of the repository or folder that `reconciler adopt` imports.

    Attributes:
        root_files: All files of the repository or folder.
        files: The files in the folder that the option --path refers to.
        branch: The branch in a Git repository, or "" for a plain folder.
    """

    root_files: FileTree
    files: FileTree
    url: str
    branch: str = ""


def read_source(settings: Settings, source: str, path: str) -> AdoptionSource:
    """Read the files to import. `source` is a folder, or a Git repository with an optional `#BRANCH`.

    Args:
        path: The value of the option --path, which is a folder in `source`.

    Raises:
        GitError: The repository or folder cannot be read.
    """
    url, _, branch = source.partition("#")
    location = resolve_source(url)
    if isinstance(location, FolderSource) and not branch:
        files = git_folder.read_package(location.path)
        return AdoptionSource(files, _select_folder(files, path, url), url)
    services = build_package_services(settings, Path.cwd(), url)
    with services.upstreams as upstreams:
        ref = branch or upstreams.find_default_branch(url)
        files = upstreams.fetch(url, "", ref).files
        return AdoptionSource(files, _select_folder(files, path, url), url, ref)


def _select_folder(files: FileTree, path: str, url: str) -> FileTree:
    folder = files.subtree(path)
    if not folder:
        raise PathRefusedError(f"{url} must contain files{f' in the folder {path!r}' if path else ''}")
    return folder


class SourceRepositories:
    """Reads the repositories that the imported objects refer to. The imported repository is not fetched again."""

    def __init__(self, settings: Settings, source: AdoptionSource, repo_url: str) -> None:
        self._settings = settings
        self._source = source
        self._urls = [url for url in (repo_url, source.url) if url]
        self._read: dict[tuple[str, str], FileTree | str] = {}

    def is_source(self, url: str) -> bool:
        """Return whether a URL names the imported repository."""
        return any(is_same_repository(url, known) for known in self._urls)

    def __call__(self, url: str, revision: str) -> FileTree | str:
        """Return the files of a repository at a branch or tag, or the reason why they cannot be read."""
        ref = "" if revision == "HEAD" else revision
        branch = self._source.branch
        if self.is_source(url):
            if not branch and ref.startswith("refs/tags/"):
                return "SOURCE is a plain folder, which has no tags"
            if not branch or ref in ("", branch, f"refs/heads/{branch}"):
                return self._source.root_files
            url = self._source.url
        if (url, ref) not in self._read:
            self._read[url, ref] = self._fetch(url, ref)
        return self._read[url, ref]

    def _fetch(self, url: str, ref: str) -> FileTree | str:
        try:
            with self._open_upstreams() as upstreams:
                return upstreams.fetch(url, "", ref or upstreams.find_default_branch(url)).files
        except GitError as error:
            return error.full_message

    def resolve_branches(self, read: ReadRequests) -> ReadRequests:
        """Return a copy of the requests in which each Git repository without a branch has its default branch.

        In the result, "" replaces the branch `main`, because `main` is the default in a Repository object.
        """
        branches: dict[str, str] = {}

        def resolve(upstream: UpstreamReference) -> UpstreamReference:
            repository = upstream.repository
            if repository.type != "git":
                return upstream
            if repository.url not in branches and not repository.branch:
                branches[repository.url] = self._find_default_branch(repository.url)
            branch = repository.branch or branches[repository.url]
            return replace(upstream, repository=replace(repository, branch="" if branch == DEFAULT_BRANCH else branch))

        return replace(read, requests=tuple(request.change_upstreams(resolve) for request in read.requests))

    def _find_default_branch(self, url: str) -> str:
        branch = self._source.branch
        if not self.is_source(url):
            try:
                with self._open_upstreams() as upstreams:
                    branch = upstreams.find_default_branch(url)
            except GitError:
                # Ignore the error, because the render reports that the repository cannot be read.
                branch = ""
        return "" if branch == DEFAULT_BRANCH else branch

    def _open_upstreams(self) -> UpstreamPackages:
        # Pass the URL of the imported repository. If this URL is remote, objects in the repository cannot refer to
        # repositories on this machine.
        root = self._source.url if self._source.branch else ""
        return build_package_services(self._settings, Path.cwd(), root).upstreams

    def replace_urls(self, generated: GeneratedConfig, folder: Path) -> GeneratedConfig:
        """Return the config for the render, with a new URL in each Repository object for the imported repository.

        If a Git repository is imported, the new URL is the location from which it was read. If a plain folder is
        imported, the new URL is the path of a temporary Git repository with the files of the folder.
        """
        documents = []
        for document in generated.repositories:
            location = document["spec"].get("git")
            if location and self.is_source(location["repo"]):
                branch = location.get("branch", DEFAULT_BRANCH)
                url = str(self._get_local_repository(folder))
                document = {**document, "spec": {"type": "git", "git": {"repo": url, "branch": branch}}}
            documents.append(document)
        return replace(generated, repositories=tuple(documents))

    def _get_local_repository(self, folder: Path) -> Path | str:
        if self._source.branch:
            return str(Path(self._source.url).absolute()) if Path(self._source.url).exists() else self._source.url
        repository = folder / "source.git"
        if not repository.exists():
            _write_repository(repository, self._source.root_files, ("refs/heads/main",), folder / "cache")
        return repository


def render_config(
    settings: Settings,
    generated: GeneratedConfig,
    clusters: tuple[Cluster, ...],
    repositories: SourceRepositories,
    report_progress: Progress,
) -> Rendered:
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
            repositories.replace_urls(generated, folder),
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


def _run_pass(settings: Settings, report_progress: Progress) -> Rendered:
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
                reasons = [finding.message for finding in select_errors(outcome.findings)]
                packages[key] = "; ".join(reasons or [condition.message for condition in outcome.conditions])
    for stalled in plan.controller_result.stalled:
        if stalled.target:
            reason = "; ".join(condition.message for condition in stalled.conditions if condition.status == "True")
            packages[stalled.target.repository, stalled.target.package] = reason
    errors = {
        f"{kind}/{name}": finding.message
        for finding in reversed(select_errors(plan.list_findings()))
        if finding.location.object.count("/") == 2
        for kind, _, name in [finding.location.object.split("/")]
    }
    return Rendered(packages, errors)


def write_catalog(folder: Path, packages: Mapping[str, FileTree], cache: Path) -> None:
    """Create a bare repository with one folder and one revision tag per package. Equal packages give equal commits.

    Raises:
        GitError: The repository cannot be written.
    """
    files = FileTree({f"{name}/{path}": file for name, tree in packages.items() for path, file in tree.items()})
    refs = ["refs/heads/main", *(f"refs/tags/{name}/{REVISION}" for name in sorted(packages))]
    _write_repository(folder, files, refs, cache)


def _write_repository(folder: Path, files: FileTree, refs: Iterable[str], cache: Path) -> None:
    create_repository(folder)
    puts = tuple(PutFile(path, file.data, file.mode) for path, file in files.items())
    mirror = Mirror.open(cache, str(folder))
    (commit,) = mirror.write_commits([NewCommit((), puts, "import existing packages", FALLBACK_COMMIT_SECONDS)])
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
    """Write the output folder as a whole: write a temporary folder next to it, and then rename this folder.

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
