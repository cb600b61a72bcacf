"""An OpenID Connect provider on this machine, whose tokens and answers a test can falsify."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.support.http_servers import LocalServer

CLIENT = "console"
SECRET = "client secret/1"
ANA = {
    "sub": "f3c1", "name": "Ana Silva", "email": "ana@example.com", "email_verified": True, "groups": ["platform"],
}  # fmt: skip
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@cache
def create_rsa_key(name: str) -> rsa.RSAPrivateKey:
    """Return a key. It is the same for each call with this name."""
    return rsa.generate_private_key(65_537, 2_048)


@cache
def create_ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def build_jwk(key: Key, key_id: str) -> dict[str, Any]:
    """Return the public key as the provider publishes it."""
    is_curve = isinstance(key, ec.EllipticCurvePrivateKey)
    algorithm: Any = jwt.algorithms.ECAlgorithm if is_curve else jwt.algorithms.RSAAlgorithm
    return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": key_id, "use": "sig"}


@dataclass
class OidcProvider:
    """The data of the provider.

    Attributes:
        claims: The claims of the person who signs in.
        userinfo: The claims that only the userinfo endpoint has.
        change_token: Changes the claims of ID tokens.
        sign: Returns the ID token with these claims.
        keys: The published keys.
        answers: Answers that replace those of a path: the status and the body.
        requests: The paths of all requests.
        more_tokens: Fields that replace those of the answer with tokens.
        refresh_tokens: The valid refresh tokens. None if the provider issues none. Each token is valid once.
    """

    issuer: str
    claims: dict[str, Any] = field(default_factory=lambda: dict(ANA))
    userinfo: dict[str, Any] = field(default_factory=dict)
    change_token: Callable[[dict[str, Any]], dict[str, Any]] = lambda claims: claims
    sign: Callable[[dict[str, Any]], str] = lambda claims: sign_token(claims)
    keys: list[dict[str, Any]] = field(default_factory=lambda: [build_jwk(create_rsa_key("main"), "main")])
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    more_tokens: dict[str, Any] = field(default_factory=dict)
    refresh_tokens: set[str] | None = None
    _grants: dict[str, dict[str, str]] = field(default_factory=dict)

    def authorize(self, url: str) -> str:
        """Sign the person in at the authorization endpoint, and return the path to which the browser returns."""
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query, strict_parsing=True))
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{self.issuer}/authorize"
        assert (query["response_type"], query["client_id"], query["code_challenge_method"]) == ("code", CLIENT, "S256")
        code = secrets.token_urlsafe(16)
        self._grants[code] = query
        returned = urlsplit(query["redirect_uri"])
        return f"{returned.path}?{urlencode({'code': code, 'state': query['state'], 'iss': self.issuer})}"

    def answer(self, path: str, authorization: str, form: dict[str, str]) -> tuple[int, bytes]:
        """Return the status and the body of an answer."""
        self.requests.append(path)
        if path in self.answers:
            return self.answers[path]
        match path:
            case "/.well-known/openid-configuration":
                return 200, json.dumps(self.build_metadata()).encode()
            case "/keys":
                return 200, json.dumps({"keys": self.keys}).encode()
            case "/token":
                return self._redeem(authorization, form)
            case "/userinfo" if authorization == "Bearer access-1":
                return 200, json.dumps({"sub": self.claims["sub"], **self.userinfo}).encode()
        return 404, b""

    def build_metadata(self) -> dict[str, Any]:
        names = ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint")
        paths = ("/authorize", "/token", "/keys", "/userinfo")
        return {"issuer": self.issuer, **dict(zip(names, (self.issuer + path for path in paths), strict=True))}

    def _redeem(self, authorization: str, form: dict[str, str]) -> tuple[int, bytes]:
        user, _, password = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if (unquote_plus(user), unquote_plus(password)) != (CLIENT, SECRET):
            return 400, b'{"error": "invalid_client"}'
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] not in (self.refresh_tokens or ()):
                return 400, b'{"error": "invalid_grant"}'
            (self.refresh_tokens or set()).remove(form["refresh_token"])
            return self._issue_tokens({})
        grant = self._grants.pop(form["code"], None)
        digest = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        if not grant or grant["redirect_uri"] != form["redirect_uri"] or grant["code_challenge"] != digest:
            return 400, b'{"error": "invalid_grant"}'
        return self._issue_tokens({"nonce": grant["nonce"]})

    def _issue_tokens(self, more: dict[str, str]) -> tuple[int, bytes]:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, **more}
        answer = {
            "id_token": self.sign(self.change_token({**claims, **self.claims})),
            "access_token": "access-1", "token_type": "Bearer",
        }  # fmt: skip
        if self.refresh_tokens is not None:
            answer["refresh_token"] = secrets.token_urlsafe(16)
            self.refresh_tokens.add(answer["refresh_token"])
        return 200, json.dumps({**answer, **self.more_tokens}).encode()


def sign_token(claims: dict[str, Any], key: Key | None = None, algorithm: str = "RS256", key_id: str = "main") -> str:
    """Return an ID token."""
    return jwt.encode(claims, key or create_rsa_key("main"), algorithm, {"kid": key_id})


@contextmanager
def serve_provider() -> Iterator[OidcProvider]:
    """Serve a provider on a free port."""
    provider = OidcProvider("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            form = dict(parse_qsl(self.rfile.read(length).decode()))
            status, body = provider.answer(self.path, self.headers.get("authorization", ""), form)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if 300 <= status < 400:
                self.send_header("Location", "/keys")
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the name that the base class requires

        def log_message(self, *_arguments: object) -> None:
            """Write no log."""

    server = LocalServer(Handler)
    provider.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
