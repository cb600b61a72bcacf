"""Tests of components through whole passes: new, changed, removed and blocked packages."""

import re
from pathlib import Path

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.support.components import (
    BACKEND,
    CART,
    CART_BUILD,
    CART_PRODUCTION,
    CART_STAGING,
    CLUSTERS,
    FENCE,
    LIVE,
    PRODUCED,
    PRODUCTION,
    SERVICE,
    STAGED,
    STAGING,
    TRACES,
    binding,
    build,
    component,
    component_type,
    components_drafted,
    components_on,
    components_published,
    condition_of,
    conflicts_on,
    environment,
    environment_of,
    fence,
    object_on,
    package_of,
    package_target,
    path_on,
    platform_addon,
    service,
    status_of,
    traces,
)
from tests.support.git_repositories import assert_sound, git
from tests.support.policies import greenhouse_cluster, publish
from tests.support.prepared_worlds import begin
from tests.support.world import MERGES, PassResult, World, catalog, repository

RULED = "  validation: {rules: [{expression: size(spec.from) < 9}]}"
EVERYWHERE = {f"drafts/{cluster}" for cluster in CLUSTERS}


@pytest.fixture
def drafted_world(tmp_path: Path) -> World:
    """Return a world with drafts of `cart` and `till` in both environments, and of `feed` in production."""
    return begin(tmp_path, components_drafted)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world with published packages of all components."""
    return begin(tmp_path, components_published)


# The tests of this section create components.


def test_component_has_a_package_on_each_cluster_of_its_environments(drafted_world: World) -> None:
    assert {cluster: components_on(drafted_world, f"drafts/{cluster}") for cluster in CLUSTERS} == {
        "berlin": ["staging/cart", "staging/till"],
        "lisbon": ["production/cart", "production/feed", "production/till"],
        "oslo": ["production/cart", "production/feed", "production/till"],
    }
    assert drafted_world.paths(drafted_world.fleet, "drafts/oslo", package_of("cart")) == [
        "deployment-cart.yaml", "networkpolicy-cart-fence.yaml", "service-cart.yaml",
    ]  # fmt: skip
    assert drafted_world.tree("drafts/oslo", package_of("cart")) == drafted_world.tree(
        "drafts/lisbon", package_of("cart")
    )
    assert drafted_world.sync().is_unchanged
    assert_sound(drafted_world.fleet)


def test_templates_read_the_values_of_the_environment(drafted_world: World) -> None:
    assert object_on(drafted_world, "drafts/berlin", kind="fence")["spec"]["environment"] == STAGING
    assert object_on(drafted_world, "drafts/oslo", kind="fence")["spec"]["environment"] == PRODUCTION
    containers = object_on(drafted_world, "drafts/oslo")["spec"]["template"]["spec"]["containers"]
    assert [container["image"] for container in containers] == ["cart:1", "agent:1.0"]


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("how", MERGES)
def test_components_are_published_with_each_merge_method(drafted_world: World, how: str) -> None:
    drafted_world.merge("oslo", how)

    after = drafted_world.sync()

    assert after.outcomes[package_target("oslo", "cart")] == "published"
    assert drafted_world.record("oslo", package_of("cart"))["revision"] == 1
    assert drafted_world.sync().is_unchanged


def test_one_component_can_be_published_alone(drafted_world: World) -> None:
    drafted_world.pick("oslo", package_of("cart"))

    after = drafted_world.sync()

    assert components_on(drafted_world, "clusters/oslo") == ["production/cart"]
    assert (after.outcomes[package_target("oslo", "cart")], after.outcomes[package_target("oslo", "till")]) == (
        "published",
        "drafted",
    )
    assert drafted_world.sync().is_unchanged


def test_new_component_with_a_binding_is_drafted(world: World) -> None:
    world.write({"shop/desk.yaml": component("desk"), "shop/desk-staging.yaml": binding("desk", STAGING)})

    after = world.sync()

    assert (after.changed_branches, after.report.render_count) == ({"drafts/berlin"}, 1)
    assert components_on(world, "drafts/berlin") == ["staging/cart", "staging/desk", "staging/till"]
    assert world.sync().is_unchanged


# The tests of this section change objects.


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("files", "renders", "moved"),
    [
        pytest.param({CART_BUILD: build("cart", "cart:2")}, 3, CLUSTERS, id="a-build"),
        pytest.param({"shop/cart-new.yaml": build("cart.staging", "cart:2")}, 1, STAGED, id="a-build-for-staging"),
        pytest.param({"shop/cart-new.yaml": build("cart.production", "cart:2")}, 2, LIVE, id="a-build-for-production"),
        pytest.param({"shop/feed-build.yaml": build("feed", "feed:1")}, 2, (), id="a-build-that-no-template-reads"),
        pytest.param({CART_BUILD: None}, 3, CLUSTERS, id="a-build-goes"),
        pytest.param({FENCE: fence(444)}, 6, CLUSTERS, id="an-addon"),
        pytest.param({TRACES: traces("1.1")}, 3, CLUSTERS, id="an-addon-of-those-who-opted-in"),
        pytest.param({FENCE: fence(more=RULED)}, 6, (), id="an-addon-without-effect"),
        pytest.param({FENCE: "# for all of us\n" + fence()}, 0, (), id="a-comment"),
        pytest.param({FENCE: None, "moved/fence.yaml": fence()}, 0, (), id="another-file"),
        pytest.param({SERVICE: service(8081)}, 6, CLUSTERS, id="a-default-of-the-definition"),
        pytest.param(
            {BACKEND: component_type("backend", "service", [platform_addon("fence", **{"from": ["in"]})], ["trace-agent"])},
            6, CLUSTERS, id="a-value-of-the-type",
        ),
        pytest.param({CART: component("cart", replicas=3, traceAgent={})}, 3, CLUSTERS, id="a-value-of-the-component"),
        pytest.param({CART: component("cart", replicas=2)}, 3, CLUSTERS, id="an-addon-is-left"),
        pytest.param({"shop/till.yaml": component("till", traceAgent={})}, 3, CLUSTERS, id="an-addon-is-taken"),
        pytest.param({CART_STAGING: binding("cart", STAGING, overrides={"replicas": 1})}, 1, STAGED, id="an-override"),
        pytest.param(
            {CART_PRODUCTION: binding("cart", PRODUCTION, platformAddonOverrides={"fence": {"from": ["x"]}})},
            2, LIVE, id="an-override-of-an-addon",
        ),
        pytest.param(
            {CART_PRODUCTION: binding("cart", PRODUCTION, addonOverrides={"traceAgent": {"rate": 10}})},
            2, (), id="override-without-effect",
        ),
        pytest.param(
            {PRODUCED: environment(PRODUCTION, *LIVE, context={"zone": "b"})}, 6, (), id="an-unused-context"
        ),
        pytest.param({"catalog.yaml": catalog()}, 0, (), id="something-else"),
    ],
)  # fmt: skip
def test_change_updates_the_affected_drafts_only(
    world: World, files: dict[str, str | None], renders: int, moved: tuple[str, ...]
) -> None:
    world.write(files)

    after = world.sync()

    assert (after.report.render_count, after.changed_branches) == (renders, {f"drafts/{item}" for item in moved})
    assert world.sync().is_unchanged


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_build_updates_the_packages_of_its_component_only(world: World, cluster: str) -> None:
    world.write({CART_BUILD: build("cart", "cart:2")})

    after = world.sync()

    drafts = {item for item, how in after.outcomes.items() if how == "draft"}
    assert drafts == {package_target(cluster, "cart") for cluster in CLUSTERS}
    changed = git(world.fleet, "diff", "--name-only", f"clusters/{cluster}", f"drafts/{cluster}").splitlines()
    name = package_of("cart", environment_of(cluster))
    assert changed == [f".reconciler/{name}.yaml", f"{name}/deployment-cart.yaml"]


def test_build_of_an_environment_has_precedence_until_its_deletion(world: World) -> None:
    world.write({"shop/cart-new.yaml": build("cart.staging", "cart:2")})
    world.sync()
    publish(world, "berlin")
    there = object_on(world, "clusters/berlin")["spec"]["template"]["spec"]["containers"][0]["image"]
    world.write({"shop/cart-new.yaml": None})

    after = world.sync()

    assert (there, after.changed_branches) == ("cart:2", {"drafts/berlin"})
    assert object_on(world, "drafts/berlin")["spec"]["template"]["spec"]["containers"][0]["image"] == "cart:1"
    assert world.sync().is_unchanged


def test_override_applies_to_its_environment_only(world: World) -> None:
    world.write({CART_PRODUCTION: binding("cart", PRODUCTION, overrides={"replicas": 7})})
    world.sync()

    assert object_on(world, "drafts/oslo")["spec"]["replicas"] == 7
    assert object_on(world, "clusters/berlin")["spec"]["replicas"] == 2
    world.write({CART_PRODUCTION: binding("cart", PRODUCTION)})
    after = world.sync()
    assert (after.changed_branches, world.head("drafts/oslo")) == ({"drafts/lisbon", "drafts/oslo"}, "")
    assert world.sync_until_unchanged().is_unchanged


# The tests of this section remove objects.


def find_acknowledgment(after: PassResult) -> str:
    """Return the token that acknowledges the held deletions."""
    result = next(
        finding.message
        for finding in after.findings
        if finding.code == "DeletionHeld" and "A person must confirm" in finding.message
    )
    match = re.search(r'ack-deletions: "(\w+)"', result)
    assert match, result
    return match[1]


def acknowledge_deletions(token: str) -> dict[str, str]:
    return {"reconciler.dev/ack-deletions": token}


def merge_removals(world: World, *clusters: str) -> None:
    """Merge the removal drafts of clusters, and run passes until a pass changes nothing."""
    for cluster in clusters:
        world.merge(cluster, "squash", draft=f"removals/{cluster}")
    world.sync_until_unchanged()


def test_new_cluster_of_an_environment_receives_all_components(world: World) -> None:
    world.write({"clusters/rome.yaml": repository("rome"), PRODUCED: environment(PRODUCTION, *LIVE, "rome")})

    after = world.sync()

    assert after.changed_branches == {"clusters/rome", "drafts/rome"}
    assert components_on(world, "drafts/rome") == ["production/cart", "production/feed", "production/till"]
    assert status_of(world, "shop/EnvBinding/cart-production")["clusters"] == ["lisbon", "oslo", "rome"]
    assert world.sync().is_unchanged


def test_environment_selects_clusters_by_labels(world: World) -> None:
    chosen = environment(PRODUCTION, clusterSelector={"matchLabels": {"region": "south"}})
    world.write({PRODUCED: chosen.replace('"clusterSelector"', '"clusters": ["oslo"], "clusterSelector"')})
    quiet = world.sync()
    assert world.sync().is_unchanged
    world.write({"clusters/rome.yaml": repository("rome").replace("north", "south")})

    after = world.sync()

    assert (quiet.changed_branches, after.changed_branches) == (set(), {"clusters/rome", "drafts/rome"})
    assert world.sync().is_unchanged


def test_removed_cluster_of_an_environment_loses_its_packages(world: World) -> None:
    world.write({PRODUCED: environment(PRODUCTION, "lisbon")})

    after = world.sync()

    assert {after.outcomes[f"oslo/{package_of(item)}"] for item in ("cart", "feed", "till")} == {"proposed"}
    assert after.changed_branches == {"removals/oslo"}
    assert world.sync().is_unchanged
    merge_removals(world, "oslo")
    assert components_on(world, "clusters/oslo") == []
    assert len(components_on(world, "clusters/lisbon")) == 3
    assert world.sync_until_unchanged().is_unchanged


def test_restored_cluster_of_an_environment_keeps_its_packages(world: World) -> None:
    world.write({PRODUCED: environment(PRODUCTION, "lisbon")})
    world.sync()
    world.write({PRODUCED: environment(PRODUCTION, *LIVE)})

    after = world.sync()

    assert (after.changed_branches, after.outcomes[package_target("oslo", "cart")]) == ({"removals/oslo"}, "published")
    assert world.head("removals/oslo") == ""
    assert world.sync().is_unchanged


def test_move_of_an_environment_is_held_until_an_acknowledgment(world: World) -> None:
    world.write({PRODUCED: environment(PRODUCTION, "berlin")})
    held = world.sync()
    assert world.sync().is_unchanged
    values = [
        finding.message
        for finding in held.findings
        if finding.code == "DeletionHeld" and "cart-production" in finding.message
    ]
    ack = next(match.group(1) for match in (re.search(r'ack-deletions: "(\w+)"', item) for item in values) if match)
    world.write({CART_PRODUCTION: binding("cart", PRODUCTION, acknowledge_deletions(ack))})

    after = world.sync()

    assert held.outcomes[package_target("oslo", "cart")] == "DeletionHeld"
    assert held.changed_branches == {"drafts/berlin"}
    assert (after.outcomes[package_target("oslo", "cart")], after.changed_branches) == (
        "proposed",
        {"removals/lisbon", "removals/oslo"},
    )
    assert after.outcomes[package_target("oslo", "till")] == "DeletionHeld"
    assert world.sync().is_unchanged


def test_deleted_binding_removes_its_packages(world: World) -> None:
    world.write({CART_PRODUCTION: None})

    after = world.sync()

    assert {after.outcomes[package_target(cluster, "cart")] for cluster in LIVE} == {"proposed"}
    assert after.changed_branches == {"removals/lisbon", "removals/oslo"}
    assert world.sync().is_unchanged
    merge_removals(world, *LIVE)
    assert components_on(world, "clusters/oslo") == ["production/feed", "production/till"]
    assert components_on(world, "clusters/berlin") == ["staging/cart", "staging/till"]


def test_deleted_binding_of_unpublished_packages_withdraws_them(drafted_world: World) -> None:
    drafted_world.write({CART_PRODUCTION: None})

    after = drafted_world.sync()

    assert after.changed_branches == {"drafts/lisbon", "drafts/oslo"}
    assert components_on(drafted_world, "drafts/oslo") == ["production/feed", "production/till"]
    assert drafted_world.sync().is_unchanged


def test_deletion_of_a_bound_component_is_held_until_an_acknowledgment(world: World) -> None:
    world.write({CART: None, CART_STAGING: None})
    held = world.sync()
    assert world.sync().is_unchanged
    result = condition_of(world, "shop/EnvBinding/cart-production")
    world.write({CART_PRODUCTION: binding("cart", PRODUCTION, acknowledge_deletions(find_acknowledgment(held)))})

    after = world.sync()

    assert {held.outcomes[package_target(cluster, "cart")] for cluster in LIVE} == {"DeletionHeld"}
    assert (held.outcomes[package_target("berlin", "cart")], held.changed_branches) == ("proposed", {"removals/berlin"})
    assert result[:2] == ("False", "EnvBindingOwnerUnresolved")
    assert ' is "cart"; existing names: "feed", "till' in result[2]
    assert {after.outcomes[package_target(cluster, "cart")] for cluster in LIVE} == {"proposed"}
    assert after.changed_branches == {"removals/lisbon", "removals/oslo"}
    assert world.sync().is_unchanged
    merge_removals(world, *LIVE)
    assert components_on(world, "clusters/oslo") == ["production/feed", "production/till"]


def test_restored_component_keeps_its_held_packages(world: World) -> None:
    before = {cluster: world.head(f"clusters/{cluster}") for cluster in CLUSTERS}
    world.write({CART: None})
    world.sync()
    world.write({CART: component("cart", replicas=2, traceAgent={})})

    after = world.sync()

    assert {after.outcomes[package_target(cluster, "cart")] for cluster in CLUSTERS} == {"published"}
    assert (after.changed_branches, {cluster: world.head(f"clusters/{cluster}") for cluster in CLUSTERS}) == (
        set(),
        before,
    )
    assert world.sync().is_unchanged


def test_binding_for_another_environment_creates_another_package(world: World) -> None:
    world.write({CART_STAGING: binding("cart", STAGING, of="trial"), "trial.yaml": environment("trial", "berlin")})
    held = world.sync()
    assert world.sync_until_unchanged().is_unchanged
    ack = acknowledge_deletions(find_acknowledgment(held))
    world.write({CART_STAGING: binding("cart", STAGING, ack, of="trial")})

    after = world.sync()

    assert (held.changed_branches, held.outcomes[package_target("berlin", "cart")]) == (
        {"drafts/berlin"},
        "DeletionHeld",
    )
    assert components_on(world, "drafts/berlin") == ["staging/cart", "staging/till", "trial/cart"]
    assert after.outcomes[package_target("berlin", "cart")] == "proposed"
    assert world.sync_until_unchanged().is_unchanged


# The tests of this section remove addons.


def test_removed_addon_removes_its_generated_files(world: World) -> None:
    """The next draft of each component removes the files of the addon."""
    world.write({BACKEND: component_type("backend", "service", (), ["trace-agent"])})

    after = world.sync()

    assert (after.report.render_count, after.changed_branches) == (6, EVERYWHERE)
    for cluster in CLUSTERS:
        draft = world.paths(world.fleet, f"drafts/{cluster}", package_of("cart", environment_of(cluster)))
        assert draft == ["deployment-cart.yaml", "service-cart.yaml"]
    assert world.sync().is_unchanged
    publish(world, *CLUSTERS)
    assert world.paths(world.fleet, "clusters/oslo", package_of("till")) == [
        "deployment-till.yaml",
        "service-till.yaml",
    ]


def test_removed_addon_keeps_its_locally_changed_file_and_reports_a_conflict(world: World) -> None:
    mine = path_on("clusters/oslo", kind="fence")
    world.edit("clusters/oslo", mine, "  name: cart-fence\n", "  name: cart-fence\n  labels: {own: mine}\n")
    world.sync_until_unchanged()
    world.write({BACKEND: component_type("backend", "service", (), ["trace-agent"])})

    world.sync()

    assert "own: mine" in world.text("drafts/oslo", mine)
    assert world.paths(world.fleet, "drafts/lisbon", package_of("cart")) == [
        "deployment-cart.yaml",
        "service-cart.yaml",
    ]
    assert conflicts_on(world, "drafts/oslo", "cart") == [("networkpolicy-cart-fence.yaml", "")]
    assert world.sync().is_unchanged


# The tests of this section have objects that are not ready.


BROKEN = component_type("backend", "service", [platform_addon("fence", frm=[])], ["trace-agent"])
REQUIRES_TEAM = service(fields=", team: string | required=true")


DUPLICATE = "again.yaml"
UNUSABLE = build("cart", "cart:1").replace('"cart:1"', '"cart:1", "workload": 1')
BLOCKED_CASES: dict[str, tuple[dict[str, str | None], str, str]] = {
    "no-type": ({BACKEND: None}, "ComponentTypeNotFound", "no ComponentType generates the kind"),
    "a-type-that-is-not-ready": ({BACKEND: BROKEN}, "ComponentTypeNotReady", "frm"),
    "of-no-definition": ({BACKEND: component_type("backend", "sevice")}, "ComponentTypeNotReady", "sevice"),
    "without-an-addon": ({FENCE: None}, "ComponentTypeNotReady", "fence"),
    "with-a-broken-addon": ({FENCE: fence(more="  patchs: []\n")}, "ComponentTypeNotReady", "fence"),
    "without-its-definition": ({SERVICE: None}, "ComponentTypeNotReady", "service"),
    "a-required-field-more": ({SERVICE: REQUIRES_TEAM}, "SchemaValidation", "team"),
    "a-value-that-may-not-be": ({CART: component("cart", replicas=0)}, "SchemaValidation", "replicas"),
    "a-field-that-is-not-there": ({CART: component("cart", bogus=1)}, "UnknownField", "bogus"),
    "its-name-is-another-s": ({DUPLICATE: component("cart", "NightJob")}, "EnvBindingOwnerUnresolved", "NightJob"),
    "no-environment": ({PRODUCED: None}, "EnvironmentNotFound", "production"),
    "no-cluster": ({PRODUCED: environment(PRODUCTION)}, "EnvironmentNotFound", "has no cluster"),
    "no-such-cluster": ({PRODUCED: environment(PRODUCTION, "rome")}, "EnvironmentNotFound", "has no cluster"),
    "an-environment-that-cannot-be-read": ({PRODUCED: "kind: ["}, "EnvironmentNotFound", "production"),
    "an-override-of-what-is-fixed": (
        {CART_PRODUCTION: binding("cart", PRODUCTION, overrides={"port": 1})}, "NotOverridable",
        "declared in parameters",
    ),
    "a-binding-that-cannot-be-read": (
        {CART_PRODUCTION: binding("cart", PRODUCTION, override={})}, "UnknownField", "override",
    ),
    "a-build-that-cannot-be-used": ({CART_BUILD: UNUSABLE}, "InDoubt", "Build shop/cart"),
}  # fmt: skip


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(("files", "reason", "message_part"), BLOCKED_CASES.values(), ids=BLOCKED_CASES)
def test_blocked_component_keeps_its_packages_and_reports_the_reason(
    world: World, files: dict[str, str | None], reason: str, message_part: str
) -> None:
    before = {path: (world.config / path).read_text() for path in files if (world.config / path).exists()}
    heads = {cluster: world.head(f"clusters/{cluster}") for cluster in CLUSTERS}
    world.write(files)

    after = world.sync()

    assert (after.changed_branches, after.report.render_count) == (set(), 0)
    status, text, message = condition_of(world, "shop/EnvBinding/cart-production")
    assert (status, text) == ("False", reason)
    assert message_part in message
    assert world.sync_until_unchanged().is_unchanged
    world.write({**dict.fromkeys(files), **before})
    restored = world.sync()
    assert {restored.outcomes[package_target(cluster, "cart")] for cluster in CLUSTERS} == {"published"}
    assert (restored.changed_branches, {cluster: world.head(f"clusters/{cluster}") for cluster in CLUSTERS}) == (
        set(),
        heads,
    )
    assert world.sync_until_unchanged().is_unchanged


def test_new_required_field_is_reported_for_each_component_without_it(world: World) -> None:
    """Components without the field keep their published output. Components with the field stay valid."""
    world.write({SERVICE: REQUIRES_TEAM, "shop/till.yaml": component("till", team="front")})

    after = world.sync()

    assert after.changed_branches == set()
    assert {after.outcomes[package_target(cluster, "till")] for cluster in CLUSTERS} == {"published"}
    status, reason, message = condition_of(world, "_cluster/ComponentType/backend", "InstancesValid")
    assert (status, reason) == ("False", "SchemaValidation")
    assert "1 of 2 components is not valid: Backend shop/cart" in message
    assert condition_of(world, "_cluster/ComponentType/backend")[:2] == ("True", "Compiled")
    assert condition_of(world, "shop/Backend/cart")[:2] == ("False", "SchemaValidation")
    assert condition_of(world, "shop/Backend/till")[:2] == ("True", "Valid")
    crd = parse_yaml(world.text("reconciler/status", "types/_cluster/backend/crd.yaml")).documents[0].data
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert spec["required"] == ["team"]
    assert world.sync().is_unchanged


def test_invalid_component_does_not_block_other_components(world: World) -> None:
    world.write({CART: component("cart", replicas=0), FENCE: fence(444)})

    after = world.sync()

    assert {after.outcomes[package_target(cluster, "till")] for cluster in CLUSTERS} == {"draft"}
    assert {after.outcomes.get(package_target(cluster, "cart")) for cluster in CLUSTERS} == {None}
    assert object_on(world, "clusters/oslo", kind="fence")["spec"]["port"] == 443
    assert object_on(world, "drafts/oslo", "till", "fence")["spec"]["port"] == 444
    assert world.sync().is_unchanged


def test_type_that_is_not_ready_keeps_its_files(world: World) -> None:
    before = world.files(world.fleet, "reconciler/status", "types/_cluster/backend")
    world.write({BACKEND: BROKEN})
    world.sync()

    status, reason, message = condition_of(world, "_cluster/ComponentType/backend")
    assert (status, reason) == ("False", "UnknownField")
    assert "frm" in message
    assert world.files(world.fleet, "reconciler/status", "types/_cluster/backend") == before
    assert condition_of(world, "shop/Backend/cart")[:2] == ("False", "ComponentTypeNotReady")
    world.write({BACKEND: None})
    world.sync()
    assert world.files(world.fleet, "reconciler/status", "types/_cluster/backend") == {}
    assert world.sync().is_unchanged


# The tests of this section have unreadable files and duplicate objects.


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "files",
    [
        pytest.param({CART: "kind: ["}, id="the-component"),
        pytest.param({CART_PRODUCTION: "kind: ["}, id="its-binding"),
        pytest.param({FENCE: "kind: ["}, id="an-addon"),
        pytest.param({SERVICE: "kind: ["}, id="a-definition"),
        pytest.param({BACKEND: "kind: ["}, id="a-type"),
        pytest.param({CART_BUILD: "kind: ["}, id="a-build"),
        pytest.param({"environments/staging.yaml": "kind: ["}, id="an-environment"),
        pytest.param({"clusters/oslo.yaml": "kind: ["}, id="a-cluster"),
        pytest.param({"clusters/lisbon.yaml": "kind: ["}, id="a-repository"),
        pytest.param({"other.yaml": "kind: ["}, id="some-file"),
        pytest.param({CART: "kind: [", CART_PRODUCTION: None}, id="something-else-and-the-binding-is-gone"),
        pytest.param({FENCE: "kind: [", PRODUCED: environment(PRODUCTION, "oslo")}, id="and-an-environment-shrinks"),
        pytest.param({"other.yaml": "kind: [", CART_BUILD: None}, id="some-file-and-a-build-is-gone"),
        pytest.param({"other.yaml": "kind: [", CART: None}, id="some-file-and-a-component-is-gone"),
        pytest.param({"copy.yaml": fence()}, id="an-addon-twice"),
        pytest.param({"copy.yaml": build("cart", "cart:2")}, id="a-build-twice"),
        pytest.param({"copy.yaml": environment(PRODUCTION, "lisbon")}, id="an-environment-twice"),
        pytest.param({"copy.yaml": binding("cart", PRODUCTION)}, id="a-binding-twice"),
        pytest.param({"copy.yaml": component_type("backend", "service")}, id="a-type-twice"),
    ],
)  # fmt: skip
def test_unreadable_or_duplicate_object_removes_no_package(world: World, files: dict[str, str | None]) -> None:
    before = {path: (world.config / path).read_text() for path in files if (world.config / path).exists()}
    heads = {cluster: world.head(f"clusters/{cluster}") for cluster in CLUSTERS}
    world.write(files)

    after = world.sync()

    assert after.changed_branches == set()
    assert after.findings
    assert world.sync_until_unchanged().is_unchanged
    world.write({**dict.fromkeys(files), **before})
    restored = world.sync()
    assert restored.changed_branches == set()
    assert set(restored.outcomes.values()) == {"published"}
    assert {cluster: world.head(f"clusters/{cluster}") for cluster in CLUSTERS} == heads
    assert world.sync_until_unchanged().is_unchanged


def test_unreadable_build_of_an_environment_keeps_the_package(world: World) -> None:
    """The daemon does not use the Build for all environments instead."""
    world.write({"shop/cart-new.yaml": build("cart.staging", "cart:2")})
    world.sync()
    publish(world, "berlin")
    world.write({"shop/cart-new.yaml": "kind: ["})

    after = world.sync()

    assert after.changed_branches == set()
    assert condition_of(world, "shop/EnvBinding/cart-staging") == (
        "False", "InDoubt", "the package is kept, because Build shop/cart.staging may be in a file that cannot be read",
    )  # fmt: skip
    assert world.sync_until_unchanged().is_unchanged


def test_packages_of_a_cluster_with_duplicate_definitions_are_not_held(world: World) -> None:
    names = ("lisbon", "oslo", "rome")
    world.write({PRODUCED: environment(PRODUCTION, clusterSelector={"matchLabels": {"stage": "live"}})})
    world.write({f"clusters/{name}.yaml": repository(name) for name in names})
    world.write({f"stages/{name}.yaml": greenhouse_cluster(name, stage="live") for name in names})
    world.sync()
    publish(world, *names)
    # Both definitions are in one file. Therefore neither is the first definition.
    world.write(
        {f"stages/{name}.yaml": "---\n".join([greenhouse_cluster(name, stage="live")] * 2) for name in names[1:]}
    )

    after = world.sync()

    assert (after.changed_branches, "DeletionHeld" in after.codes, "DuplicateObject" in after.codes) == (
        set(),
        False,
        True,
    )
    assert world.sync_until_unchanged().is_unchanged


def test_renamed_binding_takes_over_the_packages(world: World) -> None:
    world.write({CART_PRODUCTION: None, "shop/prod.yaml": binding("cart", "prod", of=PRODUCTION)})
    renamed = world.sync()
    assert world.sync().is_unchanged
    world.write({"shop/prod.yaml": None})

    after = world.sync()

    assert (renamed.changed_branches, renamed.outcomes[package_target("oslo", "cart")]) == (set(), "published")
    assert after.outcomes[package_target("oslo", "cart")] == "proposed"
    assert world.sync().is_unchanged


def test_renamed_binding_that_is_not_ready_keeps_the_packages(world: World) -> None:
    broken = binding("cart", "prod", of=PRODUCTION, overrides={"replicas": "two"})
    world.write({CART_PRODUCTION: None, "shop/prod.yaml": broken})

    after = world.sync()

    assert (after.changed_branches, after.outcomes[package_target("oslo", "cart")]) == (set(), "RemovalWaits")
    assert "EnvBinding shop/cart-prod is not ready, and may request" in str(after.findings)


def test_component_of_another_kind_replaces_the_package(world: World) -> None:
    world.write({CART: component("cart", "NightJob")})

    after = world.sync()

    assert after.changed_branches == EVERYWHERE
    assert world.paths(world.fleet, "drafts/oslo", package_of("cart")) == ["cronjob-cart.yaml"]
    assert condition_of(world, "shop/NightJob/cart")[:2] == ("True", "Valid")
    assert world.sync().is_unchanged
    publish(world, *CLUSTERS)
    assert world.paths(world.fleet, "clusters/oslo", package_of("cart")) == ["cronjob-cart.yaml"]


def test_deleted_cluster_keeps_its_packages(world: World) -> None:
    oslo = (world.config / "clusters/oslo.yaml").read_text()
    world.write({"clusters/oslo.yaml": None})

    after = world.sync()

    assert (after.changed_branches, len(components_on(world, "clusters/oslo"))) == (set(), 3)
    assert "UnknownCluster" in after.codes
    assert world.sync_until_unchanged().is_unchanged
    world.write({"clusters/oslo.yaml": oslo})
    assert world.sync().outcomes[package_target("oslo", "cart")] == "published"
    assert world.sync_until_unchanged().is_unchanged
