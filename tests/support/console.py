"""The console of a test fleet, without a socket and without threads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import unescape
from urllib.parse import urlencode

import httpx

from reconciler.bootstrap.console_authentication import SignInState, build_authenticator, list_tokens
from reconciler.bootstrap.console_reviews import build_role_rules
from reconciler.inspect.cause_searches import CauseSearches
from reconciler.inspect.draft_content import DraftContentReader
from reconciler.inspect.draft_list import DraftListReader
from reconciler.inspect.package_content import PackageContentReader
from reconciler.inspect.release_effects import ReleaseEffectsReader
from reconciler.inspect.value_explainer import ValueExplainer
from reconciler.output.fleet.model import FleetIndex, ReviewChange
from reconciler.reconcile.reconcile_pass import PassReport
from reconciler.review.activity_lists import ActivityLists
from reconciler.review.activity_log import ActivityLog
from reconciler.review.change_archive import ChangeArchive
from reconciler.review.confirmations import ConfirmationStore
from reconciler.review.jobs import ReviewJobs
from reconciler.review.people import Reviewer
from reconciler.review.permissions import find_permissions
from reconciler.review.restore import Restorer
from reconciler.review.restricted_index import RestrictedIndexes
from reconciler.server.api.routes import create_api_routes
from reconciler.server.application import create_app
from reconciler.server.console.context import ConsoleContext
from reconciler.server.console.people import LocalAuthenticator, Session
from reconciler.server.console.routes import create_console_routes
from reconciler.server.limits import ServerLimits
from reconciler.server.rate_limit import RateLimit
from reconciler.server.request_origin import build_origin_rules
from reconciler.service.controls import ServiceControls
from reconciler.service.fleet_view import FleetView, PassRecord
from reconciler.service.index_thread import IndexThread
from reconciler.service.pass_activity import list_pass_events
from reconciler.service.state import ServiceState
from reconciler.settings import Settings
from tests.support.asgi_client import request
from tests.support.world import World

ADA = Reviewer("Ada Example", "ada@example.com")
Fields = Mapping[str, str | Sequence[str]]
PROXY = "10.1.2.3"
"""The address of a trusted proxy."""
_RULES = build_origin_rules("127.0.0.1:8080", (), "", ("10.0.0.0/8",))
_FORM_TYPE = "application/x-www-form-urlencoded"
NO_CONTROLS = ServiceControls(lambda: None, lambda: None, lambda _url: None)
"""Controls without an effect."""


class ConsoleClient:
    """Sends requests to the console of a fleet.

    Attributes:
        world: The fleet.
        context: The data of the console. A test can replace it.
        app: The application with all pages and the API.
        requested_passes: The number of passes that the console has requested.
        requested_reloads: The number of reloads of the settings that the console has requested.
        retried_remotes: The URLs of the remotes whose back-off the console has ended.
        sign_ins: The sessions of people.
        activity: The log of the activity.
    """

    def __init__(self, world: World, api_requests: int = ServerLimits().api_requests_per_minute) -> None:
        self.world = world
        self.requested_passes = self.requested_reloads = 0
        self.retried_remotes: list[str] = []
        self.sign_ins = SignInState(self._read_clock)
        indexer = world.create_indexer()
        self._take_removals = indexer.take_removals
        archive = ChangeArchive()
        self.activity = ActivityLog(world.folder / "activity.jsonl", self._read_clock)
        index_thread = IndexThread(indexer, self._record_index)
        confirmations = ConfirmationStore(self._read_clock)
        self.context = ConsoleContext(
            state=ServiceState(),
            index_thread=index_thread,
            authenticator=LocalAuthenticator(ADA),
            drafts=DraftListReader(indexer),
            contents=DraftContentReader(indexer),
            packages=PackageContentReader(indexer),
            explainer=ValueExplainer(world.command_options),
            effects=ReleaseEffectsReader(world.command_options),
            searches=CauseSearches(world.command_options, self._read_clock),
            confirmations=confirmations,
            jobs=ReviewJobs(
                confirmations,
                lambda: world.open_review([]),
                self._request_pass,
                self._read_clock,
                record_activity=self.activity.append,
            ),
            restorer=Restorer(lambda: world.open_review([]), self._request_pass, self.activity.append),
            controls=ServiceControls(self._request_pass, self._request_reload, self.retried_remotes.append),
            csrf=self.sign_ins.csrf,
            indexes=RestrictedIndexes(lambda: index_thread.index),
            archive=archive,
            activity=ActivityLists(self.activity.read),
            clock=self._read_clock,
            config=world.create_config_pages(),
        )
        routes = [
            *create_api_routes(lambda: self.context, RateLimit(api_requests, self._read_clock)),
            *create_console_routes(lambda: self.context),
        ]
        self.app = create_app(routes, ServerLimits(), lambda: _RULES)

    def _read_clock(self) -> float:
        return float(self.world.now)

    def _request_pass(self) -> None:
        self.requested_passes += 1

    def _request_reload(self) -> None:
        self.requested_reloads += 1

    def _record_index(self, index: FleetIndex) -> None:
        self.context.archive.update(index)
        self.activity.update(index)
        self.activity.append(self._take_removals())

    def _record_pass(self, report: PassReport) -> None:
        self.activity.append(list_pass_events(report, self.world.now))

    def update(self) -> None:
        """Run a pass, and update the index."""
        observed = self.world.observe_pass(self._record_pass)
        self.context.index_thread.build(observed)
        record = PassRecord(observed.completed_at, 1.5, "success")
        number = self.context.state.view.number + 1 if self.context.state.view else 1
        view = FleetView(number, self.context.state.clock(), record, observed.config, len(observed.targets))
        self.context.state.record_completed_pass(view)

    def find_change(self, title: str) -> ReviewChange:
        """Return the change with this title in the newest index."""
        index = self.context.index
        assert index is not None
        return next(change for change in index.changes if change.title == title)

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Return the response to a GET request."""
        return request(self.app, path, **headers)

    def post(self, path: str, fields: Fields, **headers: str) -> httpx.Response:
        """Return the response to a form that a page of the console has sent. A header or field can be replaced."""
        body = urlencode({"csrf": self.context.csrf.create(""), **fields}, doseq=True)
        all_headers = {"sec_fetch_site": "same-origin", "content_type": _FORM_TYPE, **headers}
        return request(self.app, path, "POST", content=body.encode(), **all_headers)

    def post_json(self, path: str, data: object, **headers: str) -> httpx.Response:
        """Return the response to a request of a program. A header can be replaced."""
        all_headers = {"content_type": "application/json", **headers}
        return request(self.app, path, "POST", content=json.dumps(data).encode(), **all_headers)

    def confirm(self, fields: Fields, **submitted: str) -> httpx.Response:
        """Create a confirmation, submit it, apply its job, and return the page of the job, or the error page."""
        created = self.post("/changes/confirm", fields)
        if created.status_code != 303:
            return created
        path = created.headers["location"]
        key = find_value(self.get(path).text, "key")
        response = self.post(f"{path}/submit", {"key": key, **submitted})
        if response.status_code != 303:
            return response
        self.context.jobs.apply_waiting()
        return self.get(response.headers["location"])


def find_value(text: str, name: str) -> str:
    """Return the value of a hidden field in a page."""
    match = re.search(rf'name="{name}" value="([^"]*)"', text)
    return match[1] if match else ""


def strip_tags(html: str) -> str:
    """Return the text of HTML in one line."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", html)).split())


def use_authentication(
    console: ConsoleClient, external_url: str = "https://console.example.com", **group: object
) -> None:
    """Let the console identify people as these settings of the group `console` require. Sessions stay valid."""
    server = {"trusted_proxies": ["10.0.0.0/8"], "external_url": external_url}
    settings = Settings.model_validate({"console": group, "server": server})
    rules = build_role_rules(settings)
    authenticator, sign_in = build_authenticator(
        settings, lambda person: find_permissions(rules, person), console.sign_ins
    )
    console.context = replace(
        console.context, authenticator=authenticator, sign_in=sign_in, contact=settings.console.contact,
        csrf=console.sign_ins.csrf, list_tokens=partial(list_tokens, authenticator),
    )  # fmt: skip


def sign_in(console: ConsoleClient, session: Session) -> None:
    """Let all requests have this session."""

    class Fixed:
        def authenticate(self, _request: object, *, extends_session: bool = True) -> Session:
            return session

    console.context = replace(console.context, authenticator=Fixed())


def open_console(world: World, api_requests: int = ServerLimits().api_requests_per_minute) -> ConsoleClient:
    """Return a client of the console of a fleet. The index is empty until the first update."""
    return ConsoleClient(world, api_requests)
