"""Arguments, options and output that the `pkg` commands share.

An argument has the form `DIR@REF` for a local package, or `REPO.git/DIR@REF` for an upstream package, as in kpt.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from reconciler.api import kpt
from reconciler.catalog.files import FileTree
from reconciler.cli.exit_codes import CannotRunError
from reconciler.cli.options import should_color
from reconciler.controllers.package_variants import codes
from reconciler.git import url as git_url
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.output import package_report
from reconciler.packages import kptfile as packages_kptfile
from reconciler.packages import package as packages_package
from reconciler.redaction import has_credentials, redact_url

if TYPE_CHECKING:
    from reconciler.api.kpt import GitUpstream
    from reconciler.git.upstream_packages import UpstreamPackages
    from reconciler.output.package_report import PackageReport

strategy_option = click.option(
    "--strategy",
    type=click.Choice(["resource-merge", "fast-forward", "force-delete-replace", "copy-merge"]),
    help="The update strategy of the package. The command writes it to the Kptfile.",
)


def print_report(report: PackageReport, output: str, diff_lines: int = 0, color: str = "never") -> None:
    """Print the result of a command to standard output, as text or as JSON."""
    result, has_color = package_report.build_package_result(report, diff_lines), should_color(color)
    text = (
        result.to_json() + "\n" if output == "json" else package_report.format_package_text(result, has_color=has_color)
    )
    click.echo(text, nl=False, color=has_color)


def print_fetching(url: str) -> None:
    """Print a message that a repository is being fetched, if standard error is a terminal."""
    if sys.stderr.isatty():
        click.echo(f"fetching {url} …", err=True)


def find_skipped_paths(upstreams: UpstreamPackages) -> tuple[Finding, ...]:
    """Return a finding for each symbolic link and submodule of the upstream packages. These paths are not copied."""
    message = "symbolic links and submodules are not copied; the package does not contain this path"
    return tuple(
        codes.VariantCodes.LINK_SKIPPED.finding(message, SourceLocation(path)) for path in upstreams.skipped_paths
    )


_REPOSITORY_END = re.compile(r"\.git(?=/|@|$)")
# Scheme and host of a URL, or user and host of an SSH address. An @ in this part does not start a ref.
_URL_START = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://[^/]*|[^/]+:)?")
# Hosts on which the path of every repository has two segments, so that the package directory starts after the second
# segment.
_TWO_SEGMENT_HOSTS = ("github.com", "bitbucket.org")
_AMBIGUOUS_MESSAGE = (
    'cannot determine where the URL of the repository ends in "{text}": write REPO.git/DIR@REF, or give only '
    "the repository and --directory DIR"
)

package_argument = click.argument("target", metavar="[DIR][@REF]", default=".")
folder_argument = click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))


def parse_package_target(text: str, ref: str | None) -> tuple[Path, str]:
    """Parse `DIR@REF`, and return the folder and the ref. The ref is "" if no ref is given.

    Raises:
        click.UsageError: The text and the option `ref` contain different refs.
        CannotRunError: The text is a URL with credentials.
    """
    folder, at, text_ref = text.rpartition("@")
    if at and _is_url_with_credentials(folder, text_ref) and not (Path(folder).is_dir() or Path(text).is_dir()):
        raise CannotRunError(
            f"{redact_url(text)} must be DIR or DIR@REF, where DIR is a folder on this machine; this is a URL with"
            " credentials (removed here)"
        )
    # Use the whole text as the folder if this folder exists, because the name of a folder may contain an @.
    if not at or Path(text).is_dir():
        folder, text_ref = text, ""
    return Path(folder or "."), _select_value("a ref", text_ref, "--ref", ref)


def _is_url_with_credentials(before: str, after: str) -> bool:
    """Return whether the text before an @ contains credentials of a URL, so that the text is not DIR@REF."""
    host, slash, _ = after.partition("/")
    return has_credentials(f"{before}@{after}") and (":" in before or bool(slash and "." in host))


def read_upstream_url(files: FileTree) -> str:
    """Return the URL of the upstream repository in the Kptfile. Return "" if the package has no upstream."""
    kptfile = packages_package.Package(files).kptfile
    git = kptfile.upstream.git if isinstance(kptfile, packages_kptfile.Kptfile) and kptfile.upstream else None
    return git.repo if git else ""


def parse_upstream(text: str, directory: str | None, ref: str | None) -> GitUpstream:
    """Parse the upstream of a new package. The ref of the result is "" if no ref is given.

    Raises:
        CannotRunError: The text does not show where the repository URL ends, or the directory is outside of the
            repository.
        GitError: The URL is invalid.
    """
    repo, text_directory, text_ref = _split_upstream(text, is_repository_only=directory is not None)
    package = _select_value("a directory", text_directory.strip("/"), "--directory", directory)
    if ".." in package.split("/"):
        raise CannotRunError(f'the directory of a package must be inside its repository, but is "{package}"')
    url = git_url.parse_url(repo)
    # Write an absolute path to the Kptfile, because a relative path depends on the working directory.
    repo_url = url.text if url.is_local and "://" not in repo else repo.rstrip("/")
    selected_ref = _select_value("a ref", text_ref, "--ref", ref)
    return kpt.GitUpstream(repo=repo_url, directory=f"/{package.strip('/')}", ref=selected_ref)


def _select_value(description: str, text_value: str, option: str, option_value: str | None) -> str:
    if text_value and option_value is not None and option_value != text_value:
        raise click.UsageError(f'{description} is given twice: "{text_value}", and {option} {option_value}')
    return option_value if option_value is not None else text_value


def _split_upstream(text: str, *, is_repository_only: bool) -> tuple[str, str, str]:
    """Divide `REPO.git/DIR@REF` into repository, directory and ref. A part that is missing is "".

    If `is_repository_only` is set and the text does not contain ".git", the text contains no directory.
    """
    if end := _REPOSITORY_END.search(text):
        directory, ref = _split_ref(text[end.end() :])
        return text[: end.end()], directory, ref
    start = _URL_START.match(text)
    assert start is not None
    path, ref = _split_ref(text[start.end() :])
    if is_repository_only:
        return start[0] + path, "", ref
    if start[0] in {"", "file://"}:
        return _split_local_path(start[0], path, ref, redact_url(text))
    segments = path.strip("/").split("/")
    if urlsplit(start[0]).hostname not in _TWO_SEGMENT_HOSTS or len(segments) < 2:
        raise CannotRunError(_AMBIGUOUS_MESSAGE.format(text=redact_url(text)))
    return f"{start[0]}/{'/'.join(segments[:2])}", "/".join(segments[2:]), ref


def _split_ref(text: str) -> tuple[str, str]:
    path, at, ref = text.rpartition("@")
    return (path, ref) if at else (text, "")


def _split_local_path(scheme: str, text: str, ref: str, redacted_text: str) -> tuple[str, str, str]:
    path = Path(text).absolute()
    for folder in (path, *path.parents):
        if (folder / ".git").exists() or ((folder / "HEAD").is_file() and (folder / "objects").is_dir()):
            return f"{scheme}{folder}", path.relative_to(folder).as_posix().removeprefix("."), ref
    raise CannotRunError(_AMBIGUOUS_MESSAGE.format(text=redacted_text))
