"""Tests of the page of a package: marks of set values, YAML and trees, hidden values, and the history."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.inspect.package_content import PublishedResource
from reconciler.output.report.model import ReportedStep, ReportedValue
from reconciler.server.console.shown_resources import list_shown_resources
from tests.support.console import ConsoleClient, open_console
from tests.support.console_server import create_updated_world
from tests.support.prepared_worlds import begin, drafted
from tests.support.world import World

METRICS = "/targets/berlin/packages/metrics"


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> ConsoleClient:
    """A console whose fleet no test changes."""
    client = open_console(begin(tmp_path_factory.mktemp("fleet"), create_updated_world))
    client.update()
    return client


def create_value(pointer: str, resource: str = "ConfigMap/shop/app") -> ReportedValue:
    return ReportedValue(resource, pointer, (ReportedStep("policy size", "policies/size.yaml", "1 → 2"),))


@pytest.mark.parametrize(
    ("pointers", "parts"),
    [
        pytest.param([], ["a: 1\ndata:\n  x: 1\n  f: |\n    y: 2\nz: 1"], id="no-value"),
        pytest.param(["/data/x"], ["a: 1\ndata:\n  x: 1 ◀", "  f: |\n    y: 2\nz: 1"], id="one-value"),
        pytest.param(["/z", "/a"], ["a: 1 ◀", "data:\n  x: 1\n  f: |\n    y: 2\nz: 1 ◀"], id="first-and-last-line"),
        pytest.param(["/data"], ["a: 1\ndata:\n  x: 1 ◀", "  f: |\n    y: 2\nz: 1"], id="mapping"),
        pytest.param(["/data/f!/y"], ["a: 1\ndata:\n  x: 1\n  f: | ◀", "    y: 2\nz: 1"], id="field-of-a-text"),
        pytest.param(["/removed", "/dat"], ["a: 1\ndata:\n  x: 1\n  f: |\n    y: 2\nz: 1"], id="absent"),
        pytest.param(["/a", "/a"], ["a: 1 ◀", "data:\n  x: 1\n  f: |\n    y: 2\nz: 1"], id="same-line"),
    ],
)
def test_marks_of_set_values(pointers: list[str], parts: list[str]) -> None:
    text = "a: 1\ndata:\n  x: 1\n  f: |\n    y: 2\nz: 1"
    resource = PublishedResource("ConfigMap shop/app", "ConfigMap/shop/app", "app.yaml", text)
    values = [*map(create_value, pointers), create_value("/a", "ConfigMap/shop/other")]
    (shown,) = list_shown_resources([resource], values, "")

    assert [f"{part.text}{' ◀' if part.value else ''}" for part in shown.parts] == parts
    assert (shown.value_count, shown.is_tree) == (len(pointers), False)


@pytest.mark.slow
def test_a_set_value_is_marked_in_the_text_of_its_resource(console: ConsoleClient) -> None:
    text = console.get(METRICS).text
    ((link, label),) = re.findall(r'  replicas: 5[^<]*</code> <a class="set" href="([^"]*)">(.*)</a>', text)

    assert "pointer=%2Fspec%2Freplicas" in link
    assert "ClusterOverridePolicy/size" in label
    assert "1 set value" in text


def test_one_resource_is_shown_as_a_tree(console: ConsoleClient) -> None:
    text = console.get(f"{METRICS}?tree=Deployment%2Fmetrics").text
    tree = text.partition('<ul class="fields">')[2].partition("</ul>")[0]

    assert text.count('<ul class="fields">') == 1
    assert re.search(r'pointer=%2Fspec%2Freplicas">replicas</a>: <code>5</code>', tree)
    assert 'aria-label="Tree of Deployment metrics"' in text


def test_the_number_of_hidden_values_is_stated(tmp_path: Path) -> None:
    world = begin(tmp_path, drafted)
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {user: ada, password: hunter2}\n"
    world.merge("berlin", "squash")
    world.commit("clusters/berlin", {"metrics/secret.yaml": secret})
    world.sync_until_unchanged()
    console = open_console(world)
    console.update()
    text = console.get(METRICS).text

    assert "2 values of Secrets are hidden." in text
    assert "hunter2" not in text


@pytest.mark.slow
def test_the_history_has_the_config_and_the_reviewed_change(tmp_path: Path) -> None:
    world: World = begin(tmp_path, drafted)
    console = open_console(world)
    console.update()
    index = console.context.index
    assert index is not None
    change = console.find_change("install metrics v1")
    fields = {"verb": "approve", "change": change.key}
    assert "1 done" in console.confirm(fields, reason="Reviewed.").text
    console.update()
    text = console.get(f"{METRICS}?view=history").text

    assert f'<td data-label="Change"><a href="/changes/{change.key}">{change.key}</a></td>' in text
    assert f'<td data-label="Config"><code>{index.config[:17]}</code></td>' in text
