"""Test fleets that many tests start from. Each test process creates a fleet once and copies it for each test.

A copy is valid only at the path where it was created, because commits and the cache contain this path.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
from collections.abc import Callable
from copy import copy
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeVar

import pytest

from tests.support.git_environment import HERMETIC
from tests.support.world import CLUSTERS, World, small_world

AnyWorld = TypeVar("AnyWorld", bound=World)


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty folder that has the same path in all tests of a process, so that they can copy prepared fleets.

    The `conftest.py` of a folder imports this fixture for the tests of the folder.
    """
    folder = tmp_path_factory.getbasetemp() / "world"
    if folder.exists():
        # A test leaves hundreds of files. The program deletes them in a third of the time of `shutil.rmtree`.
        subprocess.run(["rm", "-rf", folder], check=True)
    folder.mkdir()
    return folder


def begin(folder: Path, make: Callable[[Path], AnyWorld]) -> AnyWorld:
    """Return the fleet that the module-level function `make` creates in an empty folder."""
    world, path = _create_once(folder, make)
    if folder.exists():
        folder.rmdir()
    subprocess.run(["cp", "-R", path, folder], check=True)
    result: AnyWorld = copy(world)
    return result


@cache
def _create_once(folder: Path, make: Callable[[Path], Any]) -> tuple[Any, Path]:
    world = make(folder)
    _pack_repositories(folder)
    # Git would refresh the index of a copied work tree.
    shutil.rmtree(folder / "working-clone", ignore_errors=True)
    path = Path(mkdtemp(prefix=f"{make.__name__}-", dir=_create_template_folder())) / "world"
    shutil.move(folder, path)
    return world, path


def _pack_repositories(folder: Path) -> None:
    """Store the objects and refs of all repositories in a few files, because each test copies and deletes them.

    `git repack` would not pack loose objects that are unreachable, such as those of a withdrawn draft.
    """
    pack = ["pack-objects", "-q", "--all", "--pack-loose-unreachable", "--window=0", "objects/pack/pack"]
    for objects in folder.rglob("*.git/objects"):
        for command in (pack, ["pack-refs", "--all"]):
            git = ["git", "-C", objects.parent, *command]
            subprocess.run(git, env=HERMETIC, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for loose in objects.glob("??"):
            shutil.rmtree(loose)


@cache
def _create_template_folder() -> Path:
    folder = Path(mkdtemp(prefix="prepared-fleets-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def drafted(folder: Path) -> World:
    """Return a small fleet with a draft for each package. Nothing is published."""
    world = small_world(folder)
    world.sync()
    return world


def berlin_published(folder: Path) -> World:
    """Return a small fleet with both packages of Berlin published. The draft of Lisbon is open."""
    world = drafted(folder)
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    return world


def published(folder: Path) -> World:
    """Return a small fleet with all packages of both clusters published."""
    world = drafted(folder)
    for cluster in CLUSTERS:
        world.merge(cluster, "squash")
    world.sync_until_unchanged()
    return world
