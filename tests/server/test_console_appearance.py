"""The theme and the colors of added and removed lines: the form, the cookie, and the contrast of the colors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from reconciler.output.pages.environment import read_style
from reconciler.review.people import Reviewer
from reconciler.review.permissions import Permissions
from reconciler.server.console.people import Session
from tests.support.console import ConsoleClient, sign_in, use_authentication

HTML = re.compile(r'<html lang="en" data-theme="(\w+)" data-colors="([a-z-]+)">')
REFERRER = "http://127.0.0.1:8080/changes?risk=high"
MIN_CONTRAST = 4.5
"""The minimum contrast of text (WCAG 2.2, 1.4.3)."""


def find_appearance(text: str) -> tuple[str, ...]:
    match = HTML.search(text)
    assert match
    return match.groups()


@pytest.mark.parametrize(
    ("theme", "colors", "expected", "scheme"),
    [
        pytest.param("dark", "blue-orange", ("dark", "blue-orange"), "dark", id="dark"),
        pytest.param("light", "green-red", ("light", "green-red"), "light", id="light"),
        pytest.param("system", "blue-orange", ("system", "blue-orange"), "light dark", id="system"),
        pytest.param('"><script>', "; path=/x", ("system", "green-red"), "light dark", id="unknown-values"),
    ],
)
def test_the_choice_of_a_person_applies_to_all_pages(
    theme: str, colors: str, expected: tuple[str, ...], scheme: str, drafted_console: ConsoleClient
) -> None:
    before = find_appearance(drafted_console.get("/changes").text)
    response = drafted_console.post(
        "/system/appearance", {"theme": theme, "colors": colors}, referer=REFERRER, host="127.0.0.1:8080"
    )
    stored = response.headers["set-cookie"]
    page = drafted_console.get("/targets", cookie=stored.partition(";")[0]).text

    assert before == ("system", "green-red")
    assert (response.status_code, response.headers["location"]) == (303, "/changes?risk=high")
    assert re.sub(r"expires=[^;]*; ", "", stored) == (
        f"appearance={'.'.join(expected)}; HttpOnly; Max-Age=31536000; Path=/; SameSite=lax"
    )
    assert find_appearance(page) == expected
    assert f'<meta name="color-scheme" content="{scheme}">' in page
    assert f"<option selected>{expected[0]}</option>" in page


@pytest.fixture
def signed_out_console(fleet: ConsoleClient) -> Iterator[ConsoleClient]:
    """A console with a provider that nobody has used."""
    context = fleet.context
    oidc, roles = {"issuer": "https://id.example.com", "client_id": "console"}, [{"role": "viewer", "groups": ["g"]}]
    use_authentication(fleet, auth=["oidc"], oidc=oidc, roles=roles)
    yield fleet
    fleet.context = context


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("/sign-in", "You sign in at the provider", id="sign-in"),
        pytest.param("/sign-in/callback?state=old", "The sign-in failed", id="failed-sign-in"),
        pytest.param("/changes", "You are not signed in", id="no-provider"),
        pytest.param("/targets", "Eve has no role", id="no-role"),
    ],
)
def test_pages_for_people_without_access_have_the_chosen_theme(
    path: str, text: str, signed_out_console: ConsoleClient
) -> None:
    if path == "/changes":
        signed_out_console.context = replace(signed_out_console.context, sign_in=None)
    if path == "/targets":
        sign_in(signed_out_console, Session(Reviewer("Eve", ""), Permissions(()), "", "proxy"))
    chosen, default = (
        signed_out_console.get(path, cookie=f"appearance={value}", accept="text/html").text
        for value in ("dark.blue-orange", "")
    )

    assert text in chosen
    assert find_appearance(chosen) == ("dark", "blue-orange")
    assert '<meta name="color-scheme" content="dark">' in chosen
    assert find_appearance(default) == ("system", "green-red")


@pytest.mark.parametrize("value", ["", "dark", "dark.", "none.none", "dark.blue-orange.more", "."])
def test_a_damaged_cookie_has_no_unknown_value(value: str, drafted_console: ConsoleClient) -> None:
    theme, colors = find_appearance(drafted_console.get("/", cookie=f"appearance={value}").text)

    assert theme in ("system", "dark")
    assert colors == "green-red"


def test_another_appearance_is_another_page_for_the_cache(drafted_console: ConsoleClient) -> None:
    tag = drafted_console.get("/changes").headers["etag"]
    same = drafted_console.get("/changes", if_none_match=tag)
    other = drafted_console.get("/changes", if_none_match=tag, cookie="appearance=dark.green-red")

    assert (same.status_code, other.status_code) == (304, 200)


def test_a_form_of_another_site_changes_nothing(drafted_console: ConsoleClient) -> None:
    response = drafted_console.post("/system/appearance", {"csrf": "", "theme": "dark"})

    assert (response.status_code, "set-cookie" in response.headers) == (403, False)


def read_colors(style: str, scheme: int) -> dict[str, str]:
    """Return the colors of one block of variables. `scheme` is 0 for light and 1 for dark."""
    return {name: values[scheme] for name, *values in re.findall(r"--([a-z-]+): light-dark\((#\w+), (#\w+)\)", style)}


def compute_luminance(color: str) -> float:
    parts = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def compute_contrast(first: str, second: str) -> float:
    high, low = sorted((compute_luminance(first), compute_luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("is_other_pair", [False, True], ids=["green-red", "blue-orange"])
def test_text_has_enough_contrast(scheme: int, *, is_other_pair: bool) -> None:
    first, _, other = read_style().partition(":root[data-colors=blue-orange]")
    colors = read_colors(first, scheme)
    pair = read_colors(other.partition("}")[0], scheme)
    assert pair.keys() == {"added", "added-bg", "deleted", "deleted-bg"}
    colors |= pair if is_other_pair else {}
    pairs = [(text, back) for text in ("text", "muted", "link") for back in ("background", "surface")]
    pairs += [(text, f"{name}-bg") for name in ("added", "deleted") for text in ("text", "muted", "link", name)]
    pairs += [(name, back) for name in ("added", "deleted") for back in ("background", "surface")]
    contrasts = {f"{text} on {back}": compute_contrast(colors[text], colors[back]) for text, back in pairs}

    assert {name: value for name, value in contrasts.items() if value < MIN_CONTRAST} == {}
