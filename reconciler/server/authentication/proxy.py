"""The identification of people by the headers of a trusted reverse proxy."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request

from reconciler.lazy_dataclasses import dataclass
from reconciler.review.people import Reviewer
from reconciler.review.permissions import Permissions
from reconciler.server.authentication.reloaded_file import ReloadedFile
from reconciler.server.console.people import Session
from reconciler.server.request_origin import is_from_trusted_proxy
from reconciler.server.shared_secrets import is_accepted

ISSUER = "proxy"


@dataclass(frozen=True)
class ProxyHeaders:
    """The names of the headers.

    Attributes:
        secret: The header with the secret that the proxy shares with the service.
        groups: The header with the names of groups, separated by commas.
    """

    secret: str
    user: str
    name: str
    email: str
    groups: str


class ProxyAuthenticator:
    """Identifies people by the headers of a trusted proxy. Requests without an accepted secret are not authenticated.

    Args:
        secrets: The accepted secrets.
        find_permissions: Returns the permissions of a person.
    """

    def __init__(
        self,
        headers: ProxyHeaders,
        secrets: ReloadedFile[tuple[bytes, ...]],
        find_permissions: Callable[[Reviewer], Permissions],
    ) -> None:
        self._headers = headers
        self._secrets = secrets
        self._find_permissions = find_permissions

    def authenticate(self, request: Request, *, extends_session: bool = True) -> Session | None:
        """Return the session of the person. Return None if the request has no valid headers of a trusted proxy."""
        if not (is_from_trusted_proxy(request.scope) and self._has_secret(request)):
            return None
        names = self._headers
        fields = [_read_single(request, name) for name in (names.user, names.name, names.email, names.groups)]
        if None in fields:
            return None
        user, name, email, groups = (field or "" for field in fields)
        if not user:
            return None
        members = frozenset(group.strip() for group in groups.split(",") if group.strip())
        person = Reviewer(name or user, email, user, ISSUER, members)
        # Use the same ID for all requests of the person, because the proxy manages the session.
        return Session(person, self._find_permissions(person), f"{ISSUER}:{user}", "proxy")

    def _has_secret(self, request: Request) -> bool:
        return is_accepted(_read_single(request, self._headers.secret) or "", self._secrets.read() or ())


def _read_single(request: Request, name: str) -> str | None:
    """Return the value of a header, or "" if it is absent. Return None if it is repeated.

    A header is repeated if a proxy adds it without removing the header that the client sent.
    """
    values = request.headers.getlist(name)
    if len(values) > 1:
        return None
    # Starlette decodes headers as Latin-1, but proxies send names in UTF-8.
    return values[0].encode("latin-1").decode("utf-8", "replace").strip() if values else ""
