"""A client for chart repositories over HTTP: the index file, and the archives of charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.lazy_dataclasses import replace
from reconciler.packages.artifacts import UPSTREAM_NOT_FOUND, ArtifactRepository, ArtifactVersion
from reconciler.packages.source_codes import SourceCodes
from reconciler.sources.addresses import has_same_origin, is_below
from reconciler.sources.artifact_cache import ArtifactCache
from reconciler.sources.chart_index import ChartIndex, decode_index, parse_index, resolve_chart_url
from reconciler.sources.cosign import create_invalid_error
from reconciler.sources.credentials import SourceCredentials
from reconciler.sources.errors import SourceError
from reconciler.sources.http_client import HttpClient, HttpRequest, HttpResponse, HttpStream, check_status
from reconciler.sources.limits import SourceLimits
from reconciler.sources.mirrors import Mirror, rewrite_url
from reconciler.sources.provenance import MAX_PROVENANCE_BYTES
from reconciler.sources.version_records import Record


class ChartRepositoryClient:
    """Reads charts from chart repositories. The object is thread-safe."""

    def __init__(
        self,
        http: HttpClient,
        credentials: SourceCredentials,
        cache: ArtifactCache,
        limits: SourceLimits,
        mirrors: Sequence[Mirror],
    ) -> None:
        self._mirrors = mirrors
        self._http = http
        self._credentials = credentials
        self._cache = cache
        self._limits = limits

    def request_index(self, repository: ArtifactRepository, old: Record, now_seconds: int) -> Record:
        """Return the record of the index of a repository.

        Args:
            old: The last record, or {}. It is returned if the index has not changed.

        Raises:
            SourceError: The index cannot be read, is not valid, or has become empty.
        """
        url = f"{repository.url.rstrip('/')}/index.yaml"
        validators = {"If-None-Match": old.get("etag"), "If-Modified-Since": old.get("modified")}
        request = self._create_request(repository, url, self._limits.index_bytes, "index_bytes")
        headers = {"Accept-Encoding": "gzip", **{name: text for name, text in validators.items() if text}}
        response = self._http.fetch(replace(request, headers=headers))
        if response.status == 304 and "charts" in old:
            return old
        check_status(response, f"the index {url}")
        index = parse_index(decode_index(response, self._limits))
        if not index.charts:
            raise SourceError(UPSTREAM_NOT_FOUND, f"the index {url} contains no charts")
        return {
            **old, **_create_record(index, old, now_seconds),
            "etag": response.headers.get("etag", ""), "modified": response.headers.get("last-modified", ""),
        }  # fmt: skip

    def download(self, repository: ArtifactRepository, version: ArtifactVersion) -> str:
        """Store the archive of a chart in the cache, and return its digest. Raises SourceError."""
        url = rewrite_url(resolve_chart_url(repository.url, version.url), self._mirrors)
        request = self._create_request(repository, url, self._limits.archive_bytes, "archive_bytes")

        def create_error(found: str) -> SourceError:
            message = f"the archive at {request.url} must have the digest {version.digest}, but it has {found}"
            return SourceError(SourceCodes.DIGEST_MISMATCH.name, message)

        with self._http.open(request) as stream:
            _check_access(stream, repository, url)
            check_status(stream, f"the archive {url}")
            return self._cache.store(stream.chunks, version.digest, create_error)

    def read_provenance(self, repository: ArtifactRepository, version: ArtifactVersion) -> bytes:
        """Return the provenance file of a chart. Raises SourceError."""
        url = f"{rewrite_url(resolve_chart_url(repository.url, version.url), self._mirrors)}.prov"
        request = replace(
            self._create_request(repository, url, MAX_PROVENANCE_BYTES, "archive_bytes"),
            create_size_error=lambda: create_invalid_error(f"{url} is larger than {MAX_PROVENANCE_BYTES:,} bytes"),
        )
        response = self._http.fetch(request)
        if response.status in {404, 410}:
            raise SourceError(SourceCodes.SIGNATURE_MISSING.name, f"the provenance file {url} does not exist")
        _check_access(response, repository, url)
        check_status(response, f"the provenance file {url}")
        return response.content

    def _create_request(self, repository: ArtifactRepository, url: str, max_bytes: int, setting: str) -> HttpRequest:
        login = self._credentials.find_login(repository, url, repository.url)
        is_limited = login is not None and login.is_shared and not repository.pass_credentials
        tls = self._credentials.find_tls(repository)
        if not has_same_origin(url, repository.url):
            tls = tls.without_certificate()
        return HttpRequest(
            url, lambda: self._limits.create_error(setting, f"the size of {url} in bytes"), max_bytes,
            authorization=login.basic_authorization if login else "",
            authorization_folder=repository.url if is_limited else "", tls=tls, named_by=repository.url,
        )  # fmt: skip


def _check_access(response: HttpResponse | HttpStream, repository: ArtifactRepository, url: str) -> None:
    """Raise SourceError if a server refused a request because the request contained no credentials.

    If the Repository sets neither `secretRef` nor `passCredentials`, only requests to URLs below its own URL contain
    credentials.
    """
    is_outside = not repository.pass_credentials and not is_below(url, repository.url)
    if response.status in {401, 403} and is_outside and not repository.secret_name:
        raise SourceError(
            SourceCodes.SOURCE_UNAUTHORIZED.name,
            f"the request for {url} is refused with the HTTP status {response.status}. The credentials of the settings "
            f"are not sent to this URL, because it is not below {repository.url}. Next step: set `passCredentials: "
            "true` or `secretRef` of the Repository",
        )


def _create_record(index: ChartIndex, old: Record, now_seconds: int) -> Mapping[str, object]:
    first_seen = {(name, entry[0]): entry[5] for name, entries in old.get("charts", {}).items() for entry in entries}
    charts = {
        name: [
            (
                entry.version, entry.digest, entry.url, entry.created_seconds, entry.app_version,
                first_seen.get((name, entry.version), now_seconds),
            )
            for entry in entries
        ]
        for name, entries in index.charts.items()
    }  # fmt: skip
    return {"charts": charts, "notes": index.notes}
