"""After any sequence of human actions between two passes, the pass after the next one moves no ref."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support.git_repositories import git
from tests.support.prepared_worlds import begin, berlin_published
from tests.support.world import World, package, variant

DRAFT, CLUSTER = "drafts/berlin", "clusters/berlin"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the only folder in which copies of a prepared fleet work."""
    return tmp_path_factory.mktemp("second") / "world"


def update_open(folder: Path) -> World:
    world = berlin_published(folder)
    release(world, "2.0")
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.sync()
    return world


def release(world: World, image: str) -> None:
    world.release("metrics", "v2", package("metrics", image=image))


def move_back(world: World, branch: str) -> None:
    world.set_ref(f"refs/heads/{branch}", git(world.fleet, "rev-parse", f"{branch}~1"))


def recreate(world: World) -> None:
    head = world.head(DRAFT)
    world.delete(DRAFT)
    world.set_ref(f"refs/heads/{DRAFT}", head)


ACTIONS: Mapping[str, Callable[[World], object]] = {
    "squash": lambda world: world.merge("berlin", "squash"),
    "merge": lambda world: world.merge("berlin", "merge"),
    "merge and delete": lambda world: world.merge("berlin", "squash", delete=True),
    "revert": lambda world: world.revert("berlin"),
    "revert of the merge": lambda world: world.revert("berlin", "HEAD", "-m", "1"),
    "deletion": lambda world: world.delete(DRAFT),
    "re-creation": recreate,
    "force push of the draft": lambda world: move_back(world, DRAFT),
    "force push of the cluster": lambda world: move_back(world, CLUSTER),
    "edit of the draft": lambda world: world.commit(DRAFT, {"metrics/notes.md": "mine\n"}),
    "edit of the cluster": lambda world: world.edit(CLUSTER, "metrics/deployment.yaml", "replicas: 2", "replicas: 5"),
    "moved tag": lambda world: release(world, "2.1"),
}
SEQUENCES = (
    ("squash", "revert"),
    ("merge", "revert of the merge"),
    ("merge and delete", "revert"),
    ("squash", "revert", "revert"),
    ("squash", "edit of the cluster", "revert"),
    ("squash", "force push of the cluster"),
    ("force push of the draft",),
    ("deletion",),
    ("re-creation", "moved tag"),
    ("edit of the draft", "squash", "revert"),
    ("moved tag", "squash", "revert"),
)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("sequence", SEQUENCES, ids=", ".join)
def test_a_second_pass_moves_no_ref(folder: Path, sequence: tuple[str, ...]) -> None:
    world = begin_again(folder)
    for action in sequence:
        ACTIONS[action](world)
    world.sync()

    pass_result = world.sync()

    assert (pass_result.before, pass_result.report.render_count) == (pass_result.after, 0)


def begin_again(folder: Path) -> World:
    if folder.exists():
        shutil.rmtree(folder)
    return begin(folder, update_open)
