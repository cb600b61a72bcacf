"""Places: where in its repository a config is, so that tools find the files that findings name."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from pathlib import Path

from reconciler.gitio.source import FolderSource, open_source
from reconciler.gitio.work_tree import place_in_work_tree
from reconciler.settings import DEFAULT_FILE, Settings
from reconciler.wiring.options import git_options


@dataclass(frozen=True)
class ConfigPlace:
    """Where a config is: a folder from the root of its repository, "" for the root; and the file of the settings."""

    root: str
    settings: str


def config_place(settings: Settings, config: str, settings_file: str | None) -> ConfigPlace:
    """Return where a config is in its repository; a folder outside of any is taken for the root of one."""
    source, directory = open_source(config, options=git_options(settings)), settings.config.directory.strip("/")
    if not isinstance(source, FolderSource):
        return ConfigPlace(directory, DEFAULT_FILE)
    root = place_in_work_tree(source.path)
    written = Path(settings_file or DEFAULT_FILE)
    beside = place_in_work_tree(written) if root is not None and written.is_file() else None
    return ConfigPlace(posixpath.join(root or "", directory).rstrip("/"), beside or DEFAULT_FILE)
