"""`drafts`, `show` and `explain` with `--server` print the same as with access to the repositories."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from reconciler.cli import drafts, explain, show
from reconciler.inspect.value_explainer import ExplainOptions
from reconciler.review.permissions import Permissions, RoleRule
from tests.scenarios.test_explain_charts import HELM, MAPS
from tests.server.test_remote_review import SOUTH, Service, serve
from tests.support.charts import read_source
from tests.support.prepared_worlds import drafted
from tests.support.programs import find_program
from tests.support.world import World, small_world, variant

VIEWER = Permissions((RoleRule("viewer", groups=("g",)),))
VIEWER_SOUTH = Permissions((RoleRule("viewer", groups=("g",), targets=SOUTH),))
VIEWER_METRICS = Permissions((RoleRule("viewer", groups=("g",), packages=("metrics",)),))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose packages are all drafted."""
    yield from serve(tmp_path_factory.mktemp("service"), drafted, VIEWER)


def run(service: Service, command: click.Command, *arguments: str, remote: bool) -> Result:
    options = ["--server", service.url, "--token-file", str(service.token_file)]
    local = [*service.console.world.command_options]
    if not remote and command is drafts.command:
        position = local.index("--config")
        local = [local[position + 1], *local[:position], *local[position + 2 :]]
    return CliRunner().invoke(command, [*arguments, *(options if remote else local)], standalone_mode=False)


def read_json(service: Service, command: click.Command, *arguments: str) -> dict[str, Any]:
    result = run(service, command, *arguments, "-o", "json", remote=True)
    data: dict[str, Any] = json.loads(result.output)
    return data


CASES = [
    pytest.param(drafts.command, [], id="drafts"),
    pytest.param(drafts.command, ["--cluster", "berlin", "--cluster", "lisbon"], id="drafts-of-clusters"),
    pytest.param(drafts.command, ["-l", "region=south"], id="drafts-by-label"),
    pytest.param(drafts.command, ["-l", "region=nowhere"], id="no-draft"),
    pytest.param(drafts.command, ["--by-change"], id="changes"),
    pytest.param(show.command, ["berlin"], id="show"),
    pytest.param(show.command, ["berlin/metrics", "--color", "always"], id="show-one-package"),
    pytest.param(show.command, ["lisbon", "--diff-lines", "3"], id="show-short-diffs"),
    pytest.param(explain.command, ["berlin/metrics"], id="explain", marks=pytest.mark.slow),
    pytest.param(explain.command, ["berlin/gateway", "Deployment/gateway", "/spec/replicas"], id="explain-one-value"),
    pytest.param(
        explain.command,
        ["berlin/gateway", "Deployment/gateway", "--at", "drafts/berlin"],
        id="explain-a-commit",
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize(("command", "arguments"), CASES)
def test_the_output_is_equal(command: click.Command, arguments: list[str], output: str, service: Service) -> None:
    results = [run(service, command, *arguments, "-o", output, remote=remote) for remote in (False, True)]

    assert [result.exception for result in results] == [None, None]
    assert results[0].return_value == results[1].return_value == 0
    if output == "text":
        assert results[0].stdout == results[1].stdout
        return
    local, remote = (json.loads(result.stdout) for result in results)
    assert (local["metadata"].pop("source"), remote["metadata"].pop("source")) == ("cli", "api")
    assert local == remote


def test_the_markdown_of_a_draft_is_equal(service: Service) -> None:
    local, remote = (run(service, show.command, "berlin", "-o", "markdown", remote=remote) for remote in (False, True))

    assert local.stdout == remote.stdout
    assert local.stdout.startswith("# ")


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        pytest.param(
            drafts.command, ["--cluster", "porto"], 'there is no target "porto" that you may read', id="target"
        ),
        pytest.param(drafts.command, ["--by-change", "-l", "a"], "cannot be used with --cluster or", id="by-change"),
        pytest.param(
            show.command, ["berlin/none"], 'there is no package "berlin/none" that you may read', id="package"
        ),
        pytest.param(explain.command, ["berlin/gateway", "Deployment/x"], "Deployment/x", id="resource"),
        pytest.param(explain.command, ["berlin/gateway", "--at", "HEAD"], "at: must be the ID of a commit", id="head"),
        pytest.param(
            explain.command,
            ["berlin/gateway", "--at", "clusters/nowhere"],
            "clusters/nowhere",
            id="unknown-commit",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            explain.command,
            ["berlin/gateway", "--values", "a"],
            "it has no chart",
            id="no-chart",
            marks=pytest.mark.slow,
        ),
        pytest.param(explain.command, ["berlin/gateway", "--offline"], "cannot be used with --offline", id="offline"),
        pytest.param(show.command, ["berlin", "--fleet", "x"], "cannot be used with --fleet", id="fleet"),
        pytest.param(drafts.command, ["config"], "cannot be used with --config", id="config"),
    ],
)
def test_errors(command: click.Command, arguments: list[str], message: str, service: Service) -> None:
    assert message in str(run(service, command, *arguments, remote=True).exception)


def charted(folder: Path) -> World:
    """Return a small fleet with a package of a chart."""
    world = small_world(folder, sources={"helm": {"program": find_program("helm")}})
    world.release("charts/web", "v1", read_source("values-layers"))
    world.write({"maps.yaml": MAPS, "web.yaml": variant("web", "berlin", "web", upstream="charts/web", extra=HELM)})
    world.sync()
    return world


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--values"], ["--values", "replicas"]], ids=["all", "one"])
def test_the_values_of_charts_are_equal(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_SOURCES__HELM__PROGRAM", find_program("helm"))
    for charts in serve(tmp_path, charted, VIEWER):
        local, remote = (
            run(charts, explain.command, "berlin/web", *arguments, remote=remote) for remote in (False, True)
        )

        assert "chart value replicas: 3" in local.stdout
        assert remote.stdout == local.stdout
        assert remote.return_value == local.return_value


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        pytest.param(ExplainOptions(), (), id="none"),
        pytest.param(ExplainOptions("v1"), ("--at=v1",), id="commit"),
        pytest.param(ExplainOptions(values_path=""), ("--values=",), id="all-values-of-charts"),
        pytest.param(
            ExplainOptions("ab12", "-a.b", "base"), ("--at=ab12", "--values=-a.b", "--source=base"), id="all-options"
        ),
    ],
)
def test_the_options_of_the_command_of_the_service(options: ExplainOptions, arguments: tuple[str, ...]) -> None:
    assert options.list_arguments() == arguments


def test_several_pages_are_one_output(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(service, drafts.command, remote=True).output, read_json(service, drafts.command)
    changes = read_json(service, drafts.command, "--by-change")
    monkeypatch.setattr("reconciler.server.api.paging.DEFAULT_LIMIT", 1)
    monkeypatch.setattr("reconciler.cli.drafts._PAGE_SIZE", "1")

    assert (run(service, drafts.command, remote=True).output, read_json(service, drafts.command)) == whole
    assert read_json(service, drafts.command, "--by-change") == changes
    assert (len(whole[1]["items"]), len(changes["items"])) == (2, 2)
    assert changes["summary"] == {"changes": 2, "drafts": 3}


@pytest.mark.slow
def test_a_person_reads_only_permitted_drafts(tmp_path_factory: pytest.TempPathFactory) -> None:
    for permissions, hidden, packages in (
        (VIEWER_SOUTH, "berlin", ["gateway"]), (VIEWER_METRICS, "gateway", ["metrics"]),
    ):  # fmt: skip
        for restricted in serve(tmp_path_factory.mktemp("service"), drafted, permissions):
            data = read_json(restricted, drafts.command)
            texts = [run(restricted, drafts.command, remote=True).output]
            texts += [run(restricted, show.command, draft["target"], remote=True).output for draft in data["items"]]

            assert [package["package"] for draft in data["items"] for package in draft["packages"]] == packages
            assert data["summary"]["drafts"] == 1
            assert [text for text in [json.dumps(data), *texts] if hidden in text] == []


def test_the_text_of_changes_lists_the_targets_of_each_variant(service: Service) -> None:
    assert run(service, drafts.command, "--by-change", remote=True).output.splitlines() == [
        "LOW    install gateway v1 (PackageVariantSet default/gateway): 2 targets, waiting",
        "  1 target: berlin",
        "  1 target: lisbon",
        "LOW    install metrics v1 (PackageVariant default/metrics-berlin): 1 target, waiting",
        "  1 target: berlin",
        "2 changes in 3 drafts",
    ]


def test_a_change_list_names_unreadable_targets(tmp_path: Path) -> None:
    """The command and the API report the same targets."""
    for broken in serve(tmp_path, drafted, VIEWER):
        world = broken.console.world
        world.set_ref("refs/reconciler/state/berlin", world.head("clusters/berlin"))
        broken.console.update()
        results = [run(broken, drafts.command, "--by-change", "-o", "json", remote=remote) for remote in (False, True)]
        local, remote = (json.loads(result.stdout) for result in results)

        assert [result.return_value for result in results] == [1, 1]
        assert local["findings"] == remote["findings"]
        assert "berlin" in local["findings"][0]["message"]
