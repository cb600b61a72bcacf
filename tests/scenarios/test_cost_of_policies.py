"""Tests of the renders of a policy change: only affected packages are rendered, for any size of the fleet."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from reconciler.controllers.override_policies import package_overrides as overrides
from reconciler.controllers.override_policies.resource_overrides import OverriddenResource, apply_overrides
from reconciler.packages.package import PackageResource
from tests.support.policies import ATTACHED, metadata_of, policy, propagation, replicas
from tests.support.prepared_worlds import begin
from tests.support.world import World, catalog, deployment, injected_set, package, repository

EARLY = tuple(f"early-{number}" for number in range(3))
WIDE = tuple(f"wide-{number}" for number in range(7))
FLEET = (*EARLY, *WIDE)
PLACED = ("cart", "till")
BUNDLED = ("door", "hall")
FOR_EARLY = {"clusterSelector": {"region": "early"}}
BY_NAMESPACE = "kubeadmiral.io/override-policy-name"
PLACED_BY = "kubeadmiral.io/propagation-policy-name"
SITE, SIZES, CLUSTER = "policies/site.yaml", "policies/{}.yaml", "clusters/{}.yaml"


def deployment_with_policies(name: str, **labels: str) -> str:
    """Return a Deployment that names two policies: the shared policy and its own policy."""
    mapping = {ATTACHED: "site", BY_NAMESPACE: f"{name}-size", **labels}
    return deployment(name).replace(f"metadata:\n  name: {name}\n", metadata_of(name, "shop", labels=mapping), 1)


def cluster_repository(name: str, region: str = "") -> str:
    return repository(name).replace("region: north", f"region: {region or name.partition('-')[0]}")


def site_policy(*rules: Any) -> str:
    """Return the shared policy: a rule for all clusters, and then these rules."""
    return policy("site", [image_rule("everywhere"), *rules])


def image_rule(tag: str, clusters: Any = None) -> dict[str, Any]:
    target = {"targetClusters": clusters} if clusters else {}
    return {**target, "overriders": {"image": [{"operations": [{"imageComponent": "Tag", "value": tag}]}]}}


def size_policy(name: str, early: int = 3, wide: int = 5, **spec: object) -> str:
    return policy(f"{name}-size", [replicas(wide), replicas(early, FOR_EARLY)], "shop", **spec)


def create_fleet(folder: Path) -> World:
    """Return ten clusters with two drafted packages each: one placed package, and one package of a set."""
    world = World.create(folder)
    lobby = {f"{item}.yaml": deployment_with_policies(item) for item in BUNDLED}
    world.release("lobby", "v1", {"Kptfile": package("lobby")["Kptfile"], **lobby})
    world.write(
        {
            "catalog.yaml": catalog(),
            "lobby.yaml": injected_set("lobby", FLEET).partition("      template:")[0],
            "everywhere.yaml": propagation("everywhere", {"placement": [{"cluster": item} for item in FLEET]}, "shop"),
            SITE: site_policy(image_rule("early", FOR_EARLY)),
            **{CLUSTER.format(item): cluster_repository(item) for item in FLEET},
            **{f"shop/{item}.yaml": deployment_with_policies(item, **{PLACED_BY: "everywhere"}) for item in PLACED},
            **{SIZES.format(item): size_policy(item) for item in (*PLACED, *BUNDLED)},
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
        pytest.param({SIZES.format("cart"): size_policy("cart", early=4)}, 3, EARLY, id="a-rule-for-three"),
        pytest.param({SIZES.format("door"): size_policy("door", early=4)}, 3, EARLY, id="a-rule-for-three-of-a-package"),
        pytest.param({SITE: site_policy(image_rule("new", FOR_EARLY))}, 6, EARLY, id="a-rule-for-three-of-both-packages"),
        pytest.param({SITE: site_policy()}, 6, EARLY, id="a-rule-for-three-goes"),
        pytest.param(
            {SITE: site_policy(image_rule("early", FOR_EARLY), image_rule("one", {"clusters": ["wide-2"]}))}, 2, ("wide-2",),
            id="a-rule-for-one",
        ),
        pytest.param(
            {SITE: site_policy(image_rule("early", {"clusterSelector": {"region": "early"}, "clusters": [*EARLY]}))}, 6, (),
            id="equivalent-rule-for-three-clusters",
        ),
        pytest.param({SIZES.format("cart"): size_policy("cart", wide=6)}, 10, WIDE, id="a-rule-for-all"),
        pytest.param({CLUSTER.format("wide-2"): cluster_repository("wide-2", "early")}, 2, ("wide-2",), id="a-label"),
        pytest.param({"policies/other.yaml": policy("other", [replicas(9)])}, 0, (), id="an-unused-policy"),
        pytest.param(
            {SIZES.format("cart"): size_policy("cart", resourceSelectors=[{"apiVersion": "v1", "kind": "Service"}])}, 0, (),
            id="a-policy-that-selects-no-resource",
        ),
        pytest.param(
            {"moved/cart.yaml": size_policy("cart"), SIZES.format("cart"): None}, 0, (), id="a-policy-in-another-file"
        ),
    ],
)  # fmt: skip
def test_change_renders_the_affected_packages_only(
    world: World, files: dict[str, str | None], renders: int, drafts: tuple[str, ...]
) -> None:
    world.write(files)

    after = world.sync()

    assert after.report.render_count == renders
    assert after.changed_branches == {f"drafts/{draft}" for draft in drafts}
    assert world.sync().is_unchanged


def test_clusters_with_equal_rules_share_the_override_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counter: Counter[str] = Counter()

    def count_overrides(resource: PackageResource, *rest: Any) -> OverriddenResource:
        counter[resource.name] += 1
        return apply_overrides(resource, *rest)

    monkeypatch.setattr(overrides, "apply_overrides", count_overrides)

    assert len([ref for ref in create_fleet(tmp_path).sync().after if "heads/drafts/" in ref]) == len(FLEET)
    assert counter == dict.fromkeys((*PLACED, *BUNDLED), 2)
