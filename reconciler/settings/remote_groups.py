"""Groups of settings about other programs: forges, webhooks, workers and logs."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from reconciler.forge.port import ACCEPT_CONFLICTS
from reconciler.server.address import split_address
from reconciler.settings.declaration import SettingsGroup, declare


class ForgeHost(SettingsGroup):
    """A forge, with the URL of its API and its credentials.

    `url` is the prefix of the URLs of its repositories. The protocol that Git uses does not matter.
    """

    url: str
    kind: Literal["github", "gitlab", "gitea", "gitlab-push-options", "agit"]
    api: str = ""
    token_file: str = ""
    app_id: str = ""
    app_key_file: str = ""
    app_installation: Annotated[int, Field(ge=0)] = 0

    @field_validator("url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        if not re.fullmatch(r"(https?://|file://|ssh://|/)[^\s@]+", value):
            raise ValueError("must be a URL without credentials, for example https://github.com/acme")
        return value

    @field_validator("api")
    @classmethod
    def _check_api(cls, value: str) -> str:
        # Require https, because a token must not be sent unencrypted. Allow http for a forge on this machine, because
        # such requests do not use a network.
        if value and not re.fullmatch(
            r"https://[^\s@?#]+|http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?[^\s@?#]*", value
        ):
            raise ValueError("must be an https URL without credentials, for example https://git.example.com/api/v1")
        return value

    @model_validator(mode="after")
    def _check_credentials(self) -> ForgeHost:
        app = (self.app_id, self.app_key_file)
        if self.kind in ("gitlab-push-options", "agit"):
            if self.token_file or self.api or any(app):
                raise ValueError(
                    f"must not contain `api` or credentials, because the kind {self.kind} uses only Git pushes"
                )
            return self
        if any(app) and (self.kind != "github" or not all(app) or self.token_file):
            raise ValueError(
                "must contain `app_id` and `app_key_file` together, only on GitHub, and without `token_file`"
            )
        if not self.token_file and not any(app):
            raise ValueError("must contain `token_file`, or on GitHub `app_id` and `app_key_file`")
        if not self.api and not self.url.startswith("https://"):
            raise ValueError("must contain `api` if `url` does not start with https://")
        return self


_AUTHENTICATED = re.compile(r"(?:tls|wss)://")

_LOOPBACK = re.compile(r"[a-z]+://(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]):\d+\Z")


class RenderingSettings(SettingsGroup):
    """Parallel rendering of many packages in worker processes or on a Dask cluster."""

    workers: int = declare(
        0,
        "The number of processes that render packages if a pass renders hundreds of packages; 0 means one process "
        "per core, and 1 means that the main process renders all packages.",
        ge=0,
        le=256,
    )
    dask: str = declare(
        "",
        "The address of the scheduler of a Dask cluster that renders the packages instead of local processes, for "
        "example tls://scheduler:8786; the daemon and the workers need the Python extra reconciler[dask].",
    )
    timeout_seconds: int = declare(
        600,
        "The time limit for a batch of packages on a worker, in seconds; after this time, the main process renders "
        "the packages itself.",
        ge=1,
    )

    @field_validator("dask")
    @classmethod
    def _check_address(cls, value: str) -> str:
        if value and not re.fullmatch(r"(tcp|tls|ws|wss|ucx)://[^\s/]+", value):
            raise ValueError('must be the address of a scheduler, for example "tls://scheduler:8786"')
        # Require TLS, because Dask has no other authentication, and each process that reaches a scheduler can run code.
        if value and not (_AUTHENTICATED.match(value) or _LOOPBACK.match(value)):
            raise ValueError(
                'must start with tls:// or wss:// unless the scheduler is on this machine, for example "tls://scheduler:8786"'
            )
        return value


class ForgeSettings(SettingsGroup):
    """Settings for pull requests: forges, labels, checks, merge method and limits."""

    hosts: tuple[ForgeHost, ...] = declare(
        (),
        "The forges on which the reconciler opens pull requests for drafts, for example [{url: "
        "https://github.com/acme, kind: github, token_file: /run/token}]. A forge has the fields url (the URL "
        "prefix of its repositories), kind (github, gitlab, gitea, gitlab-push-options or agit), and api (only if "
        "the URL of the API is not the default). For authentication, it has token_file, or app_id, app_key_file and "
        "app_installation of a GitHub App.",
    )
    draft: bool = declare(
        True,
        "Whether new pull requests are marked as drafts; when a person proposes the draft branch, its pull request "
        "is marked as ready for review.",
    )
    labels: tuple[str, ...] = declare((), "The labels of new pull requests.")
    check: bool = declare(
        True,
        "Whether the reconciler sets a check on the head commit of a draft branch; the check reports the reasons "
        "that block the draft.",
    )
    merge: Literal["", "merge", "squash", "rebase"] = declare(
        "",
        "The method with which approve publishes a complete draft that has a pull request: with merge, squash or "
        "rebase, the forge merges the pull request, so that the rules of the forge apply; empty means that approve "
        "pushes to the target branch.",
    )
    max_open: int = declare(
        0,
        "The largest number of open pull requests that the reconciler opened in one repository; 0 means no limit.",
        ge=0,
    )
    new_per_hour: int = declare(
        200,
        "The largest number of pull requests that the reconciler opens per hour on one forge; 0 means no limit; "
        "GitHub allows 500 new objects of all kinds per hour.",
        ge=0,
    )
    writes_per_minute: int = declare(
        60, "The largest number of write requests per minute to the API of one forge; 0 means no limit.", ge=0
    )

    @field_validator("hosts", "labels", mode="before")
    @classmethod
    def _list_to_tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("labels")
    @classmethod
    def _check_labels(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any(not label.strip() or "," in label or not label.isprintable() for label in value):
            raise ValueError("must be names of labels, without commas")
        if ACCEPT_CONFLICTS in value:
            raise ValueError(f"must not contain {ACCEPT_CONFLICTS}: reviewers accept conflicts with this label")
        return value


class WebhookSettings(SettingsGroup):
    """Settings of the webhook server, to which Git hosts report changes."""

    listen: str = declare(
        "",
        "The address on which the service receives webhooks, as host:port, for example 127.0.0.1:8080; if this "
        "setting is empty, the service receives no webhooks.",
    )
    secret_file: str = declare(
        "",
        "The file with the secrets of the webhook signatures, one secret per line; the service reads the file again "
        "after a change.",
    )
    gather_seconds: float = declare(
        2.0,
        "The time that the service waits for more webhooks before it starts a pass, in seconds; because of this "
        "time, several webhooks of one push start only one pass.",
        ge=0,
        le=60,
    )

    @field_validator("listen")
    @classmethod
    def _check_address(cls, value: str) -> str:
        if value:
            split_address(value)
        return value

    @model_validator(mode="after")
    def _check_secret_file(self) -> WebhookSettings:
        if self.listen and not self.secret_file:
            raise ValueError(
                "must contain `secret_file` if `listen` is set, because the server accepts only signed webhooks"
            )
        return self


class LogSettings(SettingsGroup):
    """Level and format of the log."""

    level: Literal["debug", "info", "warning", "error"] = declare(
        "info", "The lowest level of the events that the service logs: debug, info, warning or error."
    )
    format: Literal["auto", "json", "text"] = declare(
        "auto", "The log format: json, text, or auto, which is text on a terminal and JSON otherwise."
    )
