"""Passes of the service with real repositories: unchanged heads end a pass early, and remotes fail independently."""

from __future__ import annotations

import gc
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.bootstrap.options import get_cache_file
from reconciler.bootstrap.publishers import build_push_publisher
from reconciler.bootstrap.services import Services, build_pass_cache, build_services
from reconciler.cli.options import read_settings
from reconciler.git.errors import GitFailedError, UnreachableError
from reconciler.git.local_repository import create_repository
from reconciler.git.mirror import Mirror
from reconciler.git.push_outcomes import PushFailed, PushReport, PushUnit
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.planning.model.outcomes import Draft
from reconciler.reconcile import pass_runner as module
from reconciler.reconcile import reconcile_pass as pushes
from reconciler.reconcile import reconcile_pass as reconcile
from reconciler.reconcile.cache_files import CompletedPass, CompletedPassStore, FilePassStore, InMemoryPassStore
from reconciler.reconcile.config_proposals import RepositoryConfigProposals
from reconciler.reconcile.pass_context import PassContext
from reconciler.reconcile.pass_numbers import PassNumbers
from reconciler.reconcile.pass_runner import PassRunner
from reconciler.reconcile.remotes.repository import Remote
from tests.support.git_repositories import SECONDS, commit_files, git, read_refs, write_hook

pytestmark = pytest.mark.real_git

KPTFILE = b"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: web}\n"
CONFIG_MAP = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {greeting: hello}\n"
REPOSITORY = """apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {{name: {name}}}
spec: {{deployment: {deployment}, git: {{repo: ./{url}.git, branch: {branch}}}}}
---
"""
VARIANT = """apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata: {{name: {name}}}
spec:
  upstream: {{repo: catalog, package: web, revision: v1}}
  downstream: {{repo: {repository}, package: {name}}}
---
"""


class World:
    """A catalog, two fleets and a config folder, with the service's passes over them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 1_500_000_000
        for name in ("catalog", "fleet", "far"):
            create_repository(folder / f"{name}.git")
        commit_files(folder / "catalog.git", "refs/heads/main", {"web/Kptfile": KPTFILE, "web/web.yaml": CONFIG_MAP})
        git(folder / "catalog.git", "tag", "web/v1", "main")
        self.write(
            REPOSITORY.format(name="catalog", deployment="false", url="catalog", branch="main"),
            REPOSITORY.format(name="east", deployment="true", url="fleet", branch="clusters/east"),
            REPOSITORY.format(name="far", deployment="true", url="far", branch="clusters/far"),
            VARIANT.format(name="web", repository="east"),
            VARIANT.format(name="shop", repository="far"),
        )

    def write(self, *documents: str) -> None:
        (self.folder / "config").mkdir(exist_ok=True)
        (self.folder / "config" / "all.yaml").write_text("".join(documents))

    def write_more(self, document: str) -> None:
        (self.folder / "config" / "more.yaml").write_text(document)

    def passes(self, memory: CompletedPassStore | None = None) -> tuple[PassRunner, Services]:
        config, fleet, cache = (str(self.folder / name) for name in ("config", "fleet.git", "cache"))
        settings = read_settings(None, config=config, fleet=fleet, cache=cache)
        parts = build_services(settings, config, clock=lambda: self.now)
        return PassRunner(
            parts.source, parts.remotes, parts.pass_services, build_push_publisher(settings), memory
        ), parts

    def drafts(self, fleet: str = "fleet") -> set[str]:
        return {name for name in read_refs(self.folder / f"{fleet}.git") if "/drafts/" in name}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.chdir(tmp_path)
    return World(tmp_path)


@pytest.mark.slow
def test_a_pass_over_equal_heads_reads_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    passes, _ = world.passes()
    assert passes.run()
    monkeypatch.setattr(
        "reconciler.reconcile.pass_runner.decide_and_publish", lambda *_: pytest.fail("the heads are equal")
    )

    assert passes.run()


@pytest.mark.slow
def test_another_process_repeats_the_last_pass_without_reading(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    pass_summaries = []
    for memory in (FilePassStore(world.folder / "settled" / "one.json"), InMemoryPassStore()):
        passes, _ = world.passes(memory)
        assert passes.run()
        pass_summaries.append(passes.summary)
    monkeypatch.setattr(
        "reconciler.reconcile.pass_runner.decide_and_publish", lambda *_: pytest.fail("the heads are equal")
    )
    passes, _ = world.passes(FilePassStore(world.folder / "settled" / "one.json"))

    assert passes.run()

    assert [pass_summary.counts["drafted"] for pass_summary in pass_summaries] == [2, 0]
    assert passes.summary == replace(pass_summaries[1], is_skipped=True, numbers=PassNumbers())


@pytest.mark.parametrize(
    "spoilt",
    [
        pytest.param("", id="empty"),
        pytest.param("[]", id="a-list"),
        pytest.param('{"config": "tree:1"}', id="fields-missing"),
        pytest.param('{"findings": [], "upstreams": [], "destinations": [], "x": 1}', id="of-another-version"),
    ],
)
def test_a_memory_that_cannot_be_read_is_none(tmp_path: Path, spoilt: str) -> None:
    (tmp_path / "one.json").write_text(spoilt)

    assert FilePassStore(tmp_path / "one.json").load() is None


def test_a_memory_keeps_silent_passes_only(tmp_path: Path) -> None:
    memory = FilePassStore(tmp_path / "new" / "one.json")
    finding = Finding("Code", "a message", SourceLocation("a.yaml", 3))
    silent = CompletedPass("tree:1", "sha256:2", ("u",), ("d",), 7, {"drafted": 0}, (finding,), silent=True)
    memory.save(silent)
    completed_pass = memory.load()
    memory.save(replace(silent, silent=False))

    assert (completed_pass, memory.load()) == (silent, None)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda w: commit_files(w.folder / "fleet.git", "refs/heads/clusters/east", {"x": b"1"}), id="a-branch"
        ),
        pytest.param(lambda w: git(w.folder / "fleet.git", "branch", "-D", "drafts/east"), id="a-draft-that-is-gone"),
        pytest.param(
            lambda w: commit_files(w.folder / "catalog.git", "refs/heads/main", {"x": b"1"}), id="an-upstream"
        ),
        pytest.param(lambda w: (w.folder / "config" / "more.yaml").write_text("a: 1\n"), id="the-config"),
    ],
)
def test_each_moved_head_causes_a_pass(world: World, monkeypatch: pytest.MonkeyPatch, change: object) -> None:
    passes, _ = world.passes()
    assert passes.run()
    assert callable(change)
    change(world)
    looked: list[object] = []
    whole = module.decide_and_publish
    monkeypatch.setattr(module, "decide_and_publish", lambda *args: (looked.append(args), whole(*args))[1])

    assert passes.run()
    assert len(looked) == 1


@pytest.mark.slow
def test_equal_heads_cause_a_pass_when_a_moved_tag_has_settled(world: World) -> None:
    git(world.folder / "catalog.git", "update-ref", "refs/tags/web/stable", "main")
    settling = "tag: stable, tagPolicy: {settle: 1h}"
    world.write_more(VARIANT.format(name="late", repository="east").replace("revision: v1", settling))
    world.now = SECONDS + 3_000
    passes, _ = world.passes()
    assert passes.run()
    due_in = passes.seconds_until_due
    world.now = SECONDS + 3_599
    assert passes.run()
    before = git(world.folder / "fleet.git", "ls-tree", "--name-only", "drafts/east").splitlines()
    world.now = SECONDS + 3_600
    assert passes.run()
    after = git(world.folder / "fleet.git", "ls-tree", "--name-only", "drafts/east").splitlines()

    assert (due_in, before, after) == (600.0, [".reconciler", "web"], [".reconciler", "late", "web"])
    assert math.isinf(passes.seconds_until_due)


def test_a_clock_that_was_set_back_delays_no_remote(tmp_path: Path) -> None:
    last = CompletedPass("config", "heads", due=5_000, at=4_000)

    assert [last.is_current(now) for now in (3_999, 4_000, 4_999, 5_000)] == [False, True, True, False]
    assert CompletedPass("config", "heads", at=4_000).is_current(0)


@pytest.mark.slow
def test_commits_of_a_lost_push_race_cause_a_pass(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = world.folder / "fleet.git"
    world.write_more(
        REPOSITORY.format(name="west", deployment="true", url="fleet", branch="clusters/west")
        + VARIANT.format(name="shop-west", repository="west")
    )
    passes, _ = world.passes()
    passes.run()
    passes.run()
    assert passes.summary.is_skipped
    commit_files(fleet, "refs/heads/drafts/west", {"theirs.txt": b"mine"})
    push, pending = Mirror.push, ["east"]

    def late(mirror: Mirror, units: Sequence[PushUnit], leave: int = 0) -> PushReport:
        while pending:
            pending.pop()
            git(fleet, "update-ref", "-d", "refs/reconciler/state/west")
            git(fleet, "update-ref", "-d", "refs/heads/drafts/east")
        return push(mirror, units, leave)

    monkeypatch.setattr(Mirror, "push", late)
    passes.run()
    passes.run()
    assert "declined" in git(fleet, "show", "refs/reconciler/state/east:packages/web.json").partition('"outcome"')[2]
    passes.run()

    assert passes.summary.is_skipped


@pytest.mark.slow
def test_a_missing_remote_delays_no_other_and_has_a_back_off(world: World) -> None:
    shutil.move(world.folder / "far.git", world.folder / "away.git")
    passes, parts = world.passes()
    passes.run()
    rests = parts.backoff.is_waiting(str(world.folder / "far.git"))
    shutil.move(world.folder / "away.git", world.folder / "far.git")
    passes.run()
    while_resting = world.drafts("far")
    parts.backoff.retry_now()
    passes.run()

    assert (rests, while_resting) == (True, set())
    assert (world.drafts(), world.drafts("far")) == ({"refs/heads/drafts/east"}, {"refs/heads/drafts/far"})


@pytest.mark.slow
def test_a_host_that_refuses_one_target_is_reported_and_others_continue(world: World) -> None:
    write_hook(world.folder / "far.git", "pre-receive", "echo asked >> asked; echo 'no secrets, please' >&2; exit 1")
    passes, _ = world.passes()
    passes.run()
    text = (world.folder / "far.git" / "asked").read_text()
    world.write_more("# nothing that anybody reads\n")
    passes.run()

    assert (world.folder / "far.git" / "asked").read_text() == text
    assert (world.drafts(), world.drafts("far")) == ({"refs/heads/drafts/east"}, set())
    summary = git(world.folder / "fleet.git", "show", "reconciler/status:summary.yaml")
    assert "PushRefused" in summary


def garble_objects(mirror: Path) -> None:
    for file in (*mirror.glob("objects/pack/*"), *mirror.glob("objects/??/*")):
        file.chmod(0o600)
        file.write_bytes(b"damaged")


def garble_far_side(mirror: Path) -> None:
    (mirror / "far-side.config").write_bytes(bytes(range(200, 256)) + b"\n[]")


def garble_config(mirror: Path) -> None:
    (mirror / "config").write_bytes(bytes(range(200, 256)))


def replace_by_file(mirror: Path) -> None:
    shutil.rmtree(mirror)
    mirror.write_bytes(b"")


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("damage", [garble_objects, garble_far_side, garble_config, replace_by_file])
@pytest.mark.parametrize("pattern", ["*fleet*.git", "*catalog*.git"])
@pytest.mark.emits("mirror_rebuilt")
def test_a_damaged_mirror_is_rebuilt_in_the_same_pass(
    world: World, damage: Callable[[Path], None], pattern: str
) -> None:
    passes, _ = world.passes()
    assert passes.run()
    (mirror,) = (world.folder / "cache").glob(pattern)
    damage(mirror)
    world.write_more(VARIANT.format(name="late", repository="east"))
    after_restart, _ = world.passes()
    with capture_logs() as events:
        assert after_restart.run()

    assert git(world.folder / "fleet.git", "show", "drafts/east:late/web.yaml")
    rebuilt = [event for event in events if event["event"] == "mirror_rebuilt"]
    assert [item["log_level"] for item in rebuilt] == ["warning"]


@pytest.mark.slow
def test_an_unreadable_state_is_reported_and_not_changed(world: World) -> None:
    passes, _ = world.passes()
    assert passes.run()
    spoilt = commit_files(world.folder / "fleet.git", "refs/heads/elsewhere", {"destination.json": b"{}"})
    git(world.folder / "fleet.git", "update-ref", "refs/reconciler/state/east", spoilt)
    world.write_more(VARIANT.format(name="late", repository="far"))
    passes.run()

    assert git(world.folder / "fleet.git", "rev-parse", "refs/reconciler/state/east") == spoilt
    assert "StateUnreadable" in git(world.folder / "fleet.git", "show", "reconciler/status:summary.yaml")
    assert git(world.folder / "far.git", "show", "drafts/far:late/web.yaml")


def test_a_read_only_remote_affects_only_itself(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pushes.write_plans

    def full(remote: Remote, *more: object) -> object:
        if "far" in remote.mirror.url:
            raise GitFailedError("no space left on device")
        return whole(remote, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(pushes, "write_plans", full)
    passes, _ = world.passes()

    assert not passes.run()
    assert (world.drafts(), world.drafts("far")) == ({"refs/heads/drafts/east"}, set())


@pytest.fixture
def proposing(world: World) -> World:
    """The same fleet with its config in a repository, and a tag that has moved from the revision in the config."""
    commit_files(world.folder / "catalog.git", "refs/heads/main", {"web/web.yaml": CONFIG_MAP + b"# two\n"})
    for tag in ("v2", "stable"):
        git(world.folder / "catalog.git", "tag", f"web/{tag}", "main")
    text = (world.folder / "config" / "all.yaml").read_text()
    text = text.replace("revision: v1}", "revision: v1, tag: stable, tagMode: rewrite}")
    shutil.rmtree(world.folder / "config")
    create_repository(world.folder / "config")
    commit_files(world.folder / "config", "refs/heads/main", {"all.yaml": text.encode()})
    return world


PROPOSAL = "refs/heads/drafts/config"


@pytest.mark.slow
def test_a_proposal_that_people_delete_is_noticed_though_nothing_else_moved(proposing: World) -> None:
    config = proposing.folder / "config"
    passes, _ = proposing.passes()
    assert passes.run()
    first = read_refs(config)
    assert passes.run()
    refs = read_refs(config)
    git(config, "update-ref", "-d", PROPOSAL)
    assert passes.run()
    state = git(config, "show", "refs/reconciler/state/_config:config.json")

    assert PROPOSAL in first
    assert refs == first
    assert PROPOSAL not in read_refs(config)
    assert state.count("declined") == 2


@pytest.mark.slow
def test_an_equal_pass_after_a_proposal_reads_nothing(proposing: World, monkeypatch: pytest.MonkeyPatch) -> None:
    passes, _ = proposing.passes()
    assert passes.run()
    monkeypatch.setattr(
        "reconciler.reconcile.pass_runner.decide_and_publish", lambda *_: pytest.fail("the heads are equal")
    )

    assert passes.run()


@pytest.mark.slow
def test_a_proposal_that_does_not_get_through_is_tried_again_later(
    proposing: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(self: RepositoryConfigProposals, *more: object) -> PushFailed:
        return PushFailed(UnreachableError("the host does not answer"))

    with monkeypatch.context() as broken:
        broken.setattr(RepositoryConfigProposals, "push", unreachable)
        passes, _ = proposing.passes()
        assert passes.run()
    due_in = passes.seconds_until_due
    proposing.now += reconcile.PROPOSAL_RETRY_SECONDS
    assert passes.run()

    assert due_in == reconcile.PROPOSAL_RETRY_SECONDS
    assert PROPOSAL in read_refs(proposing.folder / "config")
    assert proposing.drafts() == {"refs/heads/drafts/east"}


@pytest.mark.slow
def test_a_proposal_that_lost_a_race_is_retried_soon(proposing: World, monkeypatch: pytest.MonkeyPatch) -> None:
    config, whole = proposing.folder / "config", RepositoryConfigProposals.push

    def interrupted(self: RepositoryConfigProposals, *more: object) -> object:
        commit_files(config, PROPOSAL, {"theirs": b"1"})
        return whole(self, *more)  # type: ignore[arg-type]

    passes, _ = proposing.passes()
    with monkeypatch.context() as racing:
        racing.setattr(RepositoryConfigProposals, "push", interrupted)
        first = passes.run()
    summary = git(proposing.folder / "fleet.git", "show", "reconciler/status:summary.yaml")

    assert not first
    assert "ProposalLost" in summary
    assert passes.run()
    assert git(config, "log", "-1", "--format=%s", PROPOSAL) == "change"


@pytest.mark.slow
def test_a_created_tag_causes_the_next_pass(world: World) -> None:
    world.write_more(
        REPOSITORY.format(name="west", deployment="true", url="fleet", branch="clusters/west")
        + VARIANT.format(name="next", repository="west").replace(
            "{repo: catalog, package: web, revision: v1}", "{repo: east, package: web, revision: v1}"
        )
    )
    passes, _ = world.passes()
    passes.run()
    git(world.folder / "fleet.git", "update-ref", "refs/heads/clusters/east", "refs/heads/drafts/east")
    passes.run()
    before = world.drafts()

    passes.run()

    assert "refs/heads/drafts/west" not in before
    assert "refs/heads/drafts/west" in world.drafts()
    passes.run()
    assert passes.summary.is_skipped


@pytest.mark.slow
def test_refused_tags_are_reported_and_later_passes_change_nothing(world: World) -> None:
    write_hook(world.folder / "fleet.git", "update", 'case "$1" in refs/tags/*) echo protected >&2; exit 1;; esac')
    world.write_more(VARIANT.format(name="next", repository="far").replace("repo: catalog", "repo: east"))
    passes, _ = world.passes()
    passes.run()
    git(world.folder / "fleet.git", "update-ref", "refs/heads/clusters/east", "refs/heads/drafts/east")
    passes.run()

    assert passes.run()

    assert passes.summary.is_skipped
    assert "RevisionTagRefused" in {finding.code for finding in passes.summary.findings}


def test_shards_with_one_cache_have_separate_records(world: World) -> None:
    config = str(world.folder / "config")
    texts = ("1/1", "1/2", "2/2", "1/3")
    settings = [read_settings(None, config=config, cache=str(world.folder / "cache"), shard=text) for text in texts]
    silent = CompletedPass("tree:1", "sha256:2", silent=True)

    build_pass_cache(settings[1], config).save(silent)

    assert [build_pass_cache(setting, config).load() for setting in settings] == [None, silent, None, None]
    files = [get_cache_file(setting, "first_seen").name for setting in settings]
    assert files == ["first_seen.json", "first_seen-1-of-2.json", "first_seen-2-of-2.json", "first_seen-1-of-3.json"]


@pytest.mark.slow
def test_a_service_keeps_no_contents_of_its_drafts(world: World) -> None:
    def count_pass_objects() -> int:
        return sum(type(item) in (Draft, PassContext, Remote) for item in gc.get_objects())

    gc.collect()
    before = count_pass_objects()
    passes, _ = world.passes()
    # During a pass, the garbage collector rarely searches for reference cycles.
    gc.disable()
    try:
        assert passes.run()
        after = count_pass_objects()
    finally:
        gc.enable()

    assert passes.summary.counts["drafted"] == 2
    assert after <= before
