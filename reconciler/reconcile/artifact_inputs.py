"""The charts and artifacts that a pass reads. A change of these inputs starts the next pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

from reconciler.krm.internal_errors import ScopeFailedError, isolation_boundary
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import asdict, dataclass
from reconciler.packages.artifacts import (
    Artifact,
    ArtifactRepository,
    ArtifactVersion,
    ResolvedTag,
    SignerIdentity,
    SourceProblem,
    VerifySpec,
    VersionList,
)

if TYPE_CHECKING:
    from reconciler.sources.artifacts import Artifacts

_MAX_REQUESTS = 8


@dataclass(frozen=True)
class _Request:
    """A request for versions of an artifact.

    If `tag` is "", the request is for all versions. Otherwise, it is for the version that the tag points to.
    """

    repository: ArtifactRepository
    name: str
    tag: str = ""

    def to_text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> _Request:
        """Read the result of `to_text`. Raises ValueError, TypeError or KeyError for other texts."""
        data = json.loads(text)
        repository, verify = data["repository"], data["repository"]["verify"]
        if verify:
            identities = tuple(SignerIdentity(**entry) for entry in verify["identities"])
            repository = {**repository, "verify": VerifySpec(**{**verify, "identities": identities})}
        return cls(ArtifactRepository(**repository), data["name"], data["tag"])


class ArtifactInputs:
    """Reads charts and artifacts, and records the lists of versions and the tags that a pass requests.

    Implements `ArtifactCatalog`.

    Args:
        build: Creates the object that reads charts and artifacts from their servers. It is called at the first request,
            because most fleets have no artifacts.
    """

    def __init__(self, build: Callable[[], Artifacts]) -> None:
        self._build = build
        self._fingerprints: dict[_Request, str] = {}

    @cached_property
    def _artifacts(self) -> Artifacts:
        return self._build()

    @property
    def requests(self) -> tuple[str, ...]:
        """The requests of this pass as texts, in order."""
        return tuple(sorted(request.to_text() for request in self._fingerprints))

    def begin_pass(self) -> None:
        """Delete the recorded requests of the last pass."""
        self._fingerprints.clear()

    def repeat(self, requests: Iterable[str]) -> None:
        """Repeat the requests of the last pass. Several servers are contacted at the same time.

        If a cached list is newer than the poll interval, its server is not contacted.
        """
        try:
            parsed = [_Request.from_text(text) for text in requests]
        except (ValueError, TypeError, KeyError):
            # Repeat no request. A different version of the program may have stored the requests. The digest then has no
            # results and differs from the digest of the last pass. This difference starts a pass.
            return
        if parsed:
            with ThreadPoolExecutor(_MAX_REQUESTS, thread_name_prefix="artifacts") as pool:
                list(pool.map(self._repeat, parsed))

    def _repeat(self, request: _Request) -> None:
        try:
            with isolation_boundary(f"artifact {request.name} of Repository {request.repository.name}"):
                if request.tag:
                    self.find_tag(request.repository, request.name, request.tag)
                else:
                    self.list_versions(request.repository, request.name)
        except ScopeFailedError:
            # Ignore the exception here. Without the result of this request, the digest differs from the digest of the
            # last pass, so that a pass starts. This pass reports the exception.
            return

    def digest(self) -> str:
        """Return a digest of the version lists and tags that were requested. Return "" if none was requested."""
        if not self._fingerprints:
            return ""
        return compute_digest({request.to_text(): result for request, result in self._fingerprints.items()})

    def list_versions(self, repository: ArtifactRepository, name: str) -> VersionList | SourceProblem:
        """Return all versions of a chart or package."""
        result = self._artifacts.list_versions(repository, name)
        self._fingerprints[_Request(repository, name)] = _fingerprint_list(result)
        return result

    def find_tag(self, repository: ArtifactRepository, name: str, tag: str) -> ResolvedTag | SourceProblem:
        """Return the version that a tag of an OCI registry points to now."""
        result = self._artifacts.find_tag(repository, name, tag)
        self._fingerprints[_Request(repository, name, tag)] = (
            result.code if isinstance(result, SourceProblem) else f"{result.version.digest} {_get_code(result.problem)}"
        )
        return result

    def read(self, repository: ArtifactRepository, name: str, version: ArtifactVersion) -> Artifact | SourceProblem:
        """Return the files of a version."""
        return self._artifacts.read(repository, name, version)

    def evict(self, digests: Iterable[str]) -> None:
        """Delete old files until the cache is within its size limit. Keep the files with these digests."""
        if "_artifacts" in vars(self):
            self._artifacts.evict(frozenset(digests))

    def close(self) -> None:
        """Close all connections."""
        if "_artifacts" in vars(self):
            self._artifacts.close()


def _fingerprint_list(result: VersionList | SourceProblem) -> str:
    if isinstance(result, SourceProblem):
        return result.code
    versions = sorted([version.version, version.digest] for version in result.versions)
    return compute_digest([versions, _get_code(result.problem), [note.code for note in result.notes]])


def _get_code(problem: SourceProblem | None) -> str:
    return problem.code if problem else ""
