"""Functions that build the publishers of a pass, and functions that read the status branch."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reconciler.bootstrap.forges import create_gitlab_announcer
from reconciler.bootstrap.options import INITIAL_BACKOFF_SECONDS, build_git_options, get_cache_file
from reconciler.catalog.files import REGULAR_FILE_MODES
from reconciler.git.mirror import Mirror
from reconciler.git.url import check_url_allowed, parse_url
from reconciler.krm.internal_errors import ExpectedError
from reconciler.krm.yaml import YamlError, parse_yaml
from reconciler.output.commit_messages import format_status_message
from reconciler.output.status.status_branch import StatusCache, build_status_files
from reconciler.output.status.summary import SUMMARY_FILE
from reconciler.reconcile.cache_files import FirstSeenTimes
from reconciler.reconcile.commits import RevisionTagger
from reconciler.reconcile.publishers import (
    DryRunPublisher,
    FolderPublisher,
    PushPublisher,
    StatusFiles,
    status_branch_errors,
)
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.reconcile.review_actions import AnnotationApprovals
from reconciler.reconcile.services import PlanPublisher
from reconciler.settings import Settings
from reconciler.telemetry.event_log import log_mirror_rebuild


class NoStatusRepositoryError(ExpectedError):
    """The settings contain no repository for status files. The commands `sync` and `run` require this repository."""


def build_push_publisher(settings: Settings) -> PushPublisher:
    """Build the publisher that pushes to the remotes.

    Raises:
        NoStatusRepositoryError: The settings contain no repository for status files.
        GitError: The URL of the repository for status files is invalid or not allowed.
    """
    url = parse_url(get_status_url(settings))
    check_url_allowed(url, settings.git.allowed_urls)
    tags = RevisionTagger(
        settings.state_ref, Backoff(INITIAL_BACKOFF_SECONDS, settings.max_backoff_seconds, time.monotonic)
    )
    first_seen = FirstSeenTimes(get_cache_file(settings, "first_seen"))
    approvals = AnnotationApprovals(settings.state_ref, settings.drafts.branch, first_seen, settings.git.max_pushes)
    return PushPublisher(
        settings.state_ref, url.connection_url, settings.status.branch, _create_status_builder(settings),
        format_status_message, tags, approvals, create_gitlab_announcer(settings),
    )  # fmt: skip


def read_status(settings: Settings) -> dict[str, bytes]:
    """Fetch the status branch and return its files. Return {} if the branch does not exist.

    Raises:
        NoStatusRepositoryError: The settings contain no repository for status files.
        GitError: The branch cannot be fetched or read.
    """
    url = parse_url(get_status_url(settings))
    cache, options = Path(settings.cache).expanduser(), build_git_options(settings)
    mirror = Mirror.open(cache, url, options, on_rebuild=log_mirror_rebuild)
    mirror.fetch("config", branches=(settings.status.branch,))
    head = mirror.refs().get(f"refs/heads/{settings.status.branch}")
    if head is None:
        return {}
    branch = f"the branch {settings.status.branch} of {mirror.url}"
    with mirror.open_reader() as reader, status_branch_errors(branch):
        files = [
            (path, blob)
            for path, mode, blob in reader.walk(reader.read_commit(head).tree)
            if mode in REGULAR_FILE_MODES
        ]
        contents = reader.read_blobs(blob for _, blob in files)
    return {path: contents[blob] for path, blob in files}


def read_summary(settings: Settings) -> Mapping[str, Any]:
    """Fetch the status branch and return its summary file. Return {} if the summary file is missing or invalid.

    Raises:
        GitError: The branch cannot be fetched or read.
    """
    if not (settings.status.url or settings.fleet.url):
        return {}
    try:
        documents = parse_yaml(read_status(settings).get(SUMMARY_FILE, b"")).documents
    except YamlError:
        return {}
    data = documents[0].data if documents else None
    return data if isinstance(data, dict) else {}


def get_status_url(settings: Settings) -> str:
    """Return the URL of the repository for the status. Raises NoStatusRepositoryError."""
    url = settings.status.url or settings.fleet.url
    if not url:
        raise NoStatusRepositoryError(
            "the repository for the status branch is not set: set `status.url` or `fleet.url` to a Git "
            "repository, or use --fleet"
        )
    return url


def build_dry_run_publisher() -> DryRunPublisher:
    """Build the publisher that keeps pushes in memory, so that no remote changes."""
    return DryRunPublisher()


def build_service_publisher(settings: Settings, *, is_read_only: bool) -> PlanPublisher:
    """Build the publisher of the service. It pushes nothing if the service is read-only.

    Raises:
        NoStatusRepositoryError: The service pushes, and no setting contains the repository for the status.
    """
    return build_dry_run_publisher() if is_read_only else build_push_publisher(settings)


def build_folder_publisher(settings: Settings, out: Path) -> FolderPublisher:
    """Build the publisher that writes packages and status files to the folder `out`."""
    return FolderPublisher(out, _create_status_builder(settings))


def _create_status_builder(settings: Settings) -> StatusFiles:
    cache = StatusCache()
    return lambda plan, previous, report: build_status_files(
        plan, previous, settings.status.max_children, cache, report
    )
