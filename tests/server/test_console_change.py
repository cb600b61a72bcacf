"""Tests of the page of one change: values of many variants, differences and targets."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any, NoReturn

import pytest

from reconciler.inspect.draft_content import DraftContent
from reconciler.output.changes.package_changes import PackageChanges
from reconciler.output.fleet.model import DraftMember, TargetEntry
from reconciler.output.fleet.resource_diffs import ResourceDiff, build_blocks
from reconciler.output.fleet.value_table import MIN_VARIANTS
from reconciler.server.console.config_pages import ConfigPages
from reconciler.server.console.page_links import PageLinks
from tests.support.console import ConsoleClient, open_console
from tests.support.console_server import add_targets, create_updated_world
from tests.support.fleet_index import create_refusal, create_row, create_target
from tests.support.prepared_worlds import begin, drafted
from tests.unit.output.fleet.builders import build_draft, format_size, index_targets
from tests.unit.output.report.builders import CONFLICT, HEAD


@pytest.fixture
def console(tmp_path: Path) -> ConsoleClient:
    """All packages are drafted, and no package is published. A test can change the index."""
    client = open_console(begin(tmp_path, drafted))
    client.update()
    return client


def test_many_variants_are_one_table_of_values(console: ConsoleClient) -> None:
    names = [f"edge-{number:02}" for number in range(MIN_VARIANTS)]
    drafts = [build_draft(name, format_size(i), format_size(i + 1)) for i, name in enumerate(names)]
    add_targets(console, index_targets(*drafts, build_draft("other")), ())
    index = console.context.index
    assert index is not None
    change = index.by_target["edge-00"].drafts[0].change_key
    text = console.get(f"/changes/{change}").text

    assert "Values of 11 variants on 11 targets" in text
    assert "<code>0 → 1</code> on 1 target: <a href=" in text
    assert "11 variants that change the same fields, on 11 targets" in text
    assert text.count('name="variant"') == MIN_VARIANTS + 1
    assert "Other variants" in text


def get_target(console: ConsoleClient, name: str) -> TargetEntry:
    index = console.context.index
    assert index is not None
    return index.by_target[name]


def open_change(console: ConsoleClient, target: str, query: str = "") -> str:
    """Return the page of the change of this target."""
    return console.get(f"/changes/{get_target(console, target).drafts[0].change_key}?target={target}&{query}").text


def show_diffs(console: ConsoleClient, *diffs: ResourceDiff) -> None:
    """Let all drafts have these differences."""

    class Contents:
        def find(self, _member: DraftMember, _resource: str) -> DraftContent:
            return DraftContent(diffs)

        def read(self, member: DraftMember, _changes: PackageChanges, resource: str) -> DraftContent:
            return self.find(member, resource)

    console.context = replace(console.context, contents=Contents())


def create_diff(title: str, count: int, **fields: Any) -> ResourceDiff:
    """Return the diff of a resource with this number of added lines."""
    blocks = tuple(build_blocks([], [f"line {number}" for number in range(count)]))
    return ResourceDiff(title, "added", f"{title.rpartition(' ')[2]}.yaml", blocks, **fields)


@pytest.mark.slow
def test_each_added_line_leads_to_the_layers_of_its_value(drafted_console: ConsoleClient) -> None:
    text = open_change(drafted_console, "berlin")
    links = re.findall(r'<a class="why" href="([^"]*)">', text)
    (replicas,) = (unescape(link) for link in links if "pointer=%2Fspec%2Freplicas" in link)

    assert replicas == "/targets/berlin/packages/gateway?resource=Deployment%2Fgateway&pointer=%2Fspec%2Freplicas"
    page = drafted_console.get(replicas)
    assert (page.status_code, "effective" in page.text) == (200, True)


@pytest.mark.slow
def test_the_list_contains_one_line_for_each_change(tmp_path: Path) -> None:
    console = open_console(begin(tmp_path, create_updated_world))
    console.update()
    text = open_change(console, "berlin", "view=list")

    assert "<li>Deployment gateway: replicas 2 → 3</li>" in text
    assert '<details class="resource"' not in text


def test_line_numbers_are_the_headers_of_rows(drafted_console: ConsoleClient) -> None:
    for view in ("unified", "split"):
        assert '<th scope="row" class="number">1</th>' in open_change(drafted_console, "berlin", f"view={view}")


def test_lines_after_the_limit_are_counted_and_loaded_on_demand(console: ConsoleClient) -> None:
    show_diffs(console, *(create_diff(f"ConfigMap c{number}", 150) for number in range(4)))
    text = open_change(console, "berlin")
    more = open_change(console, "berlin", "resource=ConfigMap+c3")

    assert "300 changed lines of 2 resources are not on this page" in text
    assert [f"c{number}" for number in range(4) if text.count(f"Changed lines of ConfigMap c{number}<")] == ["c0", "c1"]
    assert "Changed lines of ConfigMap c3<" in more
    assert "reconciler show berlin/gateway --diff-lines 550" in text


def test_a_resource_that_is_too_large_is_never_loaded(console: ConsoleClient) -> None:
    show_diffs(console, create_diff("ConfigMap large", 5_001))
    text = open_change(console, "berlin", "resource=ConfigMap+large")

    assert "5001 changed lines not shown." in text
    assert "Show the lines" not in text
    assert "--diff-lines 5401" in text


def test_resources_with_conflicts_come_first_and_have_a_sign(console: ConsoleClient) -> None:
    add_targets(console, index_targets(build_draft("porto", conflicts=[CONFLICT])), ())
    show_diffs(console, create_diff("ConfigMap other", 1), create_diff("Deployment web", 1))
    text = open_change(console, "porto")

    assert re.findall(r'<a href="#([^"]*)">', text.partition('aria-label="Resources"')[2])[:2] == [
        "r-Deployment-web",
        "r-ConfigMap-other",
    ]
    assert "≠ added" in text


def test_two_resources_with_one_name_have_different_anchors(console: ConsoleClient) -> None:
    show_diffs(console, create_diff("Role a", 1), create_diff("Role a", 1))

    anchors = re.findall(r'<details class="resource" open id="([^"]*)"', open_change(console, "berlin"))
    assert len(set(anchors)) == len(anchors) == 2


def test_a_file_whose_lines_are_hidden_links_to_the_draft_on_the_forge(console: ConsoleClient) -> None:
    console.context = replace(console.context, config=ConfigPages(PageLinks(lambda _url: "github")))
    (entry,) = index_targets(build_draft("porto"))
    add_targets(console, [replace(entry, url="https://example.com/fleet.git", directory="apps")], ())
    show_diffs(console, create_diff("ConfigMap a", 401))

    assert f'href="https://example.com/fleet/blob/{HEAD}/apps/gw/a.yaml"' in open_change(console, "porto")


def test_targets_have_their_pull_request_their_check_and_their_drift(console: ConsoleClient) -> None:
    console.context = replace(console.context, config=ConfigPages(PageLinks(lambda _url: "github")))
    refusals = (create_refusal("web: reviewed is not reported"),)
    rows = [
        create_row("porto", "web", change="moved", pull_request=7, behind_count=2),
        create_row("faro", "web", change="moved", pull_request=8, refusals=refusals, lifecycle="Stale"),
    ]
    add_targets(console, [create_target(row.target, {}, row) for row in rows], ())

    for text in (open_change(console, "porto"), console.get("/changes/moved/targets").text):
        assert '<a href="https://example.com/porto/pull/7" rel="noreferrer">pull request #7</a>' in text
        assert "2 newer commits on the target branch since the draft" in text
        assert "changed since its proposal" in text
        assert [text.count(f"check {state}") for state in ("passed", "failed")] == [1, 1]


def test_targets_are_grouped_by_a_label(console: ConsoleClient) -> None:
    labels = [{"region": f"r{number % 2}", "stage": f"s{number % 3}"} for number in range(14)]
    targets = [
        create_target(f"t{number:02}", labels[number], create_row(f"t{number:02}", "web", change="moved"))
        for number in range(14)
    ]
    add_targets(console, targets, ())
    text = open_change(console, "t00").partition('id="targets"')[2]
    by_stage = open_change(console, "t00", "by=stage").partition('id="targets"')[2]
    listed = console.get("/changes/moved/targets?target=region%3Dr1").text

    assert re.findall(r"<h3>(\S+) <span", text) == ["region=r0", "region=r1"]
    assert re.findall(r"<h3>(\S+) <span", by_stage) == ["stage=s0", "stage=s1", "stage=s2"]
    assert 'href="/changes/moved/targets?target=region%3Dr1">show all 7</a>' in text
    assert "1 to 7 of 7 targets" in listed
    assert "Labels of targets:" in console.get("/changes/moved/targets?target=a+in+(").text


def test_effects_of_templates_are_facts_of_the_change(console: ConsoleClient) -> None:
    line = "KafkaNodePool kafka/pool: podTemplate changes; pods restart"
    add_targets(console, index_targets(build_draft("porto", templates=(line,)), build_draft("faro")), ())

    assert line in open_change(console, "porto")
    assert "different effects of templates" in open_change(console, "faro")


def test_the_buttons_are_sent_before_the_differences_are_read(console: ConsoleClient) -> None:
    events: list[str] = []

    class Contents:
        def find(self, _member: DraftMember, _resource: str) -> None:
            return None

        def read(self, _member: DraftMember, _changes: PackageChanges, _resource: str) -> DraftContent:
            events.append("read")
            return DraftContent((create_diff("ConfigMap settings", 1),))

    async def receive() -> NoReturn:
        raise AssertionError("the page has no body")

    async def send(message: dict[str, Any]) -> None:
        body = message.get("body", b"").decode()
        events.extend(text for text in ("Approve…", "line 0", "</html>") if text in body)

    console.context = replace(console.context, contents=Contents())
    path = f"/changes/{get_target(console, 'berlin').drafts[0].change_key}"
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1", "method": "GET", "path": path,
        "raw_path": path.encode(), "query_string": b"", "headers": [(b"host", b"127.0.0.1")], "scheme": "http",
        "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 80), "root_path": "",
    }  # fmt: skip
    asyncio.run(console.app(scope, receive, send))

    assert events == ["Approve…", "read", "line 0", "</html>"]


def test_a_large_draft_states_what_is_not_shown(console: ConsoleClient) -> None:
    class Contents:
        content = DraftContent(
            (
                create_diff("ConfigMap settings", 1),
                ResourceDiff("b.yaml", "changed", "b.yaml", note="It is not on this page.", is_omitted=True),
                ResourceDiff("c.txt", "changed", "c.txt", note="It is not shown."),
            ),
            changed_bytes=50_000_000,
            is_complete=False,
        )

        def find(self, _member: DraftMember, _resource: str) -> DraftContent:
            return self.content

        def read(self, _member: DraftMember, _changes: PackageChanges, _resource: str) -> DraftContent:
            return self.content

    links = PageLinks(lambda _url: "github")
    console.context = replace(console.context, contents=Contents(), config=ConfigPages(links))
    text = open_change(console, "berlin")

    assert (
        "The changed files have 50,000,000 bytes, so this page shows the most important resources up to 2,000,000"
        in text
    )
    omitted, too_large = (
        text.partition(f'id="r-{name}"')[2].partition("</details>")[0] for name in ("b-yaml", "c-txt")
    )
    assert "It is not on this page. <a href=" in omitted
    assert "resource=b.yaml" in omitted
    assert "Show the lines" not in too_large
    assert "Command: <code data-copy>git diff " in too_large


@pytest.mark.slow
def test_a_diff_of_fifty_megabytes_does_not_block_the_page(tmp_path: Path) -> None:
    """The page shows the resources of the draft and at most 2 MB of the files. The other files are on the forge."""
    world = begin(tmp_path, drafted)
    large = {f"gateway/data-{number:02}.txt": f"{number:07}\n" * 125_000 for number in range(50)}
    world.commit("drafts/berlin", large)
    client = open_console(world)
    client.update()
    text = open_change(client, "berlin")
    page = open_change(client, "berlin", "resource=data-07.txt")

    assert "The changed files have 50,0" in text
    assert len(text) < 1_000_000
    assert 'id="r-Deployment-gateway"' in text
    assert text.count("Show the lines") == 49
    assert "too large to show" in page.partition('id="r-data-07-txt"')[2].partition("</details>")[0]
