"""A client that pulls artifacts from OCI registries: tags, manifests and blobs, with token or basic authentication.

The digest of each manifest and blob is verified. Only SHA-256 digests are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import Any
from urllib.parse import urlencode, urlsplit

from reconciler.credential_files import is_token
from reconciler.krm.json_text import parse_json_object
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.packages.artifacts import UPSTREAM_NOT_FOUND, ArtifactRepository
from reconciler.packages.source_codes import SourceCodes
from reconciler.redaction import Secret
from reconciler.sources.addresses import (
    DOCKER_HUB_NAME,
    build_registry_origin,
    check_no_credentials,
    has_same_origin,
    join_url,
)
from reconciler.sources.artifact_cache import ArtifactCache, parse_digest
from reconciler.sources.credentials import Login, SourceCredentials
from reconciler.sources.errors import SourceError
from reconciler.sources.http_client import HttpClient, HttpRequest, HttpResponse, HttpStream, check_status
from reconciler.sources.limits import SourceLimits

_Key = tuple[str, str, str, str, bool]
MANIFEST_TYPES = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
# OCI distribution specification: registries should refuse larger manifests.
_MAX_MANIFEST_BYTES = 4 * 1024 * 1024
_MAX_TOKEN_BYTES = 256 * 1024
_MAX_TAG_PAGE_BYTES = 4 * 1024 * 1024
_MAX_TAG_PAGES = 1_000
_TAGS_PER_PAGE = 1_000
_UNSUPPORTED_CODES = frozenset(
    (UPSTREAM_NOT_FOUND, SourceCodes.SOURCE_INVALID.name, SourceCodes.SOURCE_UNAUTHORIZED.name)
)
_MAX_REFERRER_PAGES = 10
_MAX_CHALLENGE_CHARACTERS = 4_096
# Docker: a token without `expires_in` is valid for 60 seconds. Request a new token before the end of this time.
_DEFAULT_TOKEN_SECONDS, _TOKEN_MARGIN_SECONDS, _MAX_TOKEN_SECONDS = 60.0, 10.0, 3_600.0
_NAME = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_MAX_NAME_CHARACTERS = 255
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_VERSION_START = re.compile(r"v?\d+\.")
_CHALLENGE = re.compile(r"(Bearer|Basic)(?:\s|\Z)", re.IGNORECASE)
_CHALLENGE_PARAMETER = re.compile(r'([A-Za-z_]{1,32})="([^"]*)"')


@dataclass(frozen=True)
class RegistryLocation:
    """The location of one artifact.

    Attributes:
        origin: The URL of the registry without a path, such as `https://registry.example.com`.
        path: The name of the artifact in the registry.
        named_by: The URL of the chart repository whose index contains the location. "" for a location from the config.
    """

    repository: ArtifactRepository
    origin: str
    path: str
    named_by: str = ""

    @property
    def oci_url(self) -> str:
        """The URL of the artifact, for messages and lists of allowed URLs."""
        return f"oci://{urlsplit(self.origin).netloc}/{self.path}"

    @property
    def api_url(self) -> str:
        """The URL below which the registry serves the artifact."""
        return f"{self.origin}/v2/{self.path}"


def locate_artifact(repository: ArtifactRepository, name: str) -> RegistryLocation:
    """Return the location of an artifact. `name` is the path below the path of the repository.

    Raises:
        SourceError: `SourceInvalid` if the URL or the name is not valid, `SourceAddressRefused` if the URL contains
            credentials.
    """
    check_no_credentials(repository.url)
    try:
        parts = urlsplit(repository.url)
        # The attribute `port` raises ValueError if the port is not valid.
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    path = "/".join(filter(None, (parts.path.strip("/"), name)))
    if host == DOCKER_HUB_NAME:
        path = path if "/" in path else f"library/{path}"
    if not host or parts.query or parts.fragment or len(path) > _MAX_NAME_CHARACTERS or not _NAME.fullmatch(path):
        raise _create_error(
            f"the name {path[:_MAX_NAME_CHARACTERS]!r} of an artifact must have segments of lower-case letters, digits,"
            ' ".", "_" and "-"'
        )
    return RegistryLocation(repository, build_registry_origin(parts.netloc, is_insecure=repository.insecure), path)


def convert_to_tag(version: str) -> str:
    """Return the tag of a version. A tag cannot contain "+". Therefore, Helm and Flux write "_" instead.

    Raises:
        SourceError: `SourceInvalid` if the version is not a valid tag.
    """
    tag = version.replace("+", "_")
    if not _TAG.fullmatch(tag):
        raise _create_error(f"the tag {version[:128]!r} must be at most 128 letters, digits, '_', '.' and '-'")
    return tag


def convert_to_version(tag: str) -> str:
    """Convert a tag to a version. If the tag starts like a version, replace "_" by "+". Tags cannot contain "+"."""
    return tag.replace("_", "+") if _VERSION_START.match(tag) else tag


class RegistryClient:
    """Pulls artifacts from registries. The object is thread-safe."""

    def __init__(
        self, http: HttpClient, credentials: SourceCredentials, cache: ArtifactCache, limits: SourceLimits
    ) -> None:
        self._http = http
        self._cache = cache
        self._limits = limits
        self._authorizations = _Authorizations(http, credentials)
        self._credentials = credentials

    def list_tags(self, location: RegistryLocation) -> tuple[str, ...]:
        """Return all valid tags of an artifact. Raises SourceError."""
        first_url = f"{location.api_url}/tags/list?n={_TAGS_PER_PAGE}"
        tags: dict[str, None] = {}
        url = first_url
        for _ in range(_MAX_TAG_PAGES):
            response = self._fetch(location, url, "the tags", _MAX_TAG_PAGE_BYTES)
            page = _parse_object(response.content, location).get("tags") or []
            if not isinstance(page, list):
                raise _create_error(f"the list of tags of {location.oci_url} is not valid")
            count = len(tags)
            tags |= {tag: None for tag in page if isinstance(tag, str) and _TAG.fullmatch(tag)}
            if len(tags) > self._limits.tags:
                raise self._limits.create_error("tags", f"the number of tags of {location.oci_url}")
            next_url = _find_next_page(response, url)
            # Stop at a page without new tags, because some registries link the last page to itself.
            if not next_url or len(tags) == count:
                return tuple(tags)
            if not has_same_origin(next_url, first_url):
                raise _create_error(
                    f"the next page of the tags of {location.oci_url} does not have the scheme, host and port of the"
                    " registry"
                )
            url = next_url
        raise _create_error(f"the list of tags of {location.oci_url} has more than {_MAX_TAG_PAGES} pages")

    def find_digest(self, location: RegistryLocation, tag: str) -> str:
        """Return the digest of the manifest to which a tag points. Raises SourceError."""
        url = f"{location.api_url}/manifests/{tag}"
        response = self._fetch(location, url, f"the tag {tag}", _MAX_MANIFEST_BYTES, method="HEAD")
        digest = response.headers.get("docker-content-digest", "")
        if not digest:
            # Compute the digest, because the header with the digest is optional.
            content = self._fetch(location, url, f"the tag {tag}", _MAX_MANIFEST_BYTES).content
            digest = self._store([content], "", f"the tag {tag} of {location.oci_url}")
        parse_digest(digest)
        return digest

    def fetch_manifest(self, location: RegistryLocation, digest: str) -> bytes:
        """Request the manifest with the given digest from the registry, and store it in the cache.

        Raises SourceError.
        """
        url = f"{location.api_url}/manifests/{digest}"
        subject = f"the manifest {digest}"
        content = self._fetch(location, url, subject, _MAX_MANIFEST_BYTES).content
        self._store([content], digest, f"{subject} of {location.oci_url}")
        return content

    def read_manifest(self, location: RegistryLocation, digest: str) -> bytes:
        """Return the manifest with a digest, from the cache or from the registry. Raises SourceError."""
        content = self._cache.read(digest)
        return self.fetch_manifest(location, digest) if content is None else content

    def list_referrers(self, location: RegistryLocation, digest: str, artifact_type: str) -> Sequence[object]:
        """Return the descriptors of the manifests that refer to the manifest with a digest. Raises SourceError.

        The result can contain descriptors of other types, because registries can ignore `artifact_type`. Registries
        without the API for referrers have an index with the tag `sha256-<digest>`.
        """
        try:
            descriptors = self._request_referrers(location, digest, artifact_type)
        except SourceError as error:
            # A registry that does not support the referrers API can respond with "not found", "unauthorized" or a web
            # page.
            if error.code not in _UNSUPPORTED_CODES:
                raise
            descriptors = []
        return descriptors or self._request_referrers_tag(location, f"sha256-{parse_digest(digest)}")

    def _request_referrers(self, location: RegistryLocation, digest: str, artifact_type: str) -> list[object]:
        query = urlencode({"artifactType": artifact_type})
        first_url = url = f"{location.api_url}/referrers/{digest}?{query}"
        descriptors: list[object] = []
        for _ in range(_MAX_REFERRER_PAGES):
            response = self._fetch(location, url, f"the referrers of {digest}", _MAX_MANIFEST_BYTES)
            descriptors += _read_descriptors(response, location)
            url = _find_next_page(response, url)
            if not url or not has_same_origin(url, first_url):
                break
        return descriptors

    def _request_referrers_tag(self, location: RegistryLocation, tag: str) -> list[object]:
        try:
            url = f"{location.api_url}/manifests/{tag}"
            return _read_descriptors(self._fetch(location, url, f"the tag {tag}", _MAX_MANIFEST_BYTES), location)
        except SourceError as error:
            if error.code != UPSTREAM_NOT_FOUND:
                raise
            return []

    def read_blob(self, location: RegistryLocation, digest: str, max_bytes: int = 0) -> bytes:
        """Return the blob with a digest, from the cache or from the registry. Raises SourceError.

        Args:
            max_bytes: The size limit of a blob that is not an archive. 0 for the limit of archives.
        """
        content = self._cache.read(digest)
        if content is None:
            url = f"{location.api_url}/blobs/{digest}"
            setting = "" if max_bytes else "archive_bytes"
            request = self._create_request(location, url, max_bytes or self._limits.archive_bytes, setting)
            with self._open(location, request) as stream:
                check_status(stream, f"the blob {digest} of {location.oci_url}")
                self._store(stream.chunks, digest, f"the blob {digest} of {location.oci_url}")
            content = self._cache.read(digest)
            assert content is not None, "the blob was stored"
        return content

    def check_blob(self, location: RegistryLocation, digest: str) -> None:
        """Check that the registry serves a blob at this location, and store the blob in the cache. Raises SourceError.

        A manifest can name any digest. Without this check, a manifest could name an archive of a repository to which
        the user has no access.
        """
        if self._cache.read(digest) is None:
            self.read_blob(location, digest)
            return
        self._fetch(location, f"{location.api_url}/blobs/{digest}", f"the blob {digest}", 0, method="HEAD")

    def _store(self, chunks: Iterable[bytes], digest: str, subject: str) -> str:
        def create_error(found: str) -> SourceError:
            return SourceError(
                SourceCodes.DIGEST_MISMATCH.name,
                f"the registry returned wrong content for {subject}, because this content has the digest {found}",
            )

        return self._cache.store(chunks, digest, create_error)

    def _fetch(
        self, location: RegistryLocation, url: str, subject: str, max_bytes: int, method: str = "GET"
    ) -> HttpResponse:
        request = replace(self._create_request(location, url, max_bytes), method=method)
        with self._open(location, request) as stream:
            check_status(stream, f"{subject} of {location.oci_url}")
            return HttpResponse(stream.status, stream.headers, stream.url, b"".join(stream.chunks))

    def _create_request(self, location: RegistryLocation, url: str, max_bytes: int, setting: str = "") -> HttpRequest:
        def create_size_error() -> SourceError:
            if setting:
                return self._limits.create_error(setting, f"the size of a blob of {location.oci_url} in bytes")
            return _create_error(f"a response about {location.oci_url} is larger than {max_bytes:,} bytes")

        https_url = f"https://{urlsplit(location.origin).netloc}/{location.path}"
        return HttpRequest(
            url, create_size_error, max_bytes, headers={"Accept": ", ".join(MANIFEST_TYPES)},
            other_forms=(location.oci_url, https_url), named_by=location.named_by,
            tls=self._credentials.find_tls(location.repository),
        )  # fmt: skip

    @contextmanager
    def _open(self, location: RegistryLocation, request: HttpRequest) -> Iterator[HttpStream]:
        """Yield the response to a request. If the registry requires authentication, authenticate first."""
        with self._http.open(self._authorizations.get(location).add_to(request)) as stream:
            # Ignore a challenge after a redirect, because the target of a redirect must not receive the credentials.
            challenge = stream.headers.get("www-authenticate", "") if stream.url == request.url else ""
            if stream.status != 401 or not challenge:
                yield stream
                return
        authorization = self._authorizations.request(location, challenge, request)
        with self._http.open(authorization.add_to(request)) as stream:
            yield stream


@dataclass(frozen=True)
class _Authorization:
    """The value of the header Authorization.

    Attributes:
        folder: The header is sent only to URLs in this folder. "" for all URLs of the origin.
    """

    value: str = field(default="", repr=False)
    folder: str = ""

    def add_to(self, request: HttpRequest) -> HttpRequest:
        """Return the request with this authorization."""
        return replace(request, authorization=self.value, authorization_folder=self.folder)


class _Authorizations:
    """A cache of Authorization headers for each pair of artifact and credentials. The cache is thread-safe."""

    def __init__(self, http: HttpClient, credentials: SourceCredentials) -> None:
        self._http = http
        self._credentials = credentials
        self._known: dict[_Key, tuple[_Authorization, float]] = {}
        self._lock = Lock()

    def get(self, location: RegistryLocation) -> _Authorization:
        """Return the last authorization of an artifact. If none is valid any more, return an empty authorization."""
        with self._lock:
            authorization, end = self._known.get(_get_key(location), (_Authorization(), 0.0))
        return authorization if monotonic() < end else _Authorization()

    def request(self, location: RegistryLocation, challenge: str, request: HttpRequest) -> _Authorization:
        """Return the authorization that a challenge requires. Raises SourceError."""
        scheme = _CHALLENGE.match(challenge[:_MAX_CHALLENGE_CHARACTERS])
        if scheme is None:
            raise _create_error(f"{location.oci_url} requires an authentication method other than Basic and Bearer")
        login = self._credentials.find_login(location.repository, request.url, location.named_by)
        seconds = _MAX_TOKEN_SECONDS
        if scheme[1].lower() == "bearer":
            token, seconds = self._request_token(location, challenge, login, request)
            authorization = _Authorization(token)
        elif login is None:
            raise SourceError(
                SourceCodes.SOURCE_UNAUTHORIZED.name,
                f"{location.oci_url} requires a user name and a password. Next step: set `secretRef` of the"
                " Repository, or the settings `sources.credentials_file` or `sources.docker_config`",
            )
        else:
            is_limited = login.is_shared and not location.repository.pass_credentials
            authorization = _Authorization(login.basic_authorization, location.api_url if is_limited else "")
        with self._lock:
            self._known[_get_key(location)] = (authorization, monotonic() + seconds)
        return authorization

    def _request_token(
        self, location: RegistryLocation, challenge: str, login: Login | None, request: HttpRequest
    ) -> tuple[str, float]:
        parameters = dict(_CHALLENGE_PARAMETER.findall(challenge[:_MAX_CHALLENGE_CHARACTERS]))
        realm = parameters.get("realm", "")
        query = {"scope": f"repository:{location.path}:pull"}
        if service := parameters.get("service"):
            query["service"] = service
        token_request = HttpRequest(
            realm, lambda: _create_error(f"the token for {location.oci_url} is too large"), _MAX_TOKEN_BYTES,
            tls=request.tls.without_certificate(), named_by=request.url,
        )  # fmt: skip
        if login and login.is_identity_token:
            form = {"grant_type": "refresh_token", "refresh_token": login.password.reveal(), "client_id": "reconciler"}
            token_request = replace(token_request, method="POST", body=urlencode({**query, **form}).encode())
        else:
            url = f"{realm}{'&' if '?' in realm else '?'}{urlencode(query)}"
            authorization = login.basic_authorization if login else ""
            token_request = replace(token_request, url=url, authorization=authorization)
        response = self._http.fetch(token_request)
        check_status(response, f"a token for {location.oci_url}")
        data = _parse_object(response.content, location)
        token = data.get("token") or data.get("access_token")
        if not isinstance(token, str) or not is_token(token):
            raise _create_error(f"the token service of {location.oci_url} returned no valid token")
        lifetime = data.get("expires_in")
        seconds = lifetime if isinstance(lifetime, int | float) else _DEFAULT_TOKEN_SECONDS
        # Limit the number first, because it can be NaN, or an integer that is too large for a floating point number.
        limited_seconds = max(0.0, min(seconds, _MAX_TOKEN_SECONDS))
        return f"Bearer {Secret(token).reveal()}", limited_seconds - _TOKEN_MARGIN_SECONDS


def _get_key(location: RegistryLocation) -> _Key:
    repository = location.repository
    return (
        location.api_url, location.named_by, repository.namespace, repository.secret_name, repository.pass_credentials
    )  # fmt: skip


def _find_next_page(response: HttpResponse, url: str) -> str:
    match = re.search(r"<([^<>]{1,4096})>\s*;\s*rel=\"?next", response.headers.get("link", ""))
    return join_url(url, match[1]) if match else ""


def _read_descriptors(response: HttpResponse, location: RegistryLocation) -> list[object]:
    descriptors = _parse_object(response.content, location).get("manifests")
    return descriptors if isinstance(descriptors, list) else []


def _parse_object(content: bytes, location: RegistryLocation) -> Mapping[str, Any]:
    data = parse_json_object(content)
    if data is None:
        raise _create_error(f"a response about {location.oci_url} is not a JSON object")
    return data


def _create_error(message: str) -> SourceError:
    return SourceError(SourceCodes.SOURCE_INVALID.name, message)
