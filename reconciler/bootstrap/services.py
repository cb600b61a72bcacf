"""Construction of the services of a command from the settings and the location of the config."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler import __version__
from reconciler.bootstrap import pass_services
from reconciler.bootstrap.inputs import Progress, SettingsInputs
from reconciler.bootstrap.options import INITIAL_BACKOFF_SECONDS, build_git_options, build_signer
from reconciler.catalog.files import CommitId
from reconciler.git.filesystem import prepare_private_folder
from reconciler.git.history import resolve_commit_name
from reconciler.git.mirror import Mirror
from reconciler.git.rate_limit import PushRateLimiters
from reconciler.git.source import resolve_source
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.reconcile.cache_files import FilePassStore
from reconciler.reconcile.config_source import ConfigHistory
from reconciler.reconcile.pass_inputs import ConfigSource
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.scheduling import Backoff, RemoteLimits
from reconciler.settings import Settings
from reconciler.telemetry.event_log import log, log_random_signatures

if TYPE_CHECKING:
    from reconciler.git.signing import Signer
    from reconciler.reconcile.remotes.availability import RemoteTimes
    from reconciler.reconcile.services import PassServices


@dataclass(frozen=True)
class Services:
    """The services of a command.

    Attributes:
        inputs: The services that read the inputs of a pass.
        watched_folders: Local folders. A change in such a folder starts a pass.
        open_config_history: Opens the history of the config. Raises GitError if a config folder is not in a Git
            repository.
        resolve_commit: Finds a commit in a mirror by a branch name, a tag name or a commit ID.
    """

    source: ConfigSource
    inputs: SettingsInputs
    remotes: Remotes
    backoff: Backoff
    watched_folders: tuple[Path, ...]
    open_config_history: Callable[[], ConfigHistory]
    resolve_commit: Callable[[Mirror, str], CommitId]
    build_pass_services: Callable[[], PassServices]

    @cached_property
    def pass_services(self) -> PassServices:
        """The services of a pass. They are built at the first use, because their import is slow."""
        return self.build_pass_services()


def build_services(
    settings: Settings,
    config: str,
    *,
    should_treat_missing_as_empty: bool = False,
    commit: str = "",
    is_offline: bool = False,
    can_fetch: bool = True,
    can_call_forges: bool = True,
    report_progress: Progress | None = None,
    clock: Callable[[], float] = time.time,
    monotonic_clock: Callable[[], float] = time.monotonic,
    wake_up: Callable[[], None] | None = None,
    should_sign: bool = False,
    should_stop: Callable[[], bool] | None = None,
    remote_times: RemoteTimes | None = None,
) -> Services:
    """Build the services of a pass over `config`.

    Args:
        config: The URL or path of the config.
        should_treat_missing_as_empty: Whether a target repository that does not exist is treated as an empty
            repository.
        commit: The commit of the config. "" means the files on disk, or the head of the config branch.
        is_offline: Whether a cluster can have a target even if it has no Repository and there is no fleet repository.
        can_fetch: Whether remotes and forges may be contacted. If not, the services use the data of the last fetch.
        can_call_forges: Whether the APIs of forges may be called. If not, the services read no pull requests.
        report_progress: Receives the stage, the number of completed items, and the total number of items.
        clock: Returns seconds since 1970. The clock has an effect on the time of actions, not on rendered content.
        monotonic_clock: Returns the seconds of a monotonic clock.
        wake_up: Called when a slow remote is ready. If the caller passes this function, a pass does not wait for slow
            remotes.
        should_sign: Whether new commits and tags are signed, if the settings contain a key. Commands that push nothing
            need no key.
        should_stop: Returns whether the process must end soon. A long batch of signatures then ends.
        remote_times: The times of the fetches and pushes before a reload of the settings.

    Raises:
        GitError: The URL of the config cannot be used.
        SigningFailedError: The signing key cannot be read.
        CacheRefusedError: Other users can write to the cache folder.
    """
    _raise_open_file_limit()
    prepare_private_folder(Path(settings.cache).expanduser())
    if wake_up:
        from reconciler.settings.deprecations import list_deprecated_settings

        # Log deprecated settings only in the service. The command `validate` reports them as findings.
        for setting, replacement in list_deprecated_settings(settings):
            log.warning("setting_deprecated", setting=setting, replacement=replacement)
    backoff = Backoff(INITIAL_BACKOFF_SECONDS, settings.max_backoff_seconds, monotonic_clock)
    source = resolve_source(config, options=build_git_options(settings))
    limits = _build_remote_limits(settings, monotonic_clock, wake_up)
    rate_limiters = PushRateLimiters(
        limits.max_wait_seconds, _report_push_wait(report_progress) if report_progress else None, monotonic_clock
    )
    signer = build_signer(settings, should_stop) if should_sign else None
    if signer:
        # Read the key now, so that an unreadable key ends the command before it changes a remote.
        signer.load_key()
    inputs = SettingsInputs(
        settings, source, clock=clock, backoff=backoff, rate_limiters=rate_limiters,
        report_progress=report_progress or (lambda stage, done, total: None), can_fetch=can_fetch,
        can_call_forges=can_call_forges, signer=signer,
        search_path="" if wake_up else os.environ.get("PATH", ""),
    )  # fmt: skip
    prefix = settings.state_ref.partition("{repository}")[0]
    remotes = Remotes(
        inputs.open_mirror, prefix, backoff, inputs.close, limits,
        should_keep_earlier_refs=inputs.known_heads.is_empty, times=remote_times,
    )  # fmt: skip

    def build_pass_services() -> PassServices:
        return pass_services.build_pass_services(
            settings, inputs, backoff,
            should_treat_missing_as_empty=should_treat_missing_as_empty, is_offline=is_offline,
        )  # fmt: skip

    return Services(
        inputs.build_config_source(commit), inputs, remotes, backoff, inputs.list_watched_folders(),
        inputs.open_history, partial(_find_commit, prefix), build_pass_services,
    )  # fmt: skip


def warn_about_signatures(signer: Signer | None) -> None:
    """Log a warning if the key creates different signatures for equal content.

    Raises:
        SigningFailedError: The key cannot be read.
    """
    if signer and not (key := signer.load_key()).is_deterministic:
        log_random_signatures(key.description)


def _build_remote_limits(
    settings: Settings, monotonic_clock: Callable[[], float], wake_up: Callable[[], None] | None
) -> RemoteLimits:
    limits = RemoteLimits(settings.git.max_fetches, settings.git.max_pushes, clock=monotonic_clock)
    if wake_up is None:
        return limits
    return replace(
        limits, max_wait_seconds=settings.git.patience_seconds, notify=wake_up, should_log_outages=True
    )  # fmt: skip


def _report_push_wait(report_progress: Progress) -> Callable[[str, float], None]:
    return lambda url, seconds: report_progress(f"waiting to push to {url}", int(not seconds), 1)


def build_pass_cache(settings: Settings, config: str) -> FilePassStore:
    """Build the file cache for the result of the last pass.

    Processes with the same config and settings share the file.
    """
    key = compute_digest([__version__, settings.model_dump(mode="json"), str(Path(config).absolute())])
    return FilePassStore(Path(settings.cache).expanduser() / "settled" / f"{key.removeprefix('sha256:')}.json")


def _raise_open_file_limit() -> None:
    # Raise the limit, because many systems allow 1,024 open files, and a pass uses three open files for each remote.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _find_commit(state_prefix: str, mirror: Mirror, name: str) -> CommitId:
    return resolve_commit_name(name, mirror, Path.cwd(), state_prefix)
