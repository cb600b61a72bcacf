"""How the console identifies people and programs, as the settings describe it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from reconciler.bootstrap.options import build_git_options, get_cache_file
from reconciler.credential_files import SecretFileError, read_secrets
from reconciler.review.people import Reviewer
from reconciler.review.permissions import Permissions
from reconciler.server.address import LOOPBACK_NAMES, get_socket_path
from reconciler.server.authentication.access_tokens import AccessToken, read_token_file
from reconciler.server.authentication.combined import CombinedAuthenticator
from reconciler.server.authentication.pending_sign_ins import PendingSignIns
from reconciler.server.authentication.proxy import ProxyAuthenticator, ProxyHeaders
from reconciler.server.authentication.reloaded_file import ReloadedFile
from reconciler.server.authentication.session_store import SessionStore, delete_session_file
from reconciler.server.authentication.sessions import Cookie, SessionAuthenticator
from reconciler.server.authentication.tokens import TokenAuthenticator
from reconciler.server.console.forms import CsrfTokens
from reconciler.server.console.people import Authenticator, LocalAuthenticator
from reconciler.server.console.sign_in import CALLBACK_PATH, SignIn
from reconciler.server.rate_limit import AddressRateLimit
from reconciler.server.request_origin import is_loopback
from reconciler.settings import SettingsError

if TYPE_CHECKING:
    from reconciler.server.authentication.session_file import SessionFile
    from reconciler.settings import Settings

_Content = TypeVar("_Content")
_SIGN_INS_PER_MINUTE = 60
# An administrator of the provider can end the sessions of all people at once.
_LOGOUTS_PER_MINUTE = 600


class SignInState:
    """The sessions of people, incomplete sign-ins, the number of sign-ins, and the tokens of forms.

    This state is independent of the settings, so that people stay signed in after a reload.

    Args:
        clock: Returns seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.csrf = CsrfTokens()
        self.sessions = SessionStore(clock)
        self.pending = PendingSignIns(clock)
        self.limit = AddressRateLimit(_SIGN_INS_PER_MINUTE, clock)
        self.logout_limit = AddressRateLimit(_LOGOUTS_PER_MINUTE, clock)
        self._is_restored = False

    def restore(self, file: SessionFile | None) -> None:
        """Continue the sessions that an earlier process stored in `file`. Later calls of this method have no effect."""
        if file and not self._is_restored and (saved := file.read()):
            self.csrf = CsrfTokens(bytes.fromhex(saved.form_key))
            self.sessions.restore(saved.sessions)
        self._is_restored = True

    def store_in(self, file: SessionFile | None) -> None:
        """Store the sessions in `file`. If `file` is None, the sessions end at a restart."""
        if file is None:
            self.sessions.write_with(None)
            return
        from reconciler.server.authentication.session_file import SavedSessions

        form_key = self.csrf.key.hex()
        self.sessions.write_with(lambda sessions: file.write(SavedSessions(form_key, sessions)))


def store_sessions(settings: Settings, state: SignInState, file: SessionFile | None) -> None:
    """Store the sessions of people in `file`, the result of `open_session_file`.

    If `file` is None, the settings contain no key. Then delete the existing session file, so that a later process with
    a key does not restore sessions that have ended meanwhile.
    """
    state.store_in(file)
    if file is None:
        delete_session_file(_get_session_path(settings))


def _get_session_path(settings: Settings) -> Path:
    return get_cache_file(settings, "sessions", ".encrypted")


def open_session_file(settings: Settings) -> SessionFile | None:
    """Return the encrypted file for sessions. Return None if the settings contain no key.

    Raises:
        SettingsError: The keys cannot be used.
    """
    key_file = settings.console.session.key_file
    if not key_file:
        return None
    try:
        from reconciler.server.authentication.session_file import SessionFile, read_session_keys
    except ImportError:
        raise SettingsError(
            "console.session.key_file: requires the Python extra `oidc`; install it with pip install 'reconciler[oidc]'"
        ) from None
    keys = _open_file("console.session.key_file", key_file, read_session_keys)
    return SessionFile(_get_session_path(settings), keys)


def build_authenticator(
    settings: Settings,
    find_permissions: Callable[[Reviewer], Permissions],
    state: SignInState,
) -> tuple[Authenticator, SignIn | None]:
    """Build the authenticator of the console, and the sign-in at a provider if the settings contain one.

    Args:
        find_permissions: Returns the permissions of a person who is signed in.

    Raises:
        SettingsError: The settings are not safe, or a file cannot be used.
    """
    modes = settings.console.auth
    if "none" in modes:
        return _build_local_authenticator(settings), None
    sign_in = _build_sign_in(settings, state) if "oidc" in modes else None
    others: list[Authenticator] = []
    if "proxy" in modes:
        others.append(_build_proxy_authenticator(settings, find_permissions))
    if sign_in:
        others.append(
            SessionAuthenticator(
                state.sessions, sign_in.session_cookie, sign_in.provider.issuer, find_permissions, sign_in.checks.check
            )
        )
    tokens = _build_token_authenticator(settings, state.clock) if "tokens" in modes else None
    return CombinedAuthenticator(tokens, tuple(others)), sign_in


def list_tokens(authenticator: Authenticator) -> tuple[AccessToken, ...]:
    """Return the access tokens that an authenticator accepts."""
    tokens = authenticator.tokens if isinstance(authenticator, CombinedAuthenticator) else None
    return tokens.list_tokens() if tokens else ()


def _build_local_authenticator(settings: Settings) -> Authenticator:
    if not is_loopback(settings.listen_address):
        raise SettingsError(
            "console.auth: the mode none has no authentication, so `server.listen` must be an address of this machine,"
            f' for example 127.0.0.1:8080, or a Unix socket, but is "{settings.listen_address}"; to use'
            " this address, set"
            " `console.auth` to other modes, for example [proxy, tokens]"
        )
    return LocalAuthenticator(Reviewer(*build_git_options(settings).author))


def _build_token_authenticator(settings: Settings, clock: Callable[[], float]) -> TokenAuthenticator:
    file = _open_file("console.token_file", settings.console.token_file, read_token_file)
    return TokenAuthenticator(file, clock)


def _build_proxy_authenticator(
    settings: Settings, find_permissions: Callable[[Reviewer], Permissions]
) -> Authenticator:
    if not (settings.server.trusted_proxies or get_socket_path(settings.listen_address)):
        raise SettingsError(
            "server.trusted_proxies: must contain the network of the proxy, for example [10.0.0.0/8], because"
            " `console.auth` contains `proxy`; or set `server.listen` to a Unix socket"
        )
    proxy = settings.console.proxy
    headers = ProxyHeaders(
        proxy.secret_header, proxy.user_header, proxy.name_header, proxy.email_header, proxy.groups_header
    )
    secrets = _open_file("console.proxy.secret_file", proxy.secret_file, read_secrets)
    return ProxyAuthenticator(headers, secrets, find_permissions)


def _build_sign_in(settings: Settings, state: SignInState) -> SignIn:
    try:
        # Import the library of the Python extra `oidc` now, so that a missing library is reported as an error of the
        # settings.
        from reconciler.server.authentication.oidc import OidcOptions, OidcProvider
        from reconciler.server.authentication.provider_client import ProviderClient
        from reconciler.server.authentication.session_checks import SessionChecks
    except ImportError:
        raise SettingsError(
            "console.auth: the mode oidc requires the Python extra `oidc`; install it with"
            " pip install 'reconciler[oidc]'"
        ) from None
    url = _check_external_url(settings)
    oidc, is_secure = settings.console.oidc, url.startswith("https://")
    options = OidcOptions(
        issuer=oidc.issuer,
        client_id=oidc.client_id,
        read_secret=_open_client_secret(oidc.client_secret_file),
        redirect_url=url.rstrip("/") + CALLBACK_PATH,
        scopes=oidc.scopes,
        name_claim=oidc.name_claim,
        email_claim=oidc.email_claim,
        groups_claim=oidc.groups_claim,
    )
    provider = OidcProvider(options, ProviderClient())
    return SignIn(
        provider,
        state.sessions,
        SessionChecks(state.sessions, provider),
        state.pending,
        Cookie("session", is_secure),
        Cookie("sign-in", is_secure),
        state.limit,
        state.logout_limit,
    )


def _check_external_url(settings: Settings) -> str:
    """Return the URL of the console. It must use TLS, unless only this machine can use the console."""
    url = settings.server.external_url
    parts = urlsplit(url)
    is_local = parts.hostname in LOOPBACK_NAMES and is_loopback(settings.listen_address)
    if parts.scheme == "https" or (url and is_local):
        return url
    raise SettingsError(
        "server.external_url: must be the https:// URL with which people open the console, because `console.auth`"
        f" contains `oidc`, but is {url!r}"
    )


def _open_client_secret(file: str) -> Callable[[], str | None]:
    if not file:
        return lambda: ""
    secrets = _open_file("console.oidc.client_secret_file", file, read_secrets)

    def read_secret() -> str | None:
        current = secrets.read()
        return current[0].decode(errors="replace") if current else None

    return read_secret


def _open_file(setting: str, file: str, parse: Callable[[Path], _Content]) -> ReloadedFile[_Content]:
    try:
        return ReloadedFile(Path(file).expanduser(), parse)
    except SecretFileError as error:
        raise SettingsError(f"{setting}: {error}") from None
