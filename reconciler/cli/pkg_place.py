"""What the commands of one package are pointed at: `REPO.git/DIR@REF` as kpt spells it, and `DIR@REF`."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import click

from reconciler.cli.exits import CannotRunError
from reconciler.gitio.url import parse_url
from reconciler.packages.kptfile import GitUpstream, Kptfile
from reconciler.packages.package import Package
from reconciler.redaction import has_credentials, redact_url
from reconciler.snapshot.files import FileTree

_END_OF_REPOSITORY = re.compile(r"\.git(?=/|@|$)")
# the part of an address in which an @ begins no ref: scheme and host, or user and host
_HEAD = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://[^/]*|[^/]+:)?")
# hosts on which a repository has exactly two names
_TWO_NAMES = ("github.com", "bitbucket.org")
_FORM = (
    'cannot tell where the repository ends in "{text}": write REPO.git/DIR@REF, or give the repository alone and'
    " --directory DIR"
)

package_argument = click.argument("place", metavar="[DIR][@REF]", default=".")
folder_argument = click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))


def split_place(text: str, ref: str | None) -> tuple[Path, str]:
    """Return the folder and the ref, "" for none, of `DIR@REF`; a usage error when both places name one."""
    folder, at, named = text.rpartition("@")
    if at and _is_url_with_credentials(folder, named) and not (Path(folder).is_dir() or Path(text).is_dir()):
        raise CannotRunError(
            f"{redact_url(text)} must be DIR or DIR@REF, where DIR is a folder of this machine; this looks like a URL"
            " with credentials (removed here)"
        )
    # a folder may have an @ in its name
    if not at or Path(text).is_dir():
        folder, named = text, ""
    return Path(folder or "."), _one_of("a ref", named, "--ref", ref)


def _is_url_with_credentials(before: str, after: str) -> bool:
    """Return whether the texts around an `@` look like user information and a host, not like a folder and a ref."""
    host, slash, _ = after.partition("/")
    return has_credentials(f"{before}@{after}") and (":" in before or bool(slash and "." in host))


def upstream_address(files: FileTree) -> str:
    """Return the repository that a package says it comes from; "" when it does not."""
    kptfile = Package(files).kptfile
    git = kptfile.upstream.git if isinstance(kptfile, Kptfile) and kptfile.upstream else None
    return git.repo if git else ""


def read_source(text: str, directory: str | None, ref: str | None) -> GitUpstream:
    """Return where a package is to come from; its ref may be "". Raises CannotRunError, GitError."""
    repo, inside, named = _split(text, whole=directory is not None)
    place = _one_of("a directory", inside.strip("/"), "--directory", directory)
    if ".." in place.split("/"):
        raise CannotRunError(f'a package\'s directory must lie in its repository, not at "{place}"')
    url = parse_url(repo)
    # a path is the same one from everywhere only when it is absolute
    written = url.text if url.local and "://" not in repo else repo.rstrip("/")
    return GitUpstream(repo=written, directory=f"/{place.strip('/')}", ref=_one_of("a ref", named, "--ref", ref))


def _one_of(what: str, here: str, option: str, there: str | None) -> str:
    if here and there is not None and there != here:
        raise click.UsageError(f'{what} is given twice: "{here}", and {option} {there}')
    return there if there is not None else here


def _split(text: str, *, whole: bool) -> tuple[str, str, str]:
    """Return repository, directory and ref as the text spells them, "" for what it does not.

    `whole`: without a .git that tells where it ends, all of the address is the repository.
    """
    if end := _END_OF_REPOSITORY.search(text):
        directory, ref = _cut(text[end.end() :])
        return text[: end.end()], directory, ref
    head = _HEAD.match(text)
    assert head is not None
    place, ref = _cut(text[head.end() :])
    if whole:
        return head[0] + place, "", ref
    if head[0] in {"", "file://"}:
        return _split_path(head[0], place, ref, redact_url(text))
    names = place.strip("/").split("/")
    if urlsplit(head[0]).hostname not in _TWO_NAMES or len(names) < 2:
        raise CannotRunError(_FORM.format(text=redact_url(text)))
    return f"{head[0]}/{'/'.join(names[:2])}", "/".join(names[2:]), ref


def _cut(text: str) -> tuple[str, str]:
    place, at, ref = text.rpartition("@")
    return (place, ref) if at else (text, "")


def _split_path(head: str, place: str, ref: str, shown: str) -> tuple[str, str, str]:
    path = Path(place).absolute()
    for folder in (path, *path.parents):
        if (folder / ".git").exists() or ((folder / "HEAD").is_file() and (folder / "objects").is_dir()):
            return f"{head}{folder}", path.relative_to(folder).as_posix().removeprefix("."), ref
    raise CannotRunError(_FORM.format(text=shown))
