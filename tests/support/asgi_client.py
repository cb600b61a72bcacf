"""Requests to an application of the HTTP server, without a socket."""

from __future__ import annotations

import asyncio

import httpx
from starlette.types import ASGIApp


def request(
    app: ASGIApp, path: str, method: str = "GET", client: str = "127.0.0.1", content: bytes = b"", **headers: str
) -> httpx.Response:
    """Return the response of the application. `_` in the names of headers means `-`. Values are encoded as UTF-8."""

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=(client, 5))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            fields = {name.replace("_", "-"): text.encode() for name, text in headers.items()}
            return await http.request(method, path, headers=fields, content=content)

    return asyncio.run(send())
