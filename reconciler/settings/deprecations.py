"""Deprecated settings: the names of those that are set, and the settings that replace them."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.settings.all_settings import Settings

_GIT_SETTINGS = ("credentials_file", "ssh_key_file")
_FORGE_FIELDS = ("token_file", "app_id")


def list_deprecated_settings(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the name of each deprecated setting that is set, with the setting that replaces it."""
    if settings.webhooks.listen:
        yield "webhooks.listen", "`server.listen`"
    for name in _GIT_SETTINGS:
        if getattr(settings.git, name):
            example = f'{{url: "*", read: {{{name}: …}}, write: {{{name}: …}}}}'
            yield f"git.{name}", f"an entry of `git.credentials`, for example {example}"
    for index, host in enumerate(settings.forge.hosts):
        if name := next((name for name in _FORGE_FIELDS if getattr(host, name)), ""):
            example = "github_app: {app_id: …, key_file: …}" if name == "app_id" else "token_file: …"
            replacement = f"`api: {{{example}}}` in an entry of `git.credentials` that matches {host.url!r}"
            yield f"forge.hosts.{index}.{name}", replacement
