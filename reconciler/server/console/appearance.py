"""The theme and the colors of the pages. The browser stores the choice of a person in a cookie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request

from reconciler.lazy_dataclasses import dataclass
from reconciler.server.authentication.return_path import get_return_path
from reconciler.server.authentication.sessions import Cookie
from reconciler.server.console.forms import Form
from reconciler.server.console.page import PageContent, PageRequest, Redirect

THEMES: Sequence[str] = ("system", "light", "dark")
COLOR_PAIRS: Mapping[str, str] = {"green-red": "green and red", "blue-orange": "blue and orange"}
"""The colors of added and removed lines, with their labels. People with a color blindness can distinguish blue and
orange."""
_YEAR_SECONDS = 365 * 24 * 60 * 60


@dataclass(frozen=True)
class Appearance:
    """The appearance of the console that a person chose. The theme `system` is the theme of the operating system."""

    theme: str = "system"
    colors: str = "green-red"


def read_appearance(request: Request) -> Appearance:
    """Return the appearance in the cookie of a request. Unknown values become the defaults."""
    theme, _, colors = _get_cookie(request).read(request).partition(".")
    return _build_appearance(theme, colors)


def choose_appearance(page: PageRequest, form: Form) -> PageContent | Redirect:
    """Store the appearance in a cookie, and return to the page that contains the form."""
    chosen = _build_appearance(form.get("theme"), form.get("colors"))
    cookie, value = _get_cookie(page.request), f"{chosen.theme}.{chosen.colors}"
    return Redirect(get_return_path(page.request), lambda response: cookie.set(response, value, _YEAR_SECONDS))


def _build_appearance(theme: str, colors: str) -> Appearance:
    default = Appearance()
    return Appearance(theme if theme in THEMES else default.theme, colors if colors in COLOR_PAIRS else default.colors)


def _get_cookie(request: Request) -> Cookie:
    return Cookie("appearance", is_secure=request.url.scheme == "https")
