"""How the console identifies people and programs, as the settings describe it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from reconciler.bootstrap.options import build_git_options
from reconciler.credential_files import SecretFileError, read_secrets
from reconciler.review.people import Reviewer
from reconciler.review.permissions import Permissions
from reconciler.server.authentication.access_tokens import read_token_file
from reconciler.server.authentication.combined import CombinedAuthenticator
from reconciler.server.authentication.proxy import ProxyAuthenticator, ProxyHeaders
from reconciler.server.authentication.reloaded_file import ReloadedFile
from reconciler.server.authentication.tokens import TokenAuthenticator
from reconciler.server.console.people import Authenticator, LocalAuthenticator
from reconciler.server.request_origin import is_loopback
from reconciler.settings import SettingsError

if TYPE_CHECKING:
    from reconciler.settings import Settings

_Content = TypeVar("_Content")


def build_authenticator(
    settings: Settings, find_permissions: Callable[[Reviewer], Permissions], clock: Callable[[], float]
) -> Authenticator:
    """Build the authenticator of the console.

    Args:
        find_permissions: Returns the permissions of a person who is signed in.
        clock: Returns seconds since 1970.

    Raises:
        SettingsError: The settings are not safe, or a file cannot be used.
    """
    modes = settings.console.auth
    if "none" in modes:
        return _build_local_authenticator(settings)
    return CombinedAuthenticator(
        _build_token_authenticator(settings, clock) if "tokens" in modes else None,
        (_build_proxy_authenticator(settings, find_permissions),) if "proxy" in modes else (),
    )


def _build_local_authenticator(settings: Settings) -> Authenticator:
    if not is_loopback(settings.listen_address):
        raise SettingsError(
            "console.auth: the mode none has no authentication, so `server.listen` must be an address of this machine,"
            f' for example 127.0.0.1:8080, not "{settings.listen_address}"; to use this address, set `console.auth` to'
            " other modes, for example [proxy, tokens]"
        )
    return LocalAuthenticator(Reviewer(*build_git_options(settings).author))


def _build_token_authenticator(settings: Settings, clock: Callable[[], float]) -> Authenticator:
    file = _open_file("console.token_file", settings.console.token_file, read_token_file)
    return TokenAuthenticator(file, clock)


def _build_proxy_authenticator(
    settings: Settings, find_permissions: Callable[[Reviewer], Permissions]
) -> Authenticator:
    if not settings.server.trusted_proxies:
        raise SettingsError(
            "server.trusted_proxies: must contain the network of the proxy, for example [10.0.0.0/8], because"
            " `console.auth` contains `proxy`"
        )
    proxy = settings.console.proxy
    headers = ProxyHeaders(
        proxy.secret_header, proxy.user_header, proxy.name_header, proxy.email_header, proxy.groups_header
    )
    secrets = _open_file("console.proxy.secret_file", proxy.secret_file, read_secrets)
    return ProxyAuthenticator(headers, secrets, find_permissions)


def _open_file(setting: str, file: str, parse: Callable[[Path], _Content]) -> ReloadedFile[_Content]:
    try:
        return ReloadedFile(Path(file).expanduser(), parse)
    except SecretFileError as error:
        raise SettingsError(f"{setting}: {error}") from None
