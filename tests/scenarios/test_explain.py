"""Tests of `reconciler explain` with complete fleets: its output, its errors and the packages that it renders."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.controllers.results import Variant
from reconciler.planning.model.outcomes import PackageRender
from reconciler.planning.model.sources import RenderInputs
from reconciler.planning.render.renderer import PackageRenderer
from tests.support.command_line import CommandResult, run_in
from tests.support.components import components_published, package_of
from tests.support.git_repositories import read_refs
from tests.support.policies import (
    ATTACHED,
    patch,
    policies_published,
    policy,
    replicas,
    rollout_rule,
    rollout_world,
)
from tests.support.prepared_worlds import begin, drafted, published
from tests.support.presets import from_secret, option, preset, presets_published
from tests.support.world import World, injected_set

LOGS = ("berlin/plugins/logs-berlin", "Plugin/logs-berlin")


@pytest.fixture
def presets(tmp_path: Path) -> World:
    return begin(tmp_path, presets_published)


@pytest.fixture
def components(tmp_path: Path) -> World:
    return begin(tmp_path, components_published)


@pytest.fixture
def policies(tmp_path: Path) -> World:
    return begin(tmp_path, policies_published)


def run_explain(world: World, *arguments: str) -> CommandResult:
    options = ("--config", str(world.config), "--fleet", str(world.fleet), "--cache", str(world.folder / "cache"))
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    return run_in(world.folder, environment, "explain", *arguments, *options)


def explain_as_json(world: World, *arguments: str) -> dict[str, Any]:
    result = run_explain(world, *arguments, "-o", "json")
    assert result.returncode == 0, result.stderr
    data: dict[str, Any] = json.loads(result.stdout)
    return data


def find_last_steps(world: World, *arguments: str) -> list[str]:
    """Return the origin, file and line of the last step of each value."""
    last = [value["steps"][-1] for value in explain_as_json(world, *arguments)["items"]]
    return [f"{item['setBy']} {item.get('file', '')}:{item.get('line', 0)}" for item in last]


def test_option_is_explained_with_all_layers(presets: World) -> None:
    (value,) = explain_as_json(presets, *LOGS, "buffer.size")["items"]

    assert [(step["layer"], step["file"], step.get("before"), step["after"]) for step in value["steps"]] == [
        ("definition-default", "logshipper.yaml", None, 64),
        ("preset", "presets/logs.yaml", 64, 128),
        ("preset-cluster", "presets/logs.yaml", 128, 32),
    ]
    assert all(step["line"] == 4 for step in value["steps"])


def test_layers_that_set_the_option_are_marked(presets: World) -> None:
    text = run_explain(presets, *LOGS, "storage").stdout

    marked = [line.split()[1] for line in text.splitlines() if line.startswith("  * ")]
    assert marked == ["definition-default", "organization", "override-cluster"]


def test_policy_after_the_layers_is_the_last_step(presets: World) -> None:
    passed = {"labels": {ATTACHED: "big"}, "annotations": {"greenhouse.sap/propagate-labels": ATTACHED}}
    presets.write({
        "presets/logs.yaml": preset(options=[option("buffer.size", 128)], marks=passed),
        "policies/big.yaml": policy("big", [patch("/spec/optionValues/0/value", 999, {"clusters": ["berlin"]})]),
    })  # fmt: skip

    assert find_last_steps(presets, *LOGS, "buffer.size") == ["ClusterOverridePolicy/big policies/big.yaml:4"]


def test_explain_of_a_published_value_changes_nothing(policies: World) -> None:
    before = read_refs(policies.fleet)

    assert find_last_steps(policies, "berlin/web", "Deployment/web", "/spec/replicas") == [
        "ClusterOverridePolicy/site policies/site.yaml:4"
    ]
    assert read_refs(policies.fleet) == before
    assert policies.sync().is_unchanged


def test_explain_renders_only_the_requested_package(policies: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[str] = []
    render = PackageRenderer.__call__

    def record_render(self: PackageRenderer, variant: Variant, render_inputs: RenderInputs) -> PackageRender:
        rendered.append(str(variant.target))
        return render(self, variant, render_inputs)

    monkeypatch.setattr(PackageRenderer, "__call__", record_render)
    policies.write({"policies/site.yaml": policy("site", [replicas(7)])})

    explain_as_json(policies, "lisbon/web")

    assert rendered == ["lisbon/web"]


@pytest.mark.parametrize(
    ("make", "branch", "kind"),
    [
        pytest.param(published, "clusters/berlin", "edit", id="published"),
        pytest.param(drafted, "drafts/berlin", "draft", id="drafted"),
    ],
)
def test_local_change_is_explained_as_a_separate_step(
    tmp_path: Path, make: Callable[[Path], World], branch: str, kind: str
) -> None:
    small = begin(tmp_path, make)
    small.edit(branch, "metrics/deployment.yaml", "replicas: 2", "replicas: 5")

    (count,) = explain_as_json(small, "berlin/metrics", "Deployment/metrics", "/spec/replicas")["items"]
    (image,) = explain_as_json(small, "berlin/metrics", "Deployment/metrics", "/spec/template/spec/containers/0/image")[
        "items"
    ]

    assert [(step["layer"], step["after"], step["without"]) for step in count["steps"]] == [
        ("upstream", 2, {"value": 5}),
        (kind, 5, {"value": 2}),
    ]
    assert [step["layer"] for step in image["steps"]] == ["upstream"]


def test_locally_deleted_resource_is_explained_with_its_upstream_value(tmp_path: Path) -> None:
    small = begin(tmp_path, published)
    small.commit("clusters/berlin", {"metrics/deployment.yaml": None})

    (count,) = explain_as_json(small, "berlin/metrics", "Deployment/metrics", "/spec/replicas")["items"]

    assert [(step["layer"], step.get("after"), step["without"]) for step in count["steps"]] == [
        ("upstream", 2, {}),
        ("edit", None, {"value": 2}),
    ]


@pytest.mark.slow
def test_earlier_rule_in_a_closed_wave_is_explained_without_a_line(tmp_path: Path) -> None:
    world = begin(tmp_path, rollout_world)
    world.write({"policies/site.yaml": policy("site", [replicas(3, name="count")])})
    world.sync()
    for cluster in ("amsterdam", "berlin", "lisbon"):
        world.merge(cluster, "squash")
    world.sync_until_unchanged()
    world.write({"policies/site.yaml": policy("site", [rollout_rule(4)])})

    mapping = {
        cluster: explain_as_json(world, f"{cluster}/web", "Deployment/web", "/spec/replicas")["items"][0]["steps"][-1]
        for cluster in ("amsterdam", "lisbon")
    }

    assert (mapping["amsterdam"]["after"], mapping["amsterdam"]["line"]) == (4, 4)
    assert (mapping["lisbon"]["after"], mapping["lisbon"].get("line")) == (3, None)
    assert mapping["lisbon"]["field"].endswith("(earlier text)")


def test_blocked_plugin_is_explained_without_the_secret(presets: World) -> None:
    values = [option("token", "hunter2"), from_secret("other", "logs", "token")]
    presets.write({"presets/logs.yaml": preset(options=values)})

    result = run_explain(presets, *LOGS)

    assert result.returncode == 1
    assert "blocked: SecretLiteral" in result.stdout
    assert "hunter2" not in result.stdout + result.stderr


def test_plugin_with_a_missing_policy_is_explained_with_its_layers(presets: World) -> None:
    passed = {"labels": {ATTACHED: "gone"}, "annotations": {"greenhouse.sap/propagate-labels": ATTACHED}}
    presets.write({"presets/logs.yaml": preset(options=[option("buffer.size", 128)], marks=passed)})

    result = run_explain(presets, *LOGS, "buffer.size")

    assert result.returncode == 1
    assert "PolicyNotFound" in result.stdout
    assert "64 → 128" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(["berlino/web"], "no Repository or cluster \"berlino\"; existing names: berlin, lisbon", id="cluster"),
        pytest.param(["berlin/wob"], "no object requests this package for \"berlin\"; requested packages: web, metrics", id="package"),
        pytest.param(["berlin/web", "Deployment/wob"], "closest match first: Deployment/", id="resource"),
        pytest.param(["berlin/web", "Deployment/web", "/spec/x"], "no value at /spec/x; existing values, closest match first: /spec/", id="pointer"),
        pytest.param(["berlin"], "must be REPOSITORY/PACKAGE, but is \"berlin\"", id="no-package"),
    ],
)  # fmt: skip
def test_unknown_name_is_reported_with_existing_names(policies: World, arguments: list[str], text: str) -> None:
    result = run_explain(policies, *arguments)

    assert result.returncode == 3
    assert text in result.stderr


def test_package_without_an_owner_is_reported(policies: World) -> None:
    policies.write({"metrics.yaml": None})

    result = run_explain(policies, "berlin/metrics")

    assert result.returncode == 3
    assert 'no object requests this package any more, but "berlin" still contains the package' in result.stderr


def test_package_of_a_set_with_an_unknown_upstream_is_reported_as_blocked(policies: World) -> None:
    policies.write({"metrics.yaml": injected_set("metrics", ["berlin"], "v9")})

    result = run_explain(policies, "berlin/metrics")

    assert (result.returncode, "no valid object requests the package" in result.stdout) == (1, True), result.stderr
    assert "UpstreamNotFound" in result.stdout


def test_package_of_a_deleted_target_branch_is_reported_as_blocked(policies: World) -> None:
    policies.delete("clusters/berlin")

    result = run_explain(policies, "berlin/web")

    assert result.returncode == 1
    assert "DestinationMissing" in result.stdout


def test_unreachable_target_is_reported_as_an_error(policies: World) -> None:
    policies.fleet.rename(policies.folder / "elsewhere.git")
    shutil.rmtree(policies.folder / "cache")

    result = run_explain(policies, "berlin/web", "Deployment/web", "/spec/replicas")

    assert result.returncode == 1
    assert "error RepositoryUnreachable" in result.stdout


CART = f"lisbon/{package_of('cart')}"


def test_component_value_is_explained_with_its_template_and_source(components: World) -> None:
    (replicas,) = explain_as_json(components, CART, "Deployment/cart", "/spec/replicas")["items"]
    (kind,) = explain_as_json(components, CART, "Deployment/cart", "/kind")["items"]

    (step,) = replicas["steps"]
    (value,) = step["inputs"]
    assert (step["layer"], step["setBy"], step["line"] > 0) == (
        "definition",
        "ComponentDefinition/_cluster/service",
        True,
    )
    assert kind["steps"][0]["field"] == "spec.resources[0].template.kind"
    assert (value["name"], value["file"], value["line"] > 0) == ("spec.replicas", "shop/cart.yaml", True)


def test_addons_are_shown_in_the_order_of_application(components: World) -> None:
    text = run_explain(components, CART).stdout

    assert "  addons, in the order of application: fence/main, trace-agent/default\n" in text


def test_local_change_of_a_component_is_explained_as_a_change_by_a_person(components: World) -> None:
    path = f"{package_of('cart')}/deployment-cart.yaml"
    components.edit("clusters/lisbon", path, "    rate: r10\n", "    rate: r10\n    ours: 'yes'\n")

    (ours,) = explain_as_json(components, CART, "Deployment/cart", "/metadata/labels/ours")["items"]

    assert [(step["layer"], step["setBy"]) for step in ours["steps"]] == [("edit", "a person, on the target branch")]
    commit = ours["steps"][0]["localCommit"]
    assert (commit["author"], commit["date"], commit["subject"]) == ("Ada", "2004-11-09T11:33:20Z", "by hand")
    assert (
        f"\n       commit {commit['commit'][:7]}"
        in run_explain(components, CART, "Deployment/cart", ours["pointer"]).stdout
    )
