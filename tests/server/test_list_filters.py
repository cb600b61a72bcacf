"""The filters of lists: the pages and the API select the same items."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from reconciler.krm.findings import Finding, SourceLocation
from reconciler.output.fleet.model import PackageRow
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.server.address import API_PREFIX
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, open_console, sign_in, strip_tags
from tests.support.console_server import add_targets
from tests.support.fleet_index import create_row, create_target
from tests.support.world import small_world

WEB, WEB_2, PLUGIN = "PackageVariantSet default/web", "PackageVariantSet default/web-2", "PluginPreset greenhouse/logs"
DAY = 1_700_000_000


def create_owned_row(target: str, package: str, owner: str, **more: Any) -> PackageRow:
    row = create_row(target, package, **more)
    return replace(row, owner=owner, draft=replace(row.draft, owner=owner) if row.draft else None)


@pytest.fixture
def console(drafted_console: ConsoleClient) -> Iterator[ConsoleClient]:
    """Three more targets with packages of two tenants, and with findings. Their names start with `zone`."""
    index = drafted_console.context.index
    targets = [
        create_target(
            "zone-1",
            {"region": "east", "stage": ""},
            create_owned_row("zone-1", "web", WEB, tenant="red", change="c-web", since=DAY),
            create_owned_row("zone-1", "logs", PLUGIN, tenant="blue"),
        ),
        create_target(
            "zone-2", {"region": "west"}, create_owned_row("zone-2", "web", WEB_2, tenant="red", change="c-web-2")
        ),
        create_target("zone-3", {}, create_owned_row("zone-3", "logs", PLUGIN, change="c-logs", risk="access")),
    ]
    findings = [
        Finding("ZoneWeb", "m", SourceLocation(package="zone-1/web")),
        Finding("ZoneWeb2", "m", SourceLocation(package="zone-2/web", owner="PackageVariant/default/web-2-zone")),
        Finding("ZoneLogs", "m", SourceLocation("logs.yaml", 1, "PluginPreset/greenhouse/logs")),
        Finding("ZoneFile", "m", SourceLocation("teams/green/all.yaml", 1)),
        Finding("ZoneNew", "m", SourceLocation(package="zone-3/logs")),
    ]
    add_targets(drafted_console, targets, findings, {"teams/green/all.yaml:1": "green", "zone-3/logs": "yellow"})
    yield drafted_console
    drafted_console.context.index_thread.index = index


def read_items(console: ConsoleClient, path: str) -> list[dict[str, Any]]:
    response = console.get(f"{API_PREFIX}{path}")
    assert response.status_code == 200, response.text
    return list(response.json()["items"])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("tenant=red", ["c-web", "c-web-2"], id="tenant"),
        pytest.param("tenant=green", [], id="unknown-tenant"),
        pytest.param("owner=PackageVariantSet+default/web", ["c-web"], id="name-of-an-owner"),
        pytest.param("owner=DEFAULT/WEB", ["c-web", "c-web-2"], id="part-of-the-name-of-an-owner"),
        pytest.param("tenant=red&owner=logs", [], id="tenant-and-owner"),
        pytest.param("on=zone-1,zone-3&sort=targets", ["c-logs", "c-web"], id="names-of-targets"),
        pytest.param("on=zone-1&on=zone-2&since=2023-11-14", ["c-web"], id="day"),
        pytest.param(f"on=zone-1&since={DAY + 1}", [], id="seconds"),
        pytest.param("target=region%3Dwest", ["c-web-2"], id="labels"),
    ],
)
def test_pages_and_the_api_have_the_same_changes(query: str, expected: list[str], console: ConsoleClient) -> None:
    text = console.get(f"/changes?{query}").text
    found = re.findall(r'class="title" href="/changes/([^"]+)"', text)

    assert [item["key"] for item in read_items(console, f"/changes?{query}")] == found
    assert sorted(found) == sorted(expected)
    assert ("No change matches" in text) == (not expected)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("tenant=blue", ["zone-1"], id="tenant"),
        pytest.param("owner=PackageVariantSet+default/web", ["zone-1"], id="name-of-an-owner"),
        pytest.param("owner=greenhouse", ["zone-1", "zone-3"], id="part-of-the-name-of-an-owner"),
        pytest.param("owner=greenhouse&state=draft", ["zone-3"], id="one-package-matches-all"),
        pytest.param("owner=greenhouse&labels=region", ["zone-1"], id="owner-and-labels"),
        pytest.param("owner=nothing", [], id="without-a-match"),
    ],
)
def test_pages_and_the_api_have_the_same_targets(query: str, expected: list[str], console: ConsoleClient) -> None:
    text = console.get(f"/targets?{query}").text

    assert re.findall(r'</label> <a href="/targets/([^"]+)"', text) == expected
    assert [item["name"] for item in read_items(console, f"/targets?{query}")] == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("owner=PackageVariantSet+default/web", ["ZoneWeb"], id="owner-of-a-package"),
        pytest.param("owner=PackageVariant+default/web-2-zone", ["ZoneWeb2"], id="owner-in-the-location"),
        pytest.param("owner=greenhouse", ["ZoneLogs", "ZoneNew"], id="object-of-the-config"),
        pytest.param("tenant=red", ["ZoneWeb", "ZoneWeb2"], id="tenant-of-a-package"),
        pytest.param("tenant=blue", ["ZoneLogs"], id="tenant-of-an-object"),
        pytest.param("tenant=green", ["ZoneFile"], id="tenant-of-a-file"),
        pytest.param("tenant=yellow", ["ZoneNew"], id="tenant-of-a-package-before-its-first-render"),
        pytest.param("tenant=blue&owner=default", [], id="tenant-and-owner"),
    ],
)
def test_pages_and_the_api_have_the_same_findings(query: str, expected: list[str], console: ConsoleClient) -> None:
    text = console.get(f"/findings?{query}").text

    assert sorted(re.findall(r'<a href="/findings/[0-9a-f]+">(\w+)</a>', text)) == expected
    assert sorted(item["code"] for item in read_items(console, f"/findings?{query}")) == expected


def test_the_api_filters_the_packages_of_a_target(console: ConsoleClient) -> None:
    queries = ("", "tenant=red", "owner=logs", "state=draft&owner=logs", "q=LOG")
    found = {query: [item["package"] for item in read_items(console, f"/targets/zone-1?{query}")] for query in queries}

    assert found == {
        "": ["web", "logs"], "tenant=red": ["web"], "owner=logs": ["logs"], "state=draft&owner=logs": [], "q=LOG": ["logs"],
    }  # fmt: skip


def test_chosen_labels_are_columns(console: ConsoleClient) -> None:
    text = console.get("/targets?q=zone&show=stage&show=region&show=none").text
    columns = re.findall(r'<th scope="col">(\w+)</th>', text)
    cells = re.findall(r'data-label="(?:region|stage)">(.*?)</td>', text)

    assert columns[:3] == ["Target", "region", "stage"]
    assert [strip_tags(cell) for cell in cells] == ["east", "empty", "west", "", "", ""]
    assert "?q=zone&show=stage%2Cregion%2Cnone&labels=region%3Deast" in unescape(text)
    assert text.count(" checked>") == 2


@pytest.mark.slow
def test_the_team_of_a_tenant_reads_the_findings_about_its_files(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    tenants = "".join(
        f"apiVersion: reconciler.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {name}}}\n"
        f"spec: {{directories: ['teams/{name}/**'], allow: {{kinds: ['*']}}}}\n---\n"
        for name in ("red", "blue")
    )
    broken = "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: PackageVariant\nmetadata: {name: web}\nspec: {}\n"
    world.write({"tenants/all.yaml": tenants, "teams/red/web.yaml": broken, "other.yaml": broken.replace("web", "db")})
    console = open_console(world)
    console.update()
    files = {
        query: {item["file"] for item in read_items(console, f"/findings{query}")} for query in ("?tenant=red", "")
    }
    readable = []
    for name in ("red", "blue"):
        sign_in(console, Session(ADA, Permissions((RoleRule("viewer", tenants=(name,)),))))
        readable.append({item["file"] for item in read_items(console, "/findings")})

    assert files == {"?tenant=red": {"teams/red/web.yaml"}, "": {"teams/red/web.yaml", "other.yaml"}}
    assert readable == [{"teams/red/web.yaml"}, set()]


def test_the_filter_for_tenants_needs_tenants(drafted_console: ConsoleClient) -> None:
    assert 'id="filter-tenant"' not in drafted_console.get("/changes").text
    assert 'id="filter-owner"' in drafted_console.get("/changes").text


def test_a_form_keeps_its_filters_and_shows_an_invalid_time(console: ConsoleClient) -> None:
    text = console.get("/changes?tenant=red&owner=web&since=soon").text
    numeric = console.get(f"/changes?since={DAY}").text

    assert "<option selected>red</option>" in text
    assert 'name="owner" value="web"' in text
    assert "since: must be a day in UTC such as &#34;2024-05-31&#34;, or seconds since 1970" in text
    assert 'name="since" value="2023-11-14"' in numeric


def test_a_cursor_belongs_to_its_filters(console: ConsoleClient) -> None:
    first = console.get(f"{API_PREFIX}/changes?tenant=red&limit=1&sort=age").json()
    cursor = f"cursor={first['next']}"
    same = console.get(f"{API_PREFIX}/changes?{cursor}&sort=age&limit=5&tenant=red&owner=")
    paths = ("changes?sort=age", "changes?sort=age&tenant=blue", "changes?tenant=red", "targets?tenant=red&sort=age")
    others = [console.get(f"{API_PREFIX}/{path}&{cursor}") for path in paths]

    assert [item["key"] for item in [*first["items"], *same.json()["items"]]] == ["c-web", "c-web-2"]
    assert [(response.status_code, response.json()["code"]) for response in others] == [(400, "CursorMismatch")] * 4
    assert others[0].json()["nextStep"] == "Send the path and the parameters of the first page, or omit the cursor."
