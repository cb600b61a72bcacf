"""Reading of charts and packages from chart repositories and OCI registries.

Errors are values of the type `SourceProblem`, because one source that cannot be read must not stop other packages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock
from time import time

from reconciler.catalog.files import FileTree, parse_ignore_file
from reconciler.krm.json_text import compute_hash
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.packages.artifacts import (
    CHART_LAYER,
    UPSTREAM_NOT_FOUND,
    Artifact,
    ArtifactRepository,
    ArtifactVersion,
    ResolvedTag,
    SourceProblem,
    VersionList,
)
from reconciler.packages.source_codes import SourceCodes
from reconciler.processes.backoff import CallBackoff
from reconciler.sources.addresses import AddressPolicy, join_url
from reconciler.sources.archives import read_archive
from reconciler.sources.artifact_cache import ArtifactCache, parse_digest
from reconciler.sources.chart_repository import ChartRepositoryClient
from reconciler.sources.connections import limit_duration
from reconciler.sources.credentials import SourceCredentials
from reconciler.sources.errors import SourceError
from reconciler.sources.http_client import HttpClient
from reconciler.sources.keyless import KeylessVerifier
from reconciler.sources.limits import SourceLimits
from reconciler.sources.manifests import ArtifactManifest, find_manifest_in_index, parse_manifest, select_layer
from reconciler.sources.mirrors import Mirror, rewrite_repository
from reconciler.sources.provenance import ProvenanceVerifier
from reconciler.sources.recent_artifacts import RecentArtifacts
from reconciler.sources.registry import (
    RegistryClient,
    RegistryLocation,
    convert_to_tag,
    convert_to_version,
    locate_artifact,
)
from reconciler.sources.signatures import SignatureVerifier
from reconciler.sources.version_records import CurrentRecord, Record, VersionRecords

# Change this number if the content of the records changes, so that earlier records are not read.
_RECORD_FORMAT = 1
# The size limit of the unpacked artifacts in memory.
_MAX_RECENT_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class ArtifactOptions:
    """The options of `Artifacts`. They come from the settings group `sources`.

    Attributes:
        poll_seconds: The time after which a list of versions is requested again.
        timeout_seconds: The time limit of one list of versions, and of one download.
        cache_bytes: The size limit of the cache.
        mirrors: Mirrors of repositories. The first mirror that matches the URL of a repository replaces this URL.
        proxy: The URL of an HTTP proxy. "" for no proxy.
        is_offline: Whether only the cache is used.
    """

    policy: AddressPolicy = field(default_factory=AddressPolicy)
    limits: SourceLimits = field(default_factory=SourceLimits)
    poll_seconds: float = 300.0
    timeout_seconds: float = 60.0
    cache_bytes: int = 2 * 1024**3
    mirrors: tuple[Mirror, ...] = ()
    proxy: str = ""
    is_offline: bool = False


class Artifacts:
    """Reads charts and packages. The object is thread-safe.

    Args:
        folder: The folder of the cache.
        backoff: Delays new requests after failures. Each host and each list of versions has its own back-off.
        provenance_verifier: Verifies provenance files of charts.
        keyless_verifier: Verifies keyless signatures of artifacts.
        clock: Returns the seconds since 1970.
    """

    def __init__(
        self,
        folder: Path,
        options: ArtifactOptions,
        credentials: SourceCredentials,
        backoff: CallBackoff,
        provenance_verifier: ProvenanceVerifier,
        keyless_verifier: KeylessVerifier,
        clock: Callable[[], float] = time,
    ) -> None:
        self._options = options
        self._clock = clock
        self._credentials = credentials
        self._cache = ArtifactCache(folder / "sources", options.cache_bytes)
        self._http = HttpClient(options.policy, backoff, options.proxy, is_offline=options.is_offline)
        self._records = VersionRecords(
            self._cache, backoff, options.poll_seconds, options.timeout_seconds, clock, is_offline=options.is_offline
        )
        self._registry = RegistryClient(self._http, credentials, self._cache, options.limits)
        self._recent = RecentArtifacts(_MAX_RECENT_BYTES)
        self._read_locks: dict[tuple[str, str], Lock] = {}
        self._charts = ChartRepositoryClient(self._http, credentials, self._cache, options.limits, options.mirrors)
        self._signatures = SignatureVerifier(
            self._registry, self._charts, credentials, self._records, provenance_verifier, keyless_verifier
        )

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def evict(self, used_digests: Iterable[str]) -> None:
        """If the cache exceeds its size limit, delete the least recently used files. Keep files with a used digest."""
        self._cache.evict(used_digests)

    def list_versions(self, repository: ArtifactRepository, name: str) -> VersionList | SourceProblem:
        """Return the versions of a chart or package.

        While the repository cannot be reached, or has become empty, the result contains the last known versions.

        Args:
            name: The name of a chart, or the path of a package below the path of the repository.
        """
        try:
            repository = self._prepare(repository)
            list_versions = self._list_tags if repository.is_registry else self._list_index
            versions = list_versions(repository, name)
            return replace(versions, notes=(*versions.notes, *self._list_notes(repository, name)))
        except SourceError as error:
            return _describe(error, repository, name)

    def find_tag(self, repository: ArtifactRepository, name: str, tag: str) -> ResolvedTag | SourceProblem:
        """Return the artifact to which a tag points. If `tag` is a version with "+", the tag with "_" is read."""
        try:
            repository = self._prepare(repository)
            location = locate_artifact(repository, name)
            key = self._get_key("tag", repository, f"{location.oci_url}:{convert_to_tag(tag)}")
            current = self._records.read(key, lambda old: self._request_tag(location, tag, old))
        except SourceError as error:
            return _describe(error, repository, name)
        data = current.data
        version = ArtifactVersion(
            tag, data["digest"], created_seconds=data["created"], first_seen_seconds=data["first_seen"]
        )
        return ResolvedTag(version, _add_subject(current.problem, repository, name))

    def read(self, repository: ArtifactRepository, name: str, version: ArtifactVersion) -> Artifact | SourceProblem:
        """Return the files of one version. If the version has a digest, the content must have this digest."""
        try:
            repository = self._prepare(repository)
            # If several threads need the same artifact, the first thread downloads it, and the other threads wait.
            with (
                self._read_locks.setdefault((repository.url, name), Lock()),
                limit_duration(self._options.timeout_seconds),
            ):
                if repository.is_registry:
                    return self._read_from_registry(locate_artifact(repository, name), version)
                return self._read_chart(repository, name, version)
        except SourceError as error:
            problem = _describe(error, repository, name, version.version)
            # Return an error that the next pass retries. The repository listed this version before, and can provide
            # its content again.
            is_missing = problem.code == UPSTREAM_NOT_FOUND
            return SourceProblem(SourceCodes.DIGEST_UNAVAILABLE.name, problem.message, True) if is_missing else problem

    def _prepare(self, repository: ArtifactRepository) -> ArtifactRepository:
        """Check the URL of a repository. Return the repository, or its mirror if the options contain one."""
        join_url(repository.url, repository.url)
        return rewrite_repository(repository, self._options.mirrors)

    def _list_index(self, repository: ArtifactRepository, name: str) -> VersionList:
        key = self._get_key("index", repository, repository.url)
        now = int(self._clock())
        current = self._records.read(key, lambda old: self._charts.request_index(repository, old, now))
        charts, digests = current.data["charts"], current.data.get("digests", {})
        if name not in charts:
            raise _create_missing_error(current, f"the index of {repository.url} has no chart {name!r}")
        versions = tuple(
            ArtifactVersion(version, digest or digests.get(url, ""), url, created, app_version, first_seen)
            for version, digest, url, created, app_version, first_seen in charts[name]
        )
        notes = tuple(SourceProblem(SourceCodes.CHART_ENTRY_INVALID.name, note) for note in current.data["notes"])
        return VersionList(versions, _add_subject(current.problem, repository, name), notes)

    def _list_tags(self, repository: ArtifactRepository, name: str) -> VersionList:
        location = locate_artifact(repository, name)
        key = self._get_key("tags", repository, location.oci_url)
        current = self._records.read(key, lambda old: self._request_tags(location, old))
        versions = tuple(
            ArtifactVersion(convert_to_version(tag), first_seen_seconds=seconds)
            for tag, seconds in current.data["tags"].items()
        )
        return VersionList(versions, _add_subject(current.problem, repository, name))

    def _request_tags(self, location: RegistryLocation, old: Record) -> Record:
        tags, known, now = self._registry.list_tags(location), old.get("tags", {}), int(self._clock())
        if not tags:
            raise SourceError(UPSTREAM_NOT_FOUND, f"{location.oci_url} has no tags")
        return {"tags": {tag: known.get(tag, now) for tag in tags}}

    def _request_tag(self, location: RegistryLocation, tag: str, old: Record) -> Record:
        digest = self._registry.find_digest(location, convert_to_tag(tag))
        if digest == old.get("digest"):
            return old
        manifest = self._read_manifest(location, digest)
        return {"digest": digest, "created": manifest.created_seconds, "first_seen": int(self._clock())}

    def _read_manifest(self, location: RegistryLocation, digest: str) -> ArtifactManifest:
        data = parse_manifest(self._read_checked_manifest(location, digest))
        if inner_digest := find_manifest_in_index(data, location.repository):
            data = parse_manifest(self._read_checked_manifest(location, inner_digest))
        return select_layer(data, location.repository, self._options.limits)

    def _read_checked_manifest(self, location: RegistryLocation, digest: str) -> bytes:
        """Return a manifest from the cache or the registry.

        Use the cache only if an earlier request with the credentials of the Repository could read this manifest.
        """

        def request(_: Record) -> Record:
            self._registry.fetch_manifest(location, digest)
            return {}

        key = self._get_key("manifest", location.repository, f"{location.oci_url}@{digest}")
        self._records.read(key, request, is_permanent=True)
        return self._registry.read_manifest(location, digest)

    def _check_blob(self, location: RegistryLocation, digest: str) -> None:
        """Check that the registry serves a blob with the credentials of the Repository."""

        def request(_: Record) -> Record:
            self._registry.check_blob(location, digest)
            return {}

        key = self._get_key("blob", location.repository, f"{location.oci_url}@{digest}")
        self._records.read(key, request, is_permanent=True)

    def _read_from_registry(self, location: RegistryLocation, version: ArtifactVersion) -> Artifact:
        digest = version.digest or self._registry.find_digest(location, convert_to_tag(version.version))
        parse_digest(digest)
        self._signatures.verify_manifest(location, digest)
        manifest = self._read_manifest(location, digest)
        self._check_blob(location, manifest.layer_digest)
        is_chart = manifest.layer_type == CHART_LAYER
        key = (manifest.layer_digest, str(is_chart), location.repository.ignore)
        artifact = self._recent.get(key)
        if artifact is None:
            archive = self._registry.read_blob(location, manifest.layer_digest)
            artifact = self._unpack(archive, manifest.layer_digest, is_chart=is_chart)
            artifact = replace(artifact, files=_apply_ignore(artifact.files, location.repository.ignore))
            self._recent.add(key, artifact)
        return replace(artifact, digest=digest, created_seconds=manifest.created_seconds)

    def _read_chart(self, repository: ArtifactRepository, name: str, version: ArtifactVersion) -> Artifact:
        digest = self._find_archive(repository, name, version)
        self._signatures.verify_chart(repository, name, version, digest)
        artifact = self._recent.get((digest,))
        if artifact is None:
            archive = self._cache.read(digest)
            if archive is None:
                self._download(repository, name, replace(version, digest=digest))
                archive = self._cache.read(digest)
                assert archive is not None, "the archive was stored"
            artifact = self._unpack(archive, digest, is_chart=True)
            self._recent.add((digest,), artifact)
        return replace(artifact, created_seconds=version.created_seconds)

    def _find_archive(self, repository: ArtifactRepository, name: str, version: ArtifactVersion) -> str:
        """Return the digest of an archive.

        If no earlier download of the archive used the same credentials, download the archive to check them.
        """
        digest = version.digest or self._download(repository, name, version)
        is_downloaded = not version.digest
        key = self._get_key("archive", repository, f"{repository.url} {digest}")

        def request(_: Record) -> Record:
            if not is_downloaded:
                self._download(repository, name, version)
            return {}

        self._records.read(key, request, is_permanent=True)
        return digest

    def _download(self, repository: ArtifactRepository, name: str, version: ArtifactVersion) -> str:
        if not version.url:
            version = replace(version, url=self._find_url(repository, name, version))
        if version.url.startswith("oci://"):
            digest = self._download_from_registry(repository, version)
        else:
            digest = self._charts.download(repository, version)
        if not version.digest:
            # The index contains no digest of this archive. Add the digest to the record of the index, so that the next
            # pass does not download the archive.
            key = self._get_key("index", repository, repository.url)
            self._records.update(key, lambda old: {**old, "digests": {**old.get("digests", {}), version.url: digest}})
        return digest

    def _download_from_registry(self, repository: ArtifactRepository, version: ArtifactVersion) -> str:
        """Download an archive with an `oci://` URL from a registry to the cache. Return the digest of the archive.

        The index of the chart repository contains this URL, e.g. `oci://registry.example.com/charts/web:1.0.0`.
        """
        url, _, tag = version.url.rpartition(":")
        secret = repository.secret_name if repository.pass_credentials else ""
        registry = rewrite_repository(
            replace(repository, url=url, insecure=False, secret_name=secret, cert_secret_name=""), self._options.mirrors
        )
        location = replace(locate_artifact(registry, ""), named_by=repository.url)
        manifest_digest = self._registry.find_digest(location, convert_to_tag(tag))
        data = parse_manifest(self._registry.fetch_manifest(location, manifest_digest))
        digest = select_layer(data, registry, self._options.limits).layer_digest
        if version.digest not in {"", digest}:
            message = f"the archive at {version.url} must have the digest {version.digest}, but it has {digest}"
            raise SourceError(SourceCodes.DIGEST_MISMATCH.name, message)
        self._registry.check_blob(location, digest)
        return digest

    def _find_url(self, repository: ArtifactRepository, name: str, version: ArtifactVersion) -> str:
        versions = self._list_index(repository, name).versions
        same_digest = (known.url for known in versions if known.digest and known.digest == version.digest)
        same_version = (known.url for known in versions if known.version == version.version)
        url = next(same_digest, "") or next(same_version, "")
        if not url:
            message = f'the index of {repository.url} has no version "{version.version}" of the chart {name!r}'
            raise SourceError(UPSTREAM_NOT_FOUND, message)
        return url

    def _unpack(self, archive: bytes, digest: str, *, is_chart: bool) -> Artifact:
        content = read_archive(archive, self._options.limits, has_top_folder=is_chart)
        return Artifact(content.files, digest, skipped=content.skipped)

    def _list_notes(self, repository: ArtifactRepository, name: str) -> tuple[SourceProblem, ...]:
        url = repository.url
        if repository.is_registry:
            location = locate_artifact(repository, name)
            url = f"{location.origin}/v2/{location.path}"
        return self._credentials.list_notes(url)

    def _get_key(self, kind: str, repository: ArtifactRepository, url: str) -> str:
        # Repositories with different credentials do not share records, because only one of them may have access.
        secret = f"{repository.namespace}/{repository.secret_name}" if repository.secret_name else ""
        return f"{kind} {_RECORD_FORMAT} {url} {compute_hash([secret, repository.insecure])}"


def _apply_ignore(files: FileTree, patterns: str) -> FileTree:
    if not patterns:
        return files
    spec = parse_ignore_file(patterns.encode())
    return files.without_files(*(path for path in files if spec.match_file(path)))


def _create_missing_error(current: CurrentRecord, message: str) -> SourceError:
    if current.problem:
        return SourceError.from_problem(current.problem)
    return SourceError(UPSTREAM_NOT_FOUND, message)


def _add_subject(problem: SourceProblem | None, repository: ArtifactRepository, name: str) -> SourceProblem | None:
    return problem and replace(problem, message=f"{_format_subject(repository, name)}: {problem.message}")


def _describe(error: SourceError, repository: ArtifactRepository, name: str, version: str = "") -> SourceProblem:
    subject = _format_subject(repository, f"{name} {version}".rstrip())
    return replace(error.problem, message=f"{subject}: {error.message}")


def _format_subject(repository: ArtifactRepository, name: str) -> str:
    return f"{'chart' if repository.type == 'helm' else 'package'} {name} in Repository {repository.name}"
