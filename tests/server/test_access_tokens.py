"""Access tokens of programs: the lines of their file, changes of the file, and requests with a token."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.credential_files import SecretFileError
from reconciler.server.authentication.access_tokens import (
    compute_digest,
    create_token,
    format_line,
    parse_line,
    read_token_file,
)
from tests.support.console import ConsoleClient, open_console, use_authentication
from tests.support.prepared_worlds import begin, drafted

TOKEN = create_token()
DIGEST = compute_digest(TOKEN)
OTHER_DIGEST = compute_digest(create_token())


def test_a_token_has_256_random_bits() -> None:
    tokens = {create_token() for _ in range(100)}

    assert len(tokens) == 100
    assert {(token[:4], len(token)) for token in tokens} == {("rcr_", 4 + 43)}


def test_the_line_of_a_token() -> None:
    line = format_line("ci", "reviewer", "stage=prod", TOKEN, 1_800_000_000)

    assert line == f"ci:reviewer:stage=prod:{DIGEST}:2027-01-15T08:00:00Z"
    assert parse_line(line).expires_at == 1_800_000_000
    assert TOKEN not in line


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param(f"ci:viewer:{DIGEST}:never", "must have the form", id="four-fields"),
        pytest.param(f":viewer::{DIGEST}:never", "name: must", id="no-name"),
        pytest.param(f"c i:viewer::{DIGEST}:never", "name: must", id="space"),
        pytest.param(f"{'c' * 64}:viewer::{DIGEST}:never", "1 to 63", id="long-name"),
        pytest.param(f"ci:owner::{DIGEST}:never", 'role: must be one of "viewer", "reviewer", "admin"', id="role"),
        pytest.param(f"ci:admin:a=b:{DIGEST}:never", "must be empty for the role admin", id="limited-admin"),
        pytest.param(f"ci:viewer:a in b:{DIGEST}:never", "selector: must be a label query", id="selector"),
        pytest.param(f"ci:viewer::{TOKEN}:never", "must be the SHA-256 digest", id="token-in-the-file"),
        pytest.param(f"ci:viewer::{DIGEST.upper()}:never", "lower-case", id="upper-case-digest"),
        pytest.param(f"ci:viewer::{DIGEST}:", "expiry: must be a time", id="no-expiry"),
        pytest.param(f"ci:viewer::{DIGEST}:2027-02-30T00:00:00Z", "expiry: must be a time", id="no-such-day"),
        pytest.param(
            f"a:viewer::{DIGEST}:never\na:viewer::{OTHER_DIGEST}:never", ":2: an earlier line", id="same-name"
        ),
        pytest.param(f"a:viewer::{DIGEST}:never\nb:admin::{DIGEST}:never", ":2: an earlier line", id="same-token"),
    ],
)
def test_an_invalid_line_is_an_error_without_its_content(line: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"{line}\n")

    with pytest.raises(SecretFileError, match=message) as error:
        read_token_file(file)

    assert str(error.value).startswith(f"{file}:")
    assert TOKEN not in str(error.value)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(f"# tokens of CI\n\nci:reviewer:region=south:{DIGEST}:never\n")
    return path


@pytest.fixture
def console(tmp_path: Path, file: Path) -> ConsoleClient:
    client = open_console(begin(tmp_path / "world", drafted))
    client.update()
    use_authentication(client, auth=["tokens"], token_file=str(file))
    return client


def bearer(token: str = TOKEN) -> str:
    return f"Bearer {token}"


@pytest.mark.slow
def test_a_program_has_the_role_and_the_targets_of_its_token(console: ConsoleClient) -> None:
    page = console.get("/", authorization=bearer())

    assert page.status_code == 200
    assert "1 target · " in page.text
    assert "No authentication" not in page.text
    assert console.get("/targets/lisbon", authorization=bearer()).status_code == 200
    assert console.get("/targets/berlin", authorization=bearer()).status_code == 404


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER   "])
def test_the_case_of_the_scheme_is_ignored(scheme: str, console: ConsoleClient) -> None:
    assert console.get("/", authorization=scheme + TOKEN).status_code == 200


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"authorization": bearer("rcr_wrong")}, id="wrong"),
        pytest.param({"authorization": bearer(DIGEST)}, id="digest"),
        pytest.param({"authorization": bearer("")}, id="empty"),
        pytest.param({"authorization": f"Basic {TOKEN}"}, id="another-scheme"),
        pytest.param({"authorization": TOKEN}, id="no-scheme"),
        pytest.param({"cookie": f"session={TOKEN}"}, id="cookie"),
    ],
)
def test_other_requests_are_problems(headers: dict[str, str], console: ConsoleClient) -> None:
    response = console.get("/changes", **headers)

    assert response.status_code == 401
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.json()["code"] == "Unauthenticated"


def test_a_browser_gets_a_page_without_data(console: ConsoleClient) -> None:
    response = console.get("/changes", accept="text/html")

    assert response.status_code == 401
    assert "You are not signed in" in response.text
    assert "gateway" not in response.text


def test_a_request_with_a_token_needs_no_form_token(console: ConsoleClient) -> None:
    fields = {"verb": "approve", "change": console.find_change("install gateway v1").key, "csrf": ""}
    created = console.post("/changes/confirm", fields, authorization=bearer(), sec_fetch_site="none")

    assert created.status_code == 303
    assert console.post("/changes/confirm", fields, authorization=bearer("rcr_wrong")).status_code == 401


def test_a_token_expires(console: ConsoleClient, file: Path) -> None:
    file.write_text(format_line("ci", "viewer", "", TOKEN, int(console.context.clock()) + 60))
    before = console.get("/", authorization=bearer()).status_code
    console.world.now += 60

    assert (before, console.get("/", authorization=bearer()).status_code) == (200, 401)


@pytest.mark.emits("console_file_reloaded", "console_file_unreadable")
def test_the_file_is_read_again_after_a_change(console: ConsoleClient, file: Path) -> None:
    other = create_token()

    def try_tokens() -> list[int]:
        return [console.get("/", authorization=bearer(token)).status_code for token in (TOKEN, other)]

    with capture_logs() as events:
        before = try_tokens()
        file.write_text(format_line("ci", "viewer", "", other, None))
        replaced = try_tokens()
        file.write_text("damaged")
        damaged = try_tokens()
        file.unlink()
        deleted = try_tokens()

    assert (before, replaced, damaged, deleted) == ([200, 401], [401, 200], [401, 401], [401, 401])
    assert [event["event"] for event in events if event["event"].startswith("console_")] == [
        "console_file_reloaded", "console_file_unreadable", "console_file_unreadable",
    ]  # fmt: skip
