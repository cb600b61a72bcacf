"""The HTTP client of chart repositories and registries. In `sources`, only this module and `connections` import httpx.

The client follows redirects itself: it checks each URL, and it sends credentials only to the origin of the first URL.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from io import BytesIO
from threading import Lock
from urllib.parse import urlsplit

import httpx

from reconciler import __version__
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.packages.artifacts import UPSTREAM_NOT_FOUND, SourceProblem
from reconciler.packages.source_codes import SourceCodes
from reconciler.processes.backoff import CallBackoff, RecordedFailures
from reconciler.redaction import redact, redact_url
from reconciler.retry_after import read_retry_after
from reconciler.sources.addresses import AddressPolicy, has_same_origin, is_below, is_loopback
from reconciler.sources.connections import CheckedTransport
from reconciler.sources.errors import SourceError
from reconciler.telemetry import metrics
from reconciler.telemetry.traces import span

_MAX_REDIRECTS = 5
# The client errors after which a request can succeed later: Request Timeout, Too Early and Too Many Requests.
_TEMPORARY_STATUSES = frozenset({408, 425, 429})
_CONNECT_SECONDS = 10.0
_READ_SECONDS = 30.0
# Limit the header Retry-After, because a host must not stop the updates of its packages for days.
_MAX_RETRY_SECONDS = 3600.0
_CHUNK_BYTES = 64 * 1024
_MAX_ERROR_CHARACTERS = 200


@dataclass(frozen=True)
class TlsFiles:
    """Certificates of a connection. Each attribute is the path of a file, or "".

    Attributes:
        authority: Certificates of authorities that are trusted in addition to those of the system.
        certificate: The certificate of the client.
        key: The private key of the client.
        version: A text that changes when a file changes.
    """

    authority: str = ""
    certificate: str = ""
    key: str = ""
    version: str = ""

    def without_certificate(self) -> TlsFiles:
        """Return the files without the certificate and the private key of the client."""
        return TlsFiles(self.authority, version=self.version) if self.authority else TlsFiles()

    def replaces(self, other: TlsFiles) -> bool:
        """Return whether both objects have the same file names, but different contents of the files."""
        return self != other and replace(self, version=other.version) == other


@dataclass(frozen=True)
class HttpRequest:
    """A request.

    Attributes:
        body: The body, in the format of HTML forms. It is not sent to the targets of redirects.
        other_forms: Other spellings of the URL for the list of allowed URLs.
        named_by: The URL of the server whose response contains this URL. "" for a URL from the config.
        authorization: The value of the header Authorization. It is not sent to a redirect target with a different
            origin.
        authorization_folder: The folder of the URLs to which the header is sent. "" for the whole origin.
        max_bytes: The size limit of the response body.
        create_size_error: Returns the error for a larger response body.
    """

    url: str
    create_size_error: Callable[[], SourceError]
    max_bytes: int
    method: str = "GET"
    body: bytes = field(default=b"", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    other_forms: tuple[str, ...] = ()
    named_by: str = ""
    authorization: str = field(default="", repr=False)
    authorization_folder: str = ""
    tls: TlsFiles = field(default_factory=TlsFiles)


@dataclass(frozen=True)
class HttpStream:
    """A response whose body is not read yet. `url` is the URL after all redirects."""

    status: int
    headers: Mapping[str, str]
    url: str
    chunks: Iterator[bytes]


@dataclass(frozen=True)
class HttpResponse:
    """A response with its body. The keys of `headers` can have any case."""

    status: int
    headers: Mapping[str, str]
    url: str
    content: bytes


class HttpClient:
    """Sends requests to chart repositories and registries. The object is thread-safe.

    The callers limit the time of requests with `limit_duration`.

    Args:
        proxy: The URL of an HTTP proxy for all hosts except loopback addresses. "" for no proxy.
        is_offline: Whether all requests are errors.
    """

    def __init__(self, policy: AddressPolicy, backoff: CallBackoff, proxy: str, *, is_offline: bool) -> None:
        self._proxy = proxy
        self._is_offline = is_offline
        self._policy = policy
        self._clients: dict[tuple[TlsFiles, str], httpx.Client] = {}
        self._failures: RecordedFailures[SourceProblem] = RecordedFailures(backoff)
        self._lock = Lock()

    def close(self) -> None:
        """Close all connections. The next request opens new connections."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def fetch(self, request: HttpRequest) -> HttpResponse:
        """Return the response to a request. Raises SourceError."""
        with self.open(request) as stream:
            content = BytesIO()
            content.writelines(stream.chunks)
            return HttpResponse(stream.status, stream.headers, stream.url, content.getvalue())

    @contextmanager
    def open(self, request: HttpRequest) -> Iterator[HttpStream]:
        """Yield the response to a request.

        Raises:
            SourceError: `SourceUnreachable` if there is no response, or the host has an error or limits the number of
                requests. `SourceAddressRefused` if a URL is not allowed. `NotInCache` if the client is offline.
        """
        if self._is_offline:
            raise SourceError(
                SourceCodes.NOT_IN_CACHE.name,
                f"the content of {redact_url(request.url)} is not in the cache. Next step: leave out --offline",
            )
        url, forms, named_by, authorization = request.url, request.other_forms, request.named_by, request.authorization
        for _ in range(_MAX_REDIRECTS + 1):
            self._check(url, forms, named_by)
            with self._send(request, url, authorization) as response:
                target = _find_redirect(response)
                if target is None:
                    yield HttpStream(response.status_code, response.headers, url, _read(request, response))
                    return
            folder = request.authorization_folder
            if not has_same_origin(request.url, target) or (folder and not is_below(target, folder)):
                authorization = ""
            url, forms, named_by = target, (), request.url
        raise SourceError(
            SourceCodes.SOURCE_INVALID.name, f"{redact_url(request.url)} has more than {_MAX_REDIRECTS} redirects"
        )

    def _check(self, url: str, forms: tuple[str, ...], named_by: str) -> None:
        self._policy.check_url(url, *forms)
        try:
            host = httpx.URL(url).raw_host.decode()
        except httpx.InvalidURL:
            host = ""
        # The address policy and the connection use different URL parsers. Refuse a URL in which they find different
        # hosts.
        if host != urlsplit(url).hostname:
            raise SourceError(SourceCodes.SOURCE_ADDRESS_REFUSED.name, f"the URL {redact_url(url)!r} is malformed")
        # Do not let a server start requests to services of this machine.
        if named_by and is_loopback(host) and not is_loopback(urlsplit(named_by).hostname or ""):
            raise SourceError(
                SourceCodes.SOURCE_ADDRESS_REFUSED.name,
                f"{redact_url(named_by)} must not name {redact_url(url)!r}, which is an address of this machine",
            )

    @contextmanager
    def _send(self, request: HttpRequest, url: str, authorization: str) -> Iterator[httpx.Response]:
        host = httpx.URL(url).netloc.decode()
        if problem := self._failures.find(host):
            raise SourceError.from_problem(problem)
        headers = {"User-Agent": f"reconciler/{__version__}", "Accept-Encoding": "identity", **request.headers}
        if authorization:
            headers["Authorization"] = authorization
        # Do not send the body to the target of a redirect, because the body can contain a credential too.
        body = request.body if url == request.url else b""
        if body:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        # Do not send the certificate of the client to other hosts, because it is a credential too.
        tls = request.tls if has_same_origin(request.url, url) else request.tls.without_certificate()
        try:
            with (
                _record_request(request.method, url) as record_status,
                self._get_client(tls, url).stream(
                    request.method, url, headers=headers, content=body or None
                ) as response,
            ):
                record_status(response.status_code)
                if response.status_code in _TEMPORARY_STATUSES or response.status_code >= 500:
                    message = f"returned the HTTP status {response.status_code}"
                    raise self._record_failure(host, _create_unreachable_error(host, message), _read_wait(response))
                yield response
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            # InvalidURL and UnicodeError are raised for an invalid URL of a redirect, or for an invalid host name. Do
            # not chain the original exception, because it can contain the URL with a signature.
            message = f"cannot be reached ({_describe(error)})"
            raise self._record_failure(host, _create_unreachable_error(host, message)) from None
        self._failures.remove(host)

    def _record_failure(self, host: str, error: SourceError, min_seconds: float = 0.0) -> SourceError:
        """Record an error of a host, and return it.

        Until the wait time of the host has ended, each request to this host raises the same error.
        """
        self._failures.add(host, error.problem, min_seconds)
        return error

    def _get_client(self, tls: TlsFiles, url: str) -> httpx.Client:
        proxy = "" if is_loopback(httpx.URL(url).host) else self._proxy
        with self._lock:
            client = self._clients.get((tls, proxy))
            if client is None:
                timeout = httpx.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS)
                transport = CheckedTransport(_create_tls_context(tls), proxy)
                # Store no cookies: they can be credentials, and Repositories with different credentials use the same
                # client.
                cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
                client = httpx.Client(transport=transport, timeout=timeout, trust_env=False, cookies=cookies)
                # Remove the clients with earlier contents of the same certificate files. Do not close these clients,
                # because other threads may still use them.
                self._clients = {key: other for key, other in self._clients.items() if not tls.replaces(key[0])}
                self._clients[tls, proxy] = client
            return client


@contextmanager
def _record_request(method: str, url: str) -> Iterator[Callable[[int], None]]:
    """Record one HTTP request in the metrics and in the trace.

    Yield a function. The caller passes the status code of the response to this function.
    """
    parsed = httpx.URL(url)
    status_class = "error"
    attributes = {"http.request.method": method, "server.address": parsed.host, "url.path": parsed.path}
    with span(f"{method} {parsed.host}", attributes) as opened:

        def record_status(status: int) -> None:
            nonlocal status_class
            status_class = f"{status // 100}xx"
            if opened is not None:
                opened.set_attribute("http.response.status_code", status)

        try:
            yield record_status
        except httpx.HTTPError:
            status_class = "error"
            raise
        finally:
            metrics.SOURCE_REQUESTS.add(parsed.host, status_class)


@lru_cache(maxsize=16)
def _create_tls_context(tls: TlsFiles) -> ssl.SSLContext:
    context = ssl.create_default_context()
    try:
        if tls.authority:
            context.load_verify_locations(tls.authority)
        if tls.certificate:
            context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(filter(None, (tls.authority, tls.certificate, tls.key)))
        raise SourceError(
            SourceCodes.SOURCE_UNAUTHORIZED.name, f"the certificates {files} cannot be used: {error.strerror or error}"
        ) from None
    return context


def _find_redirect(response: httpx.Response) -> str | None:
    # httpx sets `next_request` for a redirect even if httpx does not follow redirects.
    return str(response.next_request.url) if response.next_request else None


def _read(request: HttpRequest, response: httpx.Response) -> Iterator[bytes]:
    size = 0
    # Do not decompress the body, because a small compressed body can become very large.
    for chunk in response.iter_raw(_CHUNK_BYTES):
        size += len(chunk)
        if size > request.max_bytes:
            raise request.create_size_error()
        yield chunk


def _read_wait(response: httpx.Response) -> float:
    return min(read_retry_after(response.headers.get("Retry-After", ""), time.time()) or 0.0, _MAX_RETRY_SECONDS)


def _create_unreachable_error(host: str, problem: str) -> SourceError:
    return SourceError(SourceCodes.SOURCE_UNREACHABLE.name, f"{host} {problem}", should_retry=True)


def _describe(error: Exception) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "it took too long to respond"
    text = " ".join(redact(str(error)).split())[:_MAX_ERROR_CHARACTERS]
    return text or type(error).__name__


def check_status(response: HttpResponse | HttpStream, subject: str) -> None:
    """Check that a request was successful. `subject` describes the requested content.

    Raises:
        SourceError: `SourceUnauthorized` for the HTTP statuses 401 and 403, `UpstreamNotFound` for 404 and 410, and
            `SourceInvalid` for any other error.
    """
    if response.status == 200:
        return
    host = httpx.URL(response.url).netloc.decode()
    match response.status:
        case 401 | 403:
            raise SourceError(
                SourceCodes.SOURCE_UNAUTHORIZED.name,
                f"{host} refuses access to {subject} with the HTTP status {response.status}. Next step: check"
                " `secretRef` of the Repository, or the settings `sources.credentials_file` and"
                " `sources.docker_config`",
            )
        case 404 | 410:
            raise SourceError(UPSTREAM_NOT_FOUND, f"{host} does not contain {subject}")
        case _:
            raise SourceError(
                SourceCodes.SOURCE_INVALID.name,
                f"{host} answered the request for {subject} with the HTTP status {response.status}",
            )
