"""A small world whose config is in a repository, so that every pass names a commit of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reconciler.bootstrap import build_services
from reconciler.inspect.past import PastReader
from tests.support.git_env import commit_files, git, make_bare, read_file
from tests.support.policies import RINGS, labelled_package, policy, publish, rolled_out, rollout_world
from tests.support.templates import bundle, kafka, template_world
from tests.support.world import CLUSTERS, Files, World, config_map, small_world, variant


class HistoryWorld(World):
    """A world whose config has commits; who writes a file of it commits that."""

    @property
    def repo(self) -> Path:
        """The repository of the config."""
        return self.folder / "config.git"

    @property
    def source(self) -> str:
        """Where passes read the config from."""
        return str(self.repo)

    def write(self, files: Files) -> None:
        """Commit files of the config; None removes one."""
        self.change(files)

    def change(self, files: Files, message: str = "by hand", branch: str = "main", seconds: int = 1_200_000_000) -> str:
        """Commit files of the config, and return the commit."""
        data = {path: None if content is None else content.encode() for path, content in files.items()}
        return commit_files(self.repo, f"refs/heads/{branch}", data, message, seconds)

    def squash_config(self) -> str:
        """Make one commit of all that the config is, and forget those before it; return the commit."""
        files = {path: read_file(self.repo, "refs/heads/main", path) + "\n" for path in self.paths(self.repo, "main")}
        git(self.repo, "update-ref", "-d", "refs/heads/main")
        commit = self.change(files, "all of it", seconds=1_250_000_000)
        self.forget_unnamed(self.repo)
        return commit

    def forget_unnamed(self, repository: Path) -> None:
        """Drop what no ref of a repository leads to, and what the cache has."""
        git(repository, "gc", "--quiet", "--prune=now")
        shutil.rmtree(self.folder / "cache")

    @contextmanager
    def past(self) -> Iterator[PastReader]:
        """Open what was."""
        parts = build_services(self._read_settings(), self.source, clock=lambda: self.now)
        with parts.remotes as remotes:
            yield PastReader(parts.source, parts.open_config_history, remotes, parts.pass_services)

    def publish(self) -> None:
        """Run a pass, publish all drafts, and let another one see it."""
        self.sync()
        for cluster in CLUSTERS:
            if self.head(f"drafts/{cluster}"):
                self.merge(cluster, "squash")
        self.sync()


def with_history(world: World) -> HistoryWorld:
    """Return a world of which the config, as it lies there, is the first commit of a repository."""
    history_world = HistoryWorld(world.folder, **world._settings)
    make_bare(history_world.repo)
    files = {path.relative_to(world.config).as_posix(): path.read_text() for path in world.config.rglob("*.yaml")}
    history_world.change(files, "the config")
    return history_world


def history_published(folder: Path) -> HistoryWorld:
    """Return the small world with its config in a repository, and all packages published."""
    world = with_history(small_world(folder))
    world.publish()
    return world


def rollout_history(folder: Path) -> HistoryWorld:
    """Return three rings, of which the last has not got a rule yet; all are at a later upstream."""
    world = with_history(rollout_world(folder))
    world.change({"policies/site.yaml": policy("site", [rolled_out(5)])})
    world.sync()
    publish(world, "amsterdam")
    world.release("web", "v2", labelled_package("web", "site", image="2.0", notes=config_map("notes", a="b")))
    world.change({f"web/{ring}.yaml": variant(f"web-{ring}", ring, "web", "v2") for ring in RINGS})
    world.sync()
    publish(world, *RINGS)
    return world


def templates_history(folder: Path) -> HistoryWorld:
    """Return two clusters with Kafkas and pools, of which Berlin's Kafka has another template by now."""
    world = with_history(template_world(folder))
    world.publish()
    world.release("kafka", "v2", bundle("kafka", kafka=kafka({"pod": {"priorityClassName": "calm"}})))
    world.change({"kafka/berlin.yaml": variant("kafka-berlin", "berlin", "kafka", "v2")})
    world.publish()
    return world
