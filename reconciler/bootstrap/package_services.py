"""Construction of the services that commands for one package use."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from reconciler.bootstrap.engine import build_functions, get_conflict_policy, read_merge_options
from reconciler.bootstrap.options import INITIAL_BACKOFF_SECONDS, build_git_options
from reconciler.bootstrap.source_renderers import build_helm_engine
from reconciler.git.mirror import Mirror
from reconciler.git.source import RepositorySource, resolve_repository
from reconciler.git.upstream_packages import UpstreamPackages
from reconciler.git.url import parse_url
from reconciler.krm.merge3 import Winner
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.update.options import MergeOptions
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.runners.functions import CombinedFunctionProvider
from reconciler.settings import Settings
from reconciler.telemetry.event_log import log_mirror_rebuild


@dataclass(frozen=True)
class PackageServices:
    """The services of a command that works on one package: the upstreams, the merge options and the functions."""

    upstreams: UpstreamPackages
    merge: MergeOptions
    functions: CombinedFunctionProvider


def build_package_services(
    settings: Settings, folder: Path, root: str, policy: str = "", on_fetch: Callable[[str], None] = lambda url: None
) -> PackageServices:
    """Build the services of a command that works on the package in `folder`.

    Args:
        root: The URL of the package's upstream, or "" if the package has no upstream.
        policy: The conflict policy. If it is not "", it replaces the setting `merge.conflict_policy`.
        on_fetch: Receives the URL of each repository before the repository is fetched.

    Raises:
        GitError: A URL cannot be used.
    """
    options = build_git_options(settings)
    # Check URLs as in a config, because a package from a remote must not refer to repositories on this machine.
    source = RepositorySource(parse_url(root or ".", str(folder.absolute())))

    def open_mirror(repo: str) -> Mirror:
        url = resolve_repository(repo, source, options, str(folder.absolute()))
        on_fetch(url.text)
        return Mirror.open(Path(settings.cache).expanduser(), url, options, on_rebuild=log_mirror_rebuild)

    merge = read_merge_options(settings)
    winner: Winner = "local" if (policy or get_conflict_policy(settings)) == "local" else "upstream"
    merge = replace(merge, rules=replace(merge.rules, winner=winner))
    backoff = Backoff(INITIAL_BACKOFF_SECONDS, settings.max_backoff_seconds, time.monotonic)
    get_helm = partial(build_helm_engine, settings, os.environ.get("PATH", ""))
    return PackageServices(UpstreamPackages(open_mirror), merge, build_functions(settings, backoff, get_helm))
