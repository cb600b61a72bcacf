"""Tests of tags that settle before they are followed, with real dates in Git and a fake clock."""

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.krm.times import format_rfc3339
from tests.support.git_repositories import commit_files, git
from tests.support.world import World, catalog, injected_set, package, repository

MOVED = 1_400_000_000
SETTLED = MOVED + 600
CHANNELS = "channels/gateway.yaml"


def build_following_variant(settle: str = "10m", tag: str = "tag: stable", extra: str = "") -> str:
    return (
        "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: PackageVariant\nmetadata:\n  name: gw\nspec:\n"
        f"  upstream: {{repo: catalog, package: gateway, {tag}, tagPolicy: {{settle: {settle}}}}}\n"
        f"  downstream: {{repo: berlin, package: gateway}}\n{extra}"
    )


def write_annotated_tag(world: World, tag: str, commit: str, seconds: int) -> None:
    """Create or move an annotated tag with a date."""
    name = tag.rpartition("/")[2]
    text = f"object {commit}\ntype commit\ntag {tag}\ntagger Ada <ada@example.com> {seconds} +0000\n\n{name}\n"
    tagged = git(world.catalog, "mktag", stdin=text.encode())
    git(world.catalog, "update-ref", f"refs/tags/{tag}", tagged)


def move_annotated_tag(world: World, version: str, seconds: int) -> None:
    write_annotated_tag(world, "gateway/stable", git(world.catalog, "rev-parse", f"gateway/{version}"), seconds)


def move_channel_file(world: World, version: str, seconds: int) -> None:
    content = f"channels: {{stable: {version}}}\n".encode()
    commit_files(world.catalog, "refs/heads/main", {CHANNELS: content}, "move stable", seconds)
    commit_files(world.catalog, "refs/heads/main", {"README": str(seconds).encode()}, "more", seconds + 500)


def move_lightweight_tag(world: World, version: str, seconds: int) -> None:
    world.release("gateway", version, package("gateway", image=version), seconds)
    git(world.catalog, "update-ref", "refs/tags/gateway/stable", git(world.catalog, "rev-parse", f"gateway/{version}"))


Move = Callable[[World, str, int], None]
moves = pytest.mark.parametrize(
    "move",
    [
        pytest.param(move_annotated_tag, id="annotated-tag"),
        pytest.param(move_channel_file, id="channel-file"),
        pytest.param(move_lightweight_tag, id="lightweight-tag"),
    ],
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A catalog with two old versions, and a variant that follows the tag stable."""
    world = World.create(tmp_path)
    world.release("gateway", "v1", package("gateway", image="1"), 1_000_000_000)
    world.release("gateway", "v2", package("gateway", image="2"), 1_000_000_000)
    world.write({"catalog.yaml": catalog(), "berlin.yaml": repository("berlin"), "gw.yaml": build_following_variant()})
    return world


def read_image(world: World) -> str:
    return world.text("drafts/berlin", "gateway/deployment.yaml").partition("image: ")[2].strip()


@moves
def test_a_moved_tag_is_followed_after_its_settle_time(world: World, move: Move) -> None:
    move(world, "v1", MOVED - 9_000)
    world.now = MOVED
    world.sync()
    first = read_image(world)
    move(world, "v2", MOVED)
    world.now = SETTLED - 1
    waiting = world.sync()
    second = read_image(world)
    world.now = SETTLED
    after = world.sync()

    assert (first, second) == (build_image_name("v1", move), build_image_name("v1", move))
    assert (waiting.outcomes["berlin/gateway"], waiting.report.render_count, waiting.changed_branches) == (
        "drafted",
        0,
        set(),
    )
    assert "UpstreamSettling" in waiting.codes
    assert (after.outcomes["berlin/gateway"], read_image(world)) == ("draft", build_image_name("v2", move))
    assert "UpstreamSettling" not in after.codes
    assert world.sync().is_unchanged


def build_image_name(version: str, move: Move) -> str:
    return f"example.com/gateway:{version if move is move_lightweight_tag else version.removeprefix('v')}"


def test_the_status_reports_the_settling_move_and_its_end(world: World) -> None:
    move_annotated_tag(world, "v1", MOVED - 9_000)
    world.sync()
    move_annotated_tag(world, "v2", MOVED)
    world.now = MOVED + 1
    world.sync()
    status = world.status("PackageVariant", "gw")
    commit = git(world.catalog, "rev-parse", "gateway/v2")
    since = f'tag "stable" of catalog/gateway has pointed to commit {commit[:12]} since {format_rfc3339(MOVED)}'
    until = f"The settle duration is 10m, so the new content is used from {format_rfc3339(SETTLED)}"

    assert status["pending"] == ["the draft waits for review", f"{since}. {until}"]
    assert world.reason("gw") == "NoErrors"
    world.now += 60
    assert world.sync().is_unchanged


def test_a_new_package_is_not_drafted_before_its_tag_settles(world: World) -> None:
    move_annotated_tag(world, "v1", MOVED)
    world.now = MOVED + 1
    world.sync()
    reasons = (world.reason("gw"), world.reason("gw", "Stalled"), world.head("drafts/berlin"))
    status = world.status("PackageVariant", "gw")
    silent = world.sync().is_unchanged
    world.now = SETTLED
    world.sync()

    assert (reasons, silent) == (("UpstreamSettling", "UpstreamSettling", ""), True)
    assert sorted(status) == ["conditions", "pending"]
    assert (read_image(world), world.reason("gw")) == ("example.com/gateway:1", "NoErrors")


def test_another_move_restarts_the_settle_time_and_a_return_ends_it(world: World) -> None:
    move_annotated_tag(world, "v1", MOVED - 9_000)
    world.sync()
    world.release("gateway", "v3", package("gateway", image="3"), 1_000_000_000)
    move_annotated_tag(world, "v2", MOVED)
    world.now = MOVED + 400
    world.sync()
    move_annotated_tag(world, "v3", MOVED + 500)
    world.now = SETTLED + 1
    world.sync()
    moved_on = read_image(world)
    move_annotated_tag(world, "v1", SETTLED)
    returned = world.sync()

    assert (moved_on, read_image(world)) == ("example.com/gateway:1",) * 2
    assert "UpstreamSettling" not in returned.codes


def test_a_lost_state_does_not_settle_a_move(world: World) -> None:
    move_annotated_tag(world, "v1", MOVED - 9_000)
    world.sync()
    world.merge("berlin")
    world.sync()
    move_annotated_tag(world, "v2", MOVED)
    world.now = MOVED + 1
    git(world.fleet, "update-ref", "-d", "refs/reconciler/state/berlin")
    outcomes = [world.sync().outcomes["berlin/gateway"] for _ in range(3)]
    drafts = world.head("drafts/berlin")
    world.now = SETTLED
    world.sync()

    assert (outcomes, drafts) == (["UpstreamSettling"] * 3, "")
    assert read_image(world) == "example.com/gateway:2"


def test_other_changes_are_drafted_with_the_last_upstream(world: World) -> None:
    move_annotated_tag(world, "v1", MOVED - 9_000)
    world.sync()
    move_annotated_tag(world, "v2", MOVED)
    world.now = MOVED + 1
    world.write({"gw.yaml": build_following_variant(extra="  packageContext: {data: {site: berlin}}\n")})
    waiting = world.sync()

    assert (waiting.outcomes["berlin/gateway"], read_image(world)) == ("draft", "example.com/gateway:1")
    assert "site: berlin" in world.text("drafts/berlin", "gateway/package-context.yaml")
    assert "UpstreamSettling" in waiting.codes


def test_a_deleted_upstream_commit_is_read_from_the_state(world: World, tmp_path: Path) -> None:
    package_files = {f"gateway/{path}": text.encode() for path, text in package("gateway", image="lone").items()}
    write_annotated_tag(
        world, "gateway/stable", commit_files(world.catalog, "refs/heads/lone", package_files), MOVED - 9_000
    )
    git(world.catalog, "branch", "-D", "lone")
    world.sync()
    move_annotated_tag(world, "v2", MOVED)
    world.now = MOVED + 1
    (tmp_path / "cache").rename(tmp_path / "a-cache-that-knew-it")
    world.write({"gw.yaml": build_following_variant(extra="  packageContext: {data: {site: berlin}}\n")})
    after = world.sync()

    assert (after.outcomes, read_image(world)) == ({"berlin/gateway": "draft"}, "example.com/gateway:lone")


def test_a_channel_file_and_a_tag_that_disagree_are_a_warning(world: World) -> None:
    def has_warning() -> bool:
        return "UpstreamWarning" in world.sync().codes

    world.write({"gw.yaml": build_following_variant("0s")})
    move_channel_file(world, "v1", MOVED)
    values = [has_warning()]
    move_annotated_tag(world, "v2", MOVED)
    values += [has_warning(), has_warning()]
    move_annotated_tag(world, "v1", MOVED)
    values += [has_warning(), has_warning()]

    assert values == [False, True, True, False, False]


def test_a_tag_that_moves_back_is_marked_as_a_downgrade(world: World) -> None:
    world.write({"gw.yaml": build_following_variant("0s")})
    move_annotated_tag(world, "v2", MOVED)
    world.sync()
    move_annotated_tag(world, "v1", MOVED)
    world.sync()
    back = git(world.fleet, "log", "-1", "--format=%s%n%b", "drafts/berlin")
    move_annotated_tag(world, "v2", MOVED)
    world.sync()
    forth = git(world.fleet, "log", "-1", "--format=%s%n%b", "drafts/berlin")
    commits = [git(world.catalog, "rev-parse", f"gateway/{version}")[:7] for version in ("v1", "v2")]

    assert back.splitlines()[0] == f"gateway downgrade stable moved to {commits[0]}: image"
    assert f"- upstream catalog/gateway: downgrade stable moved to {commits[0]}" in back
    assert forth.splitlines()[0] == f"gateway stable moved to {commits[1]}: image"


def test_latest_after_a_deleted_tag_is_a_downgrade(world: World) -> None:
    world.write({"gw.yaml": build_following_variant("0s", "tag: latest")})
    world.sync()
    git(world.catalog, "update-ref", "-d", "refs/tags/gateway/v2")
    world.sync()
    subject = git(world.fleet, "log", "-1", "--format=%s", "drafts/berlin")

    assert subject == "gateway downgrade v2 → v1: image"


def test_another_tag_on_the_same_commit_is_no_update(world: World) -> None:
    world.write({"gw.yaml": build_following_variant("0s", "tag: latest")})
    world.sync()
    git(world.catalog, "update-ref", "refs/tags/gateway/v3", git(world.catalog, "rev-parse", "gateway/v2"))

    assert world.sync().changed_branches == set()
    assert "ref: gateway/v2" in world.text("drafts/berlin", "gateway/Kptfile")
    assert world.sync().is_unchanged


def test_a_branch_settles_by_the_last_change_of_its_package(world: World) -> None:
    world.write({"gw.yaml": build_following_variant(tag="revision: -1")})
    world.now = MOVED
    world.sync()
    world.release("gateway", "v9", package("gateway", image="9"), MOVED)
    commit_files(world.catalog, "refs/heads/main", {"README": b"busy"}, "busy", MOVED + 500)
    world.now = SETTLED - 1
    world.sync()
    before = read_image(world)
    world.now = SETTLED
    world.sync()

    assert (before, read_image(world)) == ("example.com/gateway:2", "example.com/gateway:9")


def test_a_set_passes_the_tag_policy_to_its_variants(world: World) -> None:
    move_annotated_tag(world, "v1", MOVED)
    policy = "stable, tagPolicy: {settle: 10m}"
    world.write({"gw.yaml": injected_set("gateway", ["berlin"]).replace("revision: v1", f"tag: {policy}")})
    world.now = MOVED + 1
    waiting = world.sync()
    world.now = SETTLED
    after = world.sync()

    assert (waiting.outcomes, after.outcomes) == ({"berlin/gateway": "UpstreamSettling"}, {"berlin/gateway": "draft"})
