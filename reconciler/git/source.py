"""The location of a config: a Git repository that is mirrored, or a plain folder that is read directly."""

from __future__ import annotations

from pathlib import Path

from reconciler.git.errors import RepositoryMissingError, UrlRefusedError
from reconciler.git.options import GitOptions
from reconciler.git.url import GitUrl, check_url_allowed, find_parent_location, parse_url
from reconciler.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class RepositorySource:
    """A config in a Git repository."""

    url: GitUrl


@dataclass(frozen=True)
class FolderSource:
    """A config in a plain folder with an absolute path."""

    url: GitUrl

    @property
    def path(self) -> Path:
        """The path of the folder."""
        return Path(self.url.text)


RepositoryOrFolder = RepositorySource | FolderSource


def resolve_source(text: str, base: str = "", options: GitOptions | None = None) -> RepositoryOrFolder:
    """Return the config location that `text` refers to: a Git URL, or the path of a bare repository or a folder.

    Relative paths start at `base`. If `base` is empty, they start at the current folder. A folder is read as it is on
    disk, even if it is a work tree. A `file://` URL of a work tree means its Git repository.

    Raises:
        UrlRefusedError: The address is malformed or not allowed.
        RepositoryMissingError: The path contains no repository or folder.
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
    """Return the address of a repository that a Repository object refers to in `spec.git.repo`.

    Relative addresses start at `base`. If `base` is empty, they start at the folder that contains the config `source`.
    If the config is remote, local repositories must be in `allowed_urls`, because a remote config must not have access
    to the daemon's machine.

    Raises:
        UrlRefusedError: The address is malformed or not allowed.
    """
    url = parse_url(text, base or find_parent_location(source.url))
    check_url_allowed(url, options.allowed_urls)
    if url.is_local and not source.url.is_local and not options.allowed_urls:
        raise UrlRefusedError(
            f"{url.text!r} is a local repository: a config from a remote repository may use this path only if "
            "`git.allowed_urls` contains the path"
        )
    return url


def _is_repository(path: Path) -> bool:
    return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()
