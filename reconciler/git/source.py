"""Resolution of a configuration location: a repository to mirror, or a plain folder to read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reconciler.git.errors import RepositoryMissingError, UrlRefusedError
from reconciler.git.options import GitOptions
from reconciler.git.url import GitUrl, check_url_allowed, find_parent_location, parse_url


@dataclass(frozen=True)
class RepositorySource:
    """Configuration in a repository."""

    url: GitUrl


@dataclass(frozen=True)
class FolderSource:
    """Configuration in a plain folder with an absolute path."""

    url: GitUrl

    @property
    def path(self) -> Path:
        """The folder's path."""
        return Path(self.url.text)


RepositoryOrFolder = RepositorySource | FolderSource


def resolve_source(text: str, base: str = "", options: GitOptions | None = None) -> RepositoryOrFolder:
    """Return the source that CONFIG names: a Git URL, a bare repository, or a plain folder, relative to `base`.

    Without `base`, relative paths start at the current folder. A path to a folder is read as it is on disk, also when
    it is a work tree; `file://` selects its repository.

    Raises:
        UrlRefusedError: The address is malformed or not allowed.
        RepositoryMissingError: There is no repository or folder at the path.
    """
    url = parse_url(text, base)
    if not url.is_local:
        check_url_allowed(url, (options or GitOptions()).allowed_urls)
        return RepositorySource(url)
    path = Path(url.text)
    if _is_repository(path) or (text.lower().startswith("file:") and (path / ".git").exists()):
        return RepositorySource(url)
    if not path.is_dir():
        reason = "it is neither" if path.exists() else "it does not exist"
        raise RepositoryMissingError(f"{url.text} must be a repository or a folder; {reason}")
    return FolderSource(url)


def resolve_repository(text: str, source: RepositoryOrFolder, options: GitOptions, base: str = "") -> GitUrl:
    """Return the address that `spec.git.repo` names inside `source`.

    Relative addresses start at `base`, or without it at the folder that contains `source`. A remote configuration may
    name local repositories only if `allowed_urls` lists them, because it must not give access to the machine of the
    daemon.

    Raises:
        UrlRefusedError: The address is malformed or not allowed.
    """
    url = parse_url(text, base or find_parent_location(source.url))
    check_url_allowed(url, options.allowed_urls)
    if url.is_local and not source.url.is_local and not options.allowed_urls:
        raise UrlRefusedError(f"{url.text!r} is local: a remote configuration must not name it without allowed_urls")
    return url


def _is_repository(path: Path) -> bool:
    return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()
