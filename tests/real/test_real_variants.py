"""PackageVariants that Nephio published, over upstream repositories made from the folders they name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.kpt import FunctionSpec
from reconciler.krm.yaml import parse_yaml
from reconciler.packages.functions.registry import BUILTIN_FUNCTIONS
from tests.real.packages import DATA, FOLDERS, drafted, images, make_upstream, package_files
from tests.support.world import PassResult, World, repository

OAI = DATA / "nephio/workloads/oai/package-variants"
WORKLOAD_CLUSTER = DATA / "nephio/infra/capi/nephio-workload-cluster"
CLUSTERS = ("regional", "edge", "mgmt", "mgmt-staging")
SITES = ("regional", "edge")
SITE = """\
apiVersion: infra.nephio.org/v1alpha1
kind: WorkloadCluster
metadata:
  name: {name}
spec:
  clusterName: {name}
  cnis: [macvlan]
  masterInterface: eth0
"""
# the only content that a clone adds to the files of a package, if it is missing
MERGE_COMMENT = re.compile(rb" # kpt-merge: \S+")
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the packages of other projects are not available")


def read_variants() -> list[Any]:
    folders = [folder for folder in (OAI, WORKLOAD_CLUSTER) if folder.is_dir()]
    values = [
        parse_yaml(file.read_bytes()).documents[0].data for folder in folders for file in sorted(folder.glob("*.yaml"))
    ]
    return [pytest.param(item, id=item["metadata"]["name"]) for item in values if item["kind"] == "PackageVariant"]


def is_published(variant: dict[str, Any]) -> bool:
    return (upstream_of(variant) / "Kptfile").is_file()


def upstream_of(variant: dict[str, Any]) -> Path:
    upstream = variant["spec"]["upstream"]
    return DATA / FOLDERS[upstream["repo"]] / upstream["package"]


VARIANTS = read_variants()
PUBLISHED = [variant for variant in VARIANTS if is_published(variant.values[0])]
MISSING = [variant for variant in VARIANTS if variant not in PUBLISHED]


def place_of(variant: dict[str, Any]) -> tuple[str, str]:
    downstream = variant["spec"]["downstream"]
    return downstream["repo"], downstream["package"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The folders as published. This test writes every WorkloadCluster except `example`, which is among them."""
    world = World.create(tmp_path_factory.mktemp("nephio") / "world")
    for name, folder in FOLDERS.items():
        make_upstream(world, name, package_files(DATA / folder))
    for name in CLUSTERS:
        world.write({f"repositories/{name}.yaml": repository(name)})
    for folder in (OAI, WORKLOAD_CLUSTER):
        world.write({f"{folder.name}/{path}": data.decode() for path, data in package_files(folder).items()})
    world.write({f"sites/{name}.yaml": SITE.format(name=name) for name in SITES})
    return world


@pytest.fixture(scope="module")
def first(world: World) -> PassResult:
    pass_result = world.sync()
    print(
        f"{len(VARIANTS)} variants, {len(pass_result.changed_branches)} branches moved, {pass_result.report.render_count} renders"
    )
    return pass_result


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("variant", PUBLISHED)
def test_a_variant_of_a_published_package_has_a_draft(world: World, first: PassResult, variant: dict[str, Any]) -> None:
    repo, package = place_of(variant)
    source, files = package_files(upstream_of(variant)), drafted(world, f"drafts/{repo}", package)
    rendered = {condition["type"]: condition for condition in status_of(world, repo, package)["conditions"]}["Rendered"]

    assert first.outcomes[f"{repo}/{package}"] == "draft"
    assert source.keys() <= files.keys()
    assert rendered["status"] == ("False" if unavailable(upstream_of(variant)) else "True")


def status_of(world: World, repo: str, package: str) -> dict[str, Any]:
    text = world.text(f"drafts/{repo}", f".reconciler/{package}.yaml")
    status: dict[str, Any] = parse_yaml(text).documents[0].data["status"]
    return status


def unavailable(folder: Path) -> list[str]:
    return [image for image in images(folder) if BUILTIN_FUNCTIONS.find(FunctionSpec(image=image)) is None]


@pytest.mark.parametrize("variant", MISSING)
def test_a_variant_of_a_missing_package_reports_what_is_missing(
    world: World, first: PassResult, variant: dict[str, Any]
) -> None:
    upstream = variant["spec"]["upstream"]
    status = world.status("PackageVariant", variant["metadata"]["name"])
    conditions = {condition["type"]: condition for condition in status["conditions"]}  # type: ignore[attr-defined]

    assert conditions["Stalled"]["reason"] == "UpstreamNotFound"
    assert upstream["package"] in conditions["Stalled"]["message"]
    assert "/".join(place_of(variant)) not in first.outcomes


@pytest.mark.parametrize("variant", PUBLISHED)
def test_what_no_function_touches_stays_to_the_byte(world: World, first: PassResult, variant: dict[str, Any]) -> None:
    """A package without functions is as published; one that its variant annotates loses no line."""
    repo, package = place_of(variant)
    source, files = package_files(upstream_of(variant)), drafted(world, f"drafts/{repo}", package)
    own, added = [*images(upstream_of(variant))], variant["spec"].get("pipeline")
    for path in source.keys() - {"Kptfile", "package-context.yaml"}:
        before, after = (MERGE_COMMENT.sub(b"", content) for content in (source[path], files[path]))
        if not (own or added) or not path.endswith((".yaml", ".yml")):
            assert before == after, path
        if not own:
            assert is_kept(before.splitlines(), after.splitlines()), path


def is_kept(lines: list[bytes], within: list[bytes]) -> bool:
    rest = iter(within)
    return all(line in rest for line in lines)


def test_the_cluster_is_the_one_that_was_injected(world: World, first: PassResult) -> None:
    cluster = drafted(world, "drafts/mgmt", "example-cluster")
    rootsync = drafted(world, "drafts/mgmt-staging", "example-rootsync")
    site, root = (
        parse_yaml(content).documents[0].data for content in (cluster["cluster.yaml"], rootsync["rootsync.yaml"])
    )

    assert b"masterInterface: eth1" in cluster["workload-cluster.yaml"]
    assert site["metadata"]["name"] == "example"
    assert site["metadata"]["annotations"]["nephio.org/cluster-name"] == "example"
    assert root["metadata"]["name"] == "example"
    assert root["spec"]["git"]["secretRef"]["name"] == "example-access-token-configsync"


def test_a_second_pass_is_silent(world: World, first: PassResult) -> None:
    assert world.sync().is_unchanged
