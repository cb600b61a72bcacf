"""Tests of the search: the found objects, the words that select resources, and the command palette."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape

import pytest

from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.selectors import LabelSelector
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, open_console, sign_in
from tests.support.console_server import add_targets
from tests.support.fleet_index import create_row, create_target
from tests.support.prepared_worlds import begin, drafted
from tests.unit.output.fleet.builders import build_draft, index_targets

VIEWER, NORTH = RoleRule("viewer"), RoleRule("admin", targets=LabelSelector((("region", "north"),)))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> ConsoleClient:
    """Gateway is drafted on Berlin and Lisbon, and metrics on Berlin. Three more targets have another change."""
    client = open_console(begin(tmp_path_factory.mktemp("fleet"), drafted))
    client.update()
    drafts = [build_draft(f"edge-{size}", format_settings(1, size), format_settings(2, size)) for size in range(3)]
    finding = Finding("UpstreamNotFound", "message", SourceLocation("a.yaml", 1))
    many = [create_target(f"many-{number:02}", {}, create_row(f"many-{number:02}", "db")) for number in range(30)]
    add_targets(client, [*index_targets(*drafts), *many], [finding])
    return client


@pytest.fixture
def console(client: ConsoleClient) -> Iterator[ConsoleClient]:
    context = client.context
    yield client
    client.context = context


def format_settings(version: int, size: int) -> dict[str, str]:
    fields = f'zone: "eu{version}.example", first: "{version}", second: "{version}", third: "{version}", size: "{size}"'
    metadata = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
    secret = f'apiVersion: v1\nkind: Secret\nmetadata: {{name: keys}}\nstringData: {{key: "hidden-{version}"}}\n'
    return {"settings.yaml": f"{metadata}data: {{{fields}}}\n", "secret.yaml": secret}


def search(console: ConsoleClient, query: str, **more: str) -> dict[str, list[str]]:
    """Return the titles of the results by the heading of their kind."""
    extra = "".join(f"&{name}={value}" for name, value in more.items())
    text = console.get(f"/search?q={query}{extra}").text
    sections = re.findall(r'<h2 id="kind-[a-z]+">(.*?)</h2>\s*<ul class="rows">(.*?)</ul>', text, re.DOTALL)
    return {
        heading: [unescape(title) for title in re.findall(r"<a [^>]*>(.*?)</a>", rows)] for heading, rows in sections
    }


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param("LISBON", {"1 target": ["lisbon"], "1 package": ["lisbon/gateway"]}, id="upper-case"),
        pytest.param("unf", {"1 finding code": ["UpstreamNotFound"]}, id="initials"),
        pytest.param("pvs", {"1 config object": ["PackageVariantSet default/gateway"]}, id="initials-of-a-kind"),
        pytest.param("configmap+settings", {"1 resource": ["ConfigMap settings"]}, id="resource"),
        pytest.param("kind:config", {"2 resources": ["ConfigMap settings", "ConfigMap endpoints"]}, id="kind"),
        pytest.param("KIND:Deployment+name:GATE", {"1 resource": ["Deployment gateway"]}, id="kind-and-name"),
        pytest.param("value:EU2.example", {"1 resource": ["ConfigMap settings"]}, id="value"),
        pytest.param("value:third+settings", {"1 resource": ["ConfigMap settings"]}, id="field-that-is-not-in-the-row"),
        pytest.param("value:hidden", {}, id="value-of-a-secret"),
        pytest.param("value:eu2.example+gateway", {}, id="value-of-another-resource"),
        pytest.param("matrix", {"1 page": ["Targets as a matrix"]}, id="page"),
        pytest.param("start+pass", {"1 action": ["Start a pass"]}, id="action"),
        pytest.param("zzz", {}, id="nothing"),
    ],
)
def test_a_search_finds(query: str, found: dict[str, list[str]], console: ConsoleClient) -> None:
    assert search(console, query) == found


def test_names_that_start_with_the_text_come_first(console: ConsoleClient) -> None:
    rows = [create_target(name, {}, create_row(name, "x")) for name in ("a-prefix", "prefix-b")]
    index = console.context.index_thread.index
    add_targets(console, rows, ())
    found = search(console, "prefix")
    console.context.index_thread.index = index

    assert found["2 targets"] == ["prefix-b", "a-prefix"]


def test_each_result_leads_to_a_page(console: ConsoleClient) -> None:
    for query in ("gateway", "settings", "UpstreamNotFound", "changes", "start"):
        links = re.findall(r'<li><a href="([^"]*)"', console.get(f"/search?q={query}").text)
        assert {console.get(unescape(link)).status_code for link in links} == {200}, links


def test_a_config_object_leads_to_its_targets(console: ConsoleClient) -> None:
    (link,) = re.findall(r'href="(/targets\?owner=[^"]*)"', console.get("/search?q=pvs").text)
    text = console.get(unescape(link)).text

    assert "1 to 2 of 2 targets" in text
    assert "Targets with packages of PackageVariantSet default/gateway." in text


@pytest.mark.parametrize(("brief", "count"), [("", 20), ("yes", 5)], ids=["page", "palette"])
def test_the_number_of_results_of_a_kind_is_limited(brief: str, count: int, console: ConsoleClient) -> None:
    found = search(console, "many-", brief=brief)

    assert {heading: len(results) for heading, results in found.items()} == {"30 targets": count, "30 packages": count}


def test_an_empty_palette_offers_pages_and_actions(console: ConsoleClient) -> None:
    found = search(console, "", brief="yes")

    assert found["16 pages"][:3] == ["Fleet", "Changes", "Changes with a high risk"]
    assert found["2 actions"] == ["Select all waiting changes", "Start a pass"]
    assert search(console, "") == {}


def test_the_palette_has_only_results(console: ConsoleClient) -> None:
    text = console.get("/search?q=gateway&brief=yes").text

    assert "<html" not in text
    assert console.get("/search?q=zzz&brief=yes").text.startswith("<p>Nothing matches “zzz”.")


@pytest.mark.parametrize(
    ("rules", "actions"),
    [
        pytest.param((VIEWER,), [], id="viewer"),
        pytest.param((RoleRule("reviewer"),), ["Select all waiting changes"], id="reviewer"),
        pytest.param((RoleRule("admin"),), ["Select all waiting changes", "Start a pass"], id="admin"),
    ],
)
def test_actions_depend_on_the_role(rules: tuple[RoleRule, ...], actions: list[str], console: ConsoleClient) -> None:
    sign_in(console, Session(ADA, Permissions(rules)))

    assert [
        title for heading, titles in search(console, "", brief="yes").items() if "action" in heading for title in titles
    ] == actions


def test_a_search_finds_only_readable_objects(console: ConsoleClient) -> None:
    sign_in(console, Session(ADA, Permissions((replace(NORTH, packages=("gateway",)),))))

    assert search(console, "lisbon") == search(console, "metrics") == search(console, "configmap+settings") == {}
    assert search(console, "berlin")["1 package"] == ["berlin/gateway"]
