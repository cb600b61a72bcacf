"""Forge clients that are built from the settings, and push options for GitLab."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from reconciler.forge.port import Forge, NewRequest
from reconciler.forge.push_options import build_gitlab_push_options
from reconciler.git.url import GitUrl, parse_url, split_host_and_path
from reconciler.output.review import pull_request
from reconciler.planning.decide import target_plan
from reconciler.settings import ForgeSettings, Settings

if TYPE_CHECKING:
    from reconciler.forge.drivers import Hosts
    from reconciler.planning.decide.fleet_plan import TargetPlan
    from reconciler.reconcile.commits import PushOptionsAnnouncer


def create_gitlab_announcer(settings: Settings) -> PushOptionsAnnouncer:
    """Return a function that builds the GitLab push options for opening a merge request.

    The function returns () if the forge of the target does not have the kind `gitlab-push-options`.
    """
    forges, forge_settings = ForgeRegistry(settings, time.time), settings.forge

    def announce(plan: TargetPlan) -> tuple[str, ...]:
        if forges.get_kind(plan.target.url) != "gitlab-push-options":
            return ()
        (first_push, *_) = target_plan.list_pushes(plan)
        title, body = pull_request.format_announcement(plan)
        return build_gitlab_push_options(
            NewRequest(first_push.branch, plan.target.branch, title, body, forge_settings.draft, forge_settings.labels)
        )

    return announce


class ForgeRegistry:
    """The forges of the settings. A repository URL selects a forge.

    If the settings contain no forge, the forge modules are not imported.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._hosts = _build_hosts(settings.forge, clock) if settings.forge.hosts else None

    def get_forge(self, url: str) -> Forge | None:
        """Return the forge client for a repository URL. Return None if the host is not a configured forge."""
        return self._hosts.get_forge(*split_host_and_path(parse_url(url))) if self._hosts else None

    def get_kind(self, url: str) -> str | None:
        """Return the forge kind for a repository URL, e.g. "gitlab".

        Return None if the host is not a configured forge.
        """
        return self._hosts.get_kind(*split_host_and_path(parse_url(url))) if self._hosts else None

    def build_commit_url(self, url: GitUrl, commit: str) -> str:
        """Return the URL of a commit's web page. Return "" if the host is not a configured forge."""
        return self._hosts.build_commit_url(*split_host_and_path(url), commit) if self._hosts else ""

    def close(self) -> None:
        """Close all connections to forges."""
        if self._hosts:
            self._hosts.close()


def _build_hosts(settings: ForgeSettings, clock: Callable[[], float]) -> Hosts:
    from reconciler.forge.drivers import Host, Hosts

    hosts = [
        Host(host.kind, *split_host_and_path(parse_url(host.url)), host.api, host.token_file, host.app_id,
             host.app_key_file, host.app_installation)
        for host in settings.hosts
    ]  # fmt: skip
    return Hosts(hosts, settings.writes_per_minute, settings.new_per_hour, clock)
