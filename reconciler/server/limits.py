"""The limits of the HTTP server."""

from __future__ import annotations

from reconciler.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class ServerLimits:
    """Limits of size, time and connections.

    Attributes:
        header_bytes: The size of the request line and headers.
        body_bytes: The size of a request body.
        webhook_body_bytes: The size of the body of a webhook.
        header_seconds: The time from the start of a connection, or from the end of the last response, to the end of the
            headers. After the server has written a whole response, the client must read it within the same time.
        body_seconds: The time from the end of the headers to the end of the body.
        idle_seconds: The time that a connection without a request stays open after a response.
        connections: The number of open connections.
        requests: The number of requests that are processed at the same time.
        webhooks_per_minute: The number of webhooks per minute and client address, including refused webhooks.
        api_requests_per_minute: The number of requests to the API per minute, for each person or program.
        stop_seconds: The time for open requests after the server stops.
    """

    header_bytes: int = 16 * 1024
    body_bytes: int = 64 * 1024
    webhook_body_bytes: int = 25 * 1024 * 1024
    header_seconds: float = 10.0
    body_seconds: float = 15.0
    idle_seconds: float = 5.0
    connections: int = 256
    requests: int = 64
    webhooks_per_minute: int = 120
    api_requests_per_minute: int = 600
    stop_seconds: int = 3
