"""Confirmations after the end of a session, after their own end, and after a reload or a restart of the service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from reconciler.bootstrap.console_authentication import SignInState
from reconciler.review.permissions import ADMIN_PERMISSIONS
from tests.support.console import ADA, ConsoleClient, find_value, open_console
from tests.support.git_repositories import read_refs
from tests.support.oidc_provider import OidcProvider, serve_provider
from tests.support.prepared_worlds import begin, drafted
from tests.support.sign_in import Browser, configure
from tests.support.world import World

HALF_HOUR, DAY = 1_800, 86_400
REASON = 'reviewed with Luis & "Eva"'


@pytest.fixture
def world(tmp_path: Path) -> World:
    return begin(tmp_path / "world", drafted)


@pytest.fixture
def console(world: World) -> ConsoleClient:
    client = open_console(world)
    client.update()
    return client


@pytest.fixture
def provider(console: ConsoleClient, tmp_path: Path) -> Iterator[OidcProvider]:
    with serve_provider() as served:
        console.sign_ins = SignInState(lambda: float(console.world.now))
        configure(console, tmp_path, served)
        yield served


def confirm(browser: Browser, verb: str = "approve") -> str:
    """Confirm an action on a change, and return the path of the confirmation."""
    form = {"verb": verb, "change": browser.console.find_change("install gateway v1").key, "csrf": find_token(browser)}
    return browser.post("/changes/confirm", form).headers["location"]


def find_token(browser: Browser) -> str:
    return find_value(browser.get("/").text, "csrf")


def submit(browser: Browser, path: str, **headers: str) -> httpx.Response:
    page = browser.get(path).text
    fields = {"csrf": find_value(page, "csrf"), "key": find_value(page, "key"), "reason": REASON, "count": "2"}
    browser.cookies.clear()
    return browser.post(f"{path}/submit", fields, **headers)


def test_the_input_is_kept_while_the_person_signs_in(console: ConsoleClient, provider: OidcProvider) -> None:
    browser = Browser(console)
    browser.sign_in(provider)
    path = confirm(browser)
    # The page of an earlier error is the page of the form.
    sign_in = submit(browser, path, referer=f"http://127.0.0.1{path}/submit")
    # The script of a dialog follows this header, because it cannot follow a redirect to another page.
    dialog = browser.post(f"{path}/submit", {"reason": REASON, "count": "2"}, accept="*/*")
    start = (
        browser.get(sign_in.headers["location"]).text.partition('class="button primary" href="')[2].partition('"')[0]
    )
    returned = browser.get(provider.authorize(browser.get(start.replace("&amp;", "&")).headers["location"]))
    page = browser.get(returned.headers["location"]).text

    assert returned.headers["location"] == path
    assert dialog.headers["hx-redirect"] == sign_in.headers["location"]
    assert "reviewed with Luis &amp; &#34;Eva&#34;</textarea>" in page
    assert console.context.jobs.list_jobs(ADA, ADMIN_PERMISSIONS) == ()
    assert browser.post(f"{path}/submit", {"csrf": find_value(page, "csrf"), "key": "1"}).status_code == 303


def test_another_person_does_not_see_the_kept_input(console: ConsoleClient, provider: OidcProvider) -> None:
    browser = Browser(console)
    browser.sign_in(provider)
    path = confirm(browser)
    submit(browser, path)
    provider.claims["sub"] = "other"
    browser.sign_in(provider)
    page = browser.get(path)

    assert page.status_code == 410
    assert "reviewed with Luis" not in page.text


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("suffix", "headers"),
    [
        pytest.param("/submit", {"sec_fetch_site": "cross-site"}, id="another-site"),
        pytest.param("/submit", {"content_type": "text/plain"}, id="not-a-form"),
        pytest.param("/renew", {}, id="another-form"),
        pytest.param("x/submit", {}, id="unknown-confirmation"),
    ],
)
def test_other_requests_without_a_session_keep_nothing(
    suffix: str, headers: dict[str, str], console: ConsoleClient, provider: OidcProvider
) -> None:
    browser = Browser(console)
    browser.sign_in(provider)
    path = confirm(browser)
    browser.cookies.clear()
    response = browser.post(path + suffix, {"reason": "from an attacker"}, **headers)
    browser.sign_in(provider)

    assert response.status_code in (303, 403)
    assert path not in response.headers.get("location", "")
    assert "from an attacker" not in browser.get(path).text


def test_a_form_of_an_earlier_session_does_nothing_and_keeps_its_input(
    world: World, console: ConsoleClient, provider: OidcProvider
) -> None:
    browser = Browser(console)
    browser.sign_in(provider)
    path = confirm(browser)
    fields = {"csrf": find_token(browser), "key": "1", "reason": REASON}
    refs = read_refs(world.fleet)
    browser.sign_in(provider)
    response = browser.post(f"{path}/submit", fields)
    foreign = browser.post(f"{path}/submit", fields, sec_fetch_site="cross-site")
    console.context.jobs.apply_waiting()
    again = {**fields, "csrf": find_value(response.text, "csrf")}

    assert (response.status_code, foreign.status_code) == (403, 403)
    assert "the page belongs to an earlier session" in response.text
    assert "reviewed with Luis" in response.text
    assert foreign.text == ""
    assert read_refs(world.fleet) == refs
    assert browser.post(f"{path}/submit", again).status_code == 303


def test_an_expired_confirmation_shows_the_current_drafts(world: World, console: ConsoleClient) -> None:
    key = console.find_change("install gateway v1").key
    path = console.post("/changes/confirm", {"verb": "approve", "change": key}).headers["location"]
    world.edit("drafts/lisbon", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    console.update()
    world.now += HALF_HOUR
    expired = console.get(path)
    renewed = console.post(f"{path}/renew", {})
    submitted = console.post(f"{path}/submit", {"key": "1", "reason": REASON})
    identifier = submitted.text.partition('action="/confirmations/')[2].partition("/submit")[0]
    page = console.get(console.post(f"/confirmations/{identifier}/submit", {"key": "1"}).headers["location"])

    assert expired.status_code == 410
    assert "approve 2 packages on 2 targets" in expired.text
    assert console.get(renewed.headers["location"]).status_code == 200
    assert submitted.status_code == 422
    assert "The confirmation has expired; the page shows the current drafts" in submitted.text
    assert "reviewed with Luis" in submitted.text
    assert identifier not in ("", path.rpartition("/")[2])
    assert page.status_code == 200


def test_an_expired_confirmation_of_a_change_that_is_gone(world: World, console: ConsoleClient) -> None:
    key = console.find_change("install gateway v1").key
    path = console.post("/changes/confirm", {"verb": "approve", "change": key}).headers["location"]
    console.confirm({"verb": "approve", "change": key})
    console.update()
    world.now += HALF_HOUR
    pages = [console.post(f"{path}/renew", {}), console.post(f"{path}/submit", {"key": "2"})]
    world.now += DAY
    pages += [console.post(f"{path}/renew", {}), console.post(f"{path}/submit", {"key": "3"}), console.get(path)]

    assert ["there is no change" in page.text for page in pages] == [True, True, False, False, False]
    assert ["does not exist any more" in page.text for page in pages] == [False, False, True, True, True]


@pytest.mark.parametrize("action", ["submit", "renew", "retry"])
def test_a_read_only_standby_refuses_confirmations_and_jobs_of_an_earlier_process(
    action: str, world: World, console: ConsoleClient
) -> None:
    form = {"verb": "approve", "change": console.find_change("install gateway v1").key}
    path = console.post("/changes/confirm", form).headers["location"]
    if action == "retry":
        path = console.post(f"{path}/submit", {"key": "1"}).headers["location"]
    console.context.state.is_read_only = True
    refs = read_refs(world.fleet)
    response = console.post(f"{path}/{action}", {"key": "2"})
    if action != "retry":
        console.context.jobs.apply_waiting()

    assert response.status_code == 409
    assert "read-only standby" in response.text
    assert read_refs(world.fleet) == refs
