"""The people who use the console, and how the server identifies them."""

from __future__ import annotations

from typing import Literal, Protocol

from starlette.requests import Request

from reconciler.lazy_dataclasses import dataclass

AuthenticationMode = Literal["none", "token", "proxy", "oidc"]


@dataclass(frozen=True)
class Person:
    """A person or program that sends a request.

    Attributes:
        subject: The stable ID of the person at the issuer.
        issuer: The service that identified the person. "" for local modes.
        mode: How the person was identified.
    """

    name: str
    email: str
    subject: str = ""
    issuer: str = ""
    groups: tuple[str, ...] = ()
    mode: AuthenticationMode = "none"

    @property
    def identity(self) -> tuple[str, str]:
        """The name and the mail address, as the author of a commit."""
        return self.name, self.email


class Authenticator(Protocol):
    """Identifies the person who sends a request."""

    def authenticate(self, request: Request) -> Person | None:
        """Return the person. Return None if the request must first sign in."""
        ...


@dataclass(frozen=True)
class LocalAuthenticator:
    """Treats every request as a request of one person. The server must listen only on this machine."""

    person: Person

    def authenticate(self, _request: Request) -> Person | None:
        """Return the person."""
        return self.person
