"""Property tests of changes: every difference is reported, whatever the files contain."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.catalog.files import File, FileTree
from reconciler.output.changes.diffs import format_file_diffs
from reconciler.output.changes.package_changes import compare_packages
from tests.support.charts import read_folder
from tests.support.examples import examples
from tests.unit.output.builders import (
    COMMIT,
    OLD_COMMIT,
    format_deployment,
    format_endpoints,
    format_kptfile,
    format_secret,
)

SHARED = Path(__file__).resolve().parents[3] / "../shared/data/packages"
DOCUMENTS = st.sampled_from([
    format_deployment(3), format_deployment(5), format_endpoints("a"), format_endpoints("b"), format_secret("a"), format_secret("b"), format_kptfile("v3", OLD_COMMIT),
    format_kptfile("v4", COMMIT), "# why\n" + format_deployment(3), "a: 1\n", "a: [\n", "", "\0", "- x\n", "kind: Secret\n",
])  # fmt: skip
CONTENTS = st.lists(DOCUMENTS, max_size=3).map(lambda documents: "---\n".join(documents).encode())
FILES = st.builds(File, CONTENTS, st.booleans())
PATHS = st.sampled_from(["Kptfile", "sub/Kptfile", "a.yaml", "b.yaml", "c.json", "run.sh"])
TREES = st.dictionaries(PATHS, FILES, max_size=4).map(FileTree)


@settings(max_examples=examples(200), deadline=None)
@given(TREES, TREES)
def test_changes_are_reported_only_for_different_packages(before: FileTree, after: FileTree) -> None:
    changes = compare_packages(before, after)

    assert bool(changes) == (before != after)
    assert len(changes.format_summary_lines(3)) <= 3
    assert len(changes.format_file_lines(3)) <= 3


@settings(max_examples=examples(100), deadline=None)
@given(TREES, TREES)
def test_every_changed_content_has_a_diff(before: FileTree, after: FileTree) -> None:
    paths = {path for path in {*before, *after} if _read_content(before, path) != _read_content(after, path)}

    assert {path for path, _ in format_file_diffs(before, after)} == paths


def _read_content(files: FileTree, path: str) -> bytes:
    return files[path].data if path in files else b""


@pytest.mark.skipif(not SHARED.exists(), reason="the packages of other projects are not here")
def test_every_file_of_real_packages_is_reported() -> None:
    folders = sorted(path.parent for path in SHARED.rglob("Kptfile"))
    assert folders

    for folder in folders:
        files = read_folder(folder)
        added = compare_packages(FileTree(), files)

        assert len(added.kptfiles) == sum(path.rpartition("/")[2] == "Kptfile" for path in files)
        assert {change.change_type for change in added.objects} <= {"added"}
        assert not compare_packages(files, files)
        assert len(list(format_file_diffs(FileTree(), files))) == sum(bool(file.data) for file in files.values())
