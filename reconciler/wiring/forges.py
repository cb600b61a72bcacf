"""Forges: who opens pull requests for a repository, by the settings."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from reconciler.daemon.publish import Announce
from reconciler.forge.port import Forge
from reconciler.forge.push_options import gitlab_options
from reconciler.forge.request import NewRequest
from reconciler.gitio.url import GitUrl, parse_url, place_of
from reconciler.planning.fleet import DestinationPlan
from reconciler.planning.plan import grows
from reconciler.reporting.pull_request import announcement
from reconciler.settings import ForgeSettings, Settings

if TYPE_CHECKING:
    from reconciler.forge.hosts import Hosts


def announced_by(settings: Settings) -> Announce:
    """Return what gives the push options by which GitLab opens merge requests, where the settings say so."""
    forges, one = KnownForges(settings, time.time), settings.forge

    def announce(plan: DestinationPlan) -> tuple[str, ...]:
        if forges.kind(plan.destination.url) != "gitlab-push-options":
            return ()
        (first, *_) = grows(plan)
        title, body = announcement(plan)
        return gitlab_options(NewRequest(first.branch, plan.destination.branch, title, body, one.draft, one.labels))

    return announce


class KnownForges:
    """The forges of the settings by the URL of a repository; without any, nothing of them is loaded."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._hosts = _hosts(settings.forge, clock) if settings.forge.hosts else None

    def of(self, url: str) -> Forge | None:
        """Return the driver for a repository, None where there is none."""
        return self._hosts.forge(*place_of(parse_url(url))) if self._hosts else None

    def kind(self, url: str) -> str | None:
        """Return which kind of forge a repository is on."""
        return self._hosts.kind(*place_of(parse_url(url))) if self._hosts else None

    def page(self, url: GitUrl, commit: str) -> str:
        """Return where people look at a commit; "" for nowhere."""
        return self._hosts.page(*place_of(url), commit) if self._hosts else ""

    def close(self) -> None:
        """Let go of what is open to hosts."""
        if self._hosts:
            self._hosts.close()


def _hosts(settings: ForgeSettings, clock: Callable[[], float]) -> Hosts:
    from reconciler.forge.hosts import Host, Hosts

    hosts = [
        Host(one.kind, *place_of(parse_url(one.url)), one.api, one.token_file, one.app_id, one.app_key_file,
             one.app_installation)
        for one in settings.hosts
    ]  # fmt: skip
    return Hosts(hosts, settings.writes_per_minute, settings.new_per_hour, clock)
