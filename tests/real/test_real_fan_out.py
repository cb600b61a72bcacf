"""Packages published by kpt, installed on 50 clusters by one set, with the values of each region.

The injection point is the only added file.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import Any

import pytest

from reconciler.api.kpt import FunctionSpec
from reconciler.krm.yaml import parse_yaml
from reconciler.packages.functions.registry import BUILTIN_FUNCTIONS
from tests.real.packages import DATA, drafted, images, make_upstream, package_files
from tests.support.git_repositories import assert_sound
from tests.support.world import PassResult, World, config_map, repository

KPT = DATA / "kpt"
PACKAGES = sorted(path.parent.name for path in KPT.glob("*/Kptfile"))
CLUSTERS = {f"cluster-{index:02}": f"region-{index % 5}" for index in range(50)}
REGION = "region.yaml"
pytestmark = pytest.mark.skipif(not PACKAGES, reason="the packages of other projects are not available")


def the_set(packages: Iterable[str]) -> str:
    upstreams = "".join(f"    - {{repo: kpt, package: {package}, revision: main}}\n" for package in packages)
    return (
        "apiVersion: config.porch.kpt.dev/v1alpha2\nkind: PackageVariantSet\nmetadata:\n  name: everywhere\n"
        f"spec:\n  upstreams:\n{upstreams}"
        "  targets:\n    - repositorySelector:\n        matchLabels: {role: site}\n"
        "      template:\n        injectors:\n          - kind: ConfigMap\n"
        "            nameExpr: repository.labels['region']\n"
    )


def cluster(name: str, region: str) -> str:
    return repository(name).replace("{region: north}", f"{{role: site, region: {region}}}")


def unavailable(package: str) -> list[str]:
    return [image for image in images(KPT / package) if BUILTIN_FUNCTIONS.find(FunctionSpec(image=image)) is None]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World.create(tmp_path_factory.mktemp("kpt") / "world")
    point = config_map("site", "required", api="none").encode()
    make_upstream(world, "kpt", package_files(KPT) | {f"{name}/{REGION}": point for name in PACKAGES})
    world.write({f"clusters/{name}.yaml": cluster(name, region) for name, region in CLUSTERS.items()})
    world.write({f"regions/{name}.yaml": config_map(name, api=f"api.{name}") for name in set(CLUSTERS.values())})
    world.write({"set.yaml": the_set(PACKAGES)})
    return world


@pytest.fixture(scope="module")
def first(world: World) -> PassResult:
    return timed("first pass", world)


@pytest.fixture(scope="module")
def later(world: World, first: PassResult) -> PassResult:
    """A pass after an unchanged pass and a change of the values of one region."""
    assert timed("no change", world).is_unchanged
    world.write({"regions/region-3.yaml": config_map("region-3", api="api.elsewhere")})
    return timed("one region", world)


def timed(name: str, world: World) -> PassResult:
    began = time.perf_counter()
    pass_result = world.sync()
    drafts, seconds = [*pass_result.outcomes.values()].count("draft"), time.perf_counter() - began
    print(f"{name}: {drafts} drafts, {pass_result.report.render_count} renders, {seconds:.1f} s")
    return pass_result


@pytest.mark.slow
def test_every_package_is_drafted_on_every_cluster(first: PassResult) -> None:
    places = {f"{name}/{package}" for name in CLUSTERS for package in PACKAGES}

    assert first.outcomes == dict.fromkeys(places, "draft")
    assert {f"drafts/{name}" for name in CLUSTERS} <= first.changed_branches


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("name", ["cluster-00", "cluster-33"])
def test_each_cluster_has_the_values_of_its_region(world: World, first: PassResult, name: str, package: str) -> None:
    content = drafted(world, f"drafts/{name}", package)[REGION]

    assert parse_yaml(content).documents[0].data["data"] == {"api": f"api.{CLUSTERS[name]}"}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_whose_function_needs_a_container_is_gated_and_names_it(
    world: World, first: PassResult, package: str
) -> None:
    status = status_of(world, "cluster-07", package)
    rendered = {condition["type"]: condition for condition in status["conditions"]}["Rendered"]
    gates = {
        readiness_gate["conditionType"]: readiness_gate["met"] for readiness_gate in status.get("readinessGates", ())
    }
    missing = unavailable(package)

    assert rendered["status"] == ("False" if missing else "True")
    assert all(image in rendered["message"] for image in missing[:1])
    assert gates.get("Rendered", True) is not bool(missing)


def status_of(world: World, name: str, package: str) -> dict[str, Any]:
    text = world.text(f"drafts/{name}", f".reconciler/{package}.yaml")
    status: dict[str, Any] = parse_yaml(text).documents[0].data["status"]
    return status


@pytest.mark.parametrize("package", PACKAGES)
def test_what_no_function_touches_stays_to_the_byte(world: World, first: PassResult, package: str) -> None:
    """An unrendered package equals its state before its functions; a package without functions is as published."""
    source, files = package_files(KPT / package), drafted(world, "drafts/cluster-11", package)
    through_functions = not unavailable(package) and bool([*images(KPT / package)])
    same = {path for path, content in source.items() if without_merge_comments(files[path]) == content}

    assert source.keys() <= files.keys()
    assert through_functions or {path for path in source.keys() - same if not is_ours(path)} == set()
    assert {path for path in source if not path.endswith((".yaml", ".yml", "Kptfile"))} <= same


def without_merge_comments(content: bytes) -> bytes:
    return re.sub(rb" # kpt-merge: \S+", b"", content)


def is_ours(path: str) -> bool:
    return path.rpartition("/")[2] in {"Kptfile", "package-context.yaml"}


@pytest.mark.slow
def test_a_changed_region_moves_its_drafts_and_no_other(later: PassResult) -> None:
    mine = {name for name, region in CLUSTERS.items() if region == "region-3"}

    assert later.changed_branches == {f"drafts/{name}" for name in mine}
    assert {place for place, outcome in later.outcomes.items() if outcome == "draft"} == {
        f"{name}/{package}" for name in mine for package in PACKAGES
    }
    assert later.report.render_count == len(mine) * len(PACKAGES)


def test_the_fleet_is_sound(world: World, later: PassResult) -> None:
    assert_sound(world.fleet)
