"""Tests of revision tags: they mark published revisions and are upstreams of other clusters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from reconciler.catalog.files import ObjectId
from reconciler.git.errors import UnreachableError
from reconciler.git.mirror import Mirror
from reconciler.git.push_outcomes import PushReport
from reconciler.reconcile.reconcile_pass import PROPOSAL_RETRY_SECONDS
from tests.support.git_repositories import assert_sound, git, read_ref, read_refs, write_hook
from tests.support.prepared_worlds import begin
from tests.support.world import STATE, World, package, small_world, variant

NO_TAGS = 'case "$1" in refs/tags/*) echo tags are protected here >&2; exit 1;; esac'


def build_chained_variant(name: str = "metrics-lisbon", extra: str = "", **upstream: str) -> str:
    """Return a variant of Lisbon with metrics of Berlin as its upstream."""
    fields = "".join(f", {name}: {value}" for name, value in (upstream or {"revision": "v1"}).items())
    text = variant(name, "lisbon", "metrics", extra=extra)
    return text.replace(
        "{repo: catalog, package: metrics, revision: v1}", f"{{repo: berlin, package: metrics{fields}}}"
    )


def list_tags(world: World) -> dict[str, str]:
    """Return the tags of the fleet by name, each with the commit that it names."""
    names = [ref.removeprefix("refs/tags/") for ref in read_refs(world.fleet) if ref.startswith("refs/tags/")]
    return {name: git(world.fleet, "rev-parse", f"refs/tags/{name}^{{commit}}") for name in names}


def read_trailers(world: World, tag: str) -> dict[str, str]:
    text = git(world.fleet, "for-each-ref", "--format=%(contents)", f"refs/tags/{tag}")
    lines = (line.partition(": ") for line in text.splitlines() if line.startswith("Reconciler-"))
    return {name.removeprefix("Reconciler-"): value for name, _, value in lines}


def open_replica(world: World, name: str = "replica", **settings: object) -> World:
    """Return the same world with the cache of another daemon."""
    return World(world.folder, cache=str(world.folder / name), **settings)


def release_metrics(world: World, revision: str) -> None:
    world.release("metrics", revision, package("metrics", image=revision))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", revision)})


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Both packages of Berlin were just merged. Lisbon requests Berlin's metrics."""
    return begin(tmp_path, build_chained_world)


def build_chained_world(folder: Path) -> World:
    world = small_world(folder)
    world.write({"chain.yaml": build_chained_variant()})
    world.sync()
    world.merge("berlin", "squash")
    return world


def test_a_published_revision_that_is_an_upstream_gets_a_tag(world: World) -> None:
    after = world.sync()

    assert list_tags(world) == {"berlin/metrics/v1": world.head("clusters/berlin")}
    assert not after.findings or "RevisionTag" not in "".join(after.codes)
    assert read_trailers(world, "berlin/metrics/v1") == {
        "Task": "publish",
        "Owner": "PackageVariant default/metrics-berlin",
        "Owner-UID": read_trailers(world, "berlin/metrics/v1")["Owner-UID"],
        "Repository": "berlin",
        "Package": "metrics",
        "Workspace": "packagevariant-1",
        "Revision": "1",
        "Upstream": f"catalog/metrics metrics/v1 {read_ref(world.catalog, 'refs/tags/metrics/v1')}",
    }
    seconds = git(world.fleet, "log", "-1", "--format=%ct", "clusters/berlin")
    assert git(world.fleet, "for-each-ref", "--format=%(taggerdate:unix)", "refs/tags") == seconds
    assert_sound(world.fleet)


def test_a_cluster_follows_another_cluster_by_revision(world: World) -> None:
    first = world.sync()
    second = world.sync()

    assert first.outcomes.get("lisbon/metrics") is None
    assert second.outcomes["lisbon/metrics"] == "draft"
    assert "ref: berlin/metrics/v1" in world.text("drafts/lisbon", "metrics/Kptfile")
    assert world.sync().is_unchanged
    world.merge("lisbon", "squash")
    release_metrics(world, "v2")
    world.sync_until_unchanged()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    assert sorted(list_tags(world)) == ["berlin/metrics/v1", "berlin/metrics/v2"]
    assert "metrics:1.0" in world.text("clusters/lisbon", "metrics/deployment.yaml")
    world.write({"chain.yaml": build_chained_variant(revision="v2")})
    assert world.sync_until_unchanged().outcomes["lisbon/metrics"] == "drafted"
    assert "metrics:v2" in world.text("drafts/lisbon", "metrics/deployment.yaml")


@pytest.mark.parametrize(
    "upstream",
    [
        pytest.param({"workspaceName": "packagevariant-1"}, id="by-workspace"),
        pytest.param({"tag": "latest"}, id="by-the-latest"),
        pytest.param({"revision": "-1"}, id="by-branch"),
    ],
)
def test_a_cluster_follows_another_cluster_by_workspace_tag_or_branch(world: World, upstream: dict[str, str]) -> None:
    world.write({"chain.yaml": build_chained_variant(**upstream)})

    after = world.sync_until_unchanged()

    assert after.outcomes["lisbon/metrics"] == "drafted"
    assert "metrics:1.0" in world.text("drafts/lisbon", "metrics/deployment.yaml")


def test_a_workspace_names_the_same_revision_after_later_publications(world: World) -> None:
    world.sync_until_unchanged()
    release_metrics(world, "v2")
    world.sync_until_unchanged()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    world.write({"chain.yaml": build_chained_variant(workspaceName="packagevariant-1")})

    world.sync_until_unchanged()

    assert read_trailers(world, "berlin/metrics/v2")["Workspace"] == "packagevariant-2"
    assert "metrics:1.0" in world.text("drafts/lisbon", "metrics/deployment.yaml")


def test_an_unpublished_workspace_is_not_an_upstream(world: World) -> None:
    world.write({"chain.yaml": build_chained_variant(workspaceName="packagevariant-9")})

    world.sync_until_unchanged()

    assert world.reason("metrics-lisbon", "Stalled") == "UpstreamNotFound"


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        pytest.param("used", {"berlin/metrics/v1"}, id="used"),
        pytest.param("all", {"berlin/metrics/v1", "berlin/gateway/v1"}, id="all"),
        pytest.param("none", set(), id="none"),
    ],
)
def test_a_setting_selects_the_packages_with_tags(world: World, which: str, expected: set[str]) -> None:
    daemon = open_replica(world, git={"revision_tags": which})

    daemon.sync_until_unchanged()

    assert set(list_tags(world)) == expected


def test_revisions_published_without_tags_get_them_after_the_setting_changes(world: World) -> None:
    untagged = open_replica(world, git={"revision_tags": "none"})
    untagged.sync_until_unchanged()
    release_metrics(untagged, "v2")
    untagged.sync_until_unchanged()
    untagged.merge("berlin", "squash")
    untagged.sync_until_unchanged()

    world.sync()

    assert sorted(list_tags(world)) == ["berlin/metrics/v1", "berlin/metrics/v2"]
    assert list_tags(world)["berlin/metrics/v1"] != list_tags(world)["berlin/metrics/v2"]
    world.sync_until_unchanged()


def test_a_package_that_becomes_an_upstream_later_gets_its_tags(world: World) -> None:
    world.write({"chain.yaml": None})
    world.sync_until_unchanged()
    before = list_tags(world)

    world.write({"chain.yaml": build_chained_variant()})

    assert before == {}
    assert world.sync_until_unchanged().outcomes["lisbon/metrics"] == "drafted"


@pytest.mark.slow
def test_refused_tags_do_not_prevent_drafts(world: World) -> None:
    write_hook(world.fleet, "update", NO_TAGS)
    world.write({"regions/north.yaml": (world.config / "regions/north.yaml").read_text() + "  more: x\n"})

    refused = world.sync()

    [finding] = [finding for finding in refused.findings if finding.code == "RevisionTagRefused"]
    assert finding.severity.value == "warning"
    assert "berlin/metrics/v1" in finding.message
    assert "tags are protected here" in finding.message
    assert refused.report.is_clean
    assert refused.outcomes["berlin/gateway"] == "draft"
    assert world.sync().is_unchanged
    (world.fleet / "hooks" / "update").unlink()
    world.sync()
    assert "berlin/metrics/v1" in list_tags(world)
    assert "RevisionTagRefused" not in world.sync_until_unchanged().codes


def test_one_protected_tag_does_not_prevent_others(world: World) -> None:
    write_hook(world.fleet, "update", NO_TAGS.replace("refs/tags/*", "*/gateway/*"))

    open_replica(world, git={"revision_tags": "all"}).sync()

    assert set(list_tags(world)) == {"berlin/metrics/v1"}


@pytest.mark.parametrize("annotated", [True, False])
def test_a_tag_of_people_on_another_commit_is_not_moved(world: World, annotated: bool) -> None:
    root = git(world.fleet, "rev-list", "--max-parents=0", "clusters/berlin")
    git(world.fleet, "tag", *(("-a", "-m", "ours") if annotated else ()), "berlin/metrics/v1", root)
    before = read_ref(world.fleet, "refs/tags/berlin/metrics/v1")

    after = world.sync()

    assert "RevisionTagTaken" in after.codes
    assert read_ref(world.fleet, "refs/tags/berlin/metrics/v1") == before
    assert "RevisionTagTaken" in world.sync_until_unchanged().codes


def test_a_tag_of_people_on_the_revision_is_used(world: World) -> None:
    git(world.fleet, "tag", "berlin/metrics/v1", "clusters/berlin")
    before = read_ref(world.fleet, "refs/tags/berlin/metrics/v1")

    after = world.sync_until_unchanged()

    assert read_ref(world.fleet, "refs/tags/berlin/metrics/v1") == before
    assert after.outcomes["lisbon/metrics"] == "drafted"
    assert not {code for code in after.codes if code.startswith("RevisionTag")}


def test_a_tag_that_people_delete_stays_deleted(world: World) -> None:
    world.sync_until_unchanged()
    git(world.fleet, "tag", "-d", "berlin/metrics/v1")

    world.sync_until_unchanged()

    assert list_tags(world) == {}


def test_two_concurrent_daemons_create_the_same_tags(world: World) -> None:
    other = open_replica(world)

    world.sync_while(other.sync)

    assert set(list_tags(world)) == {"berlin/metrics/v1"}
    assert world.sync_until_unchanged().codes == other.sync_until_unchanged().codes


def test_two_daemons_that_push_tags_at_the_same_time_create_the_same_tags(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    push_tags, replicas = Mirror.push_tags, [open_replica(world)]

    def sync_replica_first(mirror: Mirror, expected: Mapping[str, ObjectId]) -> PushReport:
        while replicas:
            replicas.pop().sync()
        return push_tags(mirror, expected)

    monkeypatch.setattr(Mirror, "push_tags", sync_replica_first)

    after = world.sync()

    assert replicas == []
    assert set(list_tags(world)) == {"berlin/metrics/v1"}
    assert not {code for code in after.codes if code.startswith("RevisionTag")}
    world.sync_until_unchanged()


def test_a_tag_that_people_push_at_the_same_time_is_not_moved(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    push_tags, root = Mirror.push_tags, git(world.fleet, "rev-list", "--max-parents=0", "clusters/berlin")

    def push_other_tag_first(mirror: Mirror, expected: Mapping[str, ObjectId]) -> PushReport:
        git(world.fleet, "tag", "berlin/metrics/v1", root)
        return push_tags(mirror, expected)

    monkeypatch.setattr(Mirror, "push_tags", push_other_tag_first)
    after = world.sync()
    monkeypatch.undo()

    assert after.report.tags.has_new_tags
    assert list_tags(world) == {"berlin/metrics/v1": root}
    assert "RevisionTagTaken" in world.sync_until_unchanged().codes


def test_unreachable_tags_are_fetched_again_later(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_unreachable(mirror: Mirror, starts: Iterable[str]) -> None:
        raise UnreachableError(f"{mirror.url} cannot be reached")

    monkeypatch.setattr(Mirror, "fetch_tags", raise_unreachable)

    after = world.sync()

    assert "RevisionTagFailed" in after.codes
    assert after.report.is_clean
    assert after.report.due_at == world.now + PROPOSAL_RETRY_SECONDS
    monkeypatch.undo()
    world.sync_until_unchanged()
    assert set(list_tags(world)) == {"berlin/metrics/v1"}


def reset_state(world: World, before: dict[str, str]) -> None:
    git(world.fleet, "update-ref", "refs/reconciler/state/berlin", before["refs/reconciler/state/berlin"])


def reset_state_and_tags(world: World, before: dict[str, str]) -> None:
    reset_state(world, before)
    git(world.fleet, "update-ref", "-d", "refs/tags/berlin/metrics/v1")


@pytest.mark.parametrize(
    "kill", [pytest.param(reset_state_and_tags, id="before-the-tags"), pytest.param(reset_state, id="after")]
)
def test_after_a_kill_between_tags_and_state_the_next_pass_writes_the_same_refs(
    world: World, kill: Callable[[World, dict[str, str]], None]
) -> None:
    open_replica(world, "untagged", git={"revision_tags": "none"}).sync()
    pushed = read_refs(world.fleet)
    world.sync()
    whole = read_refs(world.fleet)
    assert pushed[f"{STATE}berlin"] != whole[f"{STATE}berlin"]
    kill(world, pushed)

    open_replica(world).sync()

    for name in (f"{STATE}berlin", "refs/tags/berlin/metrics/v1"):
        assert read_refs(world.fleet)[name] == whole[name]


def test_tags_have_the_tag_prefix_of_their_repository(world: World) -> None:
    text = (world.config / "clusters/berlin.yaml").read_text()
    world.write({"clusters/berlin.yaml": text + "    tagPrefix: sites/\n"})

    after = world.sync_until_unchanged()

    assert set(list_tags(world)) == {"sites/metrics/v1"}
    assert after.outcomes["lisbon/metrics"] == "drafted"


def test_two_repositories_with_the_same_tag_are_reported(world: World) -> None:
    for cluster in ("berlin", "lisbon"):
        text = (world.config / f"clusters/{cluster}.yaml").read_text()
        world.write({f"clusters/{cluster}.yaml": text + '    tagPrefix: ""\n'})
    world.write({"chain.yaml": None})
    world.merge("lisbon", "squash")

    after = open_replica(world, git={"revision_tags": "all"}).sync()

    assert set(list_tags(world)) == {"gateway/v1", "metrics/v1"}
    assert list_tags(world)["gateway/v1"] == world.head("clusters/berlin")
    assert "RevisionTagTaken" in after.codes


def test_a_partly_merged_draft_has_a_separate_workspace(world: World) -> None:
    world.sync()
    release_metrics(world, "v2")
    world.sync()
    older = world.head("drafts/berlin")
    release_metrics(world, "v3")
    world.sync()
    world.set_ref("refs/heads/older", older)
    world.merge("berlin", "squash", draft="older", delete=True)
    world.sync_until_unchanged()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()

    assert [read_trailers(world, f"berlin/metrics/v{n}")["Workspace"] for n in (1, 2, 3)] == [
        "packagevariant-1", "packagevariant-2", "packagevariant-3",
    ]  # fmt: skip


def test_a_plan_creates_no_tags(world: World) -> None:
    world.plan()

    assert list_tags(world) == {}


def test_a_tag_contains_labels_and_annotations_on_separate_lines(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    note = "a\nReconciler-Revision: 9"
    extra = f"labels: {{tier: one}}\nannotations: {{note: {json.dumps(note)}}}"
    world.write(
        {
            "metrics.yaml": variant("metrics-berlin", "berlin", "metrics", extra=extra),
            "chain.yaml": build_chained_variant(),
        }
    )
    world.sync()
    world.merge("berlin", "squash")

    world.sync()

    result = read_trailers(world, "berlin/metrics/v1")
    assert (json.loads(result["Labels"]), json.loads(result["Annotations"])) == ({"tier": "one"}, {"note": note})
    assert result["Revision"] == "1"
