"""The forges of the settings. Selects the driver, the credentials and the rate limiter for a repository.

To add a forge, write a driver that implements `Forge` in its own module, as in `gitlab.py`. Add its name to `ForgeKind`
in `port.py`. In this module, create the driver in `Hosts._build`, and check `get_default_api`, `_build_authorize` and
`build_commit_url`. The URLs of its pages are in `server/console/page_links.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock

from reconciler.forge.credentials import read_token_from
from reconciler.forge.errors import ForgeCredentialsError
from reconciler.forge.gitea import Gitea
from reconciler.forge.github import GitHub, is_name
from reconciler.forge.github_app import AppTokens, TokenRequest
from reconciler.forge.gitlab import GitLab
from reconciler.forge.http_client import Authorize, ForgeClient
from reconciler.forge.port import Forge, ForgeKind
from reconciler.forge.rate_limits import ForgeLimit, ForgeQuota, RateLimiter
from reconciler.lazy_dataclasses import dataclass

_PLAIN = re.compile(r"[A-Za-z0-9._/-]+")
_API_KINDS = frozenset({"github", "gitlab", "gitea"})


@dataclass(frozen=True)
class ApiCredentials:
    """The credentials of the API of a forge: a `token_file`, or a GitHub App with its ID and its private key.

    If `app_installation` is 0, the installation ID is requested from GitHub. The tokens of the App have only the
    permissions `app_permissions`. () means all permissions of the App.
    """

    token_file: str = ""
    app_id: str = ""
    app_key_file: str = ""
    app_installation: int = 0
    app_permissions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Host:
    """A forge in the settings. All repositories below `path` on `host` belong to this forge.

    Attributes:
        host: The host of the repositories. "" means repositories on this machine.
        api: The URL of the API. "" means the default URL.
        credentials: The credentials for all repositories. None means that each repository has its own credentials.
    """

    kind: ForgeKind
    host: str
    path: str = ""
    api: str = ""
    credentials: ApiCredentials | None = None

    def contains_repository(self, host: str, path: str) -> bool:
        """Return whether the repository at this host and path is on this forge."""
        is_inside = not self.path or path == self.path or path.startswith(f"{self.path}/")
        return host == self.host and is_inside

    @property
    def root(self) -> str:
        """The URL of the API."""
        return self.api or get_default_api(self.kind, self.host)


def get_default_api(kind: ForgeKind, host: str) -> str:
    """Return the default URL of the API of a forge."""
    if kind == "github":
        if host.endswith(".ghe.com"):
            return f"https://api.{host}"
        return "https://api.github.com" if host == "github.com" else f"https://{host}/api/v3"
    return f"https://{host}/api/{'v4' if kind == 'gitlab' else 'v1'}"


class Hosts:
    """Builds one client per repository. All clients of a forge share one rate limiter. The object is thread-safe."""

    def __init__(
        self,
        hosts: Sequence[Host],
        writes_per_minute: int,
        new_per_hour: int,
        clock: Callable[[], float],
        app_tokens: AppTokens,
    ) -> None:
        self._hosts = tuple(hosts)
        self._app_tokens = app_tokens
        self._rate_limiters = {host: RateLimiter(writes_per_minute, new_per_hour, clock) for host in self._hosts}
        self._clock = clock
        self._forges: dict[tuple[str, str], Forge | None] = {}
        self._clients: dict[tuple[Host, ApiCredentials, str], ForgeClient] = {}
        self._lock = Lock()

    def get_kind(self, host: str, path: str) -> ForgeKind | None:
        """Return the kind of the forge of a repository. Return None if the repository is on no forge.

        If several forges contain the repository, the forge with the longest path is used.
        """
        forge_host = self.find_host(host, path)
        return forge_host.kind if forge_host else None

    def get_forge(
        self, host: str, path: str, find_credentials: Callable[[], ApiCredentials | None] = lambda: None
    ) -> Forge | None:
        """Return the client for a repository. Return None if the repository has no forge with an API client.

        Args:
            find_credentials: Returns the credentials of the repository, which are used if the forge itself has none.
        """
        with self._lock:
            key = (host, path)
            if key not in self._forges:
                self._forges[key] = self._build(host, path, find_credentials)
            return self._forges[key]

    def get_quota(self, host: Host) -> ForgeQuota:
        """Return the number of requests that a forge allows, as its last response reported."""
        return self._rate_limiters[host].quota

    def list_limits(self) -> tuple[ForgeLimit, ...]:
        """Return the rate limits of all forges with an API, in the order of the settings."""
        return tuple(
            ForgeLimit(f"{host.host}/{host.path}".rstrip("/"), host.kind, limiter.quota, limiter.paused_until)
            for host, limiter in self._rate_limiters.items()
            if host.kind in _API_KINDS
        )

    def build_commit_url(self, host: str, path: str, commit: str) -> str:
        """Return the URL of the page of a commit. Return "" if the repository is on no forge, or on this machine."""
        kind = self.get_kind(host, path) if host else None
        # Allow only plain characters, because the URL is inserted into Markdown, where other characters could end the
        # link.
        if kind is None or not _PLAIN.fullmatch(path):
            return ""
        return f"https://{host}/{path}/{'-/' if kind.startswith('gitlab') else ''}commit/{commit}"

    def close(self) -> None:
        """Close all connections. The next request opens new connections."""
        with self._lock:
            for client in self._clients.values():
                client.close()

    def find_host(self, host: str, path: str) -> Host | None:
        """Return the forge of a repository. Return None if the repository is on no forge."""
        matches = (candidate for candidate in self._hosts if candidate.contains_repository(host, path))
        return max(matches, key=lambda candidate: len(candidate.path), default=None)

    def _build(self, host: str, path: str, find_credentials: Callable[[], ApiCredentials | None]) -> Forge | None:
        forge_host = self.find_host(host, path)
        if forge_host is None:
            return None
        credentials = forge_host.credentials or find_credentials() or ApiCredentials()
        owner, _, name = path.rpartition("/")
        if not forge_host.host:
            # Use the last two segments of a file path as the owner and the name, because a repository on this machine
            # has no owner.
            owner = owner.rpartition("/")[2]
        match forge_host.kind:
            case "github" if is_name(owner) and is_name(name):
                return GitHub(self._get_client(forge_host, credentials, f"{owner}/{name}"), owner, name)
            case "gitea" if owner and "/" not in owner:
                return Gitea(self._get_client(forge_host, credentials, path), owner, name)
            case "gitlab" if owner:
                return GitLab(self._get_client(forge_host, credentials, path), f"{owner}/{name}")
            case _:
                return None

    def _get_client(self, host: Host, credentials: ApiCredentials, repository: str) -> ForgeClient:
        # For a GitHub App, use one client per repository, because a token of an App is only valid for one repository.
        key = (host, credentials, repository if credentials.app_id else "")
        if key not in self._clients:
            authorize = self._build_authorize(host, credentials, repository)
            self._clients[key] = ForgeClient(host.root, authorize, self._rate_limiters[host], self._clock)
        return self._clients[key]

    def _build_authorize(self, host: Host, credentials: ApiCredentials, repository: str) -> Authorize:
        if credentials.app_id:
            request = TokenRequest(
                host.root, credentials.app_id, credentials.app_key_file, repository, credentials.app_installation,
                credentials.app_permissions,
            )  # fmt: skip
            return self._app_tokens.get(request)
        if not credentials.token_file:
            return _refuse_without_credentials(f"{host.host}/{repository}")
        header, prefix = {"github": ("Authorization", "Bearer "), "gitlab": ("PRIVATE-TOKEN", "")}.get(
            host.kind, ("Authorization", "token ")
        )
        return read_token_from(Path(credentials.token_file), header, prefix)


def _refuse_without_credentials(repository: str) -> Authorize:
    def authorize() -> Mapping[str, str]:
        raise ForgeCredentialsError(
            f"no entry of `git.credentials` with `api` matches {repository}, which is on a forge of `forge.hosts`: add"
            " `api` to the entry of this repository"
        )

    return authorize
