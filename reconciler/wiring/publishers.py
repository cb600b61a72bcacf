"""Publishers: where plans and status go, by the settings."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.daemon.approvals import Approvals
from reconciler.daemon.backoff import Backoff
from reconciler.daemon.events import log_rebuild
from reconciler.daemon.first_seen import FirstSeen
from reconciler.daemon.publishers import Folder, Keep, Push, StatusFiles, status_branch_errors
from reconciler.daemon.tags import Tags
from reconciler.gitio.mirror import Mirror
from reconciler.gitio.url import check_allowed, parse_url
from reconciler.krm.isolation import ExpectedError
from reconciler.krm.yaml import YamlError, parse
from reconciler.reporting.commit_message import status_commit_message
from reconciler.reporting.objects import StatusMemory, status_files
from reconciler.reporting.summary import SUMMARY
from reconciler.settings import Settings, SettingsError
from reconciler.snapshot.objects import EXECUTABLE, FILE
from reconciler.web.address import ListenError
from reconciler.wiring.forges import announced_by
from reconciler.wiring.options import FIRST_REST_SECONDS, cache_file, git_options

if TYPE_CHECKING:
    # a server is loaded by who serves
    from reconciler.web.webhooks import Webhooks


class NoStatusPlaceError(ExpectedError):
    """`sync` and `run` need a place to write status to, and the settings name none (design 10.31)."""


def build_push(settings: Settings) -> Push:
    """Build the publisher that pushes. Raises NoStatusPlaceError, GitError."""
    options = git_options(settings)
    url = parse_url(_status_place(settings))
    check_allowed(url, options.allowed_urls)
    tags = Tags(settings.state_ref, Backoff(FIRST_REST_SECONDS, settings.max_backoff_seconds, time.monotonic))
    seen = FirstSeen(cache_file(settings, "first_seen"))
    approvals = Approvals(settings.state_ref, settings.drafts.branch, seen, settings.git.max_pushes)
    return Push(
        settings.state_ref, url.connect, settings.status.branch, _status_files(settings), status_commit_message, tags,
        approvals, announced_by(settings),
    )  # fmt: skip


def read_status(settings: Settings) -> dict[str, bytes]:
    """Return the files of the status branch, fetched now; {} before the first pass. Raises GitError."""
    place = _status_place(settings)
    cache, options = Path(settings.cache).expanduser(), git_options(settings)
    mirror = Mirror.open(cache, parse_url(place), options, on_rebuild=log_rebuild)
    mirror.fetch("config", branches=(settings.status.branch,))
    head = mirror.refs().get(f"refs/heads/{settings.status.branch}")
    if head is None:
        return {}
    branch = f"the branch {settings.status.branch} of {mirror.url}"
    with mirror.read() as reader, status_branch_errors(branch):
        found = [
            (path, blob) for path, mode, blob in reader.walk(reader.commit(head).tree) if mode in (FILE, EXECUTABLE)
        ]
        contents = reader.blobs(blob for _, blob in found)
    return {path: contents[blob] for path, blob in found}


def read_summary(settings: Settings) -> Mapping[str, Any]:
    """Return the summary of the status branch, fetched now; {} without one that can be read. Raises GitError."""
    if not (settings.status.url or settings.fleet.url):
        return {}
    try:
        documents = parse(read_status(settings).get(SUMMARY, b"")).documents
    except YamlError:
        return {}
    data = documents[0].data if documents else None
    return data if isinstance(data, dict) else {}


def _status_place(settings: Settings) -> str:
    place = settings.status.url or settings.fleet.url
    if not place:
        raise NoStatusPlaceError(
            "a place for status is missing: set status.url or fleet.url, or give --fleet; it must be a Git repository"
        )
    return place


def build_keep() -> Keep:
    """Build the publisher that only keeps what would be pushed."""
    return Keep()


def build_folder(settings: Settings, out: Path) -> Folder:
    """Build the publisher that writes to a folder."""
    return Folder(out, _status_files(settings))


def _status_files(settings: Settings) -> StatusFiles:
    memory = StatusMemory()
    return lambda plan, previous, report: status_files(plan, previous, settings.status.max_children, memory, report)


def listen(webhooks: Webhooks, settings: Settings) -> None:
    """Have the webhooks listen where the settings say. Raises SettingsError."""
    one = settings.webhooks
    try:
        webhooks.listen(one.listen, Path(one.secret_file).expanduser())
    except ListenError as error:
        raise SettingsError(str(error)) from error
