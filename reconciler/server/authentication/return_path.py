"""The page to which a person returns after signing in."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from starlette.requests import Request

FIRST_PAGE = "/"
_MAX_CHARACTERS = 2_000
# Browsers treat `\` like `/`, and remove control characters from URLs. Therefore, `/\host` and `/<tab>/host` are URLs
# of other hosts.
_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]*")
_SIGN_IN_PATHS = ("/sign-in", "/sign-out")


def get_return_path(request: Request) -> str:
    """Return the path and the query of a request. For a form, return those of the page that contains the form."""
    if request.method == "GET":
        path, query = request.scope["raw_path"].decode("latin-1"), request.url.query
    else:
        referrer = urlsplit(request.headers.get("referer", ""))
        is_own = referrer.netloc == request.headers.get("host")
        path, query = (referrer.path, referrer.query) if is_own else (FIRST_PAGE, "")
    return clean_return_path(path + (f"?{query}" if query else ""))


def clean_return_path(text: str) -> str:
    """Return the text if it is a path of this host. Otherwise, return the path of the first page."""
    is_path = len(text) <= _MAX_CHARACTERS and _PATH.fullmatch(text)
    if not is_path or urlsplit(text).path.startswith(_SIGN_IN_PATHS):
        return FIRST_PAGE
    return text
