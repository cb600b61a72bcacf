"""Forges by the address of a repository: which driver, with whose credentials, within whose budget."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Literal

from reconciler.forge.app_token import AppToken
from reconciler.forge.budget import Budget
from reconciler.forge.credentials import token_from
from reconciler.forge.gitea import Gitea
from reconciler.forge.github import GitHub, is_name
from reconciler.forge.gitlab import GitLab
from reconciler.forge.http import Authorize, Client
from reconciler.forge.port import Forge

Kind = Literal["github", "gitlab", "gitea", "gitlab-push-options", "agit"]
_PLAIN = re.compile(r"[A-Za-z0-9._/-]+")


@dataclass(frozen=True)
class Host:
    """A forge: its repositories are those below `path` at `host`, which is "" for this machine.

    `api` is "" at the usual place. Credentials are a `token_file`, or at GitHub an App: its id, the file of its key,
    and its installation, which 0 lets be found.
    """

    kind: Kind
    host: str
    path: str = ""
    api: str = ""
    token_file: str = ""
    app_id: str = ""
    app_key_file: str = ""
    app_installation: int = 0

    def holds(self, host: str, path: str) -> bool:
        """Return whether a repository is at this forge."""
        inside = not self.path or path == self.path or path.startswith(f"{self.path}/")
        return host == self.host and inside

    @property
    def root(self) -> str:
        """The address of the API."""
        return self.api or _usual_api(self.kind, self.host)


def _usual_api(kind: Kind, host: str) -> str:
    if kind == "github":
        return "https://api.github.com" if host == "github.com" else f"https://{host}/api/v3"
    return f"https://{host}/api/{'v4' if kind == 'gitlab' else 'v1'}"


class Hosts:
    """Builds a driver for each repository, once; those of one host share its budget. Threads may share it."""

    def __init__(
        self, hosts: Sequence[Host], writes_per_minute: int, new_per_hour: int, clock: Callable[[], float]
    ) -> None:
        self._hosts = tuple(hosts)
        self._budgets = {host: Budget(writes_per_minute, new_per_hour, clock) for host in self._hosts}
        self._clock = clock
        self._built: dict[tuple[str, str], Forge | None] = {}
        self._clients: dict[tuple[Host, str], Client] = {}
        self._apps: list[AppToken] = []
        self._lock = Lock()

    def kind(self, host: str, path: str) -> Kind | None:
        """Return what the forge of a repository is; None for one on no forge. The longest path decides."""
        found = self._host(host, path)
        return found.kind if found else None

    def forge(self, host: str, path: str) -> Forge | None:
        """Return the driver of a repository; None where none is, or where all goes by what is pushed."""
        with self._lock:
            key = (host, path)
            if key not in self._built:
                self._built[key] = self._build(host, path)
            return self._built[key]

    def page(self, host: str, path: str, commit: str) -> str:
        """Return the address of a commit's page; "" for repositories that are on no forge, or on this machine."""
        kind = self.kind(host, path) if host else None
        # it stands in Markdown, where other characters could end it
        if kind is None or not _PLAIN.fullmatch(path):
            return ""
        return f"https://{host}/{path}/{'-/' if kind.startswith('gitlab') else ''}commit/{commit}"

    def close(self) -> None:
        """Let go of all connections, until somebody asks again."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            for app in self._apps:
                app.close()

    def _host(self, host: str, path: str) -> Host | None:
        return max((one for one in self._hosts if one.holds(host, path)), key=lambda one: len(one.path), default=None)

    def _build(self, host: str, path: str) -> Forge | None:
        one = self._host(host, path)
        if one is None:
            return None
        owner, _, last = path.rpartition("/")
        if not one.host:
            # repositories on this machine are called by their last names: a path is no name at a forge
            owner = owner.rpartition("/")[2]
        match one.kind:
            case "github" if is_name(owner) and is_name(last):
                return GitHub(self._client(one, f"{owner}/{last}"), owner, last)
            case "gitea" if owner and "/" not in owner:
                return Gitea(self._client(one, ""), owner, last)
            case "gitlab" if owner:
                return GitLab(self._client(one, ""), f"{owner}/{last}")
            case _:
                return None

    def _client(self, one: Host, repository: str) -> Client:
        # an App is installed by each owner; a token is the same for all
        key = (one, repository.partition("/")[0] if one.app_id and not one.app_installation else "")
        if key not in self._clients:
            authorize = self._authorize(one, repository)
            self._clients[key] = Client(one.root, authorize, self._budgets[one], self._clock)
        return self._clients[key]

    def _authorize(self, one: Host, repository: str) -> Authorize:
        if one.app_id:
            key = Path(one.app_key_file)
            app = AppToken(one.root, one.app_id, key, repository, self._clock, one.app_installation)
            self._apps.append(app)
            return app
        header, prefix = {"github": ("Authorization", "Bearer "), "gitlab": ("PRIVATE-TOKEN", "")}.get(
            one.kind, ("Authorization", "token ")
        )
        return token_from(Path(one.token_file), header, prefix)
