"""Compresses responses, and adds entity tags (ETag), so that clients do not download an unchanged response again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request

from reconciler.krm.json_text import compute_digest

if TYPE_CHECKING:
    from reconciler.output.fleet.model import FleetIndex
    from reconciler.server.console.people import Session

# Do not compress responses below this size, because they fit into one network packet.
_MIN_BYTES = 1_024
# Higher compression levels take up to four times as long, and make pages at most 6 % smaller.
_LEVEL = 5
COMPRESSION = Middleware(GZipMiddleware, minimum_size=_MIN_BYTES, compresslevel=_LEVEL)


def build_entity_tag(request: Request, index: FleetIndex, session: Session, other: Sequence[object] = ()) -> str:
    """Return the tag of a response that depends only on the URL, the fleet index, the session and `other`."""
    digest = compute_digest([
        request.url.path, request.url.query, index.number, index.completed_at, repr(session), *other
    ])  # fmt: skip
    # The tag is weak, because compressed and uncompressed responses have the same tag.
    return f'W/"{digest[-32:]}"'


def has_entity_tag(request: Request, tag: str) -> bool:
    """Return whether the client already has the response with a tag."""
    known = request.headers.get("if-none-match", "").split(",")
    return tag.removeprefix("W/") in {text.strip().removeprefix("W/") for text in known}
