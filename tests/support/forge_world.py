"""A small world whose fleet is on a forge: passes open pull requests there, people merge and close them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.fake_forge.core import FakeForge, FakeRepository, FakeRequest
from tests.support.fake_forge.github import GitHubWire
from tests.support.fake_forge.server import serve
from tests.support.world import World, catalog, make_bare, package, repository, variant


class ForgeWorld(World):
    """A world with clusters on one forge repository, `acme/fleet`; the forge's clock is the world's."""

    forge: FakeForge
    on_forge: FakeRepository

    def draft_requests(self) -> list[FakeRequest]:
        """Return all pull requests, open or not."""
        return self.on_forge.requests()

    @property
    def open_requests(self) -> dict[str, FakeRequest]:
        """Return the open pull requests by their head branches."""
        return {one.head: one for one in self.on_forge.requests() if one.state == "open"}

    def writes(self) -> list[str]:
        """Return the calls since the last time that changed something, and forget all."""
        calls = [f"{method} {path}" for method, path in self.forge.calls if method != "GET"]
        self.forge.calls.clear()
        return calls


@contextmanager
def github_world(
    folder: Path,
    clusters: tuple[str, ...] = ("berlin", "lisbon"),
    settings: Mapping[str, object] | None = None,
    **forge: object,
) -> Iterator[ForgeWorld]:
    """Make a world with package `web` on each cluster, its fleet at a GitHub that runs until the block is left."""
    fake = FakeForge(folder, lambda: world.now)
    on_forge = fake.make("acme/fleet")
    with serve(GitHubWire(fake)) as url:
        token = folder / "token"
        token.write_text(fake.token)
        host = {"url": str(folder), "kind": "github", "api": url, "token_file": str(token)}
        world = ForgeWorld(folder, forge={"hosts": [host], **forge}, **(settings or {}))
        world.config.mkdir(parents=True)
        make_bare(world.catalog)
        world.fleet, world.forge, world.on_forge = on_forge.bare, fake, on_forge
        world.write({"catalog.yaml": catalog()})
        world.write({f"{name}.yaml": repository(name, "./acme/fleet.git") for name in clusters})
        world.write({f"web-{name}.yaml": variant(f"web-{name}", name, "web") for name in clusters})
        world.release("web", "v1", package("web"))
        yield world
