"""The config as the console shows it: links to forges, and the content of its files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from reconciler.bootstrap.forges import ForgeRegistry
from reconciler.bootstrap.options import build_git_options
from reconciler.bootstrap.services import build_services
from reconciler.catalog.files import CommitId
from reconciler.git.source import FolderSource, resolve_source
from reconciler.server.console.config_pages import ConfigPages
from reconciler.server.console.page_links import LinkTemplates, PageLinks

if TYPE_CHECKING:
    from reconciler.reconcile.config_source import ConfigHistory
    from reconciler.settings import Settings


# Maximum number of config commits whose authors are cached. Few config commits have open drafts.
_MAX_COMMITS = 1_000


def build_config_pages(settings: Settings, config: str) -> ConfigPages:
    """Return the links to the config and to targets, and the reader of config files.

    Args:
        config: The URL or path of the config.
    """
    console = settings.console
    links = PageLinks(
        ForgeRegistry(settings, time.monotonic).get_kind,
        LinkTemplates(console.commit_link_template, console.link_template),
    )
    return ConfigPages(
        links, config, settings.config.directory, partial(_read_file, settings, config),
        lru_cache(_MAX_COMMITS)(partial(_read_author, settings, config)),
    )  # fmt: skip


def _read_file(settings: Settings, config: str, config_id: str, path: str) -> bytes | None:
    """Return the content of a config file: at a commit for a config in Git, and now for a config in a plain folder.

    Return None if the file does not exist.
    """
    source = resolve_source(config, options=build_git_options(settings))
    if isinstance(source, FolderSource):
        file = source.path / settings.config.directory / path
        return file.read_bytes() if file.is_file() else None
    with _open_history(settings, config) as history:
        return history.read_file(CommitId(config_id), path)


def _read_author(settings: Settings, config: str, config_id: str) -> str:
    """Return the mail address of the author of a config commit. Return "" for a config in a plain folder."""
    if not config_id or config_id.startswith("tree:"):
        return ""
    with _open_history(settings, config) as history:
        return history.read_commit(CommitId(config_id)).author.email


@contextmanager
def _open_history(settings: Settings, config: str) -> Iterator[ConfigHistory]:
    """Open the commits of the config in the cache."""
    services = build_services(settings, config, can_fetch=False, can_call_forges=False)
    with services.remotes:
        yield services.open_config_history()
