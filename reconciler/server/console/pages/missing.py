"""The pages for an object that the fleet does not contain, and for an action that is not possible."""

from __future__ import annotations

from http import HTTPStatus

from reconciler.server.console.page import PageContent


def build_missing_page(kind: str, name: str) -> PageContent:
    """Build the page for a missing object of this kind, such as "target"."""
    return PageContent("missing.html", {"kind": kind, "name": name}, HTTPStatus.NOT_FOUND)


def build_forgotten_page(kind: str, name: str) -> PageContent:
    """Build the page for a job or a search that does not exist any more, or that the person may not read."""
    message = f"The {kind} does not exist any more, or you may not read it."
    return build_refusal_page(f"There is no {kind} {name}", message, HTTPStatus.NOT_FOUND)


def build_refusal_page(title: str, message: str, status: HTTPStatus = HTTPStatus.CONFLICT) -> PageContent:
    """Build the page for an action that is not possible."""
    return PageContent("review_error.html", {"title": title, "message": message}, status)


def build_unreadable_page(message: str) -> PageContent:
    """Build the page for a person who may not read the requested page. The message states the necessary role."""
    return build_refusal_page("You cannot read this page", message, HTTPStatus.FORBIDDEN)
