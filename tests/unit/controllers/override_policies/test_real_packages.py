"""Tests with public packages: a changed scalar changes one line, and a policy without effect changes nothing."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.controllers.override_policies.package_overrides import can_have_policies
from reconciler.controllers.override_policies.read_policies import OverridePolicies
from reconciler.packages.package import Package, PackageResource
from tests.unit.controllers.override_policies.override_world import (
    HERE,
    build_policy,
    build_rules,
    list_error_codes,
    override_package,
    read_policies,
)

DATA = Path(__file__).resolve().parents[4] / "../shared/data/packages"
FOLDERS = sorted({path.parent for path in DATA.rglob("Kptfile")})
pytestmark = pytest.mark.skipif(not FOLDERS, reason="the packages of other projects are not beside this project")


def load_tree(folder: Path) -> FileTree:
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return FileTree({path.relative_to(folder).as_posix(): File(path.read_bytes()) for path in paths})


def list_resources(files: FileTree) -> list[PackageResource]:
    return [package_resource for package_resource in Package(files).resources if can_have_policies(package_resource)]


def build_policy_for_all(resources: list[PackageResource], operation: dict[str, Any]) -> OverridePolicies:
    """Return a policy that selects all kinds of these resources."""
    kinds = sorted({(package_resource.api_version, package_resource.kind) for package_resource in resources})
    document = build_policy(build_rules({"jsonpatch": [operation]}))
    document["spec"]["resourceSelectors"] = [{"apiVersion": version, "kind": kind} for version, kind in kinds]
    policies = read_policies(document)
    assert policies.findings == ()
    return policies


@pytest.mark.parametrize("folder", [pytest.param(path, id=path.relative_to(DATA).as_posix()) for path in FOLDERS])
def test_changed_scalar_changes_one_line(folder: Path) -> None:
    files = load_tree(folder)
    resources = list_resources(files)

    package = override_package(
        files, build_policy_for_all(resources, {"path": "/apiVersion", "value": "changed.example/v9"}), HERE
    )

    assert [code for resource in package.resources for code in list_error_codes(resource)] == []
    changed = 0
    for path in files:
        before, after = (tree[path].data.decode(errors="replace").splitlines() for tree in (files, package.files))
        lines = list(difflib.ndiff(before, after))
        deleted, new = ([line[2:] for line in lines if line.startswith(sign)] for sign in ("- ", "+ "))
        assert len(deleted) == len(new)
        assert all("changed.example/v9" in line for line in new)
        changed += len(new)
    assert changed == len(resources)


@pytest.mark.parametrize("folder", [pytest.param(path, id=path.relative_to(DATA).as_posix()) for path in FOLDERS])
def test_policy_without_effect_changes_nothing(folder: Path) -> None:
    files = load_tree(folder)
    nothing = {"operator": "remove", "path": "/metadata/finalizers"}
    resources = [
        package_resource for package_resource in list_resources(files) if "finalizers" not in package_resource.metadata
    ]

    package = override_package(files, build_policy_for_all(resources, nothing), HERE)

    assert [code for resource in package.resources for code in list_error_codes(resource)] == []
    assert package.files is files
