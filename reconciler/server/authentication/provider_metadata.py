"""The metadata that an OpenID Connect provider publishes: the URLs of its endpoints."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from reconciler.lazy_dataclasses import dataclass
from reconciler.server.authentication.errors import ProviderUnavailableError
from reconciler.server.authentication.provider_client import ProviderClient, check_endpoint

_METADATA_SECONDS = 3_600


@dataclass(frozen=True)
class ProviderMetadata:
    """The endpoints of the provider. `userinfo_endpoint` is "" if there is none."""

    authorization_endpoint: str
    token_endpoint: str
    keys_url: str
    userinfo_endpoint: str
    accepts_basic_authentication: bool


class MetadataCache:
    """Caches the metadata of an OpenID Connect provider for one hour. The cache is thread-safe.

    Args:
        clock: Returns the seconds of a monotonic clock.
    """

    def __init__(self, issuer: str, client: ProviderClient, clock: Callable[[], float]) -> None:
        self._issuer = issuer
        self._client = client
        self._clock = clock
        self._lock = Lock()
        self._metadata: ProviderMetadata | None = None
        self._valid_until = 0.0

    def get(self) -> ProviderMetadata:
        """Return the metadata.

        Raises:
            ProviderUnavailableError: The provider publishes no valid metadata.
        """
        with self._lock:
            if self._metadata is None or self._clock() >= self._valid_until:
                self._metadata = self._fetch()
                self._valid_until = self._clock() + _METADATA_SECONDS
            return self._metadata

    def _fetch(self) -> ProviderMetadata:
        issuer = self._issuer
        data = self._client.get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if data.get("issuer") != issuer:
            raise ProviderUnavailableError(
                f'the issuer in the metadata of the provider must be "{issuer}", as in the setting console.oidc.issuer'
            )
        authorization, token, keys = (
            check_endpoint(data.get(name), name, issuer)
            for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")
        )
        userinfo = data.get("userinfo_endpoint")
        methods = data.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        return ProviderMetadata(
            authorization,
            token,
            keys,
            check_endpoint(userinfo, "userinfo_endpoint", issuer) if userinfo else "",
            accepts_basic_authentication=not isinstance(methods, list) or "client_secret_basic" in methods,
        )
