"""Real packages and real PackageVariants of other projects: they read, and mutating them touches only what it must."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.trace import CatalogView, DependencyReader
from reconciler.cel import ExpressionLimits
from reconciler.controllers.package_variants.injection import find_injection_points
from reconciler.controllers.package_variants.mutation import build_mutation
from reconciler.controllers.package_variants.read_package_variant import read_package_variant, read_variant_spec
from reconciler.controllers.package_variants.read_package_variant_set import read_package_variant_set
from reconciler.krm.yaml import YamlError, emit, parse_yaml

ROOT = Path(__file__).resolve().parents[4] / "../shared/data/packages"
PACKAGES = sorted(path.parent for path in ROOT.rglob("Kptfile"))
pytestmark = pytest.mark.skipif(not PACKAGES, reason="the packages of other projects are not there")
READERS: dict[str, Any] = {
    "PackageVariant": read_package_variant,
    "PackageVariantSet": partial(read_package_variant_set, cel_limits=ExpressionLimits()),
}


def load(folder: Path) -> FileTree:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return FileTree({path.relative_to(folder).as_posix(): File(path.read_bytes()) for path in files})


def variants() -> Iterator[Any]:
    for path in sorted(ROOT.rglob("*.yaml")):
        try:
            documents = parse_yaml(path.read_bytes()).documents
        except YamlError:
            continue
        for document in documents:
            data = document.data
            if isinstance(data, dict) and data.get("kind") in READERS:
                yield pytest.param(data, id=f"{path.relative_to(ROOT).as_posix()}:{document.line}")


@pytest.mark.parametrize("data", list(variants()))
def test_every_real_variant_reads(data: dict[str, Any]) -> None:
    read = READERS[data["kind"]](data)

    assert read.errors == ()


def sources(files: FileTree) -> CatalogView:
    """A context object for each injection point of a package."""
    objects = [
        {
            "apiVersion": point.api_version,
            "kind": point.kind,
            "metadata": {"name": "source", "namespace": "default"},
            point.field: {"injected": "here"},
        }
        for point in find_injection_points(files).points
    ]
    distinct = {item["apiVersion"] + item["kind"]: item for item in objects}
    return CatalogView(
        DependencyReader(
            read_catalog(FileTree({f"{n}.yaml": File(emit(o).encode()) for n, o in enumerate(distinct.values())}))
        )
    )


@pytest.mark.parametrize("folder", [pytest.param(path, id=path.relative_to(ROOT).as_posix()) for path in PACKAGES])
def test_mutating_a_real_package_touches_only_its_kptfile_and_its_points(folder: Path) -> None:
    files = load(folder)
    view = sources(files)
    read = read_variant_spec(
        {
            "upstream": {"repo": "catalog", "package": "p", "revision": "v1"},
            "downstream": {"repo": "edge", "package": "p"},
            "pipeline": {"mutators": [{"image": "set-labels:v0.2.0", "configMap": {"a": "b"}}]},
            "injectors": [{"name": "source"}],
        }
    )
    assert read.spec is not None
    mutate = build_mutation(read.spec, "pv", "default")
    once = mutate(files, view)
    points = {point.file for point in find_injection_points(files).points}
    changed = {path for path in once.files if once.files[path] != files.get(path)}

    assert once.findings == ()
    assert len(once.injections) == len(find_injection_points(files).points)
    assert changed == {"Kptfile", *points}
    assert mutate(once.files, view).files == once.files
    assert removed_lines(files, once.files, "Kptfile") == []


def removed_lines(before: FileTree, after: FileTree, path: str) -> list[str]:
    """The lines of a file that went away; a changed line is one of them."""
    texts = (before[path].data.decode().splitlines(), after[path].data.decode().splitlines())
    return [line for line in difflib.ndiff(*texts) if line.startswith("- ")]
