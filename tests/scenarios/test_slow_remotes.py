"""Tests of slow and dead remotes: they delay only themselves, and a later pass uses their result."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.bootstrap.publishers import build_push_publisher
from reconciler.bootstrap.services import build_services
from reconciler.reconcile.pass_runner import PassRunner
from reconciler.settings import Settings
from tests.support.git_http import GitHost, serve
from tests.support.git_repositories import make_bare, read_refs
from tests.support.world import World, catalog, package, repository, variant

pytestmark = pytest.mark.real_git

# A limit for broken tests. Passing tests need much less time.
MAX_WAIT_SECONDS = 90.0
# This timeout is short enough for a test, and long enough for a local repository. A remote that exceeds it is collected
# later.
PATIENCE_SECONDS = 2.0
PUSHES = "git-receive-pack"


class SlowRemotesService:
    """The passes of one process over a world with some remotes on a host that can delay its answers."""

    def __init__(self, folder: Path, host: GitHost, *remote: str) -> None:
        self.world = World.create(folder)
        self.folder, self.host = folder, host
        self.woken = threading.Semaphore(0)
        for name in remote:
            make_bare(folder / f"{name}.git")
        base_settings = {"fleet": {"url": str(self.world.fleet)}, "cache": str(folder / "cache")}
        git = {
            "allowed_urls": ["/*", "http://127.0.0.1*"],
            "patience_seconds": PATIENCE_SECONDS,
            "timeout_seconds": 300,
        }
        self.settings = Settings.model_validate({**base_settings, "git": git})
        services = build_services(
            self.settings, self.world.source, clock=lambda: self.world.now, wake_up=self.woken.release
        )
        self.remotes = services.remotes
        self.passes = PassRunner(
            services.source, services.remotes, services.pass_services, build_push_publisher(self.settings)
        )

    def url(self, name: str) -> str:
        """Return the URL of a remote on the host."""
        return f"{self.host.url}/{name}.git"

    def read_remote_refs(self, name: str) -> set[str]:
        """Return the refs of a remote."""
        return set(read_refs(self.folder / f"{name}.git"))

    def run_pass(self) -> bool:
        """Run a pass. Return whether the pass was skipped because no ref changed."""
        assert self.passes.run()
        return self.passes.summary.is_skipped

    def run_when_woken(self) -> None:
        """Wait until a late remote wakes the service, and run a pass."""
        assert self.woken.acquire(timeout=MAX_WAIT_SECONDS)
        self.remotes.collect_late_results()
        self.passes.run()

    def run_until(self, condition: Callable[[], bool]) -> None:
        """Run a pass each time a late remote wakes the service, until the condition is true."""
        while not condition():
            self.run_when_woken()

    def run_until_ref_exists(self, name: str, ref: str) -> None:
        """Run passes until the remote has the ref."""
        self.run_until(lambda: ref in self.read_remote_refs(name))

    @property
    def codes(self) -> set[str]:
        """Return the finding codes of the last pass."""
        return {finding.code for finding in self.passes.summary.findings}

    @property
    def messages(self) -> str:
        """Return the finding messages of the last pass, one per line."""
        return "\n".join(finding.message for finding in self.passes.summary.findings)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[GitHost]:
    with serve(GitHost(tmp_path)) as host:
        yield host
        host.gate.set()


def build_east_and_west(folder: Path, host: GitHost) -> SlowRemotesService:
    """Return a service with the cluster east on this machine and the cluster west on the host."""
    service = SlowRemotesService(folder, host, "west", "east")
    service.world.release("web", "v1", package("web"))
    service.world.write(
        {
            "catalog.yaml": catalog(),
            "east.yaml": repository("east", "./east.git") + "---\n" + variant("web-east", "east", "web"),
            "west.yaml": repository("west", service.url("west")) + "---\n" + variant("web-west", "west", "web"),
        }
    )
    return service


@pytest.mark.slow
def test_a_late_remote_is_skipped_and_drafted_after_its_fetch(tmp_path: Path, host: GitHost) -> None:
    service = build_east_and_west(tmp_path, host)
    host.held = "west.git"

    assert not service.run_pass()
    assert "refs/heads/drafts/east" in service.read_remote_refs("east")
    assert service.read_remote_refs("west") == set()
    assert f"{service.url('west')} is still being fetched" in service.messages
    assert not service.passes.summary.is_clean
    # The fetch still runs, so the next pass starts no second fetch and is skipped.
    result = list(host.taken)
    assert service.run_pass()
    assert host.taken == result

    host.gate.set()
    service.run_until_ref_exists("west", "refs/heads/drafts/west")

    assert "RepositoryUnreachable" not in service.codes


@pytest.mark.slow
def test_a_late_remote_is_not_changed_and_not_treated_as_empty(tmp_path: Path, host: GitHost) -> None:
    service = build_east_and_west(tmp_path, host)
    service.run_pass()
    service.run_pass()
    before = read_refs(tmp_path / "west.git")
    assert "refs/heads/drafts/west" in before

    # The heads of the late remote are known, so a pass without other changes is skipped.
    host.held = "west.git"
    assert service.run_pass()
    service.world.write({"west.yaml": repository("west", service.url("west"))})
    assert not service.run_pass()
    assert read_refs(tmp_path / "west.git") == before

    host.gate.set()
    service.run_until(lambda: "refs/heads/drafts/west" not in service.read_remote_refs("west"))

    assert service.read_remote_refs("west")


@pytest.mark.slow
def test_a_late_upstream_is_read_from_its_last_fetch(tmp_path: Path, host: GitHost) -> None:
    service = build_east_and_west(tmp_path, host)
    service.world.write({"catalog.yaml": catalog().replace("./catalog.git", service.url("catalog"))})
    service.run_pass()
    service.run_pass()
    host.held = "catalog.git"
    service.world.release("web", "v2", package("web", replicas=5))
    service.world.write({"more.yaml": variant("web-more", "east", "more", upstream="web")})
    service.run_pass()

    assert service.world.files(tmp_path / "east.git", "drafts/east", "more")
    assert not service.codes & {"RepositoryUnreachable", "UpstreamNotFound"}

    host.gate.set()
    service.run_when_woken()
    service.world.write({"more.yaml": variant("web-more", "east", "more", "v2", upstream="web")})
    service.run_pass()

    assert "replicas: 5" in service.world.files(tmp_path / "east.git", "drafts/east", "more")["deployment.yaml"]


@pytest.mark.slow
def test_an_upstream_that_was_never_fetched_stalls_its_packages(tmp_path: Path, host: GitHost) -> None:
    service = build_east_and_west(tmp_path, host)
    service.world.write({"catalog.yaml": catalog().replace("./catalog.git", service.url("catalog"))})
    host.held = "catalog.git"
    service.run_pass()

    assert not any("drafts" in ref for ref in service.read_remote_refs("east") | service.read_remote_refs("west"))
    assert "is still being fetched" in service.messages

    host.gate.set()
    service.run_until_ref_exists("east", "refs/heads/drafts/east")


@pytest.mark.slow
def test_a_hanging_push_continues_during_later_passes(tmp_path: Path, host: GitHost) -> None:
    service = build_east_and_west(tmp_path, host)
    host.held = PUSHES
    service.run_pass()

    assert "refs/heads/drafts/east" in service.read_remote_refs("east")
    assert "PushPostponed" in service.codes
    # The next pass does not wait for the push, and does not use the mirror.
    service.run_pass()
    assert "PushPostponed" not in service.codes
    assert "is still being pushed to" in service.messages

    host.gate.set()
    service.run_when_woken()
    service.run_pass()

    assert "refs/heads/drafts/west" in service.read_remote_refs("west")
    assert not service.codes & {"PushPostponed", "RepositoryUnreachable"}
    assert service.run_pass()


def test_closing_the_remotes_stops_a_hanging_fetch(tmp_path: Path, host: GitHost) -> None:
    service = build_east_and_west(tmp_path, host)
    host.held = "west.git"
    service.run_pass()

    service.remotes.close()

    # The fetch stopped, so the next process can lock the mirror.
    assert service.woken.acquire(timeout=MAX_WAIT_SECONDS)
    host.gate.set()
    with build_services(service.settings, service.world.source).remotes as remotes:
        remotes.fetch((), [service.url("west")])

        assert remotes.failures == {}


@pytest.mark.slow
def test_one_dead_and_one_slow_remote_do_not_delay_eighteen_others(tmp_path: Path, host: GitHost) -> None:
    near = [f"near{index:02}" for index in range(18)]
    host.held = "slow.git"
    with serve(GitHost(tmp_path, held="")) as dead:
        service = SlowRemotesService(tmp_path, host, "slow", *near)
        service.world.release("web", "v1", package("web"))
        urls = {"dead": f"{dead.url}/dead.git", "slow": service.url("slow"), **{item: f"./{item}.git" for item in near}}
        for name, url in urls.items():
            service.world.write({f"{name}.yaml": f"{repository(name, url)}---\n{variant(f'web-{name}', name, 'web')}"})
        service.world.write({"catalog.yaml": catalog()})

        service.run_pass()
        service.run_until(lambda: all(f"refs/heads/drafts/{name}" in service.read_remote_refs(name) for name in near))

        assert service.read_remote_refs("slow") == set()
        assert all(f"{urls[name]} is still being fetched" in service.messages for name in ("dead", "slow"))

        host.gate.set()
        service.run_until_ref_exists("slow", "refs/heads/drafts/slow")

        assert f"{urls['dead']} is still being fetched" in service.messages
        service.remotes.close()
