"""Tests of the showcase, a fleet that uses all controllers: its drafts, and the provenance of their values."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reconciler.bootstrap.services import Services, build_services
from reconciler.inspect.explain import PackageExplainer
from reconciler.krm.json_pointer import parse_pointer, resolve_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import parse_yaml
from reconciler.output.explain.ablation import add_ablations
from reconciler.output.explain.builder import explain
from reconciler.output.explain.result import build_explanation_result
from reconciler.planning.attribution.re_render import ReRenderedPackage
from reconciler.reconcile.remotes.targets import TargetReference
from reconciler.reconcile.snapshot import PassSnapshot, take_snapshot
from reconciler.settings import Settings
from tests.scenarios.showcase import MAIN, PACKAGES, ROWS_BY_CONTROLLER, Row
from tests.support.command_line import run_in
from tests.support.git_repositories import commit_files, git, read_file, read_ref
from tests.support.showcase_environment import build_showcase

Value = Mapping[str, Any]
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
BRANCHES = {"berlin": "clusters/berlin"}


@dataclass
class Showcase:
    """The fleet of the showcase, with an edit on a draft and an edit on a published package."""

    folder: Path
    services: Services
    snapshot: PassSnapshot
    _explained: dict[TargetReference, ReRenderedPackage] = field(default_factory=dict)

    @property
    def fleet(self) -> Path:
        return self.folder / "fleet.git"

    def list_files(self, cluster: str) -> list[str]:
        """Return the files of a cluster on its published branch or on its draft branch."""
        return git(self.fleet, "ls-tree", "-r", "--name-only", get_branch(cluster)).splitlines()

    def read_resource(self, row: Row) -> Any:
        """Return a resource of the cluster."""
        inside = [file for file in self.list_files(row.cluster) if file.startswith(f"{row.package}/")]
        texts = (read_file(self.fleet, get_branch(row.cluster), file) for file in inside)
        read = (document.data for text in texts for document in parse_yaml(text).documents)
        return next(item for item in read if get_resource_id(item) == row.resource)

    def explain_value(self, row: Row) -> Value:
        """Return the explanation of a value, or of the value that contains it."""
        target = TargetReference(row.cluster, row.package)
        if target not in self._explained:
            explainer = PackageExplainer(target, self.snapshot, self.services.remotes, self.services.pass_services)
            self._explained[target] = explainer.render()
        result = build_explanation_result(explain(self._explained[target], row.resource, row.pointer))
        values = json.loads(result.to_json())["items"]
        return next((item for item in values if item["pointer"] == row.pointer), values[0])


def get_branch(cluster: str) -> str:
    return BRANCHES.get(cluster, f"drafts/{cluster}")


def get_resource_id(mapping: Mapping[str, Any]) -> str:
    return "/".join((mapping["kind"], mapping["metadata"].get("namespace", "_cluster"), mapping["metadata"]["name"]))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showcase]:
    folder = tmp_path_factory.mktemp("showcase") / "world"
    build_showcase(folder)
    result = run_in(folder, ENVIRONMENT, "sync", "config", "--fleet", "fleet.git", "--cache", ".cache")
    assert result.returncode == 0, result.stderr
    fleet = folder / "fleet.git"
    edit_branch(fleet, "drafts/chicago", "gateway/service.yaml", "port: 443\n", "port: 8443\n")
    git(fleet, "update-ref", "refs/heads/clusters/berlin", str(read_ref(fleet, "refs/heads/drafts/berlin")))
    assert run_in(folder, ENVIRONMENT, "sync", "config", "--fleet", "fleet.git", "--cache", ".cache").returncode == 0
    edit_branch(fleet, "clusters/berlin", "monitoring/collector.yaml", "30s", "10s")
    settings = Settings.model_validate({"cache": str(folder / ".cache"), "fleet": {"url": str(fleet)}})
    services = build_services(settings, str(folder / "config"))
    with services.remotes as remotes:
        yield Showcase(folder, services, take_snapshot(services.source, remotes, services.pass_services))


def edit_branch(fleet: Path, branch: str, file: str, old: str, new: str) -> None:
    text = read_file(fleet, branch, file) + "\n"
    assert old in text
    commit_files(fleet, f"refs/heads/{branch}", {file: text.replace(old, new).encode()})


def list_row_parameters() -> Iterator[Any]:
    for controller, item in ROWS_BY_CONTROLLER.items():
        for row in item:
            yield pytest.param(row, id=f"{controller}-{row.id}")


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("cluster", PACKAGES)
def test_a_cluster_has_exactly_these_packages(world: Showcase, cluster: Any) -> None:
    status = (
        file.removeprefix(".reconciler/") for file in world.list_files(cluster) if file.startswith(".reconciler/")
    )

    assert [item.removesuffix(".yaml") for item in status] == PACKAGES[cluster]


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("row", [*list_row_parameters()])
def test_the_files_contain_the_expected_value(world: Showcase, row: Row) -> None:
    assert resolve_pointer(world.read_resource(row), parse_pointer(row.pointer)) == row.value


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("row", [*list_row_parameters()])
def test_the_last_step_of_an_explanation_names_the_origin_of_the_value(world: Showcase, row: Row) -> None:
    last = world.explain_value(row)["steps"][-1]

    assert (last["layer"], last.get("setBy", ""), last.get("file", "")) == (row.layer, row.by, row.file)
    assert [f"{value['setBy']} {value['file']}" for value in last.get("inputs", ())] == (
        [row.given] if row.given else []
    )


def test_the_table_has_many_rows_with_unique_ids() -> None:
    actual_rows = [row for controller in ROWS_BY_CONTROLLER.values() for row in controller]

    assert len(actual_rows) > 100
    assert len({row.id for row in actual_rows}) == len(actual_rows)


@pytest.mark.parametrize(
    ("target", "resource", "text", "expected_values"),
    [
        pytest.param(
            TargetReference("chicago", "plugins/watchman-chicago"), "Plugin/watchman-chicago", "keep.days", [30, 30, 14],
            id="an-override-without-effect",
        ),
        pytest.param(
            TargetReference("chicago", "gateway"), "Deployment/gateway", f"{MAIN}/image",
            [None, "gateway.example.com/night/gateway:1.4.0", "mirror.us-east.example.com/gateway:1.4.0"],
            id="two-policies",
        ),
        pytest.param(
            TargetReference("lisbon", "components/fair/edge/numbers"), "Deployment/numbers", "/spec/replicas", ["", 1],
            id="an-environments-override",
        ),
        pytest.param(
            TargetReference("chicago", "resources/streams"), "KafkaNodePool/brokers", "/spec/template/pod/priorityClassName",
            ["before-all-others", "like-others"], id="a-policy-on-an-inherited-value",
        ),
    ],
)  # fmt: skip
def test_values_without_each_layer(
    world: Showcase, target: TargetReference, resource: str, text: str, expected_values: list[Any]
) -> None:
    """In the table, None is a blocked package, and "" is an absent value. Expression inputs follow their step."""
    explainer = PackageExplainer(target, world.snapshot, world.services.remotes, world.services.pass_services)

    (value,) = add_ablations(explain(explainer.render(), resource, text), explainer.render).values

    ablations = [
        ablation
        for step in value.steps
        for ablation in (step.ablation, *(value_input.ablation for value_input in step.expression_inputs))
    ]
    assert [
        None if ablation_result.blocked_reason else "" if ablation_result.value is ABSENT else ablation_result.value
        for ablation_result in ablations
        if ablation_result
    ] == expected_values
