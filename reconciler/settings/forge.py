"""Settings of forges and pull requests."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from reconciler.forge.port import ACCEPT_CONFLICTS, ForgeKind
from reconciler.settings.declaration import SettingList, SettingsGroup, UrlWithoutCredentials, declare

_KINDS_WITHOUT_API = ("gitlab-push-options", "agit")
# A URL with only a host is allowed. A path on this machine must contain a folder.
_REPOSITORY_PREFIX = re.compile(
    r"(?:(?:https?|ssh)://[^\s@/?#]+|(?:file://(?:localhost)?)?(?=/+[^\s/]))(?:/[^\s@?#]*)?"
)


class ForgeHost(SettingsGroup):
    """A forge, with the URL of its API and its credentials.

    `url` is the start of the URLs of all repositories on the forge. The repository URLs can also have a different
    protocol, such as SSH instead of HTTPS.
    """

    url: UrlWithoutCredentials
    kind: ForgeKind
    api: UrlWithoutCredentials = ""
    token_file: str = ""
    app_id: str = ""
    app_key_file: str = ""
    app_installation: Annotated[int, Field(ge=0)] = 0

    @property
    def requires_credentials(self) -> bool:
        """Whether the forge has an API for which the deprecated fields of this group contain no credentials."""
        return self.kind not in _KINDS_WITHOUT_API and not (self.token_file or self.app_id)

    @field_validator("url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        if not _REPOSITORY_PREFIX.fullmatch(value) or ".." in value.split("/"):
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
        if self.kind in _KINDS_WITHOUT_API:
            if self.token_file or self.api or any(app):
                raise ValueError(
                    f'must not contain `api` or credentials, because the kind "{self.kind}" uses only Git pushes'
                )
            return self
        if any(app) and (self.kind != "github" or not all(app) or self.token_file):
            raise ValueError(
                "must contain `app_id` and `app_key_file` together, only if `kind` is github, and without `token_file`"
            )
        if not self.api and not self.url.startswith("https://"):
            raise ValueError("must contain `api` if `url` does not start with https://")
        return self


class ForgeSettings(SettingsGroup):
    """Settings for pull requests: forges, labels, checks, merge method and limits."""

    hosts: SettingList[ForgeHost] = declare(
        (),
        "The forges on which the reconciler opens pull requests for drafts, for example [{url: "
        "https://github.com/acme, kind: github}]. A forge has the fields url (the URL prefix of its repositories), "
        "kind (github, gitlab, gitea, gitlab-push-options or agit), and api (only if the URL of the API is not the "
        "default). The credentials of the API are in git.credentials, in the field api. Deprecated: the fields "
        "token_file, or app_id, app_key_file and app_installation of a GitHub App.",
    )
    draft: bool = declare(
        True,
        "Whether new pull requests are marked as drafts. When a person proposes the draft branch, its pull request "
        "is marked as ready for review.",
    )
    labels: SettingList[str] = declare((), "The labels of new pull requests.")
    check: bool = declare(
        True,
        "Whether the reconciler sets a check on the head commit of a draft branch. The check reports the reasons "
        "that block the draft.",
    )
    merge: Literal["", "merge", "squash", "rebase"] = declare(
        "",
        "The method with which `approve` publishes all packages of a draft branch that has a pull request. `merge`,"
        " `squash` and `rebase`: the forge merges the pull request, so that the rules of the forge apply. Empty:"
        " `approve` pushes to the target branch.",
    )
    max_open: int = declare(
        0,
        "The largest number of open pull requests that the reconciler opened in one repository. 0 means no limit.",
        ge=0,
    )
    new_per_hour: int = declare(
        200,
        "The largest number of pull requests that the reconciler opens per hour on one forge. 0 means no limit. "
        "GitHub allows 500 new objects of all kinds per hour.",
        ge=0,
    )
    writes_per_minute: int = declare(
        60, "The largest number of write requests per minute to the API of one forge. 0 means no limit.", ge=0
    )

    @field_validator("labels")
    @classmethod
    def _check_labels(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any(not label.strip() or "," in label or not label.isprintable() for label in value):
            raise ValueError("must be names of labels, without commas")
        if ACCEPT_CONFLICTS in value:
            raise ValueError(f"must not contain {ACCEPT_CONFLICTS}: reviewers set this label to accept conflicts")
        return value
