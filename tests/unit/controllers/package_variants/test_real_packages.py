"""Tests with packages and PackageVariants of other projects: they are read, and a mutation changes only the Kptfile
and injection points.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.base import read_model
from reconciler.api.manifest import read_manifest
from reconciler.api.porch.messages import PORCH_TEMPLATES
from reconciler.api.porch.package_variant import PackageVariant, PackageVariantSpec
from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.trace import CatalogView, DependencyReader
from reconciler.cel import ExpressionLimits
from reconciler.controllers.package_variants.injection import find_injection_points
from reconciler.controllers.package_variants.mutation import build_mutation
from reconciler.controllers.package_variants.read_set import read_package_variant_set
from reconciler.krm.yaml import YamlError, emit, parse_yaml

ROOT = Path(__file__).resolve().parents[4] / "../shared/data/packages"
PACKAGES = sorted(path.parent for path in ROOT.rglob("Kptfile"))
pytestmark = pytest.mark.skipif(not PACKAGES, reason="the packages of other projects are not there")
READERS: dict[str, Any] = {
    "PackageVariant": partial(read_manifest, PackageVariant),
    "PackageVariantSet": partial(read_package_variant_set, cel_limits=ExpressionLimits()),
}


def load_tree(folder: Path) -> FileTree:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return FileTree({path.relative_to(folder).as_posix(): File(path.read_bytes()) for path in files})


def find_variants() -> Iterator[Any]:
    for path in sorted(ROOT.rglob("*.yaml")):
        try:
            documents = parse_yaml(path.read_bytes()).documents
        except YamlError:
            continue
        for document in documents:
            data = document.data
            if isinstance(data, dict) and data.get("kind") in READERS:
                yield pytest.param(data, id=f"{path.relative_to(ROOT).as_posix()}:{document.line}")


@pytest.mark.parametrize("data", list(find_variants()))
def test_real_variant_is_read_without_errors(data: dict[str, Any]) -> None:
    read = READERS[data["kind"]](data)

    assert read.errors == ()


def build_sources(files: FileTree) -> CatalogView:
    """Return a view with a context object for each injection point of a package."""
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
def test_mutation_of_a_real_package_changes_only_its_kptfile_and_points(folder: Path) -> None:
    files = load_tree(folder)
    view = build_sources(files)
    data = {
        "upstream": {"repo": "catalog", "package": "p", "revision": "v1"},
        "downstream": {"repo": "edge", "package": "p"},
        "pipeline": {"mutators": [{"image": "set-labels:v0.2.0", "configMap": {"a": "b"}}]},
        "injectors": [{"name": "source"}],
    }
    spec = read_model(PackageVariantSpec, data, PORCH_TEMPLATES).model
    assert spec is not None
    mutate = build_mutation(spec, "pv", "default")
    mutated = mutate(files, view)
    points = {point.file for point in find_injection_points(files).points}
    changed = {path for path in mutated.files if mutated.files[path] != files.get(path)}

    assert mutated.findings == ()
    assert len(mutated.injections) == len(find_injection_points(files).points)
    assert changed == {"Kptfile", *points}
    assert mutate(mutated.files, view).files == mutated.files
    assert list_removed_lines(files, mutated.files, "Kptfile") == []


def list_removed_lines(before: FileTree, after: FileTree, path: str) -> list[str]:
    """Return the removed lines of a file. A changed line counts as removed."""
    texts = (before[path].data.decode().splitlines(), after[path].data.decode().splitlines())
    return [line for line in difflib.ndiff(*texts) if line.startswith("- ")]
