"""The page for an object that the fleet does not contain."""

from __future__ import annotations

from http import HTTPStatus

from reconciler.server.console.page import PageContent


def build_missing_page(kind: str, name: str) -> PageContent:
    """Build the page for an object of this kind, such as "target"."""
    return PageContent("missing.html", {"kind": kind, "name": name}, HTTPStatus.NOT_FOUND)
