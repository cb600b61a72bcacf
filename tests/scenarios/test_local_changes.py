"""Tests of local changes: each change is in the next draft, or a conflict record or finding names it."""

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
    """Return a world in which both packages of Berlin are published."""
    return begin(tmp_path, berlin_published)


@pytest.fixture
def placed_world(tmp_path: Path) -> World:
    """Return a world with published placed resources on Berlin and Lisbon."""
    return begin(tmp_path, placements_published)


def release_update(world: World, version: str = "v2", image: str = "2.0", **more: str) -> None:
    world.release("metrics", version, package("metrics", image=image, **more))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", version)})


def change_branch(world: World, branch: str, changes: Change) -> None:
    commit_entries(world.fleet, f"refs/heads/{branch}", changes)


def read_branch_entries(world: World, branch: str = "drafts/berlin") -> dict[str, Entry]:
    return read_entries(world.fleet, f"refs/heads/{branch}")


def read_messages(world: World, code: str) -> str:
    """Return the messages of a finding code, one on each line."""
    return "\n".join(finding.message for finding in world.plan().findings if finding.code == code)


def test_trailing_comment_after_the_merge_is_in_the_next_draft(world: World) -> None:
    release_update(world)
    world.sync()
    world.merge("berlin", "squash")
    text = world.text("clusters/berlin", METRICS)
    world.commit("clusters/berlin", {METRICS: f"{text}# ask Ada before scaling\n"})

    after = world.sync()

    assert (after.outcomes["berlin/metrics"], world.head("drafts/berlin")) == ("published with edits", "")
    assert world.sync().is_unchanged
    release_update(world, "v3", "3.0")
    world.sync()
    text = world.text("drafts/berlin", METRICS)
    assert ("# ask Ada before scaling\n" in text, "metrics:3.0" in text) == (True, True)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("entry", [TARGET, FOREIGN], ids=["link", "submodule"])
@pytest.mark.parametrize("branch", ["clusters/berlin", "drafts/berlin"])
def test_link_or_submodule_in_a_package_is_in_the_next_draft(world: World, branch: str, entry: Entry) -> None:
    if branch == "drafts/berlin":
        release_update(world)
        world.sync()
    change_branch(world, branch, {"metrics/docs/extra": entry})
    world.sync()
    assert world.sync().is_unchanged
    release_update(world, "v3", "3.0")

    world.sync()

    assert read_branch_entries(world)["metrics/docs/extra"] == entry
    assert "metrics:3.0" in world.text("drafts/berlin", METRICS)
    assert world.sync().is_unchanged
    world.merge("berlin", "squash", delete=True)
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"
    assert read_branch_entries(world, "clusters/berlin")["metrics/docs/extra"] == entry


def test_link_that_is_removed_from_a_draft_stays_removed(world: World) -> None:
    change_branch(world, "clusters/berlin", {"metrics/extra": TARGET})
    release_update(world)
    world.sync()
    change_branch(world, "drafts/berlin", {"metrics/extra": None})
    release_update(world, "v3", "3.0")

    world.sync()

    assert "metrics/extra" not in read_branch_entries(world)
    assert "metrics:3.0" in world.text("drafts/berlin", METRICS)


def test_link_in_a_generated_package_is_in_the_next_draft(placed_world: World) -> None:
    change_branch(placed_world, "clusters/berlin", {"resources/shop/extra": TARGET})
    placed_world.write(
        {"placed/limits.yaml": resource("ConfigMap", "limits", on="berlin, lisbon", cpu="3", memory="4Gi")}
    )

    placed_world.sync()

    assert read_branch_entries(placed_world)["resources/shop/extra"] == TARGET
    assert placed_world.sync().is_unchanged


@pytest.mark.parametrize("entry", [TARGET, FOREIGN], ids=["link", "submodule"])
def test_link_at_the_path_of_a_generated_file_blocks_the_package(placed_world: World, entry: Entry) -> None:
    path = "resources/shop/configmap-limits.yaml"
    change_branch(placed_world, "clusters/berlin", {path: entry})
    placed_world.write(
        {"placed/limits.yaml": resource("ConfigMap", "limits", on="berlin, lisbon", cpu="3", memory="4Gi")}
    )

    after = placed_world.sync()

    assert after.outcomes["berlin/resources/shop"] == "LocalFileInTheWay"
    assert after.outcomes["lisbon/resources/shop"] == "draft"
    assert placed_world.head("drafts/berlin") == ""
    assert "configmap-limits.yaml" in read_messages(placed_world, "LocalFileInTheWay")
    change_branch(placed_world, "clusters/berlin", {path: None})
    assert placed_world.sync().outcomes["berlin/resources/shop"] == "draft"


OCCUPIED = {
    "file at the package": ("metrics", Entry(FILE, b"mine\n")),
    "link at the package": ("metrics", TARGET),
    "submodule at the package": ("metrics", FOREIGN),
    "file at .reconciler": (".reconciler", Entry(FILE, b"mine\n")),
    "folder at the status file": (".reconciler/metrics.yaml/inside", Entry(FILE, b"mine\n")),
    "link at the status file": (".reconciler/metrics.yaml", TARGET),
}


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize(("path", "entry"), OCCUPIED.values(), ids=list(OCCUPIED))
def test_local_entry_at_the_path_of_a_package_stays_and_is_reported(world: World, path: str, entry: Entry) -> None:
    release_update(world)
    occupied = path.removesuffix("/inside")
    deleted = [
        entry
        for entry in read_branch_entries(world, "clusters/berlin")
        if entry == occupied or entry.startswith(f"{occupied}/")
    ]
    change_branch(world, "clusters/berlin", {**dict.fromkeys(deleted), path: entry})

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "LocalFileInTheWay"
    assert f'"{occupied}" on branch "clusters/berlin' in read_messages(world, "LocalFileInTheWay")
    assert read_branch_entries(world, "clusters/berlin")[path] == entry
    assert world.sync().is_unchanged
    change_branch(world, "clusters/berlin", {path: None})
    assert world.sync().outcomes["berlin/metrics"] == "draft"


def test_file_at_the_path_of_a_new_folder_blocks_its_package_only(world: World) -> None:
    change_branch(world, "clusters/berlin", {"metrics/extra": Entry(FILE, b"mine\n")})
    files = {**package("metrics", image="2.0"), "extra/new.txt": "new\n"}
    world.release("metrics", "v2", files)
    world.write({
        "metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2"),
        "logs.yaml": variant("logs-berlin", "berlin", "logs", "v2", "metrics"),
    })  # fmt: skip

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "LocalFileInTheWay"
    assert after.outcomes["berlin/logs"] == "draft"
    assert read_branch_entries(world)["metrics/extra"] == Entry(FILE, b"mine\n")
    assert 'contains "extra" and "extra/new.txt", but "extra" cannot be both a file and a folder' in read_messages(
        world, "LocalFileInTheWay"
    )
    git(world.fleet, "fsck", "--strict")


def test_draft_that_is_a_symbolic_ref_to_the_target_branch_publishes_nothing(world: World) -> None:
    published = world.head("clusters/berlin")
    git(world.fleet, "symbolic-ref", "refs/heads/drafts/berlin", "refs/heads/clusters/berlin")
    release_update(world)

    after = world.sync()

    assert world.head("clusters/berlin") == published
    assert after.outcomes["berlin/metrics"] == "PushFailed"
    assert "refs/heads/drafts/berlin is a symbolic ref to refs/heads/clusters/berlin" in str(after.findings)
    git(world.fleet, "symbolic-ref", "--delete", "refs/heads/drafts/berlin")
    assert world.sync().outcomes["berlin/metrics"] == "draft"
    assert world.head("clusters/berlin") == published


def test_merge_that_is_reverted_before_a_pass_is_declined(world: World) -> None:
    release_update(world)
    world.sync()
    world.merge("berlin", "squash")
    world.revert("berlin")

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "declined"
    pass_result = world.sync()
    assert (pass_result.is_unchanged, pass_result.before) == (True, pass_result.after)


def test_normalized_file_contains_its_object_once(world: World) -> None:
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


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("change", ["nothing", "a value"])
@pytest.mark.parametrize("profile", ["safe", "compat"])
def test_changed_identity_creates_no_second_object(tmp_path: Path, profile: str, change: str) -> None:
    world = World.create(tmp_path / "world", merge={"profile": profile})
    indented = {name: text.replace("\n", "\n  ").rstrip(" ") for name, text in MUTATORS.items()}
    # Like kpt, the profile `compat` moves an object with a changed name to another file.
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
    # With a comment on this line, the merge cannot add a merge comment.
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


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("policy", ["local", "block"])
@pytest.mark.parametrize(
    ("strategy", "expected"),
    [("copy-merge", ["deployment.yaml"]), ("force-delete-replace", ["deployment.yaml", "own.yaml"])],
)
def test_strategy_that_replaces_local_changes_records_them(
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
def test_deleted_package_is_drafted_again_with_a_conflict(world: World, has_update: bool) -> None:
    delete_package(world, "metrics")
    if has_update:
        release_update(world)

    world.sync()

    (conflict,) = world.package_status("drafts/berlin", "metrics")["conflicts"]
    assert (conflict["kind"], conflict["rule"], "local" in conflict) == ("package", "not-kept", False)
    (proposed,) = world.run_review_action("propose", "berlin/metrics")
    assert "whole package: deleted on the target branch, and this draft adds the package again" in str(proposed)
    assert world.sync().is_unchanged
    world.merge("berlin", "squash")
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"
    release_update(world, "v3", "3.0")
    world.sync()
    assert "conflicts" not in world.package_status("drafts/berlin", "metrics")


def test_deleted_package_of_placed_resources_is_drafted_again_with_a_conflict(placed_world: World) -> None:
    delete_package(placed_world, "resources/shop")

    placed_world.sync()

    (conflict,) = placed_world.package_status("drafts/berlin", "resources/shop")["conflicts"]
    assert (conflict["kind"], conflict["rule"]) == ("package", "not-kept")


def test_package_of_a_merged_removal_draft_is_drafted_again_without_a_conflict(world: World) -> None:
    written = (world.config / "metrics.yaml").read_text()
    world.write({"metrics.yaml": None})
    world.sync()
    world.merge("berlin", "squash", draft="removals/berlin")
    world.write({"metrics.yaml": written})

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "draft"
    assert "conflicts" not in world.package_status("drafts/berlin", "metrics")
