"""Values and HelmReleases that people have changed: what is ours comes back, what we do not make any more goes."""

from __future__ import annotations

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.catalog.trace import CatalogView, DependencyReader
from reconciler.controllers.results import GeneratedSource, Variant
from reconciler.krm.yaml import parse_yaml
from reconciler.packages.update import MergeOptions
from reconciler.planning.model.sources import BranchPackage, PackageSource, RenderInputs, merge_source
from tests.unit.controllers.plugin_presets.outputs_world import made
from tests.unit.controllers.plugin_presets.presets_world import catalog_of, given, secret

VIEW = CatalogView(DependencyReader(catalog_of({})))
OPTIONS = [given("size", 1), secret("a.key"), given("a.list", [1])]
(BOTH,), (ALONE,) = made(OPTIONS).variants, made(OPTIONS, ()).variants
MINE = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: mine\n"


def tree(variant: Variant) -> FileTree:
    assert isinstance(variant.source, GeneratedSource)
    return variant.source.files


def published(theirs: FileTree, variant: Variant = BOTH, before: Variant = BOTH) -> FileTree:
    """Return the package that a pass makes where people have made `theirs` of what we had offered `before`."""
    return variant.mutation(mixed(theirs, variant, before).files, VIEW).files


def mixed(theirs: FileTree, variant: Variant, before: Variant) -> PackageSource:
    ours = tree(before)
    standing = BranchPackage(theirs, ours, ours, ours, ours)
    return merge_source(RenderInputs(tree(variant), standing, is_generated=True), None, MergeOptions())


def edited(path: str, old: str, new: str) -> FileTree:
    text = tree(BOTH)[path].data.decode()
    assert old in text
    return tree(BOTH).with_files({path: text.replace(old, new).encode()})


VALUES, RELEASE = "values.yaml", "helmrelease.yaml"


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        pytest.param(VALUES, "size: 1", "size: 2", id="a-value"),
        pytest.param(VALUES, "size: 1\n", "size: 1\nmore: 5\n", id="a-value-of-theirs"),
        pytest.param(VALUES, "  - 1\n", "  - 1\n  - 2\n", id="an-entry-of-a-list"),
        pytest.param(VALUES, "size: 1", "size: 1  # why", id="a-comment-in-values"),
        pytest.param(VALUES, "size: 1", "size: ]", id="values-that-are-no-yaml"),
        pytest.param(VALUES, "size: 1\n", "", id="a-value-that-is-taken-out"),
        pytest.param(RELEASE, "interval: 5m", "interval: 1h", id="a-field"),
        pytest.param(RELEASE, "suspend: false", "suspend: true", id="a-switch"),
        pytest.param(RELEASE, "spec:\n", "spec:\n  test:\n    enable: true\n", id="a-field-of-theirs"),
        pytest.param(RELEASE, "    size: 1\n", "    size: 1\n    a2: 3\n", id="a-value-of-theirs-in-the-release"),
        pytest.param(RELEASE, "targetPath: a.key", "targetPath: a.other", id="where-a-secret-goes"),
        pytest.param(RELEASE, "kind: HelmRelease", "kind: ]", id="a-release-that-is-no-yaml"),
    ],
)
def test_what_is_ours_is_given_back(path: str, old: str, new: str) -> None:
    assert published(edited(path, old, new)).id == tree(BOTH).id


@pytest.mark.parametrize("path", [VALUES, RELEASE])
def test_a_file_that_is_gone_comes_back(path: str) -> None:
    assert published(tree(BOTH).without_files(path)).id == tree(BOTH).id


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        pytest.param(RELEASE, "\nspec:\n", "\n  labels:\n    a: b\nspec:\n", id="a-label"),
        pytest.param(RELEASE, "\nspec:\n", "\n  annotations:\n    a: b\nspec:\n", id="an-annotation"),
        pytest.param(RELEASE, "spec:\n", "spec:  # ours\n", id="a-comment"),
    ],
)
def test_what_is_theirs_stays(path: str, old: str, new: str) -> None:
    theirs = edited(path, old, new)

    assert published(theirs).id == theirs.id


def test_another_object_beside_the_release_is_left_alone() -> None:
    text = tree(BOTH)[RELEASE].data.decode()

    file_tree = published(tree(BOTH).with_files({RELEASE: f"{MINE}---\n{text}".encode()}))

    kinds = {str(document.data["kind"]) for document in parse_yaml(file_tree[RELEASE].data).documents}
    assert kinds == {"ConfigMap", "HelmRelease"}
    assert text.encode() in file_tree[RELEASE].data


def test_what_is_not_made_any_more_goes() -> None:
    assert published(tree(BOTH), ALONE).id == tree(ALONE).id


def test_what_is_made_from_now_on_comes() -> None:
    assert published(tree(ALONE), BOTH, before=ALONE).id == tree(BOTH).id


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        pytest.param(VALUES, "size: 1", "size: 2", id="values"),
        pytest.param(RELEASE, "interval: 5m", "interval: 1h", id="a-spec"),
        pytest.param(RELEASE, "spec:\n", "  labels:\n    a: b\nspec:\n", id="a-label"),
    ],
)
def test_what_people_changed_is_not_thrown_away_with_what_is_not_made_any_more(path: str, old: str, new: str) -> None:
    """The rule of all packages: what they have made theirs stays, and is told."""
    theirs = edited(path, old, new)

    package_source = mixed(theirs, ALONE, BOTH)

    assert package_source.files.id == tree(ALONE).with_files({path: theirs[path]}).id
    assert [conflict.file for conflict in package_source.conflicts] == [path]


def test_files_of_people_stay_when_outputs_come_and_go() -> None:
    notes = {"notes.txt": File(b"mine\n"), "more.yaml": File(MINE.encode())}

    on = published(tree(ALONE).with_files(notes), BOTH, before=ALONE)
    off = published(on, ALONE)

    assert on.id == tree(BOTH).with_files(notes).id
    assert off.id == tree(ALONE).with_files(notes).id


def test_values_of_people_that_are_now_ours_are_overruled_and_told() -> None:
    theirs = tree(ALONE).with_files({VALUES: b"size: 9\n"})

    assert published(theirs, BOTH, before=ALONE).id == tree(BOTH).id
    assert [conflict.file for conflict in mixed(theirs, BOTH, ALONE).conflicts] == [VALUES]


def test_an_object_of_people_where_the_release_comes_stays_beside_it() -> None:
    theirs = tree(ALONE).with_files({RELEASE: MINE.encode()})

    data = published(theirs, BOTH, before=ALONE)[RELEASE].data

    assert [document.data["kind"] for document in parse_yaml(data).documents] == ["ConfigMap", "HelmRelease"]
