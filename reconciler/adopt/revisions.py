"""Conversion of revisions of other tools to revisions of packages: branches, tags, commits and version ranges.

A revision of another tool selects the whole repository. A package of the reconciler has its own tags, such as
`apps/web/v1`.
"""

from __future__ import annotations

import re
from typing import Literal

from reconciler.adopt.requests import RepositoryReader, RepositoryReference, UpstreamReference
from reconciler.controllers.package_variants.upstream_resolution import is_immutable_name
from reconciler.krm.names import validate_workspace_name
from reconciler.krm.version_ranges import parse_range
from reconciler.lazy_dataclasses import dataclass

_RANGE = re.compile(r"[*^~<>=|,\s]|(?:^|\.)[xX](?:\.|$)")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_VERSION = re.compile(r"v?[0-9]+(?:\.[0-9]+)+.*")
_PREFIXES: dict[Literal["branch", "tag"], str] = {"branch": "refs/heads/", "tag": "refs/tags/"}


@dataclass(frozen=True)
class GitRevision:
    """A revision of a whole repository. The branch "" is the default branch."""

    kind: Literal["branch", "tag", "commit", "range"]
    name: str = ""

    @property
    def ref(self) -> str:
        """The name of the revision for a `RepositoryReader`."""
        return f"{_PREFIXES[self.kind]}{self.name}" if self.name and self.kind in ("branch", "tag") else self.name


@dataclass(frozen=True)
class UnusableRevision:
    """The reason why a revision of a repository cannot be a revision of a package, and a suggestion."""

    reason: str
    suggestion: str


def is_version_range(text: str) -> bool:
    """Return whether a text is a version range such as `1.*`. A text such as `v1` is not a range but a tag name."""
    return _RANGE.search(text) is not None and parse_range(text) is not None


def read_git_revision(url: str, text: str, read_repository: RepositoryReader) -> GitRevision:
    """Return the revision that a text such as `targetRevision` refers to. A branch has precedence over a tag."""
    if text in ("", "HEAD"):
        return GitRevision("branch")
    if text.startswith("refs/"):
        return parse_full_ref(text)
    if is_version_range(text):
        return GitRevision("range", text)
    candidates = (GitRevision("branch", text), GitRevision("tag", text))
    for candidate in candidates:
        if not isinstance(read_repository(url, candidate.ref), str):
            return candidate
    if _COMMIT.fullmatch(text):
        return GitRevision("commit", text)
    # The repository cannot be read, or does not contain the revision. Therefore, treat a version number as a tag, and
    # any other text as a branch.
    return candidates[_VERSION.fullmatch(text) is not None]


def parse_full_ref(text: str) -> GitRevision:
    """Return the revision of a ref such as `refs/heads/main`.

    A ref that is neither a branch nor a tag is read as a commit.
    """
    kind = next((kind for kind, prefix in _PREFIXES.items() if text.startswith(prefix)), None)
    return GitRevision(kind, text.removeprefix(_PREFIXES[kind])) if kind else GitRevision("commit", text)


def build_git_upstream(
    url: str, revision: GitRevision, package: str, read_repository: RepositoryReader
) -> UpstreamReference | UnusableRevision:
    """Return the upstream for a folder of a Git repository, or the reason why the revision cannot be used.

    A tag `<name>` of the whole repository can be used only if the tag `<package>/<name>` also exists, and contains the
    same files of the package.
    """
    name = revision.name
    if revision.kind == "branch":
        return UpstreamReference(RepositoryReference("git", url, name), package, (("revision", -1),))
    if revision.kind == "tag":
        suffix = name.removeprefix(f"{package}/")
        if _can_be_revision(suffix) and (suffix != name or _has_equal_tag(url, name, package, read_repository)):
            field = "revision" if is_immutable_name(suffix) else "tag"
            return UpstreamReference(RepositoryReference("git", url), package, ((field, suffix),))
    action = f"Create a tag such as {package}/v1 on the commit to use, write the tag into this field"
    if revision.kind == "tag" and _can_be_revision(name):
        action = f"Create the tag {package}/{name} on the same commit"
    what = {"tag": "tag", "commit": "commit", "range": "range of tags"}[revision.kind]
    return UnusableRevision(
        f"{name!r} is a {what} of the whole repository, and not of the package {package}",
        f"{action}, and run the command again.",
    )


def _can_be_revision(suffix: str) -> bool:
    # A number cannot be used, because the revision `1` means the tag `v1`.
    return validate_workspace_name(suffix) is None and not suffix.isdecimal()


def _has_equal_tag(url: str, name: str, package: str, read_repository: RepositoryReader) -> bool:
    whole, own = (read_repository(url, f"refs/tags/{tag}") for tag in (name, f"{package}/{name}"))
    if isinstance(whole, str) or isinstance(own, str):
        return False
    content = whole.subtree(package)
    return bool(content) and content == own.subtree(package)
