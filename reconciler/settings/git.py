"""Settings of Git: credentials, signatures, timeouts and limits of remotes."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from reconciler.settings.credentials import CredentialSettings, check_remote_pattern
from reconciler.settings.declaration import SettingList, SettingsGroup, UrlWithoutCredentials, declare


class RemoteSettings(SettingsGroup):
    """Limits for the remotes on one host, or below a path on one host. The group `git` has the default values."""

    url: UrlWithoutCredentials
    max_refs_per_push: Annotated[int, Field(ge=3, le=10_000)] | None = None
    max_pushes_per_minute: Annotated[int, Field(ge=0)] | None = None

    @field_validator("url")
    @classmethod
    def _check_location(cls, value: str) -> str:
        path = value.removeprefix("file://")
        return value if path.startswith("/") and path.strip("/") else check_remote_pattern(value)

    @model_validator(mode="after")
    def _check_limits(self) -> RemoteSettings:
        if self.max_refs_per_push is None and self.max_pushes_per_minute is None:
            raise ValueError("must contain a limit: `max_refs_per_push` or `max_pushes_per_minute`")
        return self


class GitSettings(SettingsGroup):
    """Author of commits, limits, credentials and allowed URLs for Git operations."""

    author: str = declare(
        "reconciler <reconciler@localhost>",
        "The author and committer of the commits that the reconciler creates. All daemons of a fleet must use the "
        "same value, so that they create identical commits.",
    )
    timeout_seconds: int = declare(120, "The time limit of one Git command, in seconds.", ge=1)
    max_refs_per_push: int = declare(
        500,
        "The largest number of refs in one push. All refs of one target are always in the same push.",
        ge=3,
        le=10_000,
    )
    max_pushes_per_minute: int = declare(
        0, "The largest number of pushes per minute to one remote. 0 means no limit.", ge=0
    )
    remotes: SettingList[RemoteSettings] = declare(
        (),
        'Different limits for some remotes, for example [{url: "github.com/*", max_pushes_per_minute: 6}, '
        "{url: gitlab.com, max_refs_per_push: 3}]. The field url is a host, a host with a path, a path on "
        "this machine, or a glob. A port that is not the default port is part of the host. The first item that matches "
        "a remote applies.",
    )
    max_fetches: int = declare(8, "The largest number of remotes that are fetched at the same time.", ge=1, le=256)
    max_pushes: int = declare(8, "The largest number of remotes that are pushed to at the same time.", ge=1, le=256)
    patience_seconds: float = declare(
        10.0,
        "The longest time that a pass of the daemon waits for the fetch or push of one remote, in seconds. After "
        "that time, the pass continues without this remote. Commands wait for all remotes.",
        gt=0,
    )
    allowed_urls: SettingList[UrlWithoutCredentials] = declare(
        (),
        "The repositories that the reconciler can read and write, as complete URLs, URLs of parent folders or "
        "globs. An empty list allows all https and ssh URLs and all local paths.",
    )
    credentials: SettingList[CredentialSettings] = declare(
        (),
        "The credentials of remotes, for example [{url: github.com/acme/*, read: {token_file: "
        "/run/secrets/read}, write: {token_file: /run/secrets/write}}]. The field url is a host, a host with "
        "a path, or a glob. The first item that matches a remote applies. The field write is used only for "
        "pushes; if an item has no write, its remotes are read-only. The fields of read and write are "
        "token_file with username, credentials_file (lines of the form https://user:token@host), github_app "
        "(app_id, key_file, installation), or ssh_key_file with known_hosts_file. The field write can also "
        "have a url for pushes. The field api has the token_file or github_app for the pull requests of "
        "these repositories. The field tenant is the only tenant whose packages may use upstreams with these "
        "credentials.",
    )
    credentials_file: str = declare(
        "",
        "Deprecated: use git.credentials. A file with lines of the form https://user:token@host, the format of "
        "git-credential-store. A path after the host limits a line to the repositories below that path.",
    )
    ssh_key_file: str = declare(
        "", "Deprecated: use git.credentials. The file of the private SSH key. Empty means the defaults of ssh."
    )
    known_hosts_file: str = declare(
        "",
        "The known_hosts file of ssh for remotes without an entry in git.credentials. Empty means the defaults of ssh.",
    )
    revision_tags: Literal["used", "all", "none"] = declare(
        "used",
        "The packages whose published revisions get a tag. `used`: packages that a package variant names as its "
        "upstream. `all`: all packages. `none`: no package.",
    )

    @field_validator("author")
    @classmethod
    def _check_author(cls, value: str) -> str:
        if not re.fullmatch(r"[^<>\n]+ <[^<>\s]+>", value):
            raise ValueError('must be a name and an address, for example "reconciler <reconciler@localhost>"')
        return value
