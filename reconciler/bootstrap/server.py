"""The HTTP server of the service, as the settings describe it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.credential_files import SecretFileError, read_secrets
from reconciler.server.address import LOOPBACK_NAMES, ListenError
from reconciler.server.api.routes import create_api_routes
from reconciler.server.application import create_app
from reconciler.server.console.routes import create_console_routes
from reconciler.server.deliveries import SecretFile, WebhookDeliveries
from reconciler.server.health_routes import create_health_routes
from reconciler.server.http_server import HttpServer
from reconciler.server.limits import ServerLimits
from reconciler.server.metrics_route import MetricsAccess, create_metrics_route
from reconciler.server.rate_limit import AddressRateLimit, RateLimit
from reconciler.server.request_origin import OriginRules, build_origin_rules
from reconciler.server.socket_activation import take_activated_socket
from reconciler.server.tls import CertificateError
from reconciler.server.webhook_route import create_webhook_route
from reconciler.service.state import ServiceState
from reconciler.settings import Settings, SettingsError
from reconciler.telemetry.event_log import log

if TYPE_CHECKING:
    from reconciler.server.console.context import ConsoleContext


class ServiceServer:
    """The HTTP server with all its routes. A `with` block closes the server at the end of the block.

    Args:
        notify: Handles an accepted webhook, in a thread of the server.

    Raises:
        SettingsError: systemd passes a socket that the server cannot use.
    """

    def __init__(self, state: ServiceState, notify: Callable[[], None], limits: ServerLimits | None = None) -> None:
        limits = limits or ServerLimits()
        self._deliveries = WebhookDeliveries(notify)
        self._metrics_access = MetricsAccess()
        self._origin_rules = OriginRules()
        self._state = state
        self._console: ConsoleContext | None = None
        webhook_limit = AddressRateLimit(limits.webhooks_per_minute)
        routes = [
            *create_health_routes(state, lambda: self._origin_rules),
            create_metrics_route(self._metrics_access),
            create_webhook_route(self._deliveries, webhook_limit),
            *create_api_routes(lambda: self._console, RateLimit(limits.api_requests_per_minute)),
            *create_console_routes(lambda: self._console),
        ]
        app = create_app(routes, limits, lambda: self._origin_rules)
        try:
            self._http_server = HttpServer(app, limits, take_activated_socket(os.environ))
        except ListenError as error:
            raise SettingsError(str(error)) from error

    def apply(self, settings: Settings, console: ConsoleContext | None = None) -> None:
        """Start the server, move it to a different address, or stop it, as the settings require.

        Args:
            console: The data of the console. If it is None, the console is disabled.

        Raises:
            SettingsError: The address or the secret file cannot be used. The server is not changed.
        """
        if console and "none" in settings.console.auth:
            self._check_activated_socket()
        secret_file = _open_secret_file(settings.webhooks.secret_file)
        token_file = _check_token_file(settings.metrics.token_file)
        tls = settings.server.tls
        files = (Path(tls.cert_file).expanduser(), Path(tls.key_file).expanduser()) if tls.cert_file else None
        try:
            self._http_server.listen(settings.listen_address, files)
        except CertificateError as error:
            raise SettingsError(f"server.tls: {error}") from error
        except ListenError as error:
            if settings.listen_setting or self._http_server.has_activated_socket:
                raise SettingsError(f"{settings.listen_setting or 'server.listen'}: {error}") from error
            # Only log a warning, because this is the default address. Another service with default settings may use
            # the same address on this machine.
            log.warning("server_not_started", message=f"server.listen: {error}")
        options = settings.server
        self._origin_rules = build_origin_rules(
            settings.listen_address, options.hosts, options.external_url, options.trusted_proxies
        )
        self._deliveries.secrets = secret_file.secrets if secret_file else None
        self._state.find_secrets_failure = secret_file.find_failure if secret_file else lambda: None
        self._metrics_access.token_file = token_file
        self._console = console

    def _check_activated_socket(self) -> None:
        """Raise SettingsError if the socket from systemd accepts connections from other machines.

        Call this method only if the console has no authentication.
        """
        address = self._http_server.activated_host
        if address and address not in LOOPBACK_NAMES:
            raise SettingsError(
                "console.auth: the mode none has no authentication, so the socket unit must listen on an address of"
                f' this machine, for example ListenStream=127.0.0.1:8080, but is "{address}"'
            )

    @property
    def port(self) -> int:
        """The port on which the server listens. It is 0 if the server does not listen."""
        return self._http_server.port

    def __enter__(self) -> ServiceServer:
        return self

    def __exit__(self, *_: object) -> None:
        # Remove the console, which ends its event streams. Otherwise, the server would wait for these streams.
        self._console = None
        self._http_server.close()


def _open_secret_file(file: str) -> SecretFile | None:
    try:
        return SecretFile(Path(file).expanduser()) if file else None
    except SecretFileError as error:
        raise SettingsError(f"webhooks.secret_file: {error}") from None


def _check_token_file(file: str) -> Path | None:
    if not file:
        return None
    path = Path(file).expanduser()
    try:
        read_secrets(path)
    except SecretFileError as error:
        raise SettingsError(f"metrics.token_file: {error}") from None
    return path
