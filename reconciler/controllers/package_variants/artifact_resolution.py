"""Resolution of an upstream in a chart repository or an OCI registry: search for the version and its content.

Module `upstream_resolution` resolves upstreams in Git. Both modules return a `ResolvedRevision`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from reconciler.api.package_sources import SourceKind
from reconciler.api.porch.upstream import (
    DigestReference,
    TagReference,
    UpstreamReference,
    UpstreamSpec,
    VersionReference,
)
from reconciler.catalog.files import CommitId, TreeId
from reconciler.controllers.package_variants.upstream_resolution import (
    ResolvedRevision,
    UnresolvedUpstream,
    explain_missing_field,
    find_source_kind,
)
from reconciler.krm.version_ranges import VersionRange, is_exact_version, parse_range, select_version, sort_versions
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.artifacts import (
    UPSTREAM_NOT_FOUND,
    Artifact,
    ArtifactRepository,
    ArtifactVersion,
    ResolvedTag,
    SourceProblem,
    VersionList,
)
from reconciler.packages.package import has_chart_function, list_kptfiles
from reconciler.packages.source_codes import SourceCodes

_MAX_LISTED = 3


class ArtifactCatalog(Protocol):
    """The charts and packages of all chart repositories and OCI registries, for one pass."""

    def list_versions(self, repository: ArtifactRepository, name: str) -> VersionList | SourceProblem:
        """Return all versions of a chart or package, or the reason why the versions cannot be read."""
        ...

    def find_tag(self, repository: ArtifactRepository, name: str, tag: str) -> ResolvedTag | SourceProblem:
        """Return the version that a tag of an OCI registry points to now, or the reason why the tag cannot be read."""
        ...

    def read(self, repository: ArtifactRepository, name: str, version: ArtifactVersion) -> Artifact | SourceProblem:
        """Return the files of a version, or the reason why the files cannot be read.

        If `version` has a digest, the files have this digest.
        """
        ...


def resolve_artifact(
    upstream: UpstreamSpec,
    repository: ArtifactRepository,
    artifacts: ArtifactCatalog,
    recorded: Sequence[RecordedArtifact] = (),
) -> ResolvedRevision | UnresolvedUpstream:
    """Return the version to which the upstream refers, or the reason why the upstream cannot be used.

    The fields of the upstream must be allowed for the type of the Repository.

    Args:
        recorded: The versions of this chart or artifact that existing packages use.
    """
    if upstream.is_awaiting_revision:
        return explain_missing_field(upstream, "digest")
    lookup = _ArtifactLookup(upstream, repository, artifacts, recorded)
    found = lookup.find(upstream.reference)
    if isinstance(found, UnresolvedUpstream):
        return found
    if upstream.is_rewritten and upstream.version not in ("", found.version.version):
        return _explain_range(upstream)
    artifact = artifacts.read(repository, upstream.package_name, found.version)
    if isinstance(artifact, SourceProblem):
        problem = lookup.explain_missing_digest(found, artifact)
        return lookup.find_recorded_content(found, problem) or _convert_problem(problem)
    version = found.version
    created_seconds = version.created_seconds or artifact.created_seconds
    kind = find_source_kind(upstream, artifact.files, f"{lookup.title} {version.version}")
    if isinstance(kind, UnresolvedUpstream):
        return kind
    return ResolvedRevision(
        repository.name, upstream.package_name, version.version or artifact.digest, -1, CommitId(artifact.digest),
        artifact.files.id, found.is_floating, upstream.package_name, (), artifact.skipped,
        created_seconds or version.first_seen_seconds,
        kind=kind, created_seconds=created_seconds, app_version=version.app_version, problems=found.problems,
        renders_charts=kind == "kpt" and has_chart_function(list_kptfiles(artifact.files)),
    )  # fmt: skip


@dataclass(frozen=True)
class RecordedArtifact:
    """A version of a chart or artifact that an existing package uses.

    Attributes:
        version: The version or tag.
        tree: The tree of the files.
        seconds: The date of the version in seconds since 1970.
        has_whole_tree: Whether the tree contains all files, and not only the values files that a package uses.
    """

    version: str
    digest: str
    tree: TreeId
    kind: SourceKind
    seconds: int = 0
    has_whole_tree: bool = True


def _explain_range(upstream: UpstreamSpec) -> UnresolvedUpstream:
    """Return the error for a version range with `tagMode: rewrite`, which requires an exact version."""
    message = (
        f'spec.upstream.version "{upstream.version}" is a range, but the tagMode "rewrite" requires an'
        " exact version. The "
        f"range of {upstream.repo}/{upstream.package_name} is only used to propose new versions. Next step: merge the "
        "config proposal that sets the version, or set the version"
    )
    return UnresolvedUpstream("RevisionPending", message)


def _convert_problem(problem: SourceProblem) -> UnresolvedUpstream:
    return UnresolvedUpstream(problem.code, problem.message)


@dataclass(frozen=True)
class _FoundVersion:
    """A version that the upstream selects.

    Attributes:
        version: The version. If the upstream pins a digest, the version has this digest.
        listed_digest: The digest that the Repository has for this version now. "" if this digest is unknown.
    """

    version: ArtifactVersion
    is_floating: bool
    problems: tuple[SourceProblem, ...] = ()
    listed_digest: str = ""


@dataclass(frozen=True)
class _ArtifactLookup:
    upstream: UpstreamSpec
    repository: ArtifactRepository
    artifacts: ArtifactCatalog
    recorded: Sequence[RecordedArtifact] = ()

    @property
    def title(self) -> str:
        """The chart or package with its Repository, for messages."""
        kind = "chart" if self.repository.type == "helm" else "package"
        return f'{kind} "{self.upstream.package_name}" in Repository {self.repository.name}'

    def find(self, reference: UpstreamReference) -> _FoundVersion | UnresolvedUpstream:
        match reference:
            case VersionReference(text):
                requested = parse_range(text)
                assert requested is not None, "the range was checked"
                return self._find_version(text, requested)
            case TagReference(name):
                return self._find_tag(name, is_floating=True)
            case DigestReference(digest):
                return _FoundVersion(ArtifactVersion("", digest), is_floating=False)
            case _:
                raise AssertionError(f"{self.title} has a reference that only Git supports")

    def explain_missing_digest(self, found: _FoundVersion, problem: SourceProblem) -> SourceProblem:
        """Return `problem`, or a more specific reason why a version cannot be read.

        The reason is `DigestMismatch` if the Repository does not have the pinned content any more, and now has
        different content for the same version.
        """
        listed, version = found.listed_digest, found.version
        if problem.code != SourceCodes.DIGEST_UNAVAILABLE.name or listed in ("", version.digest):
            return problem
        message = (
            f'{self.title} has new content for version "{version.version}". The package requires the digest'
            f" {version.digest}, but {self.repository.url} now contains only the digest {listed}. Next step: check the"
            " new content, and set spec.upstream.digest to its digest"
        )
        return SourceProblem(SourceCodes.DIGEST_MISMATCH.name, message, problem.should_retry)

    def find_recorded_content(self, found: _FoundVersion, problem: SourceProblem) -> ResolvedRevision | None:
        """Return the recorded content of a version that cannot be read now. Return None if no package uses the version.

        With the recorded content, a package that needs no render stays unchanged. A render reads the version again, and
        reports the error.
        """
        version = found.version
        recorded = (entry for entry in self.recorded if entry.has_whole_tree)
        known = next((entry for entry in recorded if entry.digest == version.digest), None)
        if known is None or not problem.should_retry:
            return None
        return ResolvedRevision(
            self.repository.name, self.upstream.package_name, version.version or known.digest, -1,
            CommitId(known.digest), known.tree, found.is_floating, self.upstream.package_name,
            since_seconds=known.seconds, kind=known.kind, created_seconds=known.seconds,
            app_version=version.app_version, problems=(*found.problems, problem),
        )  # fmt: skip

    def _find_withdrawn_version(self, text: str) -> _FoundVersion | None:
        """Return a version that a package uses, although the Repository does not list it any more.

        Return None if no package uses the version `text`, or if `text` is a version range.
        """
        known = next((entry for entry in self.recorded if entry.version == text), None)
        if known is None or not is_exact_version(text):
            return None
        message = f'{self.title} has no version "{text}" any more; the packages with this version are not changed'
        problem = SourceProblem(SourceCodes.VERSION_WITHDRAWN.name, message)
        version = ArtifactVersion(text, known.digest, created_seconds=known.seconds)
        return self._pin(version, is_floating=False, problems=(problem,))

    def _find_tag(
        self, tag: str, *, is_floating: bool, problems: tuple[SourceProblem | None, ...] = ()
    ) -> _FoundVersion | UnresolvedUpstream:
        found = self.artifacts.find_tag(self.repository, self.upstream.package_name, tag)
        if isinstance(found, SourceProblem):
            return _convert_problem(found)
        return self._pin(found.version, is_floating=is_floating, problems=(found.problem, *problems))

    def _find_version(self, text: str, requested: VersionRange) -> _FoundVersion | UnresolvedUpstream:
        if self.repository.is_registry and is_exact_version(text):
            found = self._find_tag(text, is_floating=False)
            if not isinstance(found, UnresolvedUpstream) or found.reason != UPSTREAM_NOT_FOUND:
                return found
        listed = self.artifacts.list_versions(self.repository, self.upstream.package_name)
        if isinstance(listed, SourceProblem):
            return _convert_problem(listed)
        versions = {version.version: version for version in listed.versions}
        selected = select_version(requested, versions)
        if selected is None and (withdrawn := self._find_withdrawn_version(text)):
            return withdrawn
        if selected is None:
            newest = ", ".join(sort_versions(versions)[::-1][:_MAX_LISTED])
            hint = f"the newest are {newest}" if newest else "it has no versions"
            return UnresolvedUpstream(
                UPSTREAM_NOT_FOUND,
                f'no version of {self.title} matches "{text}"; {hint}',
            )
        is_floating, problems = not is_exact_version(text), (listed.problem, *listed.notes)
        if self.repository.is_registry:
            # Look up the tag, because a list of tags contains no digests.
            return self._find_tag(selected, is_floating=is_floating, problems=problems)
        return self._pin(versions[selected], is_floating=is_floating, problems=problems)

    def _pin(
        self, version: ArtifactVersion, *, is_floating: bool, problems: tuple[SourceProblem | None, ...]
    ) -> _FoundVersion:
        """Return the found version. If the upstream pins a digest, this digest replaces the digest of the version."""
        digest = self.upstream.digest
        pinned = replace(version, digest=digest) if digest else version
        messages = tuple(dict.fromkeys(filter(None, problems)))
        return _FoundVersion(pinned, is_floating and not digest, messages, version.digest)
