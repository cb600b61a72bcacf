"""URLs of the pages that a forge shows for commits and files. No request is sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import quote, urlsplit

from reconciler.git.errors import GitError
from reconciler.git.url import GitUrl, parse_url, split_host_and_path
from reconciler.lazy_dataclasses import dataclass, field

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PLACEHOLDER = re.compile(r"{([^{}]*)}")
PLACEHOLDERS = ("host", "path", "commit", "file", "line")
"""The names that a template can contain in braces."""


@dataclass(frozen=True)
class LinkTemplates:
    """Templates for the URLs of web pages on one kind of forge.

    The template `file` can end with a fragment for the line, e.g. `#L{line}`. If the line is unknown, the URL has no
    fragment.
    """

    commit: str
    file: str
    pull_request: str = ""


_GITLAB = LinkTemplates(
    "https://{host}/{path}/-/commit/{commit}",
    "https://{host}/{path}/-/blob/{commit}/{file}#L{line}",
    "https://{host}/{path}/-/merge_requests/{number}",
)
_GITEA = LinkTemplates(
    "https://{host}/{path}/commit/{commit}",
    "https://{host}/{path}/src/commit/{commit}/{file}#L{line}",
    "https://{host}/{path}/pulls/{number}",
)
_TEMPLATES: Mapping[str, LinkTemplates] = {
    "github": LinkTemplates(
        "https://{host}/{path}/commit/{commit}",
        "https://{host}/{path}/blob/{commit}/{file}#L{line}",
        "https://{host}/{path}/pull/{number}",
    ),
    "gitlab": _GITLAB,
    "gitlab-push-options": _GITLAB,
    "gitea": _GITEA,
    "agit": _GITEA,
    "forgejo": _GITEA,
    "bitbucket": LinkTemplates(
        "https://{host}/{path}/commits/{commit}",
        "https://{host}/{path}/src/{commit}/{file}#lines-{line}",
        "https://{host}/{path}/pull-requests/{number}",
    ),
}
_PUBLIC_HOSTS = {"bitbucket.org": "bitbucket", "codeberg.org": "forgejo"}
# `bitbucket` is absent: a host with this name can be Bitbucket Data Center, whose URLs differ from bitbucket.org.
_KINDS_IN_HOST_NAMES = ("github", "gitlab", "gitea", "forgejo")


@dataclass(frozen=True)
class PageLinks:
    """Builds URLs of pages.

    Attributes:
        get_kind: Returns the kind of forge that the settings contain for a repository URL, or None.
        fallback: The templates for repositories whose kind of forge is unknown. A template "" gives no link.
    """

    get_kind: Callable[[str], str | None] = lambda _url: None
    fallback: LinkTemplates = field(default=LinkTemplates("", ""))

    def build_commit_url(self, repository: str, commit: str) -> str:
        """Return the URL of the page of a commit. Return "" if it is unknown."""
        return self._build_at(repository, commit, lambda templates: templates.commit)

    def build_file_url(self, repository: str, commit: str, file: str, line: int = 0) -> str:
        """Return the URL of the page of a file at a commit. Return "" if it is unknown."""
        values = {"file": quote(file, safe="/"), "line": str(line or "")}
        return self._build_at(repository, commit, lambda templates: _drop_line(templates.file, line), values)

    def build_pull_request_url(self, repository: str, number: int) -> str:
        """Return the URL of a pull request's page. Return "" if the URL is unknown, or if `number` is 0."""
        if not number:
            return ""
        return self._build(repository, lambda templates: templates.pull_request, {"number": str(number)})

    def _build_at(
        self,
        repository: str,
        commit: str,
        select: Callable[[LinkTemplates], str],
        values: Mapping[str, str] | None = None,
    ) -> str:
        if not _COMMIT.fullmatch(commit):
            return ""
        return self._build(repository, select, {"commit": commit, **(values or {})})

    def _build(self, repository: str, select: Callable[[LinkTemplates], str], values: Mapping[str, str]) -> str:
        address = _parse(repository)
        if address is None:
            return ""
        template = select(self._find_templates(address))
        host, path = _get_page_host(address), quote(split_host_and_path(address)[1], safe="/")
        texts = {"host": host, "path": path, **values}
        return _PLACEHOLDER.sub(lambda match: texts.get(match[1], match[0]), template)

    def _find_templates(self, address: GitUrl) -> LinkTemplates:
        host = split_host_and_path(address)[0]
        label = next((name for name in host.split(".") if name in _KINDS_IN_HOST_NAMES), "")
        kind = self.get_kind(address.text) or _PUBLIC_HOSTS.get(host, label)
        return _TEMPLATES.get(kind, self.fallback)


def _parse(repository: str) -> GitUrl | None:
    """Return the parsed URL of a repository. Return None if the repository is local or has no https pages."""
    try:
        address = parse_url(repository)
    except GitError:
        return None
    return None if address.is_local or address.scheme in ("http", "git") else address


def _get_page_host(address: GitUrl) -> str:
    """Return the host of the pages. Keep the port of an https URL, and omit the port of an ssh URL."""
    host = split_host_and_path(address)[0]
    port = urlsplit(address.text).port if address.scheme == "https" else None
    return f"{host}:{port}" if port else host


def _drop_line(template: str, line: int) -> str:
    return template if line else template.partition("#")[0]


def find_template_error(template: str, *, has_file: bool) -> str:
    """Return the reason why a template of the settings is not valid. Return "" if it is valid."""
    allowed = PLACEHOLDERS if has_file else PLACEHOLDERS[:3]
    names = _PLACEHOLDER.findall(template)
    if not re.match(r"https://[^/\s]+/\S*\Z", template):
        return "must be an https URL without spaces, for example https://cgit.example.com/{path}/commit/?id={commit}"
    if unknown := [name for name in names if name not in allowed]:
        return (
            f"must not contain {{{unknown[0]}}}; allowed placeholders: {', '.join(f'{{{name}}}' for name in allowed)}"
        )
    required = ("commit", "file") if has_file else ("commit",)
    if missing := [name for name in required if name not in names]:
        return f"must contain {{{missing[0]}}}"
    return ""
