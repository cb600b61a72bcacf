"""Tests of components with local changes, lost state, concurrent passes, override policies and command output."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.support.command_line import CommandResult, run_in
from tests.support.components import (
    BACKEND,
    CART,
    CART_BUILD,
    CART_PRODUCTION,
    CART_STAGING,
    CLUSTERS,
    FENCE,
    PRODUCTION,
    SERVICE,
    STAGING,
    TRACES,
    binding,
    build,
    component,
    component_world,
    components_drafted,
    components_on,
    components_published,
    condition_of,
    conflicts_on,
    fence,
    object_on,
    package_of,
    package_target,
    path_on,
    service,
    status_of,
    traces,
)
from tests.support.git_repositories import git
from tests.support.policies import ATTACHED, patch, policy, publish
from tests.support.prepared_worlds import begin
from tests.support.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world with published packages: `cart` and `till` in both environments, `feed` in production."""
    return begin(tmp_path, components_published)


# The tests of this section change packages locally.


@pytest.mark.parametrize("branch", ["clusters/oslo", "drafts/oslo"])
def test_local_change_of_a_generated_field_is_reverted_with_a_conflict(tmp_path: Path, branch: str) -> None:
    world = begin(tmp_path, components_drafted if branch.startswith("drafts") else components_published)
    world.edit(branch, path_on(branch), "replicas: 2", "replicas: 9")

    world.sync()

    assert object_on(world, "drafts/oslo")["spec"]["replicas"] == 2
    assert conflicts_on(world, "drafts/oslo", "cart") == [("deployment-cart.yaml", "/spec/replicas")]
    assert world.sync().is_unchanged
    publish(world, "oslo")
    assert object_on(world, "clusters/oslo")["spec"]["replicas"] == 2
    assert world.sync().is_unchanged


@pytest.mark.parametrize("branch", ["clusters/oslo", "drafts/oslo"])
def test_local_additions_are_kept_when_the_component_changes(tmp_path: Path, branch: str) -> None:
    world = begin(tmp_path, components_drafted if branch.startswith("drafts") else components_published)
    own = f"{package_of('cart')}/own.yaml"
    world.edit(branch, path_on(branch), "    app: cart\n", "    app: cart\n    pager: night # until May\n")
    world.commit(branch, {own: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\n"})
    world.sync_until_unchanged()
    world.write({CART: component("cart", replicas=4, traceAgent={}), FENCE: fence(444)})

    world.sync()

    text = world.text("drafts/oslo", path_on(branch))
    assert ("replicas: 4" in text, "pager: night # until May" in text) == (True, True)
    assert "metadata: {name: own}" in world.text("drafts/oslo", own)
    assert conflicts_on(world, "drafts/oslo", "cart") == []
    assert world.sync().is_unchanged
    publish(world, "oslo")
    assert "pager: night" in world.text("clusters/oslo", path_on(branch))


def test_locally_added_list_item_is_kept_when_the_component_changes(world: World) -> None:
    world.edit(
        "clusters/oslo", path_on("clusters/oslo"), "        - name: agent\n",
        "        - name: shell\n          image: shell:1\n        - name: agent\n",
    )  # fmt: skip
    world.sync_until_unchanged()
    world.write({CART_BUILD: build("cart", "cart:2")})

    world.sync()

    containers = object_on(world, "drafts/oslo")["spec"]["template"]["spec"]["containers"]
    assert {container["name"]: container["image"] for container in containers} == {
        "main": "cart:2",
        "shell": "shell:1",
        "agent": "agent:1.0",
    }
    assert conflicts_on(world, "drafts/oslo", "cart") == []
    assert world.sync().is_unchanged


def test_locally_deleted_file_is_drafted_again(world: World) -> None:
    world.commit("clusters/oslo", {path_on("clusters/oslo", kind="fence"): None})

    after = world.sync()

    assert (after.outcomes[package_target("oslo", "cart")], after.changed_branches) == ("draft", {"drafts/oslo"})
    assert object_on(world, "drafts/oslo", kind="fence")["kind"] == "NetworkPolicy"
    assert world.sync().is_unchanged


def test_declined_draft_stays_declined_until_its_content_changes(world: World) -> None:
    world.write({CART_BUILD: build("cart", "cart:2")})
    world.sync()
    world.delete("drafts/oslo")
    declined = world.sync()
    assert world.sync().is_unchanged
    world.write({CART_BUILD: build("cart", "cart:2", tag="2")})
    same = world.sync()
    world.write({CART_BUILD: build("cart", "cart:3")})

    after = world.sync()

    assert (declined.outcomes[package_target("oslo", "cart")], same.outcomes[package_target("oslo", "cart")]) == (
        "declined",
        "declined",
    )
    assert after.outcomes[package_target("oslo", "cart")] == "draft"
    assert world.sync().is_unchanged


# The test of this section has a directory that the daemon does not own.


def _create_world_with_unowned_directory(folder: Path) -> World:
    world = component_world(folder)
    world.write({CART_PRODUCTION: None})
    world.sync()
    publish(world, *CLUSTERS)
    own = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: cart\nspec:\n  replicas: 9\n  paused: true\n"
    world.commit("clusters/oslo", {path_on("clusters/oslo"): own, f"{package_of('cart')}/own.txt": "mine\n"})
    world.write({CART_PRODUCTION: binding("cart", PRODUCTION)})
    return world


@pytest.mark.slow
def test_unowned_directory_is_kept_until_the_binding_adopts_it(tmp_path: Path) -> None:
    world = begin(tmp_path, _create_world_with_unowned_directory)
    before = world.sync()
    result = condition_of(world, "shop/EnvBinding/cart-production")
    assert world.sync_until_unchanged().is_unchanged
    world.write({CART_PRODUCTION: binding("cart", PRODUCTION, {"reconciler.dev/adopt": "true"})})

    after = world.sync()

    assert before.outcomes[package_target("oslo", "cart")] == "DirectoryNotOwned"
    assert before.changed_branches == {"drafts/lisbon"}
    assert (result[0], "components/production/shop/cart" in result[2]) == ("False", True)
    assert after.outcomes[package_target("oslo", "cart")] == "draft"
    assert object_on(world, "drafts/oslo")["spec"]["replicas"] == 2
    assert object_on(world, "drafts/oslo")["spec"]["paused"] is True
    assert world.text("drafts/oslo", f"{package_of('cart')}/own.txt") == "mine\n"
    assert world.sync_until_unchanged().is_unchanged
    publish(world, "oslo")
    assert world.record("oslo", package_of("cart"))["owned"]


# The tests of this section delete the state, or run passes at the same time.


@pytest.mark.parametrize("start", [components_drafted, components_published])
def test_lost_state_is_restored_without_changes(tmp_path: Path, start: Callable[[Path], World]) -> None:
    world = begin(tmp_path, start)
    before = {cluster: (world.head(f"clusters/{cluster}"), world.head(f"drafts/{cluster}")) for cluster in CLUSTERS}
    git(world.fleet, "update-ref", "-d", "refs/reconciler/state/oslo")

    world.sync()

    assert {
        cluster: (world.head(f"clusters/{cluster}"), world.head(f"drafts/{cluster}")) for cluster in CLUSTERS
    } == before
    assert world.sync_until_unchanged().is_unchanged
    world.write({"shop/cart-new.yaml": build("cart.production", "cart:2")})
    assert world.sync().changed_branches == {"drafts/lisbon", "drafts/oslo"}
    assert world.sync().is_unchanged


def test_lost_state_and_deleted_binding_remove_nothing(world: World) -> None:
    git(world.fleet, "update-ref", "-d", "refs/reconciler/state/oslo")
    world.write({CART_PRODUCTION: None})

    after = world.sync()

    assert after.changed_branches == {"removals/lisbon"}
    assert "production/cart" in components_on(world, "clusters/oslo")
    assert world.sync_until_unchanged().is_unchanged


def test_interrupted_pass_and_second_daemon_create_the_same_commit(world: World) -> None:
    world.write({"shop/cart-new.yaml": build("cart.staging", "cart:2")})

    world.sync_while(world.sync)

    assert git(world.fleet, "rev-list", "--count", "clusters/berlin..drafts/berlin") == "1"
    assert world.sync_until_unchanged().is_unchanged


def test_two_daemons_create_the_same_trees(tmp_path: Path) -> None:
    heads = []
    for name in ("one", "other"):
        world = begin(tmp_path / name / "world", components_drafted)
        heads.append({cluster: world.tree(f"drafts/{cluster}", "components") for cluster in CLUSTERS})

    assert heads[0] == heads[1]


# The tests of this section use override policies.


def test_policy_named_in_a_template_overrides_the_generated_resource(world: World) -> None:
    slow = policy("slow", [patch("/spec/replicas", 1, {"clusters": ["oslo"]})])
    world.write({SERVICE: service(label=f", {ATTACHED}: slow"), "policies/slow.yaml": slow})
    world.sync()

    publish(world, *CLUSTERS)

    assert object_on(world, "clusters/oslo")["spec"]["replicas"] == 1
    assert object_on(world, "clusters/lisbon")["spec"]["replicas"] == 2
    assert object_on(world, "clusters/oslo")["metadata"]["labels"].get(ATTACHED) is None
    steps = world.package_status("clusters/oslo", package_of("cart"))["overrides"]
    assert [step["pointer"] for step in steps] == ["/spec/replicas"]
    world.write({"policies/slow.yaml": slow.replace('"value": 1', '"value": 3')})
    after = world.sync()
    assert (after.report.render_count, after.changed_branches) == (2, {"drafts/oslo"})
    assert world.sync().is_unchanged


def test_missing_policy_keeps_the_published_component(world: World) -> None:
    world.write({SERVICE: service(label=f", {ATTACHED}: slow")})

    after = world.sync()

    assert after.changed_branches == set()
    assert condition_of(world, "shop/EnvBinding/cart-production")[0] == "False"
    assert world.sync_until_unchanged().is_unchanged


# The tests of this section check the output of commands.


def run_command(world: World, *arguments: str) -> CommandResult:
    """Run a command with a settings file for the world."""
    (world.folder / "reconciler.yaml").write_text(
        f"config: {{url: {world.config}}}\nfleet: {{url: {world.fleet}}}\ncache: {world.folder / 'cache'}\n"
    )
    return run_in(world.folder, {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}, *arguments)


def test_plan_shows_changes_and_causes_for_each_target(world: World) -> None:
    world.write({FENCE: fence(444), CART_STAGING: binding("cart", STAGING, overrides={"replicas": 5})})

    result = run_command(world, "plan")

    assert result.returncode == 2
    assert (
        """\
re-render berlin/components/staging/shop/cart (EnvBinding shop/cart-staging)
  Deployment cart: replicas 2 → 5
  NetworkPolicy cart-fence: port 443 → 444
  why: Addon/_cluster/fence changed
  why: EnvBinding/shop/cart-staging changed
"""
        in result.stdout
    )
    assert (
        """\
re-render lisbon/components/production/shop/cart (EnvBinding shop/cart-production)
  NetworkPolicy cart-fence: port 443 → 444
  why: Addon/_cluster/fence changed
  same change on 1 other target: oslo/components/production/shop/cart
"""
        in result.stdout
    )


def test_validate_shows_catalog_errors_and_the_affected_components(world: World) -> None:
    world.write({FENCE: "# as we agreed\n" + fence(more="  x: 1\n")})

    data = json.loads(run_command(world, "validate", "-o", "json").stdout)["findings"]

    assert {(item["object"], item["code"], item.get("pointer"), item["file"], item["line"]) for item in data} == {
        ("Addon/_cluster/fence", "UnknownField", "/spec/x", FENCE, 15),
        ("ComponentType/_cluster/backend", "AddonNotFound", "/spec/platformAddons/0/name", BACKEND, 4),
        ("Backend/shop/cart", "ComponentTypeNotReady", None, CART, 1),
        ("Backend/shop/till", "ComponentTypeNotReady", None, "shop/till.yaml", 1),
    }


def test_validate_shows_a_component_error_once_for_all_environments(world: World) -> None:
    world.write({CART: component("cart", replicas=0, traceAgnt={})})

    data = json.loads(run_command(world, "validate", "-o", "json").stdout)["findings"]

    assert [(item["object"], item["pointer"], item["message"]) for item in data] == [
        ("Backend/shop/cart", "/spec/replicas", "spec.replicas must be at least 1, but is 0"),
        (
            "Backend/shop/cart",
            "/spec/traceAgnt",
            'spec.traceAgnt is an unknown field; allowed fields: port, replicas, traceAgent; did you mean "traceAgent"?',
        ),
    ]


def test_status_file_contains_the_origin_of_each_value(world: World) -> None:
    result = world.package_status("clusters/oslo", package_of("cart"))

    assert [(item["kind"], item["name"]) for item in result["inputs"]["objects"]] == [
        ("Addon", "fence"), ("Addon", "trace-agent"), ("Backend", "cart"), ("ComponentDefinition", "service"),
        ("ComponentType", "backend"), ("EnvBinding", "cart-production"), ("Build", "cart"),
        ("Environment", "production"),
    ]  # fmt: skip
    assert [applied_override["name"] for applied_override in result["appliedOverrides"]] == [
        "fence/main",
        "trace-agent/default",
    ]
    steps = {(layer["file"], layer["pointer"]): layer["steps"] for layer in result["layers"]}
    (step,) = steps["deployment-cart.yaml", "/metadata/labels/rate"]
    assert (step["instance"], step["after"], step["expression"]) == ("trace-agent/default", "r10", "r${spec.rate}")
    (image,) = steps["deployment-cart.yaml", "/spec/template/spec/containers/0/image"]
    assert image["values"] == [
        {"name": "build.image", "layer": "build", "by": "Build/shop/cart", "file": CART_BUILD, "where": "spec.image"}
    ]


def test_explain_shows_the_steps_of_a_value(world: World) -> None:
    world.write({CART_PRODUCTION: binding("cart", PRODUCTION, overrides={"replicas": 5})})

    result = run_command(world, "explain", f"oslo/{package_of('cart')}", "Deployment/cart", "/spec/replicas")

    assert (result.returncode, result.stderr) == (0, "")
    assert "Deployment/_cluster/cart /spec/replicas in deployment-cart.yaml: 5" in result.stdout
    assert "added 5 = ${spec.replicas}" in result.stdout
    assert f"{SERVICE}:17 spec.resources[0].template.spec.replicas" in result.stdout


def test_status_branch_contains_the_files_of_a_type(world: World) -> None:
    files = world.files(world.fleet, "reconciler/status", "types/_cluster/backend")

    assert list(files) == ["crd.yaml", "plan.yaml", "schema.json"]
    crd, plan = (parse_yaml(files[item]).documents[0].data for item in ("crd.yaml", "plan.yaml"))
    assert (crd["spec"]["names"]["kind"], crd["metadata"]["name"]) == ("Backend", "backends.platform")
    assert list(json.loads(files["schema.json"])["properties"]) == ["port", "replicas", "traceAgent"]
    assert [(platform_addon["name"], platform_addon["config"]) for platform_addon in plan["platformAddons"]] == [
        ("fence", {"from": []})
    ]
    assert [developer_addon["key"] for developer_addon in plan["developerAddons"]] == ["traceAgent"]
    status = status_of(world, "_cluster/ComponentType/backend")
    assert status["generatedCRD"] == {"apiVersion": "platform/v1alpha1", "kind": "Backend"}
    assert [applied_platform_addon["digest"] for applied_platform_addon in status["appliedPlatformAddons"]] == [
        plan["platformAddons"][0]["digest"]
    ]
    world.write({TRACES: traces(more="    - {op: remove, path: /x}\n")})
    world.sync()
    after = world.files(world.fleet, "reconciler/status", "types/_cluster/backend")
    assert {file for file in files if files[file] != after[file]} == {"plan.yaml"}


def test_status_branch_contains_the_status_of_bindings_and_components(world: World) -> None:
    binding = status_of(world, "shop/EnvBinding/cart-production")

    assert {name: binding[name] for name in ("component", "environment", "clusters", "addons")} == {
        "component": {"kind": "Backend", "name": "cart"},
        "environment": "production",
        "clusters": ["lisbon", "oslo"],
        "addons": ["fence/main", "trace-agent/default"],
    }
    assert condition_of(world, "shop/EnvBinding/cart-production")[:2] == ("True", "NoErrors")
    assert condition_of(world, "shop/Backend/cart")[:2] == ("True", "Valid")
    assert condition_of(world, "_cluster/ComponentType/backend", "InstancesValid")[2] == "all of 2 components are valid"
    assert condition_of(world, "_cluster/Addon/fence")[:2] == ("True", "Valid")
