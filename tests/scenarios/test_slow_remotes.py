"""A slow or dead remote delays only itself: the service goes on without it, and takes what came of it later."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.bootstrap import build_push_publisher, build_services
from reconciler.reconcile.pass_runner import PassRunner
from reconciler.settings import Settings
from tests.support.git_http import GitHost, serve
from tests.support.git_repositories import make_bare, read_refs
from tests.support.world import World, catalog, package, repository, variant

# no test comes near it: it is there so that a broken one ends
GENEROUS = 90.0
# short enough to be waited for here, long enough for a repository of this machine; who is late all the same comes later
PATIENCE = 2.0
PUSHES = "git-receive-pack"


class Service:
    """The passes of one process over a world some of whose remotes are on a host that may say nothing."""

    def __init__(self, folder: Path, host: GitHost, *remote: str) -> None:
        self.world = World.create(folder)
        self.folder, self.host = folder, host
        self.woken = threading.Semaphore(0)
        for name in remote:
            make_bare(folder / f"{name}.git")
        own = {"fleet": {"url": str(self.world.fleet)}, "cache": str(folder / "cache")}
        git = {"allowed_urls": ["/*", "http://127.0.0.1*"], "patience_seconds": PATIENCE, "timeout_seconds": 300}
        self.settings = Settings.model_validate({**own, "git": git})
        parts = build_services(
            self.settings, self.world.source, clock=lambda: self.world.now, wake_up=self.woken.release
        )
        self.remotes = parts.remotes
        self.passes = PassRunner(parts.source, parts.remotes, parts.pass_services, build_push_publisher(self.settings))

    def url(self, name: str) -> str:
        """The address of a remote on the host."""
        return f"{self.host.url}/{name}.git"

    def refs(self, name: str) -> set[str]:
        """The refs of a remote."""
        return set(read_refs(self.folder / f"{name}.git"))

    def run(self) -> bool:
        """Run a pass, and return whether it ended at once because nothing had moved."""
        assert self.passes.run()
        return self.passes.summary.is_skipped

    def run_when_woken(self) -> None:
        """Run a pass once a remote has ended that one went on without."""
        assert self.woken.acquire(timeout=GENEROUS)
        self.remotes.collect_late_results()
        self.passes.run()

    def run_until_it_has(self, name: str, ref: str) -> None:
        """Run a pass whenever a remote has ended that one went on without, until a remote has a ref."""
        while ref not in self.refs(name):
            self.run_when_woken()

    @property
    def codes(self) -> set[str]:
        """The codes of the last pass."""
        return {finding.code for finding in self.passes.summary.findings}

    @property
    def words(self) -> str:
        """What the last pass found, in words."""
        return "\n".join(finding.message for finding in self.passes.summary.findings)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[GitHost]:
    with serve(GitHost(tmp_path)) as host:
        yield host
        host.gate.set()


def east_and_west(folder: Path, host: GitHost) -> Service:
    """East is on this machine, west on the host."""
    service = Service(folder, host, "west", "east")
    service.world.release("web", "v1", package("web"))
    service.world.write(
        {
            "catalog.yaml": catalog(),
            "east.yaml": repository("east", "./east.git") + "---\n" + variant("web-east", "east", "web"),
            "west.yaml": repository("west", service.url("west")) + "---\n" + variant("web-west", "west", "web"),
        }
    )
    return service


def test_a_remote_that_is_late_is_left_alone_and_taken_when_it_has_come(tmp_path: Path, host: GitHost) -> None:
    service = east_and_west(tmp_path, host)
    host.held = "west.git"

    assert not service.run()
    assert "refs/heads/drafts/east" in service.refs("east")
    assert service.refs("west") == set()
    assert f"{service.url('west')} is still being fetched" in service.words
    assert not service.passes.summary.is_clean
    # it is still under way: nobody asks it again, and nothing else moved
    result = list(host.taken)
    assert service.run()
    assert host.taken == result

    host.gate.set()
    service.run_until_it_has("west", "refs/heads/drafts/west")

    assert "RepositoryUnreachable" not in service.codes


def test_what_is_late_is_neither_changed_nor_taken_for_empty(tmp_path: Path, host: GitHost) -> None:
    service = east_and_west(tmp_path, host)
    service.run()
    service.run()
    before = read_refs(tmp_path / "west.git")
    assert "refs/heads/drafts/west" in before

    # once it is known, equal heads of all others end a pass at once
    host.held = "west.git"
    assert service.run()
    service.world.write({"west.yaml": repository("west", service.url("west"))})
    assert not service.run()
    assert read_refs(tmp_path / "west.git") == before

    host.gate.set()
    service.run_when_woken()

    assert "refs/heads/drafts/west" not in service.refs("west")


def test_an_upstream_that_is_late_is_read_as_it_was(tmp_path: Path, host: GitHost) -> None:
    service = east_and_west(tmp_path, host)
    service.world.write({"catalog.yaml": catalog().replace("./catalog.git", service.url("catalog"))})
    service.run()
    service.run()
    host.held = "catalog.git"
    service.world.release("web", "v2", package("web", replicas=5))
    service.world.write({"more.yaml": variant("web-more", "east", "more", upstream="web")})
    service.run()

    assert service.world.files(tmp_path / "east.git", "drafts/east", "more")
    assert not service.codes & {"RepositoryUnreachable", "UpstreamNotFound"}

    host.gate.set()
    service.run_when_woken()
    service.world.write({"more.yaml": variant("web-more", "east", "more", "v2", upstream="web")})
    service.run()

    assert "replicas: 5" in service.world.files(tmp_path / "east.git", "drafts/east", "more")["deployment.yaml"]


def test_an_upstream_that_never_came_stalls_what_is_made_of_it(tmp_path: Path, host: GitHost) -> None:
    service = east_and_west(tmp_path, host)
    service.world.write({"catalog.yaml": catalog().replace("./catalog.git", service.url("catalog"))})
    host.held = "catalog.git"
    service.run()

    assert not any("drafts" in ref for ref in service.refs("east") | service.refs("west"))
    assert "is still being fetched" in service.words

    host.gate.set()
    service.run_until_it_has("east", "refs/heads/drafts/east")


def test_a_push_that_hangs_goes_on_beside_the_passes(tmp_path: Path, host: GitHost) -> None:
    service = east_and_west(tmp_path, host)
    host.held = PUSHES
    service.run()

    assert "refs/heads/drafts/east" in service.refs("east")
    assert "PushPostponed" in service.codes
    # nobody waits for it, and nobody touches its mirror
    service.run()
    assert "PushPostponed" not in service.codes
    assert "is still being pushed to" in service.words

    host.gate.set()
    service.run_when_woken()
    service.run()

    assert "refs/heads/drafts/west" in service.refs("west")
    assert not service.codes & {"PushPostponed", "RepositoryUnreachable"}
    assert service.run()


def test_who_ends_the_service_ends_what_hangs(tmp_path: Path, host: GitHost) -> None:
    service = east_and_west(tmp_path, host)
    host.held = "west.git"
    service.run()

    service.remotes.close()

    # it was asked to end, and did; the next process finds the mirror free
    assert service.woken.acquire(timeout=GENEROUS)
    host.gate.set()
    with build_services(service.settings, service.world.source).remotes as remotes:
        remotes.fetch((), [service.url("west")])

        assert remotes.failures == {}


def test_twenty_remotes_of_which_one_is_dead_and_one_is_slow(tmp_path: Path, host: GitHost) -> None:
    near = [f"near{index:02}" for index in range(18)]
    host.held = "slow.git"
    with serve(GitHost(tmp_path, held="")) as dead:
        service = Service(tmp_path, host, "slow", *near)
        service.world.release("web", "v1", package("web"))
        urls = {"dead": f"{dead.url}/dead.git", "slow": service.url("slow"), **{item: f"./{item}.git" for item in near}}
        for name, url in urls.items():
            service.world.write({f"{name}.yaml": f"{repository(name, url)}---\n{variant(f'web-{name}', name, 'web')}"})
        service.world.write({"catalog.yaml": catalog()})

        service.run()
        while not all(f"refs/heads/drafts/{name}" in service.refs(name) for name in near):
            service.run_when_woken()

        assert service.refs("slow") == set()
        assert all(f"{urls[name]} is still being fetched" in service.words for name in ("dead", "slow"))

        host.gate.set()
        service.run_until_it_has("slow", "refs/heads/drafts/slow")

        assert f"{urls['dead']} is still being fetched" in service.words
        service.remotes.close()
