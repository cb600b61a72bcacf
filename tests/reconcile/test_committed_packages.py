"""Packages that are rendered again from commits of their branch, although inputs have changed since."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.inspect.committed_packages import CommittedPackage, ReRenderError, read_package
from reconciler.planning.attribution.re_render import ReRenderedPackage
from reconciler.reconcile.remotes.targets import TargetReference
from tests.support.git_repositories import git
from tests.support.history_world import HistoryWorld, history_published
from tests.support.prepared_worlds import begin
from tests.support.world import config_map, package, variant


@pytest.fixture
def world(tmp_path: Path) -> HistoryWorld:
    return begin(tmp_path, history_published)


def render_again(world: HistoryWorld, name: str = "gateway", at: str = "clusters/berlin") -> ReRenderedPackage:
    """Render a package of Berlin again, with the content of a branch or a commit."""
    with world.open_past() as past:
        history = past.open([TargetReference("berlin")])
        (berlin,) = history.targets
        remote = history.get_remote(berlin)
        head = remote.refs.get(f"refs/heads/{at}") or at
        result = read_package(berlin, remote, name, head)  # type: ignore[arg-type]
        assert isinstance(result, CommittedPackage)
        return history.re_render(result, history.read_config(result.recorded.config, [result]))


def is_reproducible(world: HistoryWorld, name: str = "gateway", at: str = "clusters/berlin") -> bool:
    """Return whether the new render of a package equals its published content."""
    result = render_again(world, name, at)
    assert result.rendered, result.blocked_reason
    return result.rendered.files.id == world.tree("clusters/berlin", name)


def read_blocked_reason(world: HistoryWorld, name: str = "gateway") -> tuple[str, bool]:
    """Return the reason why a package cannot be rendered again, and whether its status file is the cause."""
    with pytest.raises(ReRenderError) as error:
        render_again(world, name)
    return error.value.message, error.value.is_mismatch


def test_the_render_uses_the_config_of_that_time(world: HistoryWorld) -> None:
    world.change({"regions/north.yaml": config_map("region-north", api="elsewhere"), "metrics.yaml": None})

    assert is_reproducible(world)
    assert is_reproducible(world, "metrics")


def test_an_upstream_whose_tag_has_moved_is_that_of_then(world: HistoryWorld) -> None:
    world.release("gateway", "v1", package("gateway", replicas=9, endpoints=config_map("endpoints", "required")))

    assert is_reproducible(world)


def test_an_upstream_with_a_deleted_tag_is_that_of_the_time(world: HistoryWorld) -> None:
    git(world.catalog, "update-ref", "-d", "refs/tags/metrics/v1")

    assert is_reproducible(world, "metrics")


def test_a_deleted_upstream_is_read_from_the_state(world: HistoryWorld) -> None:
    git(world.catalog, "update-ref", "-d", "refs/heads/main")
    for name in ("gateway", "metrics"):
        world.release(name, "v1", package(name, replicas=9, endpoints=config_map("endpoints", "required")))
    world.prune_unreachable_objects(world.catalog)

    assert is_reproducible(world)


def test_the_error_names_a_missing_config_commit(world: HistoryWorld) -> None:
    lost = world.package_status("clusters/berlin", "gateway")["inputs"]["config"]
    world.squash_config()

    why, is_wrong = read_blocked_reason(world)

    assert f"the recorded config {lost[:12]} cannot be read" in why
    assert not is_wrong


def test_a_config_that_wants_no_such_package_is_wrong(world: HistoryWorld) -> None:
    status = world.text("clusters/berlin", ".reconciler/gateway.yaml")
    world.commit("clusters/berlin", {".reconciler/gateway.yaml": status.replace("name: gateway-berlin", "name: other")})

    why, is_wrong = read_blocked_reason(world)

    assert "does not request the package berlin/gateway" in why
    assert is_wrong


def test_another_upstream_than_the_commit_has_is_wrong(world: HistoryWorld) -> None:
    value = world.package_status("clusters/berlin", "gateway")["upstream"]["to"]
    status = world.text("clusters/berlin", ".reconciler/gateway.yaml")
    other = git(world.catalog, "rev-parse", "metrics/v1:metrics")
    world.commit("clusters/berlin", {".reconciler/gateway.yaml": status.replace(value["tree"], other)})

    why, is_wrong = read_blocked_reason(world)

    assert f"the status file records the tree {other[:12]}" in why
    assert is_wrong


def test_an_edit_that_was_published_is_in_the_source(world: HistoryWorld) -> None:
    world.edit("clusters/berlin", "gateway/deployment.yaml", "replicas: 2", "replicas: 7")
    world.change({"regions/north.yaml": config_map("region-north", api="elsewhere")})
    world.publish()

    assert "replicas: 7" in world.text("clusters/berlin", "gateway/deployment.yaml")
    assert is_reproducible(world)


def test_a_key_of_the_context_that_an_earlier_output_had_is_kept(world: HistoryWorld) -> None:
    extra = "packageContext: {data: {zone: a}}"
    world.change({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", extra=extra)})
    world.publish()
    world.change({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", extra="annotations: {a: b}")})
    world.release("metrics", "v2", package("metrics", replicas=3))
    world.change({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.publish()

    assert "zone: a" in world.text("clusters/berlin", "metrics/package-context.yaml")
    assert is_reproducible(world, "metrics")
