"""Resolution of an upstream: find the current commit and tree of a reference in the config.

The module also does these tasks:

- It parses revision names, and reads workspaces in tag messages.
- It finds the revision that a moving tag selects (`tagMode: rewrite`).
- It checks whether the `settle` duration of a moved reference has passed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from reconciler.api.package_sources import SourceKind
from reconciler.api.porch.upstream import (
    BranchHeadReference,
    DigestReference,
    RevisionReference,
    TagReference,
    UpstreamReference,
    UpstreamSpec,
    VersionReference,
    WorkspaceReference,
)
from reconciler.catalog.files import CommitId, FileTree, TreeId
from reconciler.controllers.checked_commits import CheckedCommit
from reconciler.controllers.results import SettlingReference
from reconciler.krm.field_text import quote_value
from reconciler.krm.git_formats import PACKAGE_TRAILER, WORKSPACE_TRAILER, parse_trailers
from reconciler.krm.times import format_rfc3339
from reconciler.krm.yaml import YamlError, parse_yaml
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.artifacts import ChartDependencySource, SourceProblem
from reconciler.packages.package import has_chart_function, join_path
from reconciler.packages.source_kinds import (
    UnknownSourceKind,
    detect_manifests,
    detect_source_kind,
    list_missing_markers,
)

_NUMBERED_REVISION = re.compile(r"v([1-9][0-9]*)")
# Treat a name that starts with a number as an immutable revision, e.g. v3, v2.0.0, 1.4 or 2024-05. Other names, e.g.
# "stable" and "beta", can move.
_REVISION_LIKE = re.compile(r"v?[0-9]")
_VERSION = re.compile(r"v?([0-9]{1,9}(?:\.[0-9]{1,9})*)")
_PORCH_PREFIX = "kpt:"
LATEST = "latest"
_MAX_LISTED = 5


def list_tag_prefixes(prefix: str, directory: str, package: str) -> tuple[str, ...]:
    """Return the possible prefixes of a package's revision tags. The most specific prefix is first."""
    prefixes = (prefix + join_path(directory, package), prefix + package)
    return tuple(dict.fromkeys(entry.rstrip("/") for entry in prefixes))


def parse_revision_number(suffix: str) -> int:
    """Return N if the suffix is `vN`. Return -1 for any other suffix."""
    numbered = _NUMBERED_REVISION.fullmatch(suffix)
    return int(numbered[1]) if numbered else -1


def is_immutable_name(suffix: str) -> bool:
    """Return whether the last segment of a tag looks like a revision (`v3`), and not like a channel (`stable`)."""
    return _REVISION_LIKE.match(suffix) is not None


def get_revision_sort_key(suffix: str) -> tuple[list[int], str]:
    """Return a sort key that compares the numbers in a revision name by value, so that v2 is sorted before v10."""
    return [int(number) for number in re.findall("[0-9]{1,9}", suffix)], suffix


def is_older(suffix: str, than: str) -> bool:
    """Return whether the version in `suffix` is lower than the version in `than`.

    Return False if `suffix` or `than` does not start with a version number.
    """
    version, other_version = (_VERSION.match(name) for name in (suffix, than))
    return bool(version and other_version and _parse_version(version[1]) < _parse_version(other_version[1]))


def _parse_version(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def parse_workspace(message: str, package: str) -> str:
    """Return the workspace name of a package revision from a tag message or commit message.

    The reconciler writes the name in a trailer, and Porch writes it in a line of JSON. Return "" if there is no name.
    """
    trailers = parse_trailers(message)
    if trailers.get(PACKAGE_TRAILER) == package:
        return trailers.get(WORKSPACE_TRAILER, "")
    lines = (line.removeprefix(_PORCH_PREFIX) for line in message.splitlines() if line.startswith(_PORCH_PREFIX))
    return next((name for line in lines if (name := _parse_porch_workspace(line, package))), "")


def _parse_porch_workspace(line: str, package: str) -> str:
    try:
        data = json.loads(line)
    except ValueError:
        return ""
    if not isinstance(data, dict) or not f"/{data.get('package')}".endswith(f"/{package}"):
        return ""
    name = data.get("workspaceName")
    return name if isinstance(name, str) else ""


def find_source_kind(upstream: UpstreamSpec, files: FileTree, title: str) -> SourceKind | UnresolvedUpstream:
    """Return the kind of a source, e.g. `kpt`. If the config does not set the kind, derive it from the files.

    Args:
        title: The source in messages, such as `folder "x" of Repository y`.
    """
    if not upstream.has_resources:
        return "manifests"
    requested = upstream.kind
    if requested and (missing := list_missing_markers(requested, files)):
        field = "spec.kustomize" if requested == "kustomize" else f"spec.upstream.kind {requested}"
        message = f"{title} has no {' or '.join(missing)}, which {field} requires"
        return UnresolvedUpstream("UpstreamNotFound", message)
    if requested and requested != "manifests":
        return requested
    found = detect_manifests(files) if requested else detect_source_kind(files)
    return UnresolvedUpstream(found.code, f"{title} {found.message}") if isinstance(found, UnknownSourceKind) else found


class PackageDirectory(NamedTuple):
    """The directory of a package in a commit. `skipped` are the paths of links and submodules, which are not copied."""

    tree: TreeId
    skipped: tuple[str, ...] = ()
    has_kptfile: bool = True


class UpstreamRefs(Protocol):
    """The branches and tags of one upstream repository. Their names do not contain `refs/heads/` or `refs/tags/`."""

    def find_tag(self, name: str) -> CommitId | None:
        """Return the commit of a tag. Return None if the tag does not exist."""
        ...

    def find_branch(self, name: str) -> CommitId | None:
        """Return the head commit of a branch. Return None if the branch does not exist."""
        ...

    def check_tag(self, name: str, commit: CommitId) -> CheckedCommit:
        """Check the signature of a tag or of its commit, and return the commit to use."""
        ...

    def check_branch(self, name: str, commit: CommitId) -> CheckedCommit:
        """Check the signature of the head of a branch, and return the commit to use."""
        ...

    def list_tags(self, prefix: str) -> Iterable[str]:
        """Return the names of all tags that start with a prefix, in any order."""
        ...

    def find_package(self, commit: CommitId, directory: str, package: str) -> PackageDirectory | None:
        """Return the directory of a package below `directory`. Return None if the commit does not contain it."""
        ...

    def read_package(self, tree: TreeId) -> FileTree | str:
        """Return the files of a package directory. Return the reason as text if they cannot be read."""
        ...

    def read_kptfiles(self, tree: TreeId) -> Iterable[bytes]:
        """Return the contents of all Kptfiles below a package directory."""
        ...

    def read_file(self, commit: CommitId, path: str) -> bytes | None:
        """Return the content of a file. Return None if the commit does not contain the file."""
        ...

    def read_message(self, name: str) -> str:
        """Return the message of an annotated tag, or of a lightweight tag's commit."""
        ...

    def read_tag_seconds(self, name: str) -> int:
        """Return the date of an annotated tag, or of a lightweight tag's commit, in seconds since 1970."""
        ...

    def read_change_seconds(self, commit: CommitId, path: str) -> int:
        """Return the date when a path was changed last, in seconds since 1970.

        The search follows only the first parents of `commit`.
        """
        ...


@dataclass(frozen=True)
class UpstreamRepository:
    """The fields of a Repository that are required to resolve an upstream.

    `directory` has no slash at its start or end. The directory "" is the root. `tag_prefix` is the prefix of the
    revision tags. By default, it is "" for a catalog and `<Repository name>/` for a deployment repository.
    """

    name: str
    branch: str
    directory: str = ""
    tag_prefix: str = ""


@dataclass(frozen=True)
class ResolvedRevision:
    """The revision that an upstream reference points to now.

    For a chart or an OCI artifact, the attribute `commit` contains the digest of the artifact.

    Attributes:
        directory: The path of the package from the root of the repository, or the name of the chart.
        ref: The name of the tag or branch. It is written to `upstreamLock` of the Kptfile.
        number: N if the tag is `vN`. Otherwise -1.
        is_floating: Whether the reference can move to another revision.
        warnings: Messages for findings and the status.
        skipped: Paths of links and submodules in the package, which are not copied.
        unverified: The result of the signature check, if a commit of the reference has no valid signature.
        since_seconds: The time since which the reference points to this revision, in seconds since 1970. 0 if the
            upstream has no `settle` duration.
        kind: The kind of the source, which determines how the files become a package.
        created_seconds: The date of a chart or artifact in seconds since 1970. 0 if it is unknown.
        app_version: The version of the application in a chart.
        dependencies: The charts that a chart requires and does not contain.
        renders_charts: Whether functions of the package can render charts.
        problems: Problems of a chart repository or registry that do not prevent the use of the revision.
    """

    repository: str
    package: str
    ref: str
    number: int
    commit: CommitId
    tree: TreeId
    is_floating: bool
    directory: str
    warnings: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    since_seconds: int = 0
    unverified: CheckedCommit | None = None
    kind: SourceKind = "kpt"
    created_seconds: int = 0
    app_version: str = ""
    problems: tuple[SourceProblem, ...] = ()
    dependencies: tuple[ChartDependencySource, ...] = ()
    renders_charts: bool = False

    @property
    def suffix(self) -> str:
        """The last segment of the tag or branch name, for example `v3`."""
        return self.ref.rpartition("/")[2]


@dataclass(frozen=True)
class UnresolvedUpstream:
    """An upstream that cannot be used.

    Attributes:
        reason: The name of a finding code, such as `UpstreamNotFound`.
        field: The wrong field of the upstream, or "" if the reason is not a wrong field.
        others: Further reasons, e.g. if several chart repositories are missing.
    """

    reason: str
    message: str
    field: str = ""
    others: tuple[UnresolvedUpstream, ...] = ()


def explain_missing_field(upstream: UpstreamSpec, field: str) -> UnresolvedUpstream:
    """Return the error for a tag with `tagMode: rewrite` whose revision is not in the config yet."""
    message = (
        f'spec.upstream.{field} is missing, but the tagMode "rewrite" requires this field. The tag "{upstream.tag}" of '
        f"{upstream.repo}/{upstream.package} is only used to propose new revisions. Next step: merge the config "
        "proposal that adds the field, or set the field"
    )
    return UnresolvedUpstream("RevisionPending", message)


@dataclass(frozen=True)
class _FoundRef:
    """A tag or a branch head. If a channel file names the tag, `channel` is the commit and path of this file."""

    name: str
    number: int
    commit: CommitId
    is_floating: bool
    warnings: tuple[str, ...] = ()
    is_tag: bool = True
    channel: tuple[CommitId, str] | None = None
    unverified: CheckedCommit | None = None


def resolve_upstream(
    upstream: UpstreamSpec, repository: UpstreamRepository, refs: UpstreamRefs
) -> ResolvedRevision | UnresolvedUpstream:
    """Return the revision to which the upstream refers, or the reason why the upstream cannot be used."""
    lookup = _Lookup(upstream, repository, refs)
    if upstream.is_awaiting_revision:
        return lookup.explain_pending_revision()
    found = lookup.find_ref(upstream.reference)
    if isinstance(found, UnresolvedUpstream):
        return found
    ref = lookup.verify(found)
    if isinstance(ref, UnresolvedUpstream):
        return ref
    package = refs.find_package(ref.commit, repository.directory, upstream.package)
    if package is None and not upstream.has_resources:
        message = f"{upstream.repo}@{ref.name} has no folder {join_path(repository.directory, upstream.package)}"
        return UnresolvedUpstream("UpstreamNotFound", message)
    if package is None:
        message = f"no Kptfile at {upstream.package} in {upstream.repo}@{ref.name}"
        return UnresolvedUpstream("UpstreamNotFound", message)
    kind = lookup.find_kind(package, ref)
    if isinstance(kind, UnresolvedUpstream):
        return kind
    directory = join_path(repository.directory, upstream.package)
    # If only values files of the folder are used, skipped links have no effect on the package.
    skipped = package.skipped if upstream.has_resources else ()
    return ResolvedRevision(
        repository.name, upstream.package, ref.name, ref.number, ref.commit, package.tree, ref.is_floating, directory,
        ref.warnings, skipped, lookup.get_since_seconds(ref) if upstream.settle_seconds else 0,
        ref.unverified, kind, renders_charts=kind == "kpt" and has_chart_function(refs.read_kptfiles(package.tree)),
    )  # fmt: skip


def describe_revision(
    resolved: ResolvedRevision, namespace: str, labels: dict[str, str], annotations: dict[str, str]
) -> dict[str, Any]:
    """Return the value of the variable `upstream` in CEL expressions.

    `labels` and `annotations` are from the metadata of the Kptfile.
    """
    name = f"{resolved.repository}.{resolved.package.replace('/', '.')}.{resolved.suffix}"
    return {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}


@dataclass(frozen=True)
class _Lookup:
    """Searches the refs of a repository for the revision of one upstream."""

    upstream: UpstreamSpec
    repository: UpstreamRepository
    refs: UpstreamRefs

    def find_ref(self, reference: UpstreamReference) -> _FoundRef | UnresolvedUpstream:
        match reference:
            case BranchHeadReference():
                return self._find_head()
            case RevisionReference(suffix) | WorkspaceReference(suffix) if suffix == self.repository.branch:
                return self._find_head()
            case RevisionReference(suffix):
                return self._find_tag(suffix) or self._explain_not_found(suffix)
            case WorkspaceReference(name):
                return (
                    self._find_tag(name)
                    or self._find_workspace(name)
                    or self._explain_unpublished(name)
                    or self._explain_not_found(name)
                )
            case TagReference(name) if name == LATEST:
                return self._find_latest() or self._explain_not_found(name)
            case TagReference(name):
                return self._find_channel_ref(name)
            case VersionReference() | DigestReference():
                raise AssertionError("a Git repository has no versions and digests")

    def find_kind(self, package: PackageDirectory, ref: _FoundRef) -> SourceKind | UnresolvedUpstream:
        """Return the kind of a package directory, or the reason why the directory cannot be used."""
        if not self.upstream.has_resources:
            return "manifests"
        if package.has_kptfile and self.upstream.kind in (None, "kpt"):
            # A directory with a Kptfile is a kpt package. Do not read the other files, because the kind is known.
            return "kpt"
        title = f'folder "{self.upstream.package}" of Repository {self.upstream.repo} at {ref.commit[:12]}'
        files = self.refs.read_package(package.tree)
        if isinstance(files, str):
            return UnresolvedUpstream("SourceTooLarge", f"{title} cannot be read: {files}")
        return find_source_kind(self.upstream, files, title)

    def verify(self, ref: _FoundRef) -> _FoundRef | UnresolvedUpstream:
        """Return the ref with its current or its last verified commit, or an error if neither can be used."""
        checked = self._check(ref)
        if checked.commit is None:
            return UnresolvedUpstream("UnverifiedCommit", checked.message)
        return replace(ref, commit=checked.commit, unverified=checked if checked.problem else ref.unverified)

    def _check(self, ref: _FoundRef) -> CheckedCommit:
        check = self.refs.check_tag if ref.is_tag else self.refs.check_branch
        return check(ref.name, ref.commit)

    def get_since_seconds(self, ref: _FoundRef) -> int:
        """Return the date since which a ref has its current content, in seconds since 1970."""
        if not ref.is_tag:
            # Use the last change of this package, because commits for other packages of the repository move the branch
            # too.
            return self.refs.read_change_seconds(
                ref.commit, join_path(self.repository.directory, self.upstream.package)
            )
        tagged = self.refs.read_tag_seconds(ref.name)
        return max(tagged, self.refs.read_change_seconds(*ref.channel)) if ref.channel else tagged

    def explain_pending_revision(self) -> UnresolvedUpstream:
        """Return the error for an upstream that has `tagMode: rewrite` but no revision."""
        return explain_missing_field(self.upstream, "revision")

    def _find_head(self) -> _FoundRef | UnresolvedUpstream:
        branch = self.repository.branch
        commit = self.refs.find_branch(branch)
        return (
            _FoundRef(branch, -1, commit, is_floating=True, is_tag=False) if commit else self._explain_not_found(branch)
        )

    def _find_tag(self, suffix: str, *, is_floating: bool = False) -> _FoundRef | None:
        # Do not look up a suffix that contains a slash, because it would match a tag of a package in a subdirectory.
        for name in () if "/" in suffix else (join_path(prefix, suffix) for prefix in self._list_tag_prefixes()):
            if commit := self.refs.find_tag(name):
                return _FoundRef(name, parse_revision_number(suffix), commit, is_floating)
        return None

    def _find_workspace(self, workspace: str) -> _FoundRef | None:
        """Return the published revision whose tag message or commit message contains this workspace name, or None."""
        package = self.upstream.package
        for prefix in self._list_tag_prefixes():
            names = self.refs.list_tags(f"{prefix}/")
            suffixes = sorted(
                (name.removeprefix(f"{prefix}/") for name in names), key=get_revision_sort_key, reverse=True
            )
            for suffix in suffixes:
                ref = self._find_tag(suffix)
                if ref and parse_workspace(self.refs.read_message(ref.name), package) == workspace:
                    return ref
        return None

    def _explain_unpublished(self, workspace: str) -> UnresolvedUpstream | None:
        for state in ("drafts", "proposed"):
            for prefix in (*self._list_tag_prefixes(), join_path(self.repository.name, self.upstream.package)):
                if self.refs.find_branch(f"{state}/{prefix}/{workspace}"):
                    package = f"{self.upstream.repo}/{self.upstream.package}"
                    message = f'workspace "{workspace}" of {package} is not published; an upstream must be published'
                    return UnresolvedUpstream("UpstreamNotPublished", message)
        return None

    def _find_latest(self) -> _FoundRef | None:
        for prefix in self._list_tag_prefixes():
            suffixes = (name.removeprefix(f"{prefix}/") for name in self.refs.list_tags(f"{prefix}/"))
            numbers = [number for suffix in suffixes if (number := parse_revision_number(suffix)) > 0]
            if numbers:
                return self._find_latest_verified(sorted(numbers, reverse=True))
        return None

    def _find_latest_verified(self, numbers: Sequence[int]) -> _FoundRef | None:
        """Return the highest revision that the signature check accepts.

        If the check accepts no revision, return the highest of all revisions. If no revision exists, return None.
        """
        highest: _FoundRef | None = None
        unverified: CheckedCommit | None = None
        for number in numbers:
            ref = self._find_tag(f"v{number}", is_floating=True)
            if ref is None:
                continue
            highest = highest or ref
            checked = self._check(ref)
            if checked.commit == ref.commit:
                return replace(ref, unverified=replace(unverified, commit=ref.commit) if unverified else None)
            unverified = unverified or checked
        return highest

    def _find_channel_ref(self, name: str) -> _FoundRef | UnresolvedUpstream:
        """Return the revision that a channel points to now, or the reason why the channel cannot be used.

        If both a channel file and a Git tag name a revision for the channel, the channel file has precedence, because
        changes of the file are reviewed.
        """
        tag_ref = self._find_tag(name, is_floating=True)
        listed_ref = self._find_listed_revision(name)
        if listed_ref is None:
            return tag_ref or self._explain_not_found(name)
        if isinstance(listed_ref, _FoundRef) and tag_ref and tag_ref.commit != listed_ref.commit:
            warning = (
                f'the tag "{tag_ref.name}" is ignored, because the channel file sets "{name}" to "{listed_ref.name}",'
                " and the tag points to a different commit"
            )
            return replace(listed_ref, warnings=(warning,))
        return listed_ref

    def _find_listed_revision(self, channel: str) -> _FoundRef | UnresolvedUpstream | None:
        current_head = self.refs.find_branch(self.repository.branch)
        if current_head is None:
            return None
        checked = self.refs.check_branch(self.repository.branch, current_head)
        head = checked.commit or current_head
        for path in self._list_channel_paths():
            content = self.refs.read_file(head, path)
            if content is None:
                continue
            if checked.commit is None:
                # A channel file must not select a revision if the commit of the file has no valid signature.
                return UnresolvedUpstream("UnverifiedCommit", checked.message)
            revision = _read_channel_revision(content, channel)
            if isinstance(revision, _ChannelError):
                return UnresolvedUpstream("UpstreamNotFound", f"{path} in {self.upstream.repo}: {revision.message}")
            if revision:
                tag_ref = self._find_tag(revision, is_floating=True)
                unverified = checked if checked.problem else None
                return (
                    replace(tag_ref, channel=(head, path), unverified=unverified)
                    if tag_ref
                    else self._explain_not_found(revision)
                )
        return None

    def _list_channel_paths(self) -> Iterator[str]:
        path = _format_channel_path(self.upstream.package)
        return iter(dict.fromkeys((join_path(self.repository.directory, path), path)))

    def _list_tag_prefixes(self) -> tuple[str, ...]:
        return list_tag_prefixes(self.repository.tag_prefix, self.repository.directory, self.upstream.package)

    def _explain_not_found(self, revision: str) -> UnresolvedUpstream:
        package, repo = self.upstream.package, self.upstream.repo
        message = f"could not find upstream package revision '{package}/{revision}' in repo '{repo}'"
        return UnresolvedUpstream("UpstreamNotFound", f"{message}; {self._suggest_revisions()}")

    def _suggest_revisions(self) -> str:
        """Return a hint for an error message: the existing revisions, or the expected tag prefix if there are no
        revisions.
        """
        names = {
            name.removeprefix(f"{prefix}/")
            for prefix in self._list_tag_prefixes()
            for name in self.refs.list_tags(f"{prefix}/")
        }
        revisions = sorted((name for name in names if "/" not in name), key=get_revision_sort_key, reverse=True)
        if revisions:
            more = ", ..." if len(revisions) > _MAX_LISTED else ""
            return f"existing revisions: {', '.join(revisions[:_MAX_LISTED])}{more}"
        branch = self.repository.branch
        branch_hint = (
            f"revision -1 is the head of {branch}"
            if self.refs.find_branch(branch)
            else f'branch "{branch}" does not exist'
        )
        return f'no tag starts with "{self._list_tag_prefixes()[-1]}/", and {branch_hint}'


@dataclass(frozen=True)
class _ChannelError:
    message: str


def _format_channel_path(package: str) -> str:
    """Return the path of the channel file of a package, relative to the directory of its Repository."""
    return f"channels/{package}.yaml"


def _read_channel_revision(content: bytes, channel: str) -> str | _ChannelError | None:
    try:
        documents = parse_yaml(content).documents
    except YamlError as error:
        return _ChannelError(f"line {error.line}: {error.message}")
    data = documents[0].data if documents else None
    channels = data.get("channels") if isinstance(data, dict) else None
    if not isinstance(channels, dict):
        return _ChannelError("channels must be a mapping from channel to revision")
    revision = channels.get(channel)
    if isinstance(revision, bool) or not isinstance(revision, str | int | None):
        return _ChannelError(f'channels.{channel} must be a revision such as "v3", but is {quote_value(revision)}')
    return None if revision is None else _normalize_revision(str(revision))


def _normalize_revision(revision: str) -> str:
    return f"v{revision}" if revision.isdecimal() else revision


def find_revision(
    revision: ResolvedRevision, tag: str, repository: UpstreamRepository, refs: UpstreamRefs
) -> ResolvedRevision | UnresolvedUpstream:
    """Return the immutable revision that the moving tag `tag` points to now.

    - A channel file and the name `latest` refer to a revision such as `v3`. In this case, return `revision`.
    - A Git tag such as `stable` refers to a commit. In this case, search for a revision tag with the same commit. If no
      revision tag has this commit, search for a revision tag with the same package content.

    Args:
        revision: The result of resolving `tag`.
    """
    if revision.suffix != tag and is_immutable_name(revision.suffix):
        return revision
    prefixes = list_tag_prefixes(repository.tag_prefix, repository.directory, revision.package)
    suffixes_by_tag = {
        f"{prefix}/{suffix}": suffix
        for prefix in reversed(prefixes)
        for suffix in _iterate_revision_names(prefix, refs)
    }
    commits_by_tag = {
        name: commit for name, suffix in suffixes_by_tag.items() if suffix != tag and (commit := refs.find_tag(name))
    }
    matching_tags = [name for name, commit in commits_by_tag.items() if commit == revision.commit]
    matching_tags = matching_tags or [
        name for name, commit in commits_by_tag.items() if _has_same_tree(commit, revision, repository, refs)
    ]
    if not matching_tags:
        message = (
            f'tag "{tag}" of {repository.name}/{revision.package} points to commit {revision.commit[:12]}, but this'
            f' commit has no revision tag; create the tag "{prefixes[-1]}/v1" for the commit, or set "{tag}" to a'
            f" revision in the channel file {_format_channel_path(revision.package)}"
        )
        return UnresolvedUpstream("TagUnpinned", message)
    name = max(
        matching_tags,
        key=lambda name: (parse_revision_number(suffixes_by_tag[name]), get_revision_sort_key(suffixes_by_tag[name])),
    )
    return replace(revision, ref=name, number=parse_revision_number(suffixes_by_tag[name]), commit=commits_by_tag[name])


def _iterate_revision_names(prefix: str, refs: UpstreamRefs) -> Iterator[str]:
    suffixes = (name.removeprefix(f"{prefix}/") for name in refs.list_tags(f"{prefix}/"))
    return (suffix for suffix in suffixes if "/" not in suffix and is_immutable_name(suffix))


def _has_same_tree(
    commit: CommitId, revision: ResolvedRevision, repository: UpstreamRepository, refs: UpstreamRefs
) -> bool:
    package = refs.find_package(commit, repository.directory, revision.package)
    return package is not None and package.tree == revision.tree


def check_settling(upstream: UpstreamSpec, revision: ResolvedRevision, now_seconds: int) -> SettlingReference | None:
    """Return when the `settle` duration of `revision` ends. Return None if the revision can be used now.

    The end of the duration is calculated from dates in Git. Therefore, the check needs no recorded state.
    """
    until = revision.since_seconds + upstream.settle_seconds
    if not upstream.settle_seconds or until <= now_seconds:
        return None
    message = (
        f"{_format_named_revision(upstream, revision)} since {format_rfc3339(revision.since_seconds)}. The"
        f" settle duration is {upstream.tag_policy.settle}, so the new content is used from {format_rfc3339(until)}"
    )
    return SettlingReference(until, message)


def _format_named_revision(upstream: UpstreamSpec, revision: ResolvedRevision) -> str:
    tag = upstream.reference.name if isinstance(upstream.reference, TagReference) else ""
    kind = f'tag "{tag}"' if tag else f"revision {revision.suffix}"
    target = (
        f"commit {revision.commit[:12]}"
        if tag in ("", revision.suffix)
        else f"{revision.suffix} (commit {revision.commit[:12]})"
    )
    return f"{kind} of {revision.repository}/{revision.package} has pointed to {target}"
