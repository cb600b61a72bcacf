"""A small fleet with its config in a repository, so that each pass has a config commit."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reconciler.bootstrap.services import build_services
from reconciler.inspect.package_history import PastReader
from tests.support.git_repositories import commit_files, git, make_bare, read_file
from tests.support.policies import RINGS, labelled_package, policy, publish, rollout_rule, rollout_world
from tests.support.templates import bundle, kafka, template_world
from tests.support.world import CLUSTERS, Files, World, config_map, small_world, variant


class HistoryWorld(World):
    """A fleet whose config has commits: writing a file creates a commit."""

    @property
    def repo(self) -> Path:
        """The repository of the config."""
        return self.folder / "config.git"

    @property
    def source(self) -> str:
        """The location of the config for passes."""
        return str(self.repo)

    def write(self, files: Files) -> None:
        """Commit files of the config. None removes a file."""
        self.change(files)

    def change(self, files: Files, message: str = "by hand", branch: str = "main", seconds: int = 1_200_000_000) -> str:
        """Commit files of the config, and return the commit."""
        data = {path: None if content is None else content.encode() for path, content in files.items()}
        return commit_files(self.repo, f"refs/heads/{branch}", data, message, seconds)

    def squash_config(self) -> str:
        """Replace the history of the config by one commit and return it."""
        files = {path: read_file(self.repo, "refs/heads/main", path) + "\n" for path in self.paths(self.repo, "main")}
        git(self.repo, "update-ref", "-d", "refs/heads/main")
        commit = self.change(files, "all of it", seconds=1_250_000_000)
        self.prune_unreachable_objects(self.repo)
        return commit

    def prune_unreachable_objects(self, repository: Path) -> None:
        """Delete the unreachable objects of a repository, and the cache."""
        git(repository, "gc", "--quiet", "--prune=now")
        shutil.rmtree(self.folder / "cache")

    @contextmanager
    def open_past(self) -> Iterator[PastReader]:
        """Open the reader of earlier commits."""
        parts = build_services(self.read_settings(), self.source, clock=lambda: self.now)
        with parts.remotes as remotes:
            yield PastReader(
                parts.source, parts.open_config_history, remotes, parts.pass_services, parts.resolve_commit
            )

    def publish(self) -> None:
        """Run a pass, publish all drafts, and run a second pass."""
        self.sync()
        for cluster in CLUSTERS:
            if self.head(f"drafts/{cluster}"):
                self.merge(cluster, "squash")
        self.sync()


_TENANT = """
apiVersion: reconciler.dev/v1alpha1
kind: Tenant
metadata: {name: payments}
spec:
  directories: [teams/payments/**]
  allow:
    upstreams: ["**"]
    targets: {selector: {}}
    kinds: ["**"]
    packages: ["**"]
    namespaces: ["**"]
    clusterScopedResources: ["**"]
    functions: {images: ["**"]}
"""


def with_history(world: World) -> HistoryWorld:
    """Return a fleet whose first config commit contains the current config folder."""
    history_world = HistoryWorld(world.folder, **world._settings)
    make_bare(history_world.repo)
    files = {path.relative_to(world.config).as_posix(): path.read_text() for path in world.config.rglob("*.yaml")}
    history_world.change(files, "the config")
    return history_world


def history_published(folder: Path) -> HistoryWorld:
    """Return the small fleet with its config in a repository and all packages published."""
    world = with_history(small_world(folder))
    world.publish()
    return world


def rollout_history(folder: Path) -> HistoryWorld:
    """Return three rings at a later upstream. The last ring has no rule yet."""
    world = with_history(rollout_world(folder))
    world.change({"policies/site.yaml": policy("site", [rollout_rule(5)])})
    world.sync()
    publish(world, "amsterdam")
    world.release("web", "v2", labelled_package("web", "site", image="2.0", notes=config_map("notes", a="b")))
    world.change({f"web/{ring}.yaml": variant(f"web-{ring}", ring, "web", "v2") for ring in RINGS})
    world.sync()
    publish(world, *RINGS)
    return world


def templates_history(folder: Path) -> HistoryWorld:
    """Return two clusters with Kafkas and node pools. The template of Berlin's Kafka has changed."""
    world = with_history(template_world(folder))
    world.publish()
    world.release("kafka", "v2", bundle("kafka", kafka=kafka({"pod": {"priorityClassName": "calm"}})))
    world.change({"kafka/berlin.yaml": variant("kafka-berlin", "berlin", "kafka", "v2")})
    world.publish()
    return world


def templates_of_tenants(folder: Path) -> HistoryWorld:
    """Return two clusters with Kafkas and node pools. On Lisbon, a tenant has copies of the Kafka and of a node pool.

    The last commit changes the templates of both Kafkas on Lisbon.
    """
    world = template_world(folder)
    copies = {name: variant(f"a-{name}", "lisbon", f"payments/{name}", upstream=name) for name in ("kafka", "readers")}
    world.write(
        {"tenants/payments.yaml": _TENANT, **{f"teams/payments/{name}.yaml": text for name, text in copies.items()}}
    )
    world = with_history(world)
    world.publish()
    world.release("kafka", "v2", bundle("kafka", kafka=kafka({"pod": {"priorityClassName": "calm"}})))
    world.change(
        {
            "kafka/lisbon.yaml": variant("kafka-lisbon", "lisbon", "kafka", "v2"),
            "teams/payments/kafka.yaml": variant("a-kafka", "lisbon", "payments/kafka", "v2", upstream="kafka"),
        }
    )
    world.publish()
    return world
