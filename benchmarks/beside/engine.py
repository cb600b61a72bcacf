"""Renders and updates of packages, beside the libraries of kpt that Porch links.

Porch itself is not a program of this comparison, because the module proxy does not serve its module. Porch renders each
package in memory and updates it in folders, with these libraries of kpt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from benchmarks.beside.packages import EditedPackage, Files, list_edited_packages
from benchmarks.beside.programs import build_program, run_program
from benchmarks.beside.rows import Row, measure_cold
from benchmarks.scale.world import PACKAGES_FOLDER
from reconciler.catalog.files import File, FileTree
from reconciler.packages.pipeline import render_pipelines
from reconciler.packages.update.options import create_compat_options
from reconciler.packages.update.three_way import update_package
from tests.real.packages import package_files

VARIANTS = 32
_PACKAGE = PACKAGES_FOLDER / "nephio/workloads/free5gc/free5gc-cp"
_CONTEXT = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: kptfile.kpt.dev
  annotations:
    config.kubernetes.io/local-config: "true"
data:
  replicas: "{replicas}"
"""
_REPLICAS = re.compile(r"(?m)^( *replicas: \d+)$")


def compare_engine(rounds: int) -> Iterator[Row]:
    """Compare a render of one package for each variant, and an update of each real package."""
    program = build_program("kpt_source", "./engine")
    packages = list_edited_packages()
    variants = [_create_variant(index) for index in range(VARIANTS)]
    updates = [{"origin": item.origin, "updated": item.updated, "local": item.local} for item in packages]
    output = run_program(program, {"rounds": rounds, "renders": variants, "updates": updates})
    renders = output["renders"]
    yield Row(
        "render of a package variant, in memory", "kpt's engine, as in Porch",
        measure_cold(variants, _render, rounds), renders["cpuSeconds"] * 1000 / len(variants),
        all(map(_is_equal, map(_render, variants), renders["results"])), f"data of {len(variants)} packages",
    )  # fmt: skip
    updated = output["updates"]
    yield Row(
        "update of a package with local changes", "kpt's engine, as in Porch",
        measure_cold(packages, _update, rounds), updated["cpuSeconds"] * 1000 / len(packages),
        all(map(_is_equal, map(_update, packages), updated["results"])), f"data of {len(packages)} packages",
    )  # fmt: skip


def _create_variant(index: int) -> dict[str, str]:
    """Return a package of 27 files whose pipeline calls `apply-setters` with a value of the variant."""
    files = {path: data.decode() for path, data in package_files(_PACKAGE).items()}
    files = {path: _REPLICAS.sub(r"\1 # kpt-set: ${replicas}", text) for path, text in files.items()}
    files["Kptfile"] = files["Kptfile"].replace("set-namespace:v0.4.1", "apply-setters:v0.2.0")
    return files | {"package-context.yaml": _CONTEXT.format(replicas=index + 2)}


def _render(files: Files) -> dict[str, str]:
    return _read_texts(render_pipelines(_create_tree(files), profile="compat").files)


def _update(package: EditedPackage) -> dict[str, str]:
    sides = map(_create_tree, (package.origin, package.updated, package.local))
    return _read_texts(update_package(*sides, "resource-merge", create_compat_options()).files)


def _create_tree(files: Files) -> FileTree:
    return FileTree({path: File(text.encode()) for path, text in files.items()})


def _read_texts(files: FileTree) -> dict[str, str]:
    return {path: file.data.decode() for path, file in files.items()}


def _is_equal(ours: Files, theirs: Files) -> bool:
    return _read_data(ours) == _read_data(theirs)


def _read_data(files: Files) -> Mapping[str, Any]:
    """Return the data of YAML files and the text of other files. kpt writes YAML in a format of its own."""
    is_yaml = (".yaml", ".yml", "Kptfile")
    return {path: [*yaml.safe_load_all(text)] if path.endswith(is_yaml) else text for path, text in files.items()}
