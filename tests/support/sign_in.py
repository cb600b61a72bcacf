"""A browser of a person who signs in to the console, and settings with a provider."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests.support.console import ConsoleClient, Fields, use_authentication
from tests.support.oidc_provider import CLIENT, SECRET, OidcProvider

ROLES = [{"role": "admin", "groups": ["platform"]}, {"role": "viewer", "users": ["luis@example.com"]}]


def configure(console: ConsoleClient, folder: Path, provider: OidcProvider, **changes: Any) -> None:
    (folder / "secret").write_text(f"{SECRET}\n")
    oidc = {"issuer": provider.issuer, "client_id": CLIENT, "client_secret_file": str(folder / "secret")}
    group = {"auth": ["oidc"], "oidc": oidc, "roles": ROLES, "contact": "platform@example.com"}
    use_authentication(console, **group | changes)


class Browser:
    """A browser of one person. It stores cookies."""

    def __init__(self, console: ConsoleClient) -> None:
        self.console = console
        self.cookies: dict[str, str] = {}

    def _send(self, send: Callable[..., httpx.Response], *arguments: Any, **headers: str) -> httpx.Response:
        cookie = (
            {"cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())} if self.cookies else {}
        )
        response = send(*arguments, **{"accept": "text/html", **cookie, **headers})
        for line in response.headers.get_list("set-cookie"):
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies.pop(name, None)
            if value.strip('"'):
                self.cookies[name] = value
        return response

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self._send(self.console.get, path, **headers)

    def post(self, path: str, fields: Fields, **headers: str) -> httpx.Response:
        return self._send(self.console.post, path, fields, **headers)

    def start(self, return_to: str = "/") -> str:
        """Start to sign in, and return the URL of the provider."""
        response = self.get(f"/sign-in/start?return_to={return_to}")
        assert response.status_code == 303
        return response.headers["location"]

    def sign_in(self, provider: OidcProvider) -> httpx.Response:
        """Sign in, and return the response of the last step."""
        return self.get(provider.authorize(self.start()))

    @property
    def session(self) -> str:
        return self.cookies.get("__Host-session", "")
