"""What an edit costs: as many renders as there are packages that can feel it, however large the fleet is."""

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


def attached(name: str, **labels: str) -> str:
    """Return a Deployment of the shop that names two policies, that of all and its own."""
    mapping = {ATTACHED: "site", BY_NAMESPACE: f"{name}-size", **labels}
    return deployment(name).replace(f"metadata:\n  name: {name}\n", metadata_of(name, "shop", labels=mapping), 1)


def cluster(name: str, region: str = "") -> str:
    return repository(name).replace("region: north", f"region: {region or name.partition('-')[0]}")


def site(*rules: Any) -> str:
    """Return the policy of all: what everybody gets, and then these rules."""
    return policy("site", [image("everywhere"), *rules])


def image(tag: str, clusters: Any = None) -> dict[str, Any]:
    target = {"targetClusters": clusters} if clusters else {}
    return {**target, "overriders": {"image": [{"operations": [{"imageComponent": "Tag", "value": tag}]}]}}


def size(name: str, early: int = 3, wide: int = 5, **spec: object) -> str:
    return policy(f"{name}-size", [replicas(wide), replicas(early, FOR_EARLY)], "shop", **spec)


def fleet(folder: Path) -> World:
    """Return ten clusters with two packages each, one placed and one of a set, all of them drafted."""
    world = World.create(folder)
    lobby = {f"{item}.yaml": attached(item) for item in BUNDLED}
    world.release("lobby", "v1", {"Kptfile": package("lobby")["Kptfile"], **lobby})
    world.write(
        {
            "catalog.yaml": catalog(),
            "lobby.yaml": injected_set("lobby", FLEET).partition("      template:")[0],
            "everywhere.yaml": propagation("everywhere", {"placement": [{"cluster": item} for item in FLEET]}, "shop"),
            SITE: site(image("early", FOR_EARLY)),
            **{CLUSTER.format(item): cluster(item) for item in FLEET},
            **{f"shop/{item}.yaml": attached(item, **{PLACED_BY: "everywhere"}) for item in PLACED},
            **{SIZES.format(item): size(item) for item in (*PLACED, *BUNDLED)},
        }
    )
    world.sync()
    return world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return begin(tmp_path, fleet)


@pytest.mark.parametrize(
    ("files", "renders", "drafts"),
    [
        pytest.param({}, 0, (), id="nothing"),
        pytest.param({SIZES.format("cart"): size("cart", early=4)}, 3, EARLY, id="a-rule-for-three"),
        pytest.param({SIZES.format("door"): size("door", early=4)}, 3, EARLY, id="a-rule-for-three-of-a-package"),
        pytest.param({SITE: site(image("new", FOR_EARLY))}, 6, EARLY, id="a-rule-for-three-of-both-packages"),
        pytest.param({SITE: site()}, 6, EARLY, id="a-rule-for-three-goes"),
        pytest.param(
            {SITE: site(image("early", FOR_EARLY), image("one", {"clusters": ["wide-2"]}))}, 2, ("wide-2",),
            id="a-rule-for-one",
        ),
        pytest.param(
            {SITE: site(image("early", {"clusterSelector": {"region": "early"}, "clusters": [*EARLY]}))}, 6, (),
            id="a-rule-for-three-that-says-it-otherwise",
        ),
        pytest.param({SIZES.format("cart"): size("cart", wide=6)}, 10, WIDE, id="a-rule-for-all"),
        pytest.param({CLUSTER.format("wide-2"): cluster("wide-2", "early")}, 2, ("wide-2",), id="a-label"),
        pytest.param({"policies/other.yaml": policy("other", [replicas(9)])}, 0, (), id="a-policy-that-nobody-names"),
        pytest.param(
            {SIZES.format("cart"): size("cart", resourceSelectors=[{"apiVersion": "v1", "kind": "Service"}])}, 0, (),
            id="a-policy-that-chooses-what-nobody-has",
        ),
        pytest.param(
            {"moved/cart.yaml": size("cart"), SIZES.format("cart"): None}, 0, (), id="a-policy-in-another-file"
        ),
    ],
)  # fmt: skip
def test_an_edit_renders_what_can_feel_it(
    world: World, files: dict[str, str | None], renders: int, drafts: tuple[str, ...]
) -> None:
    world.write(files)

    after = world.sync()

    assert after.report.render_count == renders
    assert after.changed_branches == {f"drafts/{draft}" for draft in drafts}
    assert world.sync().is_unchanged


def test_clusters_that_are_told_the_same_share_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counter: Counter[str] = Counter()

    def counted(resource: PackageResource, *rest: Any) -> OverriddenResource:
        counter[resource.name] += 1
        return apply_overrides(resource, *rest)

    monkeypatch.setattr(overrides, "apply_overrides", counted)

    assert len([ref for ref in fleet(tmp_path).sync().after if "heads/drafts/" in ref]) == len(FLEET)
    assert counter == dict.fromkeys((*PLACED, *BUNDLED), 2)
