"""Location of a config in its Git repository. Reports use it to write paths relative to the repository root."""

from __future__ import annotations

import posixpath
from pathlib import Path

from reconciler.bootstrap.options import build_git_options
from reconciler.git.local_repository import find_path_in_work_tree
from reconciler.git.source import FolderSource, resolve_source
from reconciler.lazy_dataclasses import dataclass
from reconciler.settings import DEFAULT_FILE, Settings


@dataclass(frozen=True)
class ConfigLocation:
    """Paths of the config folder and the settings file, relative to the repository root. "" is the root itself."""

    root: str
    settings: str


def locate_config(settings: Settings, config: str, settings_file: str | None) -> ConfigLocation:
    """Return the location of a config in its Git repository.

    If `config` is a folder outside of a Git repository, `config` itself is the root.
    """
    source, directory = (
        resolve_source(config, options=build_git_options(settings)),
        settings.config.directory.strip("/"),
    )
    if not isinstance(source, FolderSource):
        return ConfigLocation(directory, DEFAULT_FILE)
    root = find_path_in_work_tree(source.path)
    file = Path(settings_file or DEFAULT_FILE)
    file_in_repository = find_path_in_work_tree(file) if root is not None and file.is_file() else None
    return ConfigLocation(posixpath.join(root or "", directory).rstrip("/"), file_in_repository or DEFAULT_FILE)
