"""States of the console that other data or other people cause, for tests of all its pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NoReturn

from reconciler.forge.rate_limits import ForgeLimit, ForgeQuota
from reconciler.git.errors import AccessDeniedError
from reconciler.inspect.cause_searches import CauseSearch, SearchedValue
from reconciler.output.fleet.builder import build_fleet_index
from reconciler.output.fleet.model import FleetIndex
from reconciler.reconcile.remotes.availability import RemoteState
from reconciler.review.activity_lists import ActivityLists
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.review.restricted_index import RestrictedIndexes
from reconciler.server.authentication.access_tokens import AccessToken
from reconciler.server.console.context import ConsoleContext
from reconciler.server.console.people import Session
from reconciler.service.fleet_view import Failure, FleetView, PassRecord
from reconciler.service.index_thread import IndexThread
from reconciler.service.state import ServiceState
from tests.support.console import ADA, ConsoleClient, sign_in, use_authentication
from tests.support.console_server import ServedConsole

PROVIDER = {"issuer": "https://id.example.com", "client_id": "console"}
TOKENS = (
    AccessToken("ci", Permissions((RoleRule("reviewer"),)), "0" * 64, 4_000_000_000, "region=south"),
    AccessToken("monitoring", Permissions((RoleRule("viewer"),)), "1" * 64, 1_000),
)
COMMIT = {
    "commit": "ab" * 20, "author": "Ada", "committer": "Ada", "date": "2026-11-02T10:00:00Z", "subject": "more load"
}  # fmt: skip
REASON = {"kind": "edit", "message": "a person changed the value on the branch", "commits": [COMMIT]}
SEARCH = CauseSearch(
    "5ea7c4", SearchedValue("berlin", "gateway", "Deployment/gateway", "/spec/replicas"), 1_000.0, "reconciler why"
)
FOUND = {"value": 5, "before": 2, "branch": "clusters/berlin", "commit": COMMIT, "reason": REASON}
EMPTY_PATHS = ("/", "/changes", "/targets", "/findings", "/activity", "/rollouts", "/search?q=a", "/system/remotes")


def list_states(served: ServedConsole) -> dict[str, tuple[ConsoleContext, str]]:
    """Return the context of each state with the path of one of its pages, by a name."""
    client, context = served.client, served.client.context
    empty = create_other_index(context, build_fleet_index(1, 1_000, "config", (), ()))
    with keep_context(client):
        rules = [{"role": "viewer", "groups": ["g"]}]
        use_authentication(client, served.url, auth=["oidc"], oidc=PROVIDER, roles=rules)
        signed_out = client.context
    gateway = served.find_change("update gateway v1 → v2")
    search = f"/searches/{SEARCH.id}"
    failing = replace(context, state=create_failing_state(context))
    return {
        **{f"empty {path}": (empty, path) for path in EMPTY_PATHS},
        "starting": (create_other_index(context, None), "/"),
        "sign-in": (signed_out, "/sign-in"),
        "failed-sign-in": (signed_out, "/sign-in/callback?state=old"),
        "not-signed-in": (replace(signed_out, sign_in=None), "/"),
        "no-role": (create_context_of(client), "/"),
        "viewer": (create_context_of(client, RoleRule("viewer")), gateway),
        "viewer-of-packages": (create_context_of(client, RoleRule("viewer", packages=("gateway",))), "/system/remotes"),
        "failing-remotes": (failing, "/system/remotes"),
        "failing-checks": (failing, "/system"),
        "tokens": (replace(context, list_tokens=lambda: TOKENS), "/system/tokens"),
        "failure": (replace(context, activity=ActivityLists(fail)), "/activity"),
        "running-search": (create_context_with(context, SEARCH), search),
        "cause": (create_context_with(context, replace(SEARCH, state="completed", data={"items": [FOUND]})), search),
    }


def fail() -> NoReturn:
    raise RuntimeError("an unexpected error")


@contextmanager
def keep_context(client: ConsoleClient) -> Iterator[None]:
    """Restore the context of a console at the end of the `with` block."""
    context = client.context
    try:
        yield
    finally:
        client.context = context


def create_context_of(client: ConsoleClient, *rules: RoleRule) -> ConsoleContext:
    """Return the context of a person with these roles."""
    with keep_context(client):
        sign_in(client, Session(ADA, Permissions(rules), "", "proxy"))
        return client.context


def create_context_with(context: ConsoleContext, search: CauseSearch) -> ConsoleContext:
    """Return a context with one search, whose command has not run."""
    searches: Any = SimpleNamespace(find=lambda _id: search)
    return replace(context, searches=searches)


def create_other_index(context: ConsoleContext, index: FleetIndex | None) -> ConsoleContext:
    """Return a context with another index. None means that no index is complete."""
    indexer: Any = None
    thread = IndexThread(indexer)
    thread.index = index
    return replace(context, index_thread=thread, indexes=RestrictedIndexes(lambda: index))


def create_failing_state(context: ConsoleContext) -> ServiceState:
    """Return the state of a service with a failing remote, and with the rate limits of two forges."""
    state = ServiceState(context.clock)
    now = state.clock()
    failing = RemoteState(
        "https://git.example.com/berlin.git", "", "target", AccessDeniedError("berlin: access denied"), 3, 40.0,
        now - 90, now - 120, now - 180,
    )  # fmt: skip
    working = RemoteState("https://git.example.com/catalog.git", "", "upstream", fetched_at=now)
    limits = (
        ForgeLimit("github.com", "github", ForgeQuota(5_000, 12, int(now) + 1_800)),
        ForgeLimit("git.example.com", "gitlab", ForgeQuota(), now + 120),
    )
    record = PassRecord(now - 5, 1.5, "failure", ("timer",), {"fetch": 1.5}, "berlin: access denied")
    state.add_pass(record)
    failures = (Failure(now - 90, "berlin: access denied", failing.url),)
    state.record_completed_pass(
        FleetView(1, now, record, "config", 1, failures, remotes=(failing, working), forge_limits=limits)
    )
    return state
