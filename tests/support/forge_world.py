"""A small fleet on a forge: passes open pull requests, and tests merge and close them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.fake_forge.core import FakeForge, FakePullRequest, FakeRepository
from tests.support.fake_forge.scene import WIRES, Product
from tests.support.fake_forge.server import Wire, serve
from tests.support.world import World, catalog, make_bare, package, repository, variant


class ForgeWorld(World):
    """A fleet with all clusters in one repository of a forge, `acme/fleet`. Forge and fleet share one clock."""

    forge: FakeForge
    on_forge: FakeRepository
    wire: Wire

    def draft_requests(self) -> list[FakePullRequest]:
        """Return all pull requests, open or not."""
        return self.on_forge.requests()

    @property
    def open_requests(self) -> dict[str, FakePullRequest]:
        """Return the open pull requests by their head branches."""
        return {
            pull_request.head: pull_request for pull_request in self.on_forge.requests() if pull_request.state == "open"
        }

    def writes(self) -> list[str]:
        """Return the writing calls since the last call, and clear the log."""
        calls = [f"{method} {path}" for method, path in self.forge.calls if method != "GET"]
        self.forge.calls.clear()
        return calls


# The path below the server URL.
_APIS: dict[Product, str] = {"github": "", "gitlab": "/api/v4", "gitea": "/api/v1"}


@contextmanager
def github_world(
    folder: Path,
    clusters: tuple[str, ...] = ("berlin", "lisbon"),
    settings: Mapping[str, object] | None = None,
    **forge: object,
) -> Iterator[ForgeWorld]:
    """Create a fleet with package `web` on each cluster, on a GitHub that runs until the end of the block."""
    with forge_world("github", folder, clusters, settings, **forge) as world:
        yield world


@contextmanager
def forge_world(
    kind: Product,
    folder: Path,
    clusters: tuple[str, ...] = ("berlin", "lisbon"),
    settings: Mapping[str, object] | None = None,
    **forge: object,
) -> Iterator[ForgeWorld]:
    """Create a fleet with package `web` on each cluster, on a forge that runs until the end of the block."""
    fake = FakeForge(folder, lambda: world.now)
    on_forge, wire = fake.create_repository("acme/fleet"), WIRES[kind](fake)
    with serve(wire) as url:
        token = folder / "token"
        token.write_text(fake.token)
        host = {"url": str(folder), "kind": kind, "api": f"{url}{_APIS[kind]}", "token_file": str(token)}
        world = ForgeWorld(folder, forge={"hosts": [host], **forge}, **(settings or {}))
        world.config.mkdir(parents=True)
        make_bare(world.catalog)
        world.fleet, world.forge, world.on_forge, world.wire = on_forge.bare, fake, on_forge, wire
        world.write({"catalog.yaml": catalog()})
        world.write({f"{name}.yaml": repository(name, "./acme/fleet.git") for name in clusters})
        world.write({f"web-{name}.yaml": variant(f"web-{name}", name, "web") for name in clusters})
        world.release("web", "v1", package("web"))
        yield world
