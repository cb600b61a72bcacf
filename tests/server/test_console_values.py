"""Tests of the page of a value: links to the lines that set it, and the search for the commit that changed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from reconciler.inspect.cause_searches import MAX_RUNNING, CauseSearches, SearchedValue
from reconciler.inspect.command_process import CommandOutput, ReconcilerCommand
from reconciler.inspect.value_explainer import ValueExplanation
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.server.console.config_pages import ConfigPages
from reconciler.server.console.page_links import PageLinks
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, open_console, sign_in, strip_tags
from tests.support.console_server import create_conflicting_world
from tests.support.prepared_worlds import begin

FIELDS = {"target": "lisbon", "package": "gateway", "resource": "Deployment/gateway", "pointer": "/spec/replicas"}
COMMIT = "ab" * 20


@pytest.fixture
def console(tmp_path: Path) -> ConsoleClient:
    client = open_console(begin(tmp_path, create_conflicting_world))
    client.update()
    return client


class SlowCommand:
    """A command that runs until it is canceled or released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_released = Event()
        monkeypatch.setattr(ReconcilerCommand, "run", self._run)

    def _run(self, _arguments: object, _seconds: float, is_canceled: object) -> CommandOutput:
        assert callable(is_canceled)
        while not (is_canceled() or self.is_released.wait(0.01)):
            pass
        return CommandOutput(error="the command was canceled" if is_canceled() else "")


@pytest.fixture
def slow_command(monkeypatch: pytest.MonkeyPatch) -> SlowCommand:
    return SlowCommand(monkeypatch)


def start(console: ConsoleClient, **fields: str) -> str:
    """Start a search, and return the path of its page."""
    response = console.post("/searches", {**FIELDS, **fields})
    assert response.status_code == 303, response.text
    return response.headers["location"]


@pytest.mark.slow
def test_a_search_finds_the_person_who_changed_a_value(console: ConsoleClient) -> None:
    path = start(console)
    console.context.searches.wait(path.rpartition("/")[2])
    text = console.get(path).text

    assert "a person changed the value on the branch" in text
    assert "<code>5</code>, previously <code>2</code>" in text
    assert "by Ada" in text
    assert "Cancel the search" not in text


@pytest.mark.slow
def test_the_page_of_a_running_search_loads_itself_again_also_without_scripts(
    console: ConsoleClient, slow_command: SlowCommand
) -> None:
    path = start(console)
    text = console.get(path).text
    cancel = console.post(f"{path}/cancel", {})
    after = console.get(cancel.headers["location"]).text

    assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in text
    assert f'hx-get="{path}" hx-trigger="every 2s"' in text
    assert (cancel.status_code, "The search was canceled." in after, "every 2s" in after) == (303, True, False)


@pytest.mark.slow
def test_equal_searches_are_one_and_their_number_is_limited(console: ConsoleClient, slow_command: SlowCommand) -> None:
    pointers = [f"/spec/{number}" for number in range(MAX_RUNNING)]
    paths = [start(console, pointer=pointer) for pointer in pointers]
    again = start(console, pointer=pointers[0])
    refused = console.post("/searches", {**FIELDS, "pointer": "/spec/more"})
    console.context.searches.close()

    assert again == paths[0]
    assert len(set(paths)) == MAX_RUNNING
    assert (refused.status_code, "4 searches run already" in refused.text) == (409, True)
    assert ["The search was canceled." in console.get(path).text for path in paths] == [True] * MAX_RUNNING


@pytest.mark.slow
@pytest.mark.parametrize("field", ["target", "package"])
def test_only_a_package_of_the_fleet_can_be_searched(field: str, console: ConsoleClient) -> None:
    assert console.post("/searches", {**FIELDS, field: "--draft"}).status_code == 404


@pytest.mark.slow
def test_a_person_sees_no_search_of_a_target_that_they_may_not_read(
    console: ConsoleClient, slow_command: SlowCommand
) -> None:
    path = start(console)
    sign_in(console, Session(ADA, Permissions((RoleRule("viewer", packages=("metrics",)),))))

    assert console.get(path).status_code == 404
    assert console.post(f"{path}/cancel", {}).status_code == 404
    console.context.searches.close()


def test_old_searches_are_deleted(slow_command: SlowCommand) -> None:
    slow_command.is_released.set()
    searches = CauseSearches((), lambda: 0.0)
    started = []
    for number in range(102):
        search = searches.start(SearchedValue("a", "b", "c", f"/{number}"))
        searches.wait(search.id)
        started.append(search.id)

    assert [searches.find(key) is None for key in started[:3]] == [True, True, False]


def use_explanation(console: ConsoleClient, *steps: dict[str, object], upstream: dict[str, str] | None = None) -> None:
    """Let all values have these layers."""

    class Explainer:
        def explain(self, *_arguments: Sequence[str]) -> ValueExplanation:
            values = ({"pointer": "/spec/replicas", "steps": steps},)
            return ValueExplanation("reconciler explain", values, {"upstream": upstream or {}})

    console.context = replace(console.context, explainer=Explainer())


def test_a_local_change_names_its_person_and_date(console: ConsoleClient) -> None:
    """The conflict of a change and the layer of a value name the commit on the branch."""
    change = console.get(f"/changes/{console.find_change('update gateway v1 → v2').key}?target=lisbon").text
    commit = {"commit": COMMIT, "author": "Ada", "date": "2026-11-02T08:00:00Z", "subject": "more load"}
    use_explanation(console, {"layer": "edit", "setBy": "a person", "localCommit": commit})
    value = console.get("/targets/lisbon/packages/gateway?view=values&resource=Deployment/gateway&pointer=/spec").text

    conflict = change.partition('<h2 id="conflicts">')[2].partition("</table>")[0]
    assert "Ada, 2004-11-09: by hand" in strip_tags(conflict).replace(" :", ":")
    assert "Ada, 2026-11-02: more load" in strip_tags(value).replace(" :", ":")


@pytest.mark.slow
def test_layers_link_to_their_lines_on_the_forge(console: ConsoleClient) -> None:
    links = PageLinks(lambda _url: "github")
    console.context = replace(console.context, config=ConfigPages(links, "https://example.com/config"))
    index = console.context.index
    assert index is not None
    target = replace(index.by_target["lisbon"], url="https://example.com/fleet", directory="apps", head=COMMIT)
    targets = tuple(target if entry.name == "lisbon" else entry for entry in index.targets)
    console.context.index_thread.index = replace(index, targets=targets, config=COMMIT)
    use_explanation(
        console,
        {"layer": "upstream", "file": "gateway/web.yaml", "line": 6, "commit": COMMIT},
        {"layer": "upstream", "file": "gateway/web.yaml", "line": 6, "commit": "ef" * 20},
        {"layer": "upstream", "file": "gateway/old.yaml", "line": 6, "commit": "cd" * 20},
        {"layer": "edit", "file": "gateway/web.yaml", "line": 7},
        {"layer": "policy", "file": "policies/size.yaml", "line": 4},
        upstream={"repo": "https://example.com/catalog", "commit": COMMIT},
    )
    text = console.get("/targets/lisbon/packages/gateway?resource=Deployment/gateway&pointer=/spec/replicas").text

    for path in (
        "catalog/blob/{}/gateway/web.yaml#L6",
        "fleet/blob/{}/apps/gateway/web.yaml#L7",
        "config/blob/{}/policies/size.yaml#L4",
    ):
        assert f'href="https://example.com/{path.format(COMMIT)}"' in text
    assert "gateway/old.yaml#" not in text
    assert text.count("gateway/web.yaml#L6") == 1
