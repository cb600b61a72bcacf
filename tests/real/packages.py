"""Test fleets with published packages of other projects, which are stored outside this repository."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from reconciler.krm.yaml import parse_yaml
from tests.support.git_repositories import commit_files, make_bare, read_tree
from tests.support.world import World, catalog

DATA = Path(__file__).resolve().parents[2] / "../shared/data/packages"
FOLDERS = {
    "catalog-distros-sandbox": "nephio/distros/sandbox",
    "catalog-infra-capi": "nephio/infra/capi",
    "catalog-nephio-core": "nephio/nephio/core",
    "catalog-nephio-optional": "nephio/nephio/optional",
    "catalog-workloads-oai": "nephio/workloads/oai",
}


def package_files(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder as published, without symbolic links."""
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(paths)}


def make_upstream(world: World, name: str, files: Mapping[str, bytes]) -> None:
    """Create a bare repository with these files, and its Repository resource in the config."""
    make_bare(world.folder / f"{name}.git")
    commit_files(world.folder / f"{name}.git", "refs/heads/main", files)
    world.write({f"repositories/{name}.yaml": catalog(name)})


def images(folder: Path) -> Iterable[str]:
    """Return every function in the Kptfiles of a package, including subpackages."""
    for kptfile in sorted(folder.rglob("Kptfile")):
        pipeline = parse_yaml(kptfile.read_bytes()).documents[0].data.get("pipeline") or {}
        for stage in ("mutators", "validators"):
            yield from (function["image"] for function in pipeline.get(stage, ()))


def drafted(world: World, branch: str, package: str) -> dict[str, bytes]:
    """Return the files of a package on a branch of the fleet."""
    return read_tree(world.fleet, f"refs/heads/{branch}:{package}")
