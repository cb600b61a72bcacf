"""Deciding what a place is: a repository to mirror, or a plain folder to read (design section 7)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reconciler.gitio.errors import RepositoryMissingError, UrlRefusedError
from reconciler.gitio.options import GitOptions
from reconciler.gitio.url import GitUrl, check_allowed, folder_of, parse_url


@dataclass(frozen=True)
class RepositorySource:
    """Configuration in a repository."""

    url: GitUrl


@dataclass(frozen=True)
class FolderSource:
    """Configuration in a plain folder, named by its absolute path."""

    url: GitUrl

    @property
    def path(self) -> Path:
        """Where the folder is."""
        return Path(self.url.text)


Source = RepositorySource | FolderSource


def open_source(text: str, base: str = "", options: GitOptions | None = None) -> Source:
    """Return what CONFIG names: a Git URL, a bare repository, or a plain folder, relative to `base` (default: here).

    A path is a folder and read as it is on disk, also when it is a work tree; `file://` asks for its repository.
    Raises UrlRefusedError and RepositoryMissingError.
    """
    url = parse_url(text, base)
    if not url.local:
        check_allowed(url, (options or GitOptions()).allowed_urls)
        return RepositorySource(url)
    path = Path(url.text)
    if _is_repository(path) or (text.lower().startswith("file:") and (path / ".git").exists()):
        return RepositorySource(url)
    if not path.is_dir():
        what = "it is neither" if path.exists() else "there is nothing"
        raise RepositoryMissingError(f"{url.text} must be a repository or a folder; {what}")
    return FolderSource(url)


def resolve_repository(text: str, source: Source, options: GitOptions, base: str = "") -> GitUrl:
    """Return the address that `spec.git.repo` spells inside `source`; relative ones start at the folder that holds it.

    With `base` they start there. Raises UrlRefusedError. What came over the network may name local repositories only
    where `allowed_urls` lists them: it must not reach into the machine that reads it.
    """
    url = parse_url(text, base or folder_of(source.url))
    check_allowed(url, options.allowed_urls)
    if url.local and not source.url.local and not options.allowed_urls:
        raise UrlRefusedError(f"{url.text!r} is local: a remote configuration must not name it without allowed_urls")
    return url


def _is_repository(path: Path) -> bool:
    return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()
