"""Tests of the renders of a preset change: only affected Plugins are rendered, for any size of the fleet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from reconciler.controllers.deletion_guards import PackageLocation
from tests.support.decided_fleet import DecidedFleet, preset_controller
from tests.support.prepared_worlds import begin
from tests.support.presets import (
    Options,
    cluster,
    definition,
    option,
    organization,
    override,
    preset,
    tier_selector,
)
from tests.support.world import World

EDGE = tuple(f"edge-{number:02}" for number in range(6))
CORE = tuple(f"core-{number:02}" for number in range(24))
FLEET = (*EDGE, *CORE)
PRESETS = tuple(f"logs-{number}" for number in range(5))
FILE, CLUSTER = "presets/{}.yaml", "clusters/{}.yaml"
OF_EDGE, OF_ALL = "overrides/edge.yaml", "overrides/all.yaml"


def build_preset(name: str, overrides: Mapping[str, Options] | None = None, size: int = 128) -> str:
    """Return a preset for all clusters, with a different value for one cluster of each tier."""
    mapping = {"edge-00": [option("buffer.size", 8)], "core-00": [option("buffer.size", 9)]}
    return preset(name, [option("buffer.size", size)], {**mapping, **(overrides or {})}, plugin={"releaseName": name})


def edge_override(size: str = "zfs") -> str:
    return override("edge", [option("storage", size)], clusterSelector=tier_selector("edge"))


def create_fleet(folder: Path) -> World:
    """Return thirty clusters without Repositories, each with drafted Plugins of five presets."""
    world = World.create(folder)
    world.write(
        {
            "acme.yaml": organization(option("storage", "fast")),
            "logshipper.yaml": definition(),
            OF_EDGE: edge_override(),
            OF_ALL: override("all", [option("timeout", 5)]),
            **{CLUSTER.format(item): cluster(item, item.partition("-")[0]) for item in FLEET},
            **{FILE.format(item): build_preset(item) for item in PRESETS},
        }
    )
    world.sync()
    return world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return begin(tmp_path, create_fleet)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("files", "renders", "drafts"),
    [
        pytest.param({}, 0, (), id="nothing"),
        pytest.param(
            {FILE.format("logs-3"): build_preset("logs-3", {"core-00": [option("buffer.size", 10)]})}, 1, ("core-00",),
            id="an-override-for-one-cluster",
        ),
        pytest.param(
            {FILE.format("logs-3"): build_preset("logs-3", {"core-07": [option("buffer.size", 128)]})}, 0, (),
            id="override-without-effect",
        ),
        pytest.param({OF_EDGE: edge_override("btrfs")}, 30, EDGE, id="an-override-for-a-tier"),
        pytest.param({OF_EDGE: None}, 30, EDGE, id="an-override-for-a-tier-goes"),
        pytest.param(
            {OF_EDGE: override("edge", [option("storage", "zfs")], clusterSelector={"clusterNames": [*EDGE]})}, 0, (),
            id="an-override-that-chooses-them-otherwise",
        ),
        pytest.param({FILE.format("logs-3"): build_preset("logs-3", size=64)}, 28, FLEET[1:6] + CORE[1:], id="a-preset"),
        pytest.param({"acme.yaml": organization(option("storage", "slow"))}, 120, CORE, id="the-organization"),
        pytest.param({"logshipper.yaml": definition(size=1, storage="none")}, 0, (), id="defaults-that-all-shadow"),
        pytest.param(
            {CLUSTER.format("core-05"): cluster("core-05", "core", [option("storage", "nfs")])}, 5, ("core-05",),
            id="an-override-of-a-cluster",
        ),
        pytest.param({CLUSTER.format("core-05"): cluster("core-05", "core", pager="x")}, 0, (), id="a-label-of-others"),
        pytest.param({CLUSTER.format("core-05"): cluster("core-05", "edge")}, 5, ("core-05",), id="another-tier"),
        pytest.param(
            {"moved/all.yaml": build_preset("logs-3"), FILE.format("logs-3"): None}, 0, (), id="a-preset-in-another-file"
        ),
    ],
)  # fmt: skip
def test_change_renders_the_affected_plugins_only(
    world: World, files: dict[str, str | None], renders: int, drafts: tuple[str, ...]
) -> None:
    world.write(files)

    after = world.sync()

    assert after.report.render_count == renders
    assert after.changed_branches == {f"drafts/{draft}" for draft in drafts}
    assert world.sync().is_unchanged


MANY_EDGE = tuple(f"edge-{number:03}" for number in range(10))
MANY = (*MANY_EDGE, *(f"core-{number:03}" for number in range(60)))
MANY_PRESETS = tuple(f"logs-{number:02}" for number in range(15))
CHANGED = "logs-13"


def changed_preset(sizes: Mapping[str, int]) -> str:
    """Return the preset that the test changes. `sizes` contains the values for clusters, by name."""
    overrides = {item: [option("buffer.size", size)] for item, size in sizes.items()}
    return preset(CHANGED, [option("buffer.size", 128)], overrides, plugin={"releaseName": CHANGED})


def create_large_fleet() -> DecidedFleet:
    """Return seventy clusters, each with the Plugins of fifteen presets."""
    options, sizes = [option("buffer.size", 128)], {MANY[0]: 8, MANY[50]: 9}
    return DecidedFleet(
        {
            "acme.yaml": organization(option("storage", "fast")),
            "logshipper.yaml": definition(),
            OF_EDGE: edge_override(),
            OF_ALL: override("all", [option("timeout", 5), option("retries", 3)]),
            **{CLUSTER.format(item): cluster(item, item.partition("-")[0]) for item in MANY},
            **{
                FILE.format(many_preset): preset(many_preset, options, plugin={"releaseName": many_preset})
                for many_preset in MANY_PRESETS
            },
            FILE.format(CHANGED): changed_preset(sizes),
        },
        preset_controller(),
    )


def find_plugins(presets: Iterable[str], clusters: Iterable[str]) -> set[PackageLocation]:
    return {(where, f"plugins/{name}-{where}") for name in presets for where in clusters}


@pytest.mark.slow
def test_change_in_a_large_fleet_updates_the_drafts_of_affected_clusters() -> None:
    """One test makes all changes, because the first pass takes longer than all of them."""
    fleet = create_large_fleet()
    everything = find_plugins(MANY_PRESETS, MANY)
    assert fleet.run_pass().drafted == everything

    changes: list[tuple[str, dict[str, str], set[PackageLocation]]] = [
        (
            "one override",
            {FILE.format(CHANGED): changed_preset({MANY[0]: 7, MANY[50]: 9})},
            find_plugins([CHANGED], MANY[:1]),
        ),
        ("the order of overrides", {FILE.format(CHANGED): changed_preset({MANY[50]: 9, MANY[0]: 7})}, set()),
        (
            "a comment, and the order of options",
            {OF_ALL: "# for all\n" + override("all", [option("retries", 3), option("timeout", 5)])},
            set(),
        ),
        ("a tier", {OF_EDGE: edge_override("btrfs")}, find_plugins(MANY_PRESETS, MANY_EDGE)),
        ("nothing", {}, set()),
    ]
    for name, files, affected in changes:
        after = fleet.run_pass(files)

        assert (after.rendered, after.drafted) == (affected, affected), name
