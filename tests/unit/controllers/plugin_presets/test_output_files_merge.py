"""Tests of the merge of values.yaml and helmrelease.yaml with local changes, and of added and removed outputs."""

from __future__ import annotations

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.catalog.trace import CatalogView, DependencyReader
from reconciler.controllers.results import GeneratedSource, Variant
from reconciler.krm.yaml import parse_yaml
from reconciler.packages.update.options import MergeOptions
from reconciler.planning.model.sources import BranchPackage, PackageSource, RenderInputs, merge_source
from tests.unit.controllers.plugin_presets.controller_world import build_catalog, build_secret_value, build_value
from tests.unit.controllers.plugin_presets.release_world import run_preset

VIEW = CatalogView(DependencyReader(build_catalog({})))
OPTIONS = [build_value("size", 1), build_secret_value("a.key"), build_value("a.list", [1])]
(BOTH,), (ALONE,) = run_preset(OPTIONS).variants, run_preset(OPTIONS, ()).variants
MINE = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: mine\n"


def read_source(variant: Variant) -> FileTree:
    assert isinstance(variant.source, GeneratedSource)
    return variant.source.files


def merge_local_change(branch_files: FileTree, variant: Variant = BOTH, before: Variant = BOTH) -> FileTree:
    """Return the package after a pass over a branch with the files `theirs`, where the last pass wrote `before`."""
    return variant.mutation(merge_package(branch_files, variant, before).files, VIEW).files


def merge_package(branch_files: FileTree, variant: Variant, before: Variant) -> PackageSource:
    last_files = read_source(before)
    branch_package = BranchPackage(branch_files, last_files, last_files, last_files, last_files)
    return merge_source(RenderInputs(read_source(variant), branch_package, is_generated=True), None, MergeOptions())


def edit_file(path: str, old: str, new: str) -> FileTree:
    text = read_source(BOTH)[path].data.decode()
    assert old in text
    return read_source(BOTH).with_files({path: text.replace(old, new).encode()})


VALUES, RELEASE = "values.yaml", "helmrelease.yaml"


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        pytest.param(VALUES, "size: 1", "size: 2", id="a-value"),
        pytest.param(VALUES, "size: 1\n", "size: 1\nmore: 5\n", id="a-local-value"),
        pytest.param(VALUES, "  - 1\n", "  - 1\n  - 2\n", id="an-entry-of-a-list"),
        pytest.param(VALUES, "size: 1", "size: 1  # why", id="a-comment-in-values"),
        pytest.param(VALUES, "size: 1", "size: ]", id="values-that-are-no-yaml"),
        pytest.param(VALUES, "size: 1\n", "", id="a-value-that-is-taken-out"),
        pytest.param(RELEASE, "interval: 5m", "interval: 1h", id="a-field"),
        pytest.param(RELEASE, "suspend: false", "suspend: true", id="a-switch"),
        pytest.param(RELEASE, "spec:\n", "spec:\n  test:\n    enable: true\n", id="a-local-field"),
        pytest.param(RELEASE, "    size: 1\n", "    size: 1\n    a2: 3\n", id="a-local-value-in-the-release"),
        pytest.param(RELEASE, "targetPath: a.key", "targetPath: a.other", id="the-target-path-of-a-secret"),
        pytest.param(RELEASE, "kind: HelmRelease", "kind: ]", id="a-release-that-is-no-yaml"),
    ],
)
def test_own_content_is_restored(path: str, old: str, new: str) -> None:
    assert merge_local_change(edit_file(path, old, new)).id == read_source(BOTH).id


@pytest.mark.parametrize("path", [VALUES, RELEASE])
def test_deleted_file_is_restored(path: str) -> None:
    assert merge_local_change(read_source(BOTH).without_files(path)).id == read_source(BOTH).id


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        pytest.param(RELEASE, "\nspec:\n", "\n  labels:\n    a: b\nspec:\n", id="a-label"),
        pytest.param(RELEASE, "\nspec:\n", "\n  annotations:\n    a: b\nspec:\n", id="an-annotation"),
        pytest.param(RELEASE, "spec:\n", "spec:  # ours\n", id="a-comment"),
    ],
)
def test_other_content_stays(path: str, old: str, new: str) -> None:
    branch_files = edit_file(path, old, new)

    assert merge_local_change(branch_files).id == branch_files.id


def test_other_object_in_the_release_file_stays() -> None:
    text = read_source(BOTH)[RELEASE].data.decode()

    file_tree = merge_local_change(read_source(BOTH).with_files({RELEASE: f"{MINE}---\n{text}".encode()}))

    kinds = {str(document.data["kind"]) for document in parse_yaml(file_tree[RELEASE].data).documents}
    assert kinds == {"ConfigMap", "HelmRelease"}
    assert text.encode() in file_tree[RELEASE].data


def test_file_of_a_disabled_output_is_removed() -> None:
    assert merge_local_change(read_source(BOTH), ALONE).id == read_source(ALONE).id


def test_file_of_an_enabled_output_is_added() -> None:
    assert merge_local_change(read_source(ALONE), BOTH, before=ALONE).id == read_source(BOTH).id


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        pytest.param(VALUES, "size: 1", "size: 2", id="values"),
        pytest.param(RELEASE, "interval: 5m", "interval: 1h", id="a-spec"),
        pytest.param(RELEASE, "spec:\n", "  labels:\n    a: b\nspec:\n", id="a-label"),
    ],
)
def test_locally_changed_file_of_a_disabled_output_stays(path: str, old: str, new: str) -> None:
    """As in all packages, a file with a local change stays, and the conflict is reported."""
    branch_files = edit_file(path, old, new)

    package_source = merge_package(branch_files, ALONE, BOTH)

    assert package_source.files.id == read_source(ALONE).with_files({path: branch_files[path]}).id
    assert [conflict.file for conflict in package_source.conflicts] == [path]


def test_other_files_stay_when_outputs_are_enabled_and_disabled() -> None:
    notes = {"notes.txt": File(b"mine\n"), "more.yaml": File(MINE.encode())}

    on = merge_local_change(read_source(ALONE).with_files(notes), BOTH, before=ALONE)
    off = merge_local_change(on, ALONE)

    assert on.id == read_source(BOTH).with_files(notes).id
    assert off.id == read_source(ALONE).with_files(notes).id


def test_local_values_file_is_replaced_with_a_conflict() -> None:
    branch_files = read_source(ALONE).with_files({VALUES: b"size: 9\n"})

    assert merge_local_change(branch_files, BOTH, before=ALONE).id == read_source(BOTH).id
    assert [conflict.file for conflict in merge_package(branch_files, BOTH, ALONE).conflicts] == [VALUES]


def test_other_object_stays_when_the_release_file_is_added() -> None:
    branch_files = read_source(ALONE).with_files({RELEASE: MINE.encode()})

    data = merge_local_change(branch_files, BOTH, before=ALONE)[RELEASE].data

    assert [document.data["kind"] for document in parse_yaml(data).documents] == ["ConfigMap", "HelmRelease"]
