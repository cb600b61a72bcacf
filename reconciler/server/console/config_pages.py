"""The config as the pages of the console show it: links to its commits and files, and the content of its files."""

from __future__ import annotations

import posixpath
from collections.abc import Callable

from reconciler.krm.findings import SourceLocation
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.server.console.page_links import PageLinks


@dataclass(frozen=True)
class ConfigPages:
    """The config as the console shows it.

    Attributes:
        links: Builds URLs of forges.
        url: The URL of the config. A local path has no links.
        directory: The folder of the config in its repository.
        read_file: Returns the content of a file at a config ID. Returns None if there is no such file. Raises GitError.
        read_author: Returns the mail address of the author of a config commit. Returns "" if the config has no commits.
            Raises GitError.
    """

    links: PageLinks = field(default_factory=PageLinks)
    url: str = ""
    directory: str = ""
    read_file: Callable[[str, str], bytes | None] = lambda _config, _path: None
    read_author: Callable[[str], str] = lambda _config: ""

    def build_commit_url(self, config: str) -> str:
        """Return the URL of the page of a config commit. Return "" if it has no page."""
        return self.links.build_commit_url(self.url, config)

    def build_location_url(self, config: str, location: SourceLocation) -> str:
        """Return the URL of the page of a file in the config. Return "" if it has no page.

        A location in a package has no page, because its file is not in the config.
        """
        if location.package or not location.file:
            return ""
        return self.links.build_file_url(self.url, config, self._get_path(location.file), location.line)

    def _get_path(self, file: str) -> str:
        return posixpath.join(self.directory.strip("/"), file)
