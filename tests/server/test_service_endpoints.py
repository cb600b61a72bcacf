"""The last passes and the remotes in the API and on the page of the system, and the retry of a remote."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import jsonschema_rs
import pytest

from reconciler.forge.rate_limits import ForgeLimit, ForgeQuota
from reconciler.git.errors import AccessDeniedError
from reconciler.krm.selectors import LabelSelector
from reconciler.krm.times import format_rfc3339
from reconciler.reconcile.remotes.availability import RemoteState
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.server.console.people import Session
from reconciler.service.fleet_view import Failure, PassRecord
from tests.support.console import ADA, ConsoleClient, open_console, sign_in, strip_tags
from tests.support.prepared_worlds import begin, drafted

ADDRESS = "https://user:secret@git.example.com/berlin.git"
FAILING = RemoteState(
    "https://git.example.com/berlin.git",
    ADDRESS,
    "target",
    AccessDeniedError("berlin: access denied"),
    3,
    40.0,
    90.0,
    80.0,
    70.0,
)
WORKING = RemoteState("https://git.example.com/catalog.git", "https://git.example.com/catalog.git", "upstream")
VIEWER = (RoleRule("viewer"),)
ADMIN_SOUTH = (RoleRule("admin", targets=LabelSelector((("region", "south"),))),)


@pytest.fixture
def console(tmp_path: Path) -> ConsoleClient:
    """One of two remotes fails. The monotonic clock is 1,000 seconds behind the clock of the console."""
    client = open_console(begin(tmp_path, drafted))
    client.update()
    state = client.context.state
    assert state.view is not None
    state.clock = lambda: client.world.now - 1_000.0
    state.view = replace(
        state.view, completed_at=state.clock() - 10, remotes=(FAILING, WORKING),
        remote_failures=(Failure(90.0, "berlin: access denied", FAILING.url),),
    )  # fmt: skip
    state.add_pass(PassRecord(1_000_000_000.0, 2.0, "failure", ("timer",), {"fetch": 1.5}, "berlin: access denied"))
    state.add_pass(PassRecord(1_000_000_060.0, 1.25, "partial", ("now",)))
    return client


def test_the_remotes_have_their_state_and_their_next_attempt(console: ConsoleClient) -> None:
    document = console.get("/api/v1/openapi.json").json()
    result = console.get("/api/v1/remotes").json()
    failing = console.get("/api/v1/remotes?state=failing").json()
    by_text = console.get("/api/v1/remotes?q=CATALOG").json()
    schema = document["paths"]["/api/v1/remotes"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    jsonschema_rs.validate({**schema, "components": document["components"]}, result)
    item = result["items"][0]

    assert [item["state"] for item in result["items"]] == ["failing", "ok"]
    assert (item["url"], item["kind"], item["code"], item["failures"]) == (FAILING.url, "target", "AccessDenied", 3)
    assert item["message"].startswith("berlin: access denied")
    assert (item["since"], item["nextAttempt"]) == ("1970-01-01T00:18:10Z", format_rfc3339(console.world.now + 30))
    assert (item["lastFetch"], item["lastPush"]) == ("1970-01-01T00:18:00Z", "1970-01-01T00:17:50Z")
    assert failing["items"] == result["items"][:1]
    assert by_text["items"] == result["items"][1:]
    assert result["summary"] == failing["summary"] == {"remotes": 2, "failing": 1}
    assert "secret" not in str(result)


def test_the_passes_have_their_phases(console: ConsoleClient) -> None:
    document, result = console.get("/api/v1/openapi.json").json(), console.get("/api/v1/passes").json()
    schema = document["paths"]["/api/v1/passes"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    jsonschema_rs.validate({**schema, "components": document["components"]}, result)

    assert result["items"] == [
        {"startedAt": "2001-09-09T01:47:40Z", "durationSeconds": 1.25, "result": "partial", "triggers": ["now"]},
        {
            "startedAt": "2001-09-09T01:46:40Z", "durationSeconds": 2.0, "result": "failure", "triggers": ["timer"],
            "phases": {"fetch": 1.5}, "message": "berlin: access denied",
        },
    ]  # fmt: skip


def test_an_admin_retries_a_remote(console: ConsoleClient) -> None:
    response = console.post_json(f"/api/v1/remotes/{FAILING.key}:retry", {})
    page = console.post("/system/retry", {"remote": FAILING.key})
    list_page = console.post("/system/retry", {"remote": FAILING.key, "page": "remotes"})

    assert (response.status_code, response.headers["location"]) == (202, "/api/v1/remotes")
    assert [item["key"] for item in response.json()["items"]] == [FAILING.key]
    assert (page.status_code, page.headers["location"]) == (303, "/system")
    assert list_page.headers["location"] == "/system/remotes"
    assert console.retried_remotes == [ADDRESS, ADDRESS, ADDRESS]


@pytest.mark.parametrize(
    ("rules", "key", "status"),
    [
        pytest.param(VIEWER, FAILING.key, 403, id="viewer"),
        pytest.param((RoleRule("reviewer"),), FAILING.key, 403, id="reviewer"),
        pytest.param((RoleRule("admin"),), "0123456789ab", 404, id="unknown"),
    ],
)
def test_a_retry_needs_an_admin(rules: tuple[RoleRule, ...], key: str, status: int, console: ConsoleClient) -> None:
    sign_in(console, Session(ADA, Permissions(rules), mode="token"))

    assert console.post_json(f"/api/v1/remotes/{key}:retry", {}).status_code == status
    assert console.post("/system/retry", {"remote": key}).status_code == status
    assert console.retried_remotes == []


def test_a_person_who_reads_a_part_of_the_fleet_reads_no_remotes(console: ConsoleClient) -> None:
    sign_in(console, Session(ADA, Permissions(ADMIN_SOUTH)))
    responses = [console.get(path) for path in ("/api/v1/remotes", "/api/v1/passes", "/system", "/system/remotes")]
    retry = console.post_json(f"/api/v1/remotes/{FAILING.key}:retry", {})

    assert [response.status_code for response in responses] == [403, 200, 200, 403]
    assert [response for response in [*responses, retry] if "berlin" in response.text] == []
    assert (retry.status_code, console.retried_remotes) == (403, [])


def test_the_page_of_the_system_shows_failing_remotes_and_passes(console: ConsoleClient) -> None:
    text = console.get("/system").text
    sign_in(console, Session(ADA, Permissions(VIEWER)))
    as_viewer = console.get("/system").text

    assert "2 remotes, 1 failing." in text
    assert FAILING.url in text
    assert "in 30 s" in text
    assert "fetch 1.5 s" in text
    assert "secret" not in text
    assert WORKING.url not in text
    assert ("Try now" in text, "Try now" in as_viewer) == (True, False)


def test_the_page_of_the_remotes_has_the_times_of_each_remote(console: ConsoleClient) -> None:
    text = console.get("/system/remotes").text

    assert "2 remotes, 1 failing." in text
    assert "3 attempts" in text
    assert re.findall(r'data-label="Last (\w+)"><time datetime="([^"]+)"', text) == [
        ("fetch", "1970-01-01T00:18:00Z"), ("push", "1970-01-01T00:17:50Z"),
    ]  # fmt: skip
    assert 'name="page" value="remotes"' in text


def test_the_page_of_the_remotes_has_the_rate_limits_of_forges(console: ConsoleClient) -> None:
    state, now = console.context.state, console.world.now
    without = strip_tags(console.get("/system/remotes").text)
    assert state.view is not None
    limits = (
        ForgeLimit("github.com", "github", ForgeQuota(5_000, 12, now + 1_800)),
        ForgeLimit("git.example.com/team", "gitlab", ForgeQuota(resets_at=now - 5), now + 120.0),
    )
    state.view = replace(state.view, forge_limits=limits, number=state.view.number + 1)
    text = strip_tags(console.get("/system/remotes").text)

    assert "Rate limits" not in without
    assert "github.com github 12 of 5000 in 30 min git.example.com/team gitlab not reported" in text
    assert text.count(" in 30 min") == 1
    assert "not reported the forge requested a pause of 2 min" in text


def test_the_page_of_the_remotes_shows_what_its_filters_select(console: ConsoleClient) -> None:
    queries = ("", "?state=ok", "?q=ACCESS+denied", "?q=nothing&state=ok")
    texts = [console.get(f"/system/remotes{query}").text for query in queries]
    shown = [[url for url in (FAILING.url, WORKING.url) if f"<code>{url}</code>" in text] for text in texts]

    assert shown == [[FAILING.url, WORKING.url], [WORKING.url], [FAILING.url], []]
    assert "No remote matches 2 filters" in texts[-1]
