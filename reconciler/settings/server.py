"""Settings of the HTTP server of the service."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import field_validator, model_validator

from reconciler.server import address
from reconciler.settings.declaration import ListenAddress, SettingList, SettingsGroup, UrlWithoutCredentials, declare


class TlsSettings(SettingsGroup):
    """TLS of the HTTP server. Without these settings, the server does not use TLS."""

    cert_file: str = declare(
        "",
        "The file with the certificate chain of the server (PEM). The service reads the file again after a change.",
    )
    key_file: str = declare("", "The file with the private key of the certificate (PEM), without a password.")

    @model_validator(mode="after")
    def _check_both(self) -> TlsSettings:
        if bool(self.cert_file) != bool(self.key_file):
            raise ValueError("must contain both `cert_file` and `key_file`, or neither of them")
        return self


class ServerSettings(SettingsGroup):
    """The HTTP server of the service: health checks and webhooks."""

    listen: ListenAddress = declare(
        "127.0.0.1:8080",
        "The address on which the service listens, as host:port, for example 0.0.0.0:8080, or as the path of a Unix "
        "socket, for example unix:/run/reconciler/http.sock. Port 0 selects any free port. If this setting is empty, "
        "the service has no HTTP server. If this setting is not set and another process uses the default address, the "
        "service logs a warning and has no HTTP server.",
    )
    external_url: UrlWithoutCredentials = declare(
        "",
        "The URL of the service for its users, for example https://reconciler.example.com. Requests may use the host "
        "name of this URL. Notifications link to this URL.",
    )
    hosts: SettingList[str] = declare(
        (),
        "Host names without a port that requests may use, in addition to the names of `listen` and `external_url`. "
        "Other requests have the status 421. Health checks, metrics and webhooks may use any host name.",
    )
    trusted_proxies: SettingList[str] = declare(
        (),
        "The networks of reverse proxies, for example [10.0.0.0/8]. For requests from these networks, the headers "
        "X-Forwarded-For and X-Forwarded-Proto contain the client address and the scheme. A proxy that connects "
        "through a Unix socket (`listen`) is always trusted.",
    )

    tls: TlsSettings = TlsSettings()

    @model_validator(mode="after")
    def _check_tls(self) -> ServerSettings:
        if self.tls.cert_file and address.get_socket_path(self.listen):
            raise ValueError("must not contain `tls`, because `listen` is a Unix socket; the proxy terminates TLS")
        return self

    @field_validator("external_url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        parts = urlsplit(value)
        if value and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise ValueError("must be a URL that starts with http:// or https://")
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _check_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        # Import here, because only commands with these settings need the module.
        import ipaddress

        for network in value:
            try:
                ipaddress.ip_network(network)
            except ValueError:
                raise ValueError("must contain networks in CIDR notation, for example 10.0.0.0/8") from None
        return value
