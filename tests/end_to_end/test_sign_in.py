"""People who sign in to the console at a real OpenID Connect provider, and programs with a token."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from reconciler.server.authentication.oidc import OidcOptions, OidcProvider
from reconciler.server.authentication.pending_sign_ins import PendingSignIns
from reconciler.server.authentication.provider_client import ProviderClient
from reconciler.server.console.sign_in import CALLBACK_PATH, LOGOUT_PATH
from tests.support.command_line import run_in
from tests.support.daemon import ENVIRONMENT, PROJECT, run_daemon
from tests.support.git_repositories import make_bare
from tests.support.programs import find_program

CLIENT, SECRET = "console", "a client:secret/1+2 %"
SETTINGS = """
cache: {folder}/cache
config: {{url: {folder}/config}}
fleet: {{url: {folder}/fleet.git}}
poll_seconds: 3600
server: {{listen: "127.0.0.1:{port}", external_url: "http://127.0.0.1:{port}"}}
console:
  enabled: true
  auth: [oidc, tokens]
  token_file: {folder}/tokens
  oidc: {{issuer: "{issuer}", client_id: {client}, client_secret_file: {folder}/secret, scopes: [{scopes}]}}
  roles: [{{role: viewer, groups: [platform]}}]
"""


def find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def run_provider(console: str) -> Iterator[str]:
    """Run the provider of a console, and yield its issuer."""
    issuer = f"http://127.0.0.1:{find_free_port()}"
    urls = {"REDIRECT_URL": console + CALLBACK_PATH, "LOGOUT_URL": console + LOGOUT_PATH}
    variables = {"ISSUER": issuer, "CLIENT": CLIENT, "SECRET": SECRET, **urls}
    command = [find_program("oidc-provider"), str(PROJECT / "tests/support/oidc_provider.mjs")]
    with subprocess.Popen(
        command, env=ENVIRONMENT | variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "ready"
            yield issuer
        finally:
            process.terminate()


def send_form(browser: httpx.Client, page: httpx.Response, **fields: str) -> httpx.Response:
    """Send the form of a page of the provider."""
    action = re.search(r'action="([^"]+)"', page.text)
    assert action, page.text
    hidden = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page.text))
    return browser.post(page.url.join(action[1]), data={**hidden, **fields})


def sign_in(browser: httpx.Client, console: str) -> httpx.Response:
    """Complete all pages of the provider, and return the page of the console."""
    response = browser.get(f"{console}/sign-in/start?return_to=/targets")
    while not str(response.url).startswith(console):
        response = send_form(browser, response, login="f3c1", password="any")
    return response


def get_with_token(url: str, token: str) -> httpx.Response:
    """Return the response of the API as soon as the index of the console is complete."""
    while True:
        response = httpx.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=30)
        if response.status_code != 503:
            return response
        time.sleep(0.1)


@pytest.mark.slow
def test_a_person_signs_in_at_a_real_provider(tmp_path: Path) -> None:
    make_bare(tmp_path / "fleet.git")
    (tmp_path / "config").mkdir()
    (tmp_path / "secret").write_text(SECRET)
    token = run_in(tmp_path, {}, "token", "create", "ci", "--add-to", "tokens").stdout.strip()
    port, file = find_free_port(), tmp_path / "reconciler.yaml"
    console = f"http://127.0.0.1:{port}"
    with run_provider(console) as issuer:

        def write_settings(scopes: str) -> None:
            text = SETTINGS.format(folder=tmp_path, port=port, issuer=issuer, client=CLIENT, scopes=scopes)
            file.write_text(text)

        write_settings("openid, profile, email, groups")
        headers = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
        with (
            run_daemon(["run", "--settings", str(file)], tmp_path) as daemon,
            httpx.Client(follow_redirects=True, headers=headers, timeout=30) as browser,
        ):
            daemon.wait_for("pass_completed")
            before = browser.get(f"{console}/targets")
            signed_in = sign_in(browser, console)
            write_settings("openid, profile, email, groups, offline_access")
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_for("settings_reloaded")
            after_reload = browser.get(f"{console}/targets")
            form_token = re.search(r'name="csrf" value="([^"]+)"', after_reload.text)
            assert form_token, after_reload.text
            signed_out = browser.post(f"{console}/sign-out", data={"csrf": form_token[1]})
            sign_in(browser, console)
            before_logout = browser.get(f"{console}/targets")
            send_form(browser, browser.get(f"{issuer}/session/end"), logout="yes")
            after_logout = browser.get(f"{console}/targets")
            by_token = get_with_token(f"{console}/api/v1/targets", token)
            by_nothing = httpx.get(f"{console}/api/v1/targets", timeout=30)

    assert "<h1>Sign in</h1>" in before.text
    assert (str(signed_in.url), signed_in.status_code) == (f"{console}/targets", 200)
    assert "Ana Silva" in signed_in.text
    assert "Ana Silva" in after_reload.text
    assert "<h1>Sign in</h1>" in signed_out.text
    assert "Ana Silva" in before_logout.text
    assert "<h1>Sign in</h1>" in after_logout.text
    assert (by_token.status_code, by_nothing.status_code) == (200, 401)


@pytest.mark.slow
def test_a_real_provider_renews_the_groups_of_a_person() -> None:
    console = "http://127.0.0.1:1"
    scopes = ("openid", "profile", "email", "groups", "offline_access")
    pending = PendingSignIns(time.time).create("/")[1]
    tokens: list[str] = []
    with run_provider(console) as issuer, httpx.Client(follow_redirects=True, timeout=30) as browser:
        options = OidcOptions(
            issuer, CLIENT, lambda: SECRET, console + CALLBACK_PATH, scopes, "name", "email", "groups"
        )
        provider = OidcProvider(options, ProviderClient())
        page = browser.get(provider.build_authorization_url(pending))
        while not (location := page.headers.get("location", "")).startswith(console):
            if page.is_redirect:
                page = browser.get(page.url.join(location), follow_redirects=False)
            else:
                browser.follow_redirects = False
                page = send_form(browser, page, login="f3c1", password="any")
        signed_in = provider.identify(httpx.URL(location).params["code"], pending)
        renewed = provider.refresh(signed_in.person, signed_in.refresh_token, tokens.append)
        provider.refresh(renewed, tokens[-1], tokens.append)

    assert renewed == signed_in.person
    assert renewed.groups == {"platform"}
    assert signed_in.provider_session
