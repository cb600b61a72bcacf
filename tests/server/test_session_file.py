"""Sessions in the encrypted file: a restart, the rotation of keys, and files that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.bootstrap.console_authentication import SignInState, open_session_file, store_sessions
from reconciler.settings import Settings, SettingsError
from tests.support.console import ConsoleClient, find_value
from tests.support.full_disk import limit_file_size
from tests.support.oidc_provider import OidcProvider, serve_provider
from tests.support.sign_in import Browser, configure

OLD, NEW = "old-key-0123456789-abcdefghijklmnop", "new-key-0123456789-abcdefghijklmnop"


class Service:
    """A service that a test can restart. Its fleet stays the same."""

    def __init__(self, folder: Path, provider: OidcProvider, console: ConsoleClient) -> None:
        self.folder, self.provider, self.console = folder, provider, console
        self.key_file = folder / "session-key"
        self.key_file.write_text(OLD)
        self.restart()

    @property
    def file(self) -> Path:
        return self.folder / "cache" / "sessions.encrypted"

    def restart(self, key_file: Path | None = None) -> None:
        """Start a new process with the same cache folder."""
        self.console.sign_ins = SignInState(lambda: float(self.console.world.now))
        self.reload(key_file)

    def reload(self, key_file: Path | None = None) -> None:
        self.store_sessions(str(key_file or self.key_file))
        configure(self.console, self.folder, self.provider)

    def store_sessions(self, key_file: str) -> None:
        """Store the sessions of the current process as settings with this key file describe it."""
        console = {"session": {"key_file": key_file}}
        settings = Settings.model_validate({"cache": str(self.folder / "cache"), "console": console})
        file = open_session_file(settings)
        self.console.sign_ins.restore(file)
        store_sessions(settings, self.console.sign_ins, file)


@pytest.fixture
def service(tmp_path: Path, fleet: ConsoleClient) -> Iterator[Service]:
    with serve_provider() as provider:
        yield Service(tmp_path, provider, fleet)


@pytest.mark.slow
def test_a_person_stays_signed_in_after_a_restart(service: Service) -> None:
    browser = Browser(service.console)
    browser.sign_in(service.provider)
    form = {"csrf": find_value(browser.get("/").text, "csrf")}
    service.restart()

    assert "Ana Silva" in browser.get("/").text
    # A page that was open before the restart stays usable.
    assert browser.post("/system/pass", form).status_code == 303


def test_the_file_reveals_no_session(service: Service) -> None:
    browser = Browser(service.console)
    browser.sign_in(service.provider)
    content = service.file.read_bytes()

    assert [text for text in (browser.session, "Ana", "ana@example.com", OLD) if text.encode() in content] == []


def test_a_signed_out_session_does_not_return_after_a_restart(service: Service) -> None:
    browser = Browser(service.console)
    browser.sign_in(service.provider)
    session = browser.session
    browser.post("/sign-out", {"csrf": find_value(browser.get("/").text, "csrf")})
    service.restart()

    assert browser.get("/", cookie=f"__Host-session={session}").status_code == 303


def test_a_session_that_ended_without_a_key_does_not_return_with_a_key(service: Service) -> None:
    browser = Browser(service.console)
    browser.sign_in(service.provider)
    session = browser.session
    service.store_sessions("")
    browser.post("/sign-out", {"csrf": find_value(browser.get("/").text, "csrf")})
    service.restart()

    assert browser.get("/", cookie=f"__Host-session={session}").status_code == 303


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize(
    ("claim", "value", "status"),
    [
        pytest.param("sub", "\ud800", 403, id="subject"),
        pytest.param("email", "\ud800", 403, id="mail-address"),
        pytest.param("groups", ["\ud800"], 403, id="group"),
        pytest.param("name", "\ud800", 303, id="name-that-is-replaced"),
        pytest.param("sid", "\ud800", 303, id="session-that-is-ignored"),
    ],
)
def test_a_claim_that_cannot_be_stored_does_not_prevent_the_sign_out_of_others(
    claim: str, value: object, status: int, service: Service
) -> None:
    browser = Browser(service.console)
    browser.sign_in(service.provider)
    service.provider.claims[claim] = value
    signed_in = Browser(service.console).sign_in(service.provider)
    session = browser.session
    signed_out = browser.post("/sign-out", {"csrf": find_value(browser.get("/").text, "csrf")})
    service.restart()

    assert (signed_in.status_code, signed_out.status_code) == (status, 303)
    assert browser.get("/", cookie=f"__Host-session={session}").status_code == 303


@pytest.mark.parametrize(
    ("seconds", "status"),
    [pytest.param(8 * 3_600 - 1, 200, id="almost-8-hours"), pytest.param(8 * 3_600, 303, id="8-hours")],
)
def test_the_limits_of_a_session_include_the_time_before_the_restart(
    seconds: int, status: int, service: Service
) -> None:
    browser = Browser(service.console)
    browser.sign_in(service.provider)
    service.console.world.now += seconds
    service.restart()

    assert browser.get("/").status_code == status


def test_requests_of_a_person_are_stored(service: Service) -> None:
    browser = Browser(service.console)
    browser.sign_in(service.provider)
    for _ in range(3):
        service.console.world.now += 7 * 3_600
        browser.get("/")
        service.restart()

    assert browser.get("/").status_code == 200


@pytest.mark.parametrize(
    ("keys", "status"),
    [
        pytest.param(f"{NEW}\n{OLD}\n", 200, id="new-key-before-the-old-key"),
        pytest.param(NEW, 303, id="only-the-new-key", marks=pytest.mark.emits("sessions_unreadable")),
    ],
)
def test_rotation_of_the_key(keys: str, status: int, service: Service) -> None:
    browser = Browser(service.console)
    browser.sign_in(service.provider)
    service.key_file.write_text(keys)
    with capture_logs() as events:
        service.restart()

    assert browser.get("/").status_code == status
    assert ("sessions_unreadable" in [event["event"] for event in events]) is (status == 303)


def test_after_a_rotation_the_old_key_is_not_needed(service: Service) -> None:
    browser = Browser(service.console)
    browser.sign_in(service.provider)
    for keys in (f"{NEW}\n{OLD}\n", NEW):
        service.key_file.write_text(keys)
        service.restart()

    assert browser.get("/").status_code == 200


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("content", [b"", b"abc", b"{}", b"\xff"], ids=["empty", "text", "json", "bytes"])
def test_a_damaged_file_ends_the_sessions(content: bytes, service: Service) -> None:
    browser = Browser(service.console)
    browser.sign_in(service.provider)
    service.file.write_bytes(content)
    service.restart()

    assert browser.get("/").status_code == 303
    assert browser.sign_in(service.provider).status_code == 303


def test_a_key_that_becomes_unreadable_stores_no_sessions(service: Service) -> None:
    browser = Browser(service.console)
    browser.sign_in(service.provider)
    service.key_file.unlink()
    Browser(service.console).sign_in(service.provider)

    assert browser.get("/").status_code == 200
    assert not service.file.exists()


@pytest.mark.emits("sessions_store_failed")
def test_a_full_disk_keeps_no_session_that_has_ended(service: Service) -> None:
    browser = Browser(service.console)
    browser.sign_in(service.provider)
    form = {"csrf": find_value(browser.get("/").text, "csrf")}
    with limit_file_size(100), capture_logs() as events:
        browser.post("/sign-out", form)

    assert not service.file.exists()
    assert [event["event"] for event in events if event["event"].startswith("sessions")] == ["sessions_store_failed"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "must be readable", id="missing"),
        pytest.param("", "at least one secret", id="empty"),
        pytest.param("short", "at least 32 random characters", id="short"),
        pytest.param(f"{OLD}\nshort", "at least 32 random characters", id="one-short-key"),
    ],
)
def test_an_unusable_key_is_an_error_of_the_settings(content: str | None, message: str, service: Service) -> None:
    file = service.folder / "other"
    if content is not None:
        file.write_text(content)

    with pytest.raises(SettingsError, match=rf"console.session.key_file: .*{message}"):
        service.reload(file)


def test_without_a_key_sessions_are_not_stored(service: Service) -> None:
    browser = Browser(service.console)
    browser.sign_in(service.provider)
    service.store_sessions("")
    Browser(service.console).sign_in(service.provider)

    assert browser.get("/").status_code == 200
    assert not service.file.exists()
