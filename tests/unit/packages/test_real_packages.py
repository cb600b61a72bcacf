"""Tests with packages that other projects published: each is cloned and rendered twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.packages.clone import ResolvedUpstream, clone_package
from reconciler.packages.package import Package
from reconciler.packages.package_context import ensure_package_context
from reconciler.packages.pipeline import render_pipelines

DATA = Path(__file__).resolve().parents[3] / "../shared/data/packages"
ROOTS = sorted(
    path.parent
    for path in DATA.rglob("Kptfile")
    if not any((above / "Kptfile").exists() for above in path.parent.parents if DATA in above.parents)
)
pytestmark = pytest.mark.skipif(not ROOTS, reason="the packages of other projects are not beside this project")


def clone(folder: Path) -> FileTree:
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    files = FileTree({path.relative_to(folder).as_posix(): File(path.read_bytes()) for path in paths})
    package, findings = clone_package(
        files, "site", ResolvedUpstream("https://example.com/r.git", "d", "v1", "c0ffee"), files
    )
    with_context, more = ensure_package_context(package, "site", "team/site")
    assert (findings, more) == ((), ())
    return with_context


@pytest.mark.parametrize("folder", [pytest.param(path, id=path.relative_to(DATA).as_posix()) for path in ROOTS])
def test_clone_and_render(folder: Path) -> None:
    files = clone(folder)

    result = render_pipelines(files)

    assert result.failure is None
    assert render_pipelines(result.files).files == result.files
    opaque = files.keys() - set(Package(files).iterate_krm_paths())
    assert {path: result.files[path] for path in opaque} == {path: files[path] for path in opaque}
