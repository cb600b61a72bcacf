"""Test fleets that many tests start from. Each test process creates a fleet once and copies it for each test.

A copy is valid only at the path where it was created, because commits and the cache contain this path.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from copy import copy
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeVar

from tests.support.world import CLUSTERS, World, small_world

AnyWorld = TypeVar("AnyWorld", bound=World)


def begin(folder: Path, make: Callable[[Path], AnyWorld]) -> AnyWorld:
    """Return the fleet that the module-level function `make` creates in an empty folder."""
    world, path = _create_once(folder, make)
    if folder.exists():
        folder.rmdir()
    subprocess.run(["cp", "-r", path, folder], check=True)
    result: AnyWorld = copy(world)
    return result


@cache
def _create_once(folder: Path, make: Callable[[Path], Any]) -> tuple[Any, Path]:
    world = make(folder)
    # Git would refresh the index of a copied work tree.
    shutil.rmtree(folder / "working-clone", ignore_errors=True)
    path = Path(mkdtemp(prefix=f"{make.__name__}-", dir=folder.parent)) / "world"
    folder.rename(path)
    return world, path


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
