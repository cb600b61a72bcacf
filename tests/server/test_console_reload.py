"""A reload of the settings: pages show the last index with the new roles, until a new index is complete."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.types import ASGIApp

from reconciler.bootstrap.console import Console, build_console
from reconciler.bootstrap.console_authentication import SignInState
from reconciler.review.jobs import ReviewJobs
from reconciler.review.people import Reviewer
from reconciler.review.permissions import ADMIN_PERMISSIONS
from reconciler.server.application import create_app
from reconciler.server.console.routes import create_console_routes
from reconciler.server.limits import ServerLimits
from reconciler.server.request_origin import build_origin_rules
from reconciler.service.state import ServiceState
from tests.support.asgi_client import request
from tests.support.console import NO_CONTROLS, PROXY, find_value
from tests.support.git_repositories import read_refs
from tests.support.index_reads import record_read_targets
from tests.support.prepared_worlds import begin, drafted
from tests.support.world import World, package, variant

SECRET = "secret-of-the-proxy-0123456789-abcdef"
ANA = {"x_proxy_secret": SECRET, "x_forwarded_user": "ana", "accept": "text/html"}
RULES = build_origin_rules("127.0.0.1:8080", (), "", ("10.0.0.0/8",))


class Service:
    """The console of a service, as a reload replaces it."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self.secret_file = folder / "secret"
        self.secret_file.write_text(f"{SECRET}\n")
        self.sign_ins = SignInState()
        self.console: Console | None = None
        self.load()

    def load(
        self,
        roles: tuple[dict[str, Any], ...] = ({"role": "admin", "users": ["ana@proxy"]},),
        confirm_above: int = 50,
        *,
        stores_sessions: bool = True,
        **more: Any,
    ) -> None:
        """Load settings of the console, and other groups of settings."""
        proxy = {"secret_file": str(self.secret_file)}
        group = {
            "enabled": True, "auth": ["proxy"], "proxy": proxy, "roles": roles, "confirm_above": confirm_above,
            "session": {"key_file": str(self.secret_file) if stores_sessions else ""},
        }  # fmt: skip
        server = {"listen": "127.0.0.1:0", "trusted_proxies": ["10.0.0.0/8"]}
        settings = self.world.read_settings(console=group, server=server, **more)
        previous = self.console
        self.console = build_console(
            settings, self.world.source, ServiceState(), NO_CONTROLS, self.sign_ins, previous=previous
        )
        if previous:
            previous.close(self.console)

    def restart(self) -> None:
        """End the process, and start another one with the same cache folder."""
        assert self.console is not None
        self.console.close()
        self.sign_ins, self.console = SignInState(), None
        self.load()
        self.console.start()
        self.update()

    def update(self) -> None:
        """Run a pass, and update the index."""
        assert self.console is not None
        self.console.context.index_thread.build(self.world.observe_pass())

    @property
    def _app(self) -> ASGIApp:
        routes = create_console_routes(lambda: self.console.context if self.console else None)
        return create_app(routes, ServerLimits(), lambda: RULES)

    def get(self, path: str) -> str:
        """Return the text of a page."""
        return request(self._app, path, client=PROXY, **ANA).text

    def post(self, path: str, **fields: str) -> str:
        """Send a form, and return the path of the next page."""
        body = urlencode({"csrf": find_value(self.get("/system"), "csrf"), **fields}).encode()
        headers = {"content_type": "application/x-www-form-urlencoded", "sec_fetch_site": "same-origin", **ANA}
        return request(self._app, path, "POST", content=body, client=PROXY, **headers).headers["location"]

    def confirm(self) -> str:
        """Confirm the approval of a change, and return the path of the confirmation."""
        key = self.get("/changes").partition('href="/changes/')[2].partition('"')[0]
        return self.post("/changes/confirm", verb="approve", change=key)


@pytest.fixture
def service(tmp_path: Path) -> Service:
    created = Service(begin(tmp_path / "world", drafted), tmp_path)
    created.update()
    return created


@pytest.fixture
def read_targets(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the targets that an update has read."""
    return record_read_targets(monkeypatch)


def change_and_observe(service: Service, version: str) -> None:
    """Run a pass that updates a draft, and let the console observe it."""
    world, console = service.world, service.console
    assert console is not None
    world.release("metrics", version, package("metrics", int(version[1:]) + 2, "1.1"), 1_200_000_000)
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", version)})
    world.observe_pass(lambda report: console.observe(report, {}))


def read_activity(service: Service) -> list[str]:
    """Return the actions of the events in the cache."""
    file = service.world.folder / "cache" / "activity.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line)["actions"][0] for line in lines]


@pytest.mark.slow
def test_the_log_of_the_activity_continues_after_a_reload(service: Service) -> None:
    change_and_observe(service, "v2")
    service.load(poll_seconds=5)
    change_and_observe(service, "v3")

    assert read_activity(service) == ["draft-updated", "pass"] * 2


def test_a_standby_records_no_activity(service: Service) -> None:
    assert service.console is not None
    service.console.context.state.is_read_only = True
    change_and_observe(service, "v2")

    assert read_activity(service) == []


def get_number(service: Service) -> int | None:
    assert service.console is not None
    index = service.console.context.indexes.find(ADMIN_PERMISSIONS)
    return index.number if index else None


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("more", "shown", "read"),
    [
        pytest.param({"poll_seconds": 5}, True, [], id="no-effect"),
        pytest.param({"guards": {"max_delete_percent": 1}}, True, ["berlin", "lisbon"], id="other-entries"),
        pytest.param({"tenancy": {"directory": "teams"}}, False, ["berlin", "lisbon"], id="other-tenants"),
        pytest.param({"drafts": {"branch": "d/{repository}"}}, False, ["berlin", "lisbon"], id="other-branches"),
    ],
)
def test_the_last_index_is_shown_until_the_next_is_complete(
    more: dict[str, Any], shown: bool, read: list[str], service: Service, read_targets: list[str]
) -> None:
    service.load(**more)
    page = service.get("/changes")
    before = get_number(service)
    service.update()

    assert ("install gateway v1" in page) is shown
    assert before == (1 if shown else None)
    assert sorted(read_targets) == read
    assert get_number(service) == (2 if shown else 1)


def test_the_last_index_is_shown_with_the_new_roles(service: Service) -> None:
    service.load(({"role": "viewer", "users": ["ana@proxy"], "targets": "region=south"},))
    pages = [service.get(path) for path in ("/changes", "/targets", "/targets/lisbon", "/targets/berlin")]
    service.load(())
    without_role = service.get("/targets")

    assert "lisbon" in pages[1]
    assert "install gateway v1" in pages[0]
    assert not [page for page in pages[:3] if "berlin" in page]
    assert "region" not in pages[3]
    assert "lisbon" not in without_role


def test_drafts_of_the_last_index_can_be_read(service: Service) -> None:
    key = service.get("/changes").partition('href="/changes/')[2].partition('"')[0]
    service.load(guards={"max_delete_percent": 1})

    assert "apiVersion" in service.get(f"/changes/{key}")


def test_after_a_reload_with_the_console_disabled_pages_wait_for_an_index(service: Service) -> None:
    service.load()
    service.console = None
    service.load()

    assert get_number(service) is None


def test_confirmations_and_jobs_continue_after_a_reload(service: Service) -> None:
    confirmation = service.confirm()
    # The thread of the jobs has not started, so that the job still waits at the reload.
    job = service.post(f"{confirmation}/submit", key="1", count="2")
    service.load()
    waiting = service.get(job)
    assert service.console is not None
    service.console.context.jobs.apply_waiting()

    assert "Drafts</h2>" in service.get(confirmation)
    assert "0 failed · 2 waiting" in waiting
    assert "2 done" in service.get(job)


def test_new_limits_apply_to_confirmations_after_a_reload(service: Service) -> None:
    before = service.get(service.confirm())
    service.load(confirm_above=1)
    assert service.console is not None
    service.console.start()
    after = service.get(service.confirm())
    service.console.close()

    assert ("type 2" in before, "type 2" in after) == (False, True)


def test_a_job_that_waits_at_a_reload_needs_the_new_roles(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    # The test applies the jobs instead of the thread.
    monkeypatch.setattr(ReviewJobs, "start", lambda _jobs: None)
    job = service.post(f"{service.confirm()}/submit", key="1", count="2")
    refs = read_refs(service.world.fleet)
    service.load(({"role": "viewer", "users": ["ana@proxy"]},))
    assert service.console is not None
    service.console.start()
    service.console.context.jobs.apply_waiting()
    page = service.get(job)
    service.console.close()

    assert "0 done · 2 skipped" in page
    assert "you need the role reviewer" in page
    assert read_refs(service.world.fleet) == refs


@pytest.mark.slow
def test_confirmations_and_jobs_continue_after_a_restart(service: Service) -> None:
    done, pending = service.confirm(), service.confirm()
    job = service.post(f"{done}/submit", key="1")
    assert service.console is not None
    service.console.context.jobs.apply_waiting()
    service.restart()
    pages = [service.get(path) for path in (job, pending)]
    service.console.close()

    assert "2 done" in pages[0]
    assert "Drafts</h2>" in pages[1]


def test_sessions_continue_after_a_restart(service: Service) -> None:
    assert service.console is not None
    service.console.start()
    session = service.sign_ins.sessions.create(Reviewer("Ana", "ana@example.com", "f3c1", "https://id.example.com"))
    form_key = service.console.context.csrf.key
    service.restart()
    service.console.close()

    assert service.sign_ins.sessions.find(session) is not None
    assert service.console.context.csrf.key == form_key


def test_the_sessions_are_stored_differently_only_after_the_start_with_new_settings(service: Service) -> None:
    service.restart()
    file = service.world.folder / "cache" / "sessions.encrypted"
    is_stored = [file.exists()]
    service.load(stores_sessions=False)
    is_stored.append(file.exists())
    assert service.console
    service.console.start()
    is_stored.append(file.exists())
    service.console.close()

    assert is_stored == [True, True, False]
