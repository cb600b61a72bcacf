"""Settings of credentials: which credentials apply to which remotes, for reading, for pushes, and for the forge API."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema, field_validator, model_validator

from reconciler.settings.declaration import SettingsGroup, UrlWithoutCredentials

_SCHEME = re.compile(r"\A[A-Za-z][A-Za-z0-9+.-]*://")
_LOCATION = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:@/\[\]]+)(:(\d{1,5}|\*))?(/[^\s:@]*)?")


def check_remote_pattern(value: str) -> str:
    """Return a pattern of remotes unchanged. Raise ValueError if it is not a host with an optional port and path."""
    if not _LOCATION.fullmatch(_SCHEME.sub("", value)):
        raise ValueError("must be a host, or a host and a path or glob, for example github.com/acme/*")
    return value


class GitHubAppSettings(SettingsGroup):
    """A GitHub App. `installation` is only necessary if the App is installed by several owners."""

    app_id: Annotated[str, Field(min_length=1), WithJsonSchema({"type": ["string", "integer"], "minLength": 1})]
    key_file: str = Field(min_length=1)
    installation: Annotated[int, Field(ge=0)] = 0

    @field_validator("app_id", mode="before")
    @classmethod
    def _number_to_text(cls, value: Any) -> Any:
        # Accept a number, because GitHub shows the ID of an App as a number.
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class ReadCredentials(SettingsGroup):
    """Credentials for one purpose: at most one method for https, and a key for ssh."""

    token_file: str = ""
    username: str = ""
    credentials_file: str = ""
    ssh_key_file: str = ""
    known_hosts_file: str = ""
    github_app: GitHubAppSettings | None = None

    @model_validator(mode="after")
    def _check_methods(self) -> ReadCredentials:
        https_methods = (self.token_file, self.credentials_file, self.github_app)
        if sum(map(bool, https_methods)) > 1:
            raise ValueError("must contain only one of `token_file`, `credentials_file` and `github_app`")
        if not any(https_methods) and not self.ssh_key_file:
            raise ValueError("must contain `token_file`, `credentials_file`, `github_app` or `ssh_key_file`")
        if self.username and not self.token_file:
            raise ValueError("must contain `username` only together with `token_file`")
        if self.known_hosts_file and not self.ssh_key_file:
            raise ValueError("must contain `known_hosts_file` only together with `ssh_key_file`")
        return self

    @field_validator("username")
    @classmethod
    def _check_username(cls, value: str) -> str:
        if not value.isprintable():
            raise ValueError("must contain only printable characters")
        return value


class WriteCredentials(ReadCredentials):
    """Credentials of pushes, and the URL for pushes if it is not the URL for reading."""

    url: UrlWithoutCredentials = ""


class ApiCredentials(SettingsGroup):
    """Credentials of the API of a forge."""

    token_file: str = ""
    github_app: GitHubAppSettings | None = None

    @model_validator(mode="after")
    def _check_methods(self) -> ApiCredentials:
        if bool(self.token_file) == bool(self.github_app):
            raise ValueError("must contain either `token_file` or `github_app`")
        return self


class CredentialSettings(SettingsGroup):
    """The credentials of the remotes that match `url`. Packages of tenants other than `tenant` must not use them."""

    url: UrlWithoutCredentials
    tenant: str = ""
    read: ReadCredentials | None = None
    write: WriteCredentials | None = None
    api: ApiCredentials | None = None

    @field_validator("url")
    @classmethod
    def _check_location(cls, value: str) -> str:
        return check_remote_pattern(value)

    @model_validator(mode="after")
    def _check_uses(self) -> CredentialSettings:
        if not (self.read or self.write or self.api):
            raise ValueError("must contain `read`, `write` or `api`")
        host = self.url.partition("://")[2] or self.url
        if self.write and self.write.url and re.search(r"[*?]", host.partition("/")[0]):
            raise ValueError("must contain a host without * and ?, because `write.url` replaces the host")
        return self
