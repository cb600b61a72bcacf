"""Forge clients that are built from the settings, and push options for GitLab."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from reconciler.forge import port, push_options
from reconciler.git.url import GitUrl, get_location, matches_location, parse_url, split_host_and_path
from reconciler.output import remote_checks
from reconciler.output.review import pull_request
from reconciler.planning.decide import target_plan
from reconciler.settings import ForgeSettings, Settings

if TYPE_CHECKING:
    from reconciler.forge.drivers import ApiCredentials, Hosts
    from reconciler.forge.github_app import AppTokens
    from reconciler.forge.port import Forge
    from reconciler.forge.rate_limits import ForgeLimit
    from reconciler.output.remote_checks import ForgeCheck
    from reconciler.planning.decide.fleet_plan import TargetPlan
    from reconciler.reconcile.commits import PushOptionsAnnouncer
    from reconciler.settings.forge import ForgeHost

# No pull request of this branch exists. A search for pull requests of the branch shows whether the API can be used.
_PROBE_BRANCH = "reconciler/probe"


def create_gitlab_announcer(settings: Settings) -> PushOptionsAnnouncer:
    """Return a function that builds the GitLab push options for opening a merge request.

    The returned function returns () if the forge of the target does not have the kind `gitlab-push-options`.
    """
    forges, forge_settings = ForgeRegistry(settings, time.time), settings.forge

    def announce(plan: TargetPlan) -> tuple[str, ...]:
        if forges.get_kind(plan.target.url) != "gitlab-push-options":
            return ()
        (first_push, *_) = target_plan.list_pushes(plan)
        title, body = pull_request.format_announcement(plan)
        branches = first_push.branch, plan.target.branch
        request = port.NewRequest(*branches, title, body, forge_settings.draft, forge_settings.labels)
        return push_options.build_gitlab_push_options(request)

    return announce


class ForgeRegistry:
    """The forges of the settings. A repository URL selects a forge.

    If the settings contain no forge, the forge modules are not imported.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock

    @cached_property
    def app_tokens(self) -> AppTokens:
        """The tokens of GitHub Apps, which Git and the forge clients share."""
        from reconciler.forge.github_app import AppTokens

        return AppTokens(self._clock)

    @cached_property
    def _hosts(self) -> Hosts | None:
        hosts = self._settings.forge.hosts
        return _build_hosts(self._settings.forge, self._clock, self.app_tokens) if hosts else None

    def get_forge(self, url: str) -> Forge | None:
        """Return the forge client for a repository URL. Return None if the host is not a configured forge."""
        if self._hosts is None:
            return None
        address = parse_url(url)
        # Find the credentials only for a new client, because each pass requests the client of a repository several
        # times.
        return self._hosts.get_forge(
            *split_host_and_path(address), lambda: _find_api_credentials(self._settings, address)
        )

    def check_api(self, url: str) -> ForgeCheck | None:
        """Check whether the pull requests of a repository can be read. Return None if the repository has no configured
        API.
        """
        if self._hosts is None:
            return None
        forge, host = self.get_forge(url), self._hosts.find_host(*split_host_and_path(parse_url(url)))
        if forge is None or host is None:
            return None
        from reconciler.forge.errors import ForgeError

        check = remote_checks.Check(status="ok")
        try:
            forge.find(_PROBE_BRANCH, _PROBE_BRANCH)
        except ForgeError as error:
            check = remote_checks.Check(status="failed", message=str(error))
        quota = self._hosts.get_quota(host)
        return remote_checks.ForgeCheck(
            kind=host.kind, api=host.root, check=check, limit=quota.limit, remaining=quota.remaining,
            resets_at=quota.resets_at, token_expires_at=quota.token_expires_at,
            clock_seconds=None if quota.clock_difference is None else round(quota.clock_difference),
        )  # fmt: skip

    def list_limits(self) -> tuple[ForgeLimit, ...]:
        """Return the rate limits of all forges, as their last responses reported."""
        return self._hosts.list_limits() if self._hosts else ()

    def get_github_api(self, url: GitUrl) -> str:
        """Return the URL of the GitHub API for a repository."""
        from reconciler.forge.drivers import get_default_api

        host, path = split_host_and_path(url)
        forge_host = self._hosts.find_host(host, path) if self._hosts else None
        return forge_host.root if forge_host and forge_host.kind == "github" else get_default_api("github", host)

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


def _build_hosts(settings: ForgeSettings, clock: Callable[[], float], app_tokens: AppTokens) -> Hosts:
    from reconciler.forge.drivers import Host, Hosts

    hosts = [
        Host(host.kind, *_split_prefix(host.url), host.api, _read_own_credentials(host)) for host in settings.hosts
    ]
    return Hosts(hosts, settings.writes_per_minute, settings.new_per_hour, clock, app_tokens)


def _split_prefix(url: str) -> tuple[str, str]:
    """Return the host and the path of the URL of a forge. The path is "" if the URL contains only a host."""
    if "://" in url and not url.partition("://")[2].partition("/")[2].strip("/"):
        # Add a path, because `parse_url` accepts only URLs with the path of a repository.
        return split_host_and_path(parse_url(f"{url.rstrip('/')}/any"))[0], ""
    return split_host_and_path(parse_url(url))


def _read_own_credentials(host: ForgeHost) -> ApiCredentials | None:
    """Return the credentials in the deprecated fields of a forge. Return None if the fields are empty."""
    from reconciler.forge.drivers import ApiCredentials

    credentials = ApiCredentials(host.token_file, host.app_id, host.app_key_file, host.app_installation)
    return credentials if credentials != ApiCredentials() else None


def _find_api_credentials(settings: Settings, url: GitUrl) -> ApiCredentials | None:
    """Return the field `api` of the first entry in `git.credentials` that matches a repository and contains `api`."""
    from reconciler.forge.drivers import ApiCredentials

    location = get_location(url)
    matches = (entry.api for entry in settings.git.credentials if matches_location(location, entry.url))
    credentials = next((api for api in matches if api), None)
    if credentials is None:
        return None
    app = credentials.github_app
    if app is None:
        return ApiCredentials(credentials.token_file)
    return ApiCredentials("", app.app_id, app.key_file, app.installation, _list_api_permissions(settings.forge))


def _list_api_permissions(settings: ForgeSettings) -> tuple[tuple[str, str], ...]:
    # GitHub requires write permission for the contents to change the draft status of a pull request, and to merge it.
    statuses = (("statuses", "write"),) if settings.check else ()
    return (("contents", "write"), ("pull_requests", "write"), *statuses)
