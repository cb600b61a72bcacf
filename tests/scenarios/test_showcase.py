"""The world of the demo, in which all rooms meet: what stands on its drafts, and who is told to have set it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reconciler.bootstrap import Services, build_services
from reconciler.inspect.explain import PackageExplainer
from reconciler.krm.json_pointer import parse_pointer, resolve_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import parse_yaml
from reconciler.output.explain.ablation import add_ablations
from reconciler.output.explain.builder import explain
from reconciler.output.explain.formats import build_explanation_data
from reconciler.output.explain.model import ExplainedPackage
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
    """The demo's world, with a person's edit on a draft, and one on what is published."""

    folder: Path
    parts: Services
    found: PassSnapshot
    _explained: dict[TargetReference, ExplainedPackage] = field(default_factory=dict)

    @property
    def fleet(self) -> Path:
        return self.folder / "fleet.git"

    def files(self, cluster: str) -> list[str]:
        """Return the files of a cluster: as they are published, else as they are drafted."""
        return git(self.fleet, "ls-tree", "-r", "--name-only", branch_of(cluster)).splitlines()

    def resource(self, row: Row) -> Any:
        """Return a resource as it stands there."""
        inside = [file for file in self.files(row.cluster) if file.startswith(f"{row.package}/")]
        texts = (read_file(self.fleet, branch_of(row.cluster), file) for file in inside)
        read = (document.data for text in texts for document in parse_yaml(text).documents)
        return next(item for item in read if name_of(item) == row.resource)

    def value(self, row: Row) -> Value:
        """Return what is told of a value, or of the one that it is in."""
        place = TargetReference(row.cluster, row.package)
        if place not in self._explained:
            explainer = PackageExplainer(place, self.found, self.parts.remotes, self.parts.pass_services)
            self._explained[place] = explainer.explain()
        values = build_explanation_data(explain(self._explained[place], row.resource, row.pointer))["values"]
        return next((item for item in values if item["pointer"] == row.pointer), values[0])


def branch_of(cluster: str) -> str:
    return BRANCHES.get(cluster, f"drafts/{cluster}")


def name_of(mapping: Mapping[str, Any]) -> str:
    return "/".join((mapping["kind"], mapping["metadata"].get("namespace", "_cluster"), mapping["metadata"]["name"]))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showcase]:
    folder = tmp_path_factory.mktemp("showcase") / "world"
    build_showcase(folder)
    result = run_in(folder, ENVIRONMENT, "sync", "config", "--fleet", "fleet.git", "--cache", ".cache")
    assert result.returncode == 0, result.stderr
    fleet = folder / "fleet.git"
    edit(fleet, "drafts/chicago", "gateway/service.yaml", "port: 443\n", "port: 8443\n")
    git(fleet, "update-ref", "refs/heads/clusters/berlin", str(read_ref(fleet, "refs/heads/drafts/berlin")))
    assert run_in(folder, ENVIRONMENT, "sync", "config", "--fleet", "fleet.git", "--cache", ".cache").returncode == 0
    edit(fleet, "clusters/berlin", "monitoring/collector.yaml", "30s", "10s")
    settings = Settings.model_validate({"cache": str(folder / ".cache"), "fleet": {"url": str(fleet)}})
    parts = build_services(settings, str(folder / "config"))
    with parts.remotes as remotes:
        yield Showcase(folder, parts, take_snapshot(parts.source, remotes, parts.pass_services))


def edit(fleet: Path, branch: str, file: str, old: str, new: str) -> None:
    text = read_file(fleet, branch, file) + "\n"
    assert old in text
    commit_files(fleet, f"refs/heads/{branch}", {file: text.replace(old, new).encode()})


def rows() -> Iterator[Any]:
    for room, item in ROWS_BY_CONTROLLER.items():
        for row in item:
            yield pytest.param(row, id=f"{room}-{row.id}")


@pytest.mark.parametrize("cluster", PACKAGES)
def test_a_cluster_has_these_packages_and_no_other(world: Showcase, cluster: Any) -> None:
    status = (file.removeprefix(".reconciler/") for file in world.files(cluster) if file.startswith(".reconciler/"))

    assert [item.removesuffix(".yaml") for item in status] == PACKAGES[cluster]


@pytest.mark.parametrize("row", [*rows()])
def test_a_value_is_as_the_files_say(world: Showcase, row: Row) -> None:
    assert resolve_pointer(world.resource(row), parse_pointer(row.pointer)) == row.value


@pytest.mark.parametrize("row", [*rows()])
def test_a_value_is_told_with_who_set_it(world: Showcase, row: Row) -> None:
    last = world.value(row)["steps"][-1]

    assert (last["layer"], last.get("by", ""), last.get("file", "")) == (row.layer, row.by, row.file)
    assert [f"{value['by']} {value['file']}" for value in last.get("values", ())] == ([row.given] if row.given else [])


def test_every_room_has_its_say() -> None:
    actual_rows = [row for room in ROWS_BY_CONTROLLER.values() for row in room]

    assert len(actual_rows) > 100
    assert len({row.id for row in actual_rows}) == len(actual_rows)


@pytest.mark.parametrize(
    ("place", "resource", "text", "withouts"),
    [
        pytest.param(
            TargetReference("chicago", "plugins/watchman-chicago"), "Plugin/watchman-chicago", "keep.days", [30, 30, 14],
            id="an-override-that-says-nothing-else",
        ),
        pytest.param(
            TargetReference("chicago", "gateway"), "Deployment/gateway", f"{MAIN}/image",
            [None, "gateway.example.com/night/gateway:1.4.0", "mirror.us-east.example.com/gateway:1.4.0"],
            id="each-of-two-policies",
        ),
        pytest.param(
            TargetReference("lisbon", "components/fair/edge/numbers"), "Deployment/numbers", "/spec/replicas", ["", 1],
            id="an-environments-override",
        ),
        pytest.param(
            TargetReference("chicago", "resources/streams"), "KafkaNodePool/brokers", "/spec/template/pod/priorityClassName",
            ["before-all-others", "like-others"], id="a-policy-on-what-is-inherited",
        ),
    ],
)  # fmt: skip
def test_what_would_stand_there_without_each(
    world: Showcase, place: TargetReference, resource: str, text: str, withouts: list[Any]
) -> None:
    """None is for a package that would not be made, "" for no value; who gave a parameter comes after its step."""
    explainer = PackageExplainer(place, world.found, world.parts.remotes, world.parts.pass_services)

    (value,) = add_ablations(explain(explainer.explain(), resource, text), explainer.explain_without).values

    tried = [item.ablation for step in value.steps for item in (step, *step.expression_inputs)]
    assert [
        None if ablation_result.blocked_reason else "" if ablation_result.value is ABSENT else ablation_result.value
        for ablation_result in tried
        if ablation_result
    ] == withouts
