"""Worlds that many tests begin with: made once by a process of the tests, in earnest, and copied for each test.

A copy is good at the place where it was made and nowhere else: commits and the cache name the path of the world.
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
    """Return the world that `make`, a function of a module, makes in an empty folder."""
    world, path = _made(folder, make)
    if folder.exists():
        folder.rmdir()
    subprocess.run(["cp", "-r", path, folder], check=True)
    result: AnyWorld = copy(world)
    return result


@cache
def _made(folder: Path, make: Callable[[Path], Any]) -> tuple[Any, Path]:
    world = make(folder)
    # a work tree would be looked through anew wherever it is copied to
    shutil.rmtree(folder / "desk", ignore_errors=True)
    path = Path(mkdtemp(prefix=f"{make.__name__}-", dir=folder.parent)) / "world"
    folder.rename(path)
    return world, path


def drafted(folder: Path) -> World:
    """Return a small world with everything drafted, nothing published."""
    world = small_world(folder)
    world.sync()
    return world


def berlin_published(folder: Path) -> World:
    """Return a small world with both packages of Berlin published; Lisbon's draft is open."""
    world = drafted(folder)
    world.merge("berlin", "squash")
    world.settle()
    return world


def published(folder: Path) -> World:
    """Return a small world with all packages of both clusters published."""
    world = drafted(folder)
    for cluster in CLUSTERS:
        world.merge(cluster, "squash")
    world.settle()
    return world
