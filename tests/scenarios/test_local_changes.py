"""Local changes of every kind survive the next draft, or are named by a conflict record or a finding."""

from pathlib import Path

import pytest

from tests.support.git_repositories import git
from tests.support.local_changes import FILE, LINK, SUBMODULE, Change, Entry, commit_entries, read_entries
from tests.support.policies import placements_published, resource
from tests.support.prepared_worlds import begin, berlin_published
from tests.support.world import World, catalog, config_map, package, repository, variant

METRICS = "metrics/deployment.yaml"
TARGET, FOREIGN = Entry(LINK, b"../elsewhere"), Entry(SUBMODULE, b"1" * 40)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Berlin has both packages published."""
    return begin(tmp_path, berlin_published)


@pytest.fixture
def placed(tmp_path: Path) -> World:
    """Placed resources are published on Berlin and Lisbon."""
    return begin(tmp_path, placements_published)


def release(world: World, version: str = "v2", image: str = "2.0", **more: str) -> None:
    world.release("metrics", version, package("metrics", image=image, **more))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", version)})


def change(world: World, branch: str, changes: Change) -> None:
    commit_entries(world.fleet, f"refs/heads/{branch}", changes)


def entries(world: World, branch: str = "drafts/berlin") -> dict[str, Entry]:
    return read_entries(world.fleet, f"refs/heads/{branch}")


def messages(world: World, code: str) -> str:
    """Return the messages of a code, one to a line."""
    return "\n".join(finding.message for finding in world.plan().findings if finding.code == code)


def test_a_trailing_comment_after_the_merge_of_an_update_is_in_the_next_draft(world: World) -> None:
    release(world)
    world.sync()
    world.merge("berlin", "squash")
    text = world.text("clusters/berlin", METRICS)
    world.commit("clusters/berlin", {METRICS: f"{text}# ask Ada before scaling\n"})

    after = world.sync()

    assert (after.outcomes["berlin/metrics"], world.head("drafts/berlin")) == ("published with edits", "")
    assert world.sync().is_unchanged
    release(world, "v3", "3.0")
    world.sync()
    text = world.text("drafts/berlin", METRICS)
    assert ("# ask Ada before scaling\n" in text, "metrics:3.0" in text) == (True, True)


@pytest.mark.parametrize("entry", [TARGET, FOREIGN], ids=["link", "submodule"])
@pytest.mark.parametrize("branch", ["clusters/berlin", "drafts/berlin"])
def test_a_link_or_submodule_in_a_package_is_in_the_next_draft(world: World, branch: str, entry: Entry) -> None:
    if branch == "drafts/berlin":
        release(world)
        world.sync()
    change(world, branch, {"metrics/docs/extra": entry})
    world.sync()
    assert world.sync().is_unchanged
    release(world, "v3", "3.0")

    world.sync()

    assert entries(world)["metrics/docs/extra"] == entry
    assert "metrics:3.0" in world.text("drafts/berlin", METRICS)
    assert world.sync().is_unchanged
    world.merge("berlin", "squash", delete=True)
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"
    assert entries(world, "clusters/berlin")["metrics/docs/extra"] == entry


def test_a_link_that_people_remove_from_a_draft_stays_removed(world: World) -> None:
    change(world, "clusters/berlin", {"metrics/extra": TARGET})
    release(world)
    world.sync()
    change(world, "drafts/berlin", {"metrics/extra": None})
    release(world, "v3", "3.0")

    world.sync()

    assert "metrics/extra" not in entries(world)
    assert "metrics:3.0" in world.text("drafts/berlin", METRICS)


def test_a_link_in_a_generated_package_is_in_the_next_draft(placed: World) -> None:
    change(placed, "clusters/berlin", {"resources/shop/extra": TARGET})
    placed.write({"placed/limits.yaml": resource("ConfigMap", "limits", on="berlin, lisbon", cpu="3", memory="4Gi")})

    placed.sync()

    assert entries(placed)["resources/shop/extra"] == TARGET
    assert placed.sync().is_unchanged


@pytest.mark.parametrize("entry", [TARGET, FOREIGN], ids=["link", "submodule"])
def test_a_link_in_place_of_a_generated_file_blocks_the_package(placed: World, entry: Entry) -> None:
    path = "resources/shop/configmap-limits.yaml"
    change(placed, "clusters/berlin", {path: entry})
    placed.write({"placed/limits.yaml": resource("ConfigMap", "limits", on="berlin, lisbon", cpu="3", memory="4Gi")})

    after = placed.sync()

    assert after.outcomes["berlin/resources/shop"] == "LocalFileInTheWay"
    assert after.outcomes["lisbon/resources/shop"] == "draft"
    assert placed.head("drafts/berlin") == ""
    assert "configmap-limits.yaml" in messages(placed, "LocalFileInTheWay")
    change(placed, "clusters/berlin", {path: None})
    assert placed.sync().outcomes["berlin/resources/shop"] == "draft"


OCCUPIED = {
    "file at the package": ("metrics", Entry(FILE, b"mine\n")),
    "link at the package": ("metrics", TARGET),
    "submodule at the package": ("metrics", FOREIGN),
    "file at .reconciler": (".reconciler", Entry(FILE, b"mine\n")),
    "folder at the status file": (".reconciler/metrics.yaml/inside", Entry(FILE, b"mine\n")),
    "link at the status file": (".reconciler/metrics.yaml", TARGET),
}


@pytest.mark.parametrize(("path", "entry"), OCCUPIED.values(), ids=list(OCCUPIED))
def test_what_occupies_the_place_of_a_package_stays_and_is_reported(world: World, path: str, entry: Entry) -> None:
    release(world)
    occupied = path.removesuffix("/inside")
    deleted = [
        entry for entry in entries(world, "clusters/berlin") if entry == occupied or entry.startswith(f"{occupied}/")
    ]
    change(world, "clusters/berlin", {**dict.fromkeys(deleted), path: entry})

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "LocalFileInTheWay"
    assert f"{occupied} on branch clusters/berlin" in messages(world, "LocalFileInTheWay")
    assert entries(world, "clusters/berlin")[path] == entry
    assert world.sync().is_unchanged
    change(world, "clusters/berlin", {path: None})
    assert world.sync().outcomes["berlin/metrics"] == "draft"


def test_a_file_where_the_next_version_has_a_folder_blocks_its_package_alone(world: World) -> None:
    change(world, "clusters/berlin", {"metrics/extra": Entry(FILE, b"mine\n")})
    files = {**package("metrics", image="2.0"), "extra/new.txt": "new\n"}
    world.release("metrics", "v2", files)
    world.write({
        "metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2"),
        "logs.yaml": variant("logs-berlin", "berlin", "logs", "v2", "metrics"),
    })  # fmt: skip

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "LocalFileInTheWay"
    assert after.outcomes["berlin/logs"] == "draft"
    assert entries(world)["metrics/extra"] == Entry(FILE, b"mine\n")
    assert "both the file extra and extra/new.txt" in messages(world, "LocalFileInTheWay")
    git(world.fleet, "fsck", "--strict")


def test_a_draft_that_is_a_symbolic_ref_to_its_cluster_branch_publishes_nothing(world: World) -> None:
    published = world.head("clusters/berlin")
    git(world.fleet, "symbolic-ref", "refs/heads/drafts/berlin", "refs/heads/clusters/berlin")
    release(world)

    after = world.sync()

    assert world.head("clusters/berlin") == published
    assert after.outcomes["berlin/metrics"] == "PushFailed"
    assert "refs/heads/drafts/berlin is a symbolic ref to refs/heads/clusters/berlin" in str(after.findings)
    git(world.fleet, "symbolic-ref", "--delete", "refs/heads/drafts/berlin")
    assert world.sync().outcomes["berlin/metrics"] == "draft"
    assert world.head("clusters/berlin") == published


def test_a_merge_that_was_reverted_before_a_pass_leaves_nothing_to_the_next_one(world: World) -> None:
    release(world)
    world.sync()
    world.merge("berlin", "squash")
    world.revert("berlin")

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "declined"
    pass_result = world.sync()
    assert (pass_result.is_unchanged, pass_result.before) == (True, pass_result.after)


def test_a_file_that_a_draft_normalized_holds_its_object_once(world: World) -> None:
    mutator = "pipeline:\n  mutators:\n  - image: set-namespace\n    configMap: {namespace: prod}\n"
    files = package("metrics")
    world.release("metrics", "v2", {**files, "Kptfile": files["Kptfile"] + mutator})
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.sync()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    world.commit("clusters/berlin", {"metrics/one.yaml": config_map("one", a="x")})
    world.sync()
    world.commit("clusters/berlin", {"metrics/two.yaml": config_map("two", a="x")})
    world.merge("berlin", "squash")

    world.sync()

    text = world.text("drafts/berlin", "metrics/one.yaml")
    assert (text.count("name: one"), text.count("namespace: prod")) == (1, 1)
    assert "namespace: prod" in world.text("drafts/berlin", "metrics/two.yaml")
    assert world.sync().is_unchanged


MUTATORS = {
    "namespace": "- image: set-namespace\n  configMap: {namespace: prod}\n",
    "prefix": "- image: ensure-name-substring\n  configMap: {prepend: pre-}\n",
    "kind": (
        "- image: starlark\n  configMap:\n    source: |\n      for item in ctx.resource_list['items']:\n"
        "        if item['metadata']['name'] == 'one': item['kind'] = 'Secret'\n"
    ),
}


@pytest.mark.parametrize("change", ["nothing", "a value"])
@pytest.mark.parametrize("profile", ["safe", "compat"])
def test_an_identity_that_a_function_changes_gives_no_second_object(tmp_path: Path, profile: str, change: str) -> None:
    world = World.create(tmp_path / "world", merge={"profile": profile})
    indented = {name: text.replace("\n", "\n  ").rstrip(" ") for name, text in MUTATORS.items()}
    # like kpt, profile compat moves an object that gets another name to another file
    packages = [name for name in MUTATORS if profile == "safe" or name != "prefix"]
    expected = []
    for name in packages:
        world.release(name, "v1", package(name))
        expected.append(variant(name, "berlin", name, extra=f"pipeline:\n  mutators:\n  {indented[name]}"))
    world.write(
        {"catalog.yaml": catalog(), "berlin.yaml": repository("berlin"), "variants.yaml": "---\n".join(expected)}
    )
    world.sync()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    # a comment on the line of the metadata leaves no place for a merge comment
    result = config_map("one", a="x").replace("metadata:", "metadata: # by hand")
    world.commit("clusters/berlin", {f"{name}/one.yaml": result for name in packages})
    world.sync()
    world.merge("berlin", "merge")
    if change == "a value":
        for name in packages:
            world.edit("clusters/berlin", f"{name}/one.yaml", "a: x", "a: changed")
    world.commit("clusters/berlin", {f"{name}/two.yaml": config_map("two", a="x") for name in packages})

    world.sync()

    value = "a: changed" if change == "a value" else "a: x"
    texts = [world.text("drafts/berlin", f"{name}/one.yaml") for name in packages]
    assert [(text.count("metadata:"), text.count(value)) for text in texts] == [(1, 1)] * len(packages)
    assert world.sync().is_unchanged


@pytest.mark.parametrize("policy", ["local", "block"])
@pytest.mark.parametrize(
    ("strategy", "expected"),
    [("copy-merge", ["deployment.yaml"]), ("force-delete-replace", ["deployment.yaml", "own.yaml"])],
)
def test_a_strategy_that_replaces_local_changes_records_them(
    world: World, strategy: str, expected: list[str], policy: str
) -> None:
    choices = f"updateStrategy: {strategy}\nconflictPolicy: {policy}"
    world.edit("clusters/berlin", METRICS, "replicas: 2", "replicas: 5")
    world.commit("clusters/berlin", {"metrics/own.yaml": config_map("own", a="x")})
    world.sync()
    if world.head("drafts/berlin"):
        world.merge("berlin", "squash")
    world.sync_until_unchanged()
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2", extra=choices)})

    world.sync()

    assert "replicas: 2" in world.text("drafts/berlin", METRICS)
    conflicts = world.package_status("drafts/berlin", "metrics")["conflicts"]
    assert [conflict["file"] for conflict in conflicts if conflict["rule"] == strategy] == expected
    assert world.sync().is_unchanged


def delete_package(world: World, folder: str) -> None:
    paths = world.paths(world.fleet, "clusters/berlin", folder)
    world.commit("clusters/berlin", {f"{folder}/{path}": None for path in paths})


@pytest.mark.parametrize("has_update", [False, True])
def test_a_deleted_package_is_drafted_again_with_a_conflict(world: World, has_update: bool) -> None:
    delete_package(world, "metrics")
    if has_update:
        release(world)

    world.sync()

    (conflict,) = world.package_status("drafts/berlin", "metrics")["conflicts"]
    assert (conflict["kind"], conflict["rule"], "local" in conflict) == ("package", "not-kept", False)
    (proposed,) = world.run_review_action("propose", "berlin/metrics")
    assert "whole package: deleted on the cluster branch, and this draft adds it again" in str(proposed)
    assert world.sync().is_unchanged
    world.merge("berlin", "squash")
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"
    release(world, "v3", "3.0")
    world.sync()
    assert "conflicts" not in world.package_status("drafts/berlin", "metrics")


def test_a_deleted_package_of_placed_resources_is_drafted_again_with_a_conflict(placed: World) -> None:
    delete_package(placed, "resources/shop")

    placed.sync()

    (conflict,) = placed.package_status("drafts/berlin", "resources/shop")["conflicts"]
    assert (conflict["kind"], conflict["rule"]) == ("package", "not-kept")


def test_a_package_that_a_removal_draft_removed_is_requested_again_without_a_conflict(world: World) -> None:
    written = (world.config / "metrics.yaml").read_text()
    world.write({"metrics.yaml": None})
    world.sync()
    world.merge("berlin", "squash", draft="removals/berlin")
    world.write({"metrics.yaml": written})

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "draft"
    assert "conflicts" not in world.package_status("drafts/berlin", "metrics")
