"""No difference goes untold, whatever the files hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.catalog.files import File, FileTree
from reconciler.output.changes.diffs import format_file_diffs
from reconciler.output.changes.package_changes import compare_packages
from tests.unit.output.world import COMMIT, OLD_COMMIT, deployment, endpoints, kptfile, secret

SHARED = Path(__file__).resolve().parents[3] / "../shared/data/packages"
DOCUMENTS = st.sampled_from([
    deployment(3), deployment(5), endpoints("a"), endpoints("b"), secret("a"), secret("b"), kptfile("v3", OLD_COMMIT),
    kptfile("v4", COMMIT), "# why\n" + deployment(3), "a: 1\n", "a: [\n", "", "\0", "- x\n", "kind: Secret\n",
])  # fmt: skip
CONTENTS = st.lists(DOCUMENTS, max_size=3).map(lambda documents: "---\n".join(documents).encode())
FILES = st.builds(File, CONTENTS, st.booleans())
PATHS = st.sampled_from(["Kptfile", "sub/Kptfile", "a.yaml", "b.yaml", "c.json", "run.sh"])
TREES = st.dictionaries(PATHS, FILES, max_size=4).map(FileTree)


@settings(max_examples=200, deadline=None)
@given(TREES, TREES)
def test_changes_are_told_when_and_only_when_something_differs(before: FileTree, after: FileTree) -> None:
    changes = compare_packages(before, after)

    assert bool(changes) == (before != after)
    assert len(changes.format_summary_lines(3)) <= 3
    assert len(changes.format_file_lines(3)) <= 3


@settings(max_examples=100, deadline=None)
@given(TREES, TREES)
def test_every_content_that_differs_has_a_diff(before: FileTree, after: FileTree) -> None:
    paths = {path for path in {*before, *after} if _content(before, path) != _content(after, path)}

    assert {path for path, _ in format_file_diffs(before, after)} == paths


def _content(files: FileTree, path: str) -> bytes:
    return files[path].data if path in files else b""


def package(folder: Path) -> FileTree:
    return FileTree(
        {str(path.relative_to(folder)): File(path.read_bytes()) for path in folder.rglob("*") if path.is_file()}
    )


@pytest.mark.skipif(not SHARED.exists(), reason="the packages of other projects are not here")
def test_real_packages_are_told_whole() -> None:
    folders = sorted(path.parent for path in SHARED.rglob("Kptfile"))
    assert folders

    for folder in folders:
        files = package(folder)
        added = compare_packages(FileTree(), files)

        assert len(added.kptfiles) == sum(path.rpartition("/")[2] == "Kptfile" for path in files)
        assert {change.change_type for change in added.objects} <= {"added"}
        assert not compare_packages(files, files)
        assert len(list(format_file_diffs(FileTree(), files))) == sum(bool(file.data) for file in files.values())
