"""The page of one target: its sections, the filters of its packages, its published resources, and stages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.selectors import LabelSelector
from reconciler.review.stages import Stage, find_current_stage
from reconciler.server.console.pages.target import RESOURCE_PACKAGES
from tests.support.console import ConsoleClient, strip_tags
from tests.support.console_server import add_targets
from tests.support.fleet_index import create_index, create_row, create_target

STAGES = (
    Stage("canary", LabelSelector((("stage", "canary"),))), Stage("production", LabelSelector((("stage", "prod"),)))
)  # fmt: skip


@pytest.fixture
def console(published_fleet: ConsoleClient) -> Iterator[ConsoleClient]:
    """All packages are published. A test can change the context and the index."""
    context, index = published_fleet.context, published_fleet.context.index
    yield published_fleet
    published_fleet.context = context
    context.index_thread.index = index


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        pytest.param("", ["Packages 2", "gateway", "metrics", "1 to 2 of 2 packages"], id="packages"),
        pytest.param("?q=MET", ["metrics", "1 to 1 of 1 package"], id="packages-by-text"),
        pytest.param("?owner=default/gateway", ["1 to 1 of 1 package"], id="packages-by-owner"),
        pytest.param("?q=none&state=draft", ["No package matches 2 filters"], id="no-package"),
        pytest.param("?view=waiting", ["No draft of this target waits for a review."], id="waiting"),
        pytest.param(
            "?view=resources", ["Deployment gateway deployment.yaml", "Deployment metrics"], id="published-resources"
        ),
        pytest.param("?view=resources&q=none", ["No package matches 1 filter"], id="no-resources"),
        pytest.param("?view=history", ["published berlin/gateway v1", "Ada"], id="history"),
        pytest.param("?view=findings", ["The last pass found no problem of this target."], id="findings"),
    ],
)
def test_each_section_has_its_own_address(query: str, texts: list[str], console: ConsoleClient) -> None:
    text = console.get(f"/targets/berlin{query}").text
    sections = re.findall(r'<section aria-labelledby="([a-z]+)"', text)
    name = re.findall("view=([a-z]+)", query)

    assert [part for part in texts if part not in strip_tags(text)] == []
    assert sections == (name or ["packages"])


def test_a_resource_leads_to_its_fields(console: ConsoleClient) -> None:
    text = console.get("/targets/berlin?view=resources").text
    (link,) = re.findall(r'href="(/targets/berlin/packages/gateway\?tree=[^"]+)">Deployment gateway<', text)

    assert '<ul class="fields">' in console.get(link).text


def test_only_the_packages_of_one_page_are_read(console: ConsoleClient) -> None:
    rows = [create_row("berlin", f"package-{number:02}") for number in range(RESOURCE_PACKAGES)]
    index = console.context.index
    assert index is not None
    targets = [replace(entry, packages=(*rows, *entry.packages)) for entry in index.targets if entry.name == "berlin"]
    console.context.index_thread.index = create_index(targets, number=index.number + 1)
    first = strip_tags(console.get("/targets/berlin?view=resources").text)
    second = strip_tags(console.get("/targets/berlin?view=resources&page=2").text)

    assert first.count("No resource is published.") == RESOURCE_PACKAGES
    assert "Deployment gateway" not in first
    assert "Deployment gateway" in second


def test_resources_that_cannot_be_read_have_a_reason(console: ConsoleClient) -> None:
    add_targets(console, [create_target("gone", {}, create_row("gone", "web"))], ())
    text = strip_tags(console.get("/targets/gone?view=resources").text)

    assert 'The resources cannot be read: there is no target "gone' in text


def test_findings_of_a_target_and_of_its_packages_are_counted(console: ConsoleClient) -> None:
    locations = [SourceLocation(package="edge/web"), SourceLocation("c.yaml", 1, "Repository/default/edge")]
    findings = [Finding(f"Code{number}", "message", location) for number, location in enumerate(locations)]
    other = Finding("Other", "message", SourceLocation(package="edge-2/web"))
    add_targets(console, [create_target("edge", {}, create_row("edge", "web"))], [*findings, other])
    text = console.get("/targets/edge?view=findings").text

    assert "Findings 2" in strip_tags(text)
    assert re.findall(r">(Code\d|Other)<", text) == ["Code0", "Code1"]


def test_targets_and_changes_have_their_stage(console: ConsoleClient) -> None:
    labels = {"edge-1": {"stage": "canary"}, "edge-2": {"stage": "prod"}, "edge-3": {}}
    targets = [create_target(name, own, create_row(name, "web", change="c")) for name, own in labels.items()]
    add_targets(console, targets, ())
    without_stages = console.get("/changes").text
    console.context = replace(console.context, stages=STAGES)

    assert "stage 1 of 2: canary" in console.get("/changes").text
    assert 'class="stage"' not in without_stages
    assert "Stage production" in strip_tags(console.get("/targets/edge-2").text)
    assert re.findall("stage (canary|production)<", console.get("/targets?q=edge").text) == ["canary", "production"]


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        pytest.param(("canary", "prod"), "stage 1 of 2: canary", id="both"),
        pytest.param(("prod", "none"), "stage 2 of 2: production", id="last"),
        pytest.param(("none",), "", id="none"),
    ],
)
def test_the_stage_of_a_change_is_the_first_with_an_open_draft(stages: tuple[str, ...], expected: str) -> None:
    targets = [create_target(name, {"stage": name}, create_row(name, "web", change="c")) for name in stages]
    index = create_index(targets)

    assert find_current_stage(index, index.changes[0], STAGES) == expected
    assert find_current_stage(index, index.changes[0], ()) == ""
