"""A chart repository and an OCI registry on 127.0.0.1, with switches for failures."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from threading import Event, Thread
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import pytest

from reconciler.packages.artifacts import ArtifactRepository
from tests.support.http_servers import LocalServer

CHART_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
FLUX_LAYER = "application/vnd.cncf.flux.content.v1.tar+gzip"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def compute_digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def describe_manifest(content: bytes) -> dict[str, Any]:
    """Return the descriptor of a manifest in an index."""
    manifest = json.loads(content)
    return {
        "mediaType": MANIFEST, "digest": compute_digest(content), "size": len(content),
        "artifactType": manifest.get("artifactType"), "annotations": manifest.get("annotations", {}),
    }  # fmt: skip


@dataclass
class Answer:
    """A response.

    `behavior` is one of: `hang` before the response, `stop` in the middle of the body, `drip` one byte of the body after
    another, and `drip_headers`. A response that hangs or drips ends when the server ends.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    behavior: Literal["", "hang", "stop", "drip", "drip_headers"] = ""


@dataclass(frozen=True)
class Received:
    """A request: its method, its path with the query, and its headers with lower-case names.

    `has_certificate` states whether the client has sent a certificate. `body` is the text of a form.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    has_certificate: bool = False
    body: str = ""


@dataclass
class ArtifactServer:
    """A server of files by path.

    Attributes:
        overrides: Answers for all paths that contain the key. They replace the normal answers.
        login: The user name and the password that all requests must contain.
    """

    port: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    overrides: dict[str, Answer] = field(default_factory=dict)
    requests: list[Received] = field(default_factory=list)
    login: tuple[str, str] | None = None
    ended: Event = field(default_factory=Event)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    @property
    def paths(self) -> list[str]:
        """Return method and path of all requests, and forget the requests."""
        paths = [f"{request.method} {request.path}" for request in self.requests]
        self.requests.clear()
        return paths

    def respond(self, request: Received) -> Answer:
        for part, answer in self.overrides.items():
            if part in request.path:
                return answer
        return self.respond_normally(request)

    def respond_normally(self, request: Received) -> Answer:
        if self.login and request.headers.get("authorization") != self.basic_authorization:
            return Answer(401, {"WWW-Authenticate": 'Basic realm="test"'})
        content = self.files.get(urlsplit(request.path).path)
        if content is None:
            return Answer(404)
        tag = f'"{hashlib.sha256(content).hexdigest()}"'
        if request.headers.get("if-none-match") == tag:
            return Answer(304, {"ETag": tag})
        return Answer(200, {"ETag": tag}, content)

    @property
    def basic_authorization(self) -> str:
        assert self.login
        return "Basic " + base64.b64encode(":".join(self.login).encode()).decode()

    def add_chart(self, name: str, version: str, archive: bytes, **fields: Any) -> None:
        """Add a chart to the index of the folder `/charts`. A field with the value None is left out."""
        path = f"{name}-{version}.tgz"
        self.files[f"/charts/{path}"] = archive
        digest = compute_digest(archive).removeprefix("sha256:")
        entry = {"name": name, "version": version, "digest": digest, "urls": [path], **fields}
        index = json.loads(self.files.get("/charts/index.yaml", b'{"entries": {}}'))
        versions = [old for old in index["entries"].get(name, []) if old["version"] != version]
        index["entries"][name] = [*versions, {key: value for key, value in entry.items() if value is not None}]
        self.files["/charts/index.yaml"] = json.dumps(index).encode()


@dataclass
class RegistryServer(ArtifactServer):
    """An OCI registry. `scheme` is the required authentication.

    Attributes:
        realm: The URL of the token service. "" for this server.
        identity_token: The identity token that the token service accepts. "" if it accepts none.
        sends_digest: Whether responses contain the header Docker-Content-Digest.
        page_size: The number of tags or referrers of one page.
        has_referrers: Whether the server has the API for referrers. A server without it answers with the status 404.
    """

    scheme: Literal["", "basic", "bearer"] = ""
    realm: str = ""
    identity_token: str = ""
    sends_digest: bool = True
    page_size: int = 100
    has_referrers: bool = True
    manifests: dict[tuple[str, str], bytes] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)

    def push(
        self,
        name: str,
        tag: str,
        archive: bytes,
        media_type: str = FLUX_LAYER,
        annotations: Mapping[str, str] | None = None,
    ) -> str:
        """Push an artifact with one layer, and return the digest of its manifest."""
        layer = {"mediaType": media_type, "digest": compute_digest(archive), "size": len(archive)}
        self.blobs[layer["digest"]] = archive  # type: ignore[index]
        return self.push_manifest(
            name, tag, {"mediaType": MANIFEST, "layers": [layer], "annotations": annotations or {}}
        )

    def push_manifest(self, name: str, tag: str, manifest: object) -> str:
        content = json.dumps({"schemaVersion": 2, **manifest} if isinstance(manifest, dict) else manifest).encode()
        digest = compute_digest(content)
        self.manifests[name, tag] = self.manifests[name, digest] = content
        return digest

    def respond_normally(self, request: Received) -> Answer:
        parts = urlsplit(request.path)
        if parts.path == "/token":
            return self._issue_token(request, parse_qs(parts.query))
        if self.scheme and request.headers.get("authorization") != self._get_required_authorization():
            return Answer(401, {"WWW-Authenticate": self._get_challenge()})
        name, _, rest = parts.path.removeprefix("/v2/").rpartition("/")
        name, _, kind = name.rpartition("/")
        match kind:
            case "referrers":
                return self._list_referrers(name, rest, parse_qs(parts.query))
            case "tags":
                return self._list_tags(name, parse_qs(parts.query))
            case "manifests":
                content = self.manifests.get((name, rest))
            case _:
                content = self.blobs.get(rest)
        if content is None:
            return Answer(404, {}, b'{"errors": [{"code": "NAME_UNKNOWN"}]}')
        headers = {"Docker-Content-Digest": compute_digest(content)} if self.sends_digest else {}
        return Answer(200, headers, content)

    def _list_tags(self, name: str, query: Mapping[str, list[str]]) -> Answer:
        tags = sorted(tag for known, tag in self.manifests if known == name and not tag.startswith("sha256:"))
        start = query.get("last", [""])[0]
        page = [tag for tag in tags if tag > start][: self.page_size]
        more = bool(page) and page[-1] != tags[-1]
        link = {"Link": f'</v2/{name}/tags/list?last={page[-1]}>; rel="next"'} if more else {}
        return Answer(200, link, json.dumps({"name": name, "tags": page}).encode()) if tags else Answer(404)

    def _list_referrers(self, name: str, digest: str, query: Mapping[str, list[str]]) -> Answer:
        if not self.has_referrers:
            return Answer(404, {}, b"404 page not found")
        found = []
        for (known, tag), content in self.manifests.items():
            manifest = json.loads(content)
            if known == name and tag.startswith("sha256:") and manifest.get("subject", {}).get("digest") == digest:
                found.append(describe_manifest(content))
        start = int(query.get("start", ["0"])[0])
        end = start + self.page_size
        next_page = f'</v2/{name}/referrers/{digest}?start={end}>; rel="next"'
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": found[start:end]}
        return Answer(200, {"Link": next_page} if end < len(found) else {}, json.dumps(index).encode())

    def _get_required_authorization(self) -> str:
        return self.basic_authorization if self.scheme == "basic" else "Bearer registry-token-value"

    def _get_challenge(self) -> str:
        if self.scheme == "basic":
            return 'Basic realm="test"'
        return f'Bearer realm="{self.realm or self.url}/token",service="registry.test",scope="x"'

    def _issue_token(self, request: Received, query: Mapping[str, list[str]]) -> Answer:
        if request.method == "POST":
            return self._exchange_token(parse_qs(request.body))
        if self.login and request.headers.get("authorization") != self.basic_authorization:
            return Answer(401)
        assert query["service"] == ["registry.test"]
        return Answer(200, {}, b'{"token": "registry-token-value", "expires_in": 300}')

    def _exchange_token(self, form: Mapping[str, list[str]]) -> Answer:
        required = {
            "grant_type": ["refresh_token"],
            "refresh_token": [self.identity_token],
            "service": ["registry.test"],
        }
        if (
            not self.identity_token
            or not required.items() <= form.items()
            or not form["scope"]
            or not form["client_id"]
        ):
            return Answer(401)
        return Answer(200, {}, b'{"access_token": "registry-token-value", "expires_in": 300}')


@contextmanager
def serve(server: ArtifactServer, tls: ssl.SSLContext | None = None) -> Iterator[ArtifactServer]:
    """Run a server on a free port until the context ends, with TLS if there is a context."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            has_certificate = isinstance(self.connection, ssl.SSLSocket) and bool(self.connection.getpeercert())
            body = self.rfile.read(int(headers.get("content-length", 0))).decode()
            request = Received(self.command, self.path, headers, has_certificate, body)
            server.requests.append(request)
            # A client can close the connection at any time.
            with suppress(BrokenPipeError, ConnectionResetError):
                self.send(server.respond(request))

        do_HEAD = do_POST = do_GET  # noqa: N815  names of the base class

        def send(self, answer: Answer) -> None:
            if answer.behavior == "hang":
                server.ended.wait()
                return
            if answer.behavior == "drip_headers":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Drip: ")
                self.drip(b"x" * 100_000)
                return
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "HEAD":
                return
            if answer.behavior == "drip":
                self.drip(answer.body)
            elif answer.behavior == "stop":
                self.wfile.write(answer.body[: len(answer.body) // 2])
                self.close_connection = True
            else:
                self.wfile.write(answer.body)

        def drip(self, content: bytes) -> None:
            for byte in content:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                if server.ended.wait(0.02):
                    return

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002  name of the base class
            """Log nothing."""

    http = LocalServer(Handler)
    http.daemon_threads = True
    server.port = http.server_port
    if tls:
        http.socket = tls.wrap_socket(http.socket, server_side=True)
    thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        http.shutdown()
        thread.join()
        http.server_close()


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    """Run a registry without authentication."""
    server = RegistryServer()
    with serve(server):
        yield server


def helm_repository(server: ArtifactServer, **fields: object) -> ArtifactRepository:
    """Return a Repository for the folder `/charts` of a server."""
    values = {"namespace": "default", "name": "charts", "type": "helm", "url": f"{server.url}/charts", **fields}
    return ArtifactRepository(**values)  # type: ignore[arg-type]


def oci_repository(server: ArtifactServer, **fields: object) -> ArtifactRepository:
    """Return a Repository for the path `team` of a registry."""
    values = {"namespace": "default", "name": "oci", "type": "oci", "url": f"oci://{server.host}/team", **fields}
    return ArtifactRepository(**{"insecure": True, **values})  # type: ignore[arg-type]
