"""People who sign in to the console of a daemon at a real OpenID Connect provider, and programs with a token."""

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
def run_provider(redirect_url: str) -> Iterator[str]:
    """Run the provider, and yield its issuer."""
    issuer = f"http://127.0.0.1:{find_free_port()}"
    variables = {"ISSUER": issuer, "REDIRECT_URL": redirect_url, "CLIENT": CLIENT, "SECRET": SECRET}
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


def sign_in(browser: httpx.Client, console: str) -> httpx.Response:
    """Complete all pages of the provider, and return the page of the console."""
    response = browser.get(f"{console}/sign-in/start?return_to=/targets")
    while not str(response.url).startswith(console):
        action = re.search(r'action="([^"]+)"', response.text)
        assert action, response.text
        fields = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', response.text))
        url = response.url.join(action[1])
        response = browser.post(url, data={**fields, "login": "f3c1", "password": "any"})
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
    with run_provider(f"{console}/sign-in/callback") as issuer:

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
            by_token = get_with_token(f"{console}/api/v1/targets", token)
            by_nothing = httpx.get(f"{console}/api/v1/targets", timeout=30)

    assert "<h1>Sign in</h1>" in before.text
    assert (str(signed_in.url), signed_in.status_code) == (f"{console}/targets", 200)
    assert "Ana Silva" in signed_in.text
    assert "Ana Silva" in after_reload.text
    assert "<h1>Sign in</h1>" in signed_out.text
    assert (by_token.status_code, by_nothing.status_code) == (200, 401)
