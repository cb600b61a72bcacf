"""One repository on one forge product, served on loopback, and the driver that connects to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx

from reconciler.catalog.files import CommitId
from reconciler.forge.credentials import read_token_from
from reconciler.forge.gitea import Gitea
from reconciler.forge.github import GitHub
from reconciler.forge.gitlab import GitLab
from reconciler.forge.http_client import ForgeClient
from reconciler.forge.port import Forge, NewRequest
from reconciler.forge.rate_limits import RateLimiter
from tests.support.fake_forge.clock import Clock
from tests.support.fake_forge.core import FakeForge, FakeRepository
from tests.support.fake_forge.gitea import GiteaWire
from tests.support.fake_forge.github import GitHubWire
from tests.support.fake_forge.gitlab import GitLabWire
from tests.support.fake_forge.server import Wire, serve
from tests.support.git_repositories import commit_files, git

Product = Literal["github", "gitlab", "gitea"]
WIRES: dict[Product, Callable[[FakeForge], Wire]] = {"github": GitHubWire, "gitlab": GitLabWire, "gitea": GiteaWire}
BASE, HEAD = "clusters/east", "drafts/east"
NEW = NewRequest(HEAD, BASE, "east: api 1.2", "One change.\n\n- api: 1.1 → 1.2")


@dataclass
class Scene:
    """A forge with one repository. `BASE` has one commit and `HEAD` has one more."""

    product: Product
    forge: FakeForge
    repository: FakeRepository
    wire: Wire
    client: ForgeClient
    driver: Forge
    clock: Clock
    token_file: Path

    def push(self, branch: str = HEAD, base: str = BASE, path: str = "api.yaml", data: bytes = b"1.2") -> CommitId:
        """Push a commit that changes one file to a branch. A new branch starts at `base`."""
        if self.repository.branch(branch) is None:
            git(self.repository.bare, "update-ref", f"refs/heads/{branch}", f"refs/heads/{base}")
        return CommitId(commit_files(self.repository.bare, f"refs/heads/{branch}", {path: data}))

    def commit(self, branch: str) -> str | None:
        """Return the commit of a branch."""
        return self.repository.branch(branch)

    def calls_of(self, act: Callable[[], object]) -> list[tuple[str, str]]:
        """Return the requests that arrived during an action."""
        before = len(self.forge.calls)
        act()
        return self.forge.calls[before:]


@contextmanager
def open_scene(product: Product, folder: Path, budget: RateLimiter | None = None) -> Iterator[Scene]:
    """Serve a product and yield its scene."""
    clock = Clock()
    forge = FakeForge(folder / "forge", clock)
    repository = forge.create_repository("acme/fleet")
    token_file = folder / "token"
    token_file.write_text(f"{forge.token}\n")
    wire = WIRES[product](forge)
    with serve(wire) as url:
        client = _connect(product, url, token_file, budget or RateLimiter(0, 0, clock), clock)
        scene = Scene(product, forge, repository, wire, client, _drive(product, client), clock, token_file)
        commit_files(repository.bare, f"refs/heads/{BASE}", {"api.yaml": b"1.1"})
        scene.push()
        try:
            yield scene
        finally:
            client.close()


def answer_client(answer: Callable[[httpx.Request], httpx.Response] | httpx.Response) -> ForgeClient:
    """Return a client of `https://forge.example/api` that receives the same answer to each request."""
    act = answer if callable(answer) else lambda _: answer
    clock = Clock()
    return ForgeClient("https://forge.example/api", dict, RateLimiter(0, 0, clock), clock, httpx.MockTransport(act))


def _connect(product: Product, url: str, token_file: Path, budget: RateLimiter, clock: Clock) -> ForgeClient:
    match product:
        case "github":
            return ForgeClient(url, read_token_from(token_file), budget, clock)
        case "gitlab":
            return ForgeClient(f"{url}/api/v4", read_token_from(token_file, "PRIVATE-TOKEN", ""), budget, clock)
        case "gitea":
            return ForgeClient(f"{url}/api/v1", read_token_from(token_file, prefix="token "), budget, clock)


def _drive(product: Product, client: ForgeClient) -> Forge:
    match product:
        case "github":
            return GitHub(client, "acme", "fleet")
        case "gitlab":
            return GitLab(client, "acme/fleet")
        case "gitea":
            return Gitea(client, "acme", "fleet")
