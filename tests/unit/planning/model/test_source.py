"""Tests of package sources: the input of the pipeline from upstream, the rendered version and local changes."""

from dataclasses import replace

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.krm.yaml import compose
from reconciler.packages.parsing import parse_cached
from reconciler.packages.update.options import MergeOptions
from reconciler.planning.model.sources import (
    BranchPackage,
    PackageSource,
    RenderInputs,
    find_overruled_changes,
    merge_source,
)

OPTIONS = MergeOptions()
LOCK = "upstreamLock: {type: git, git: {repo: r, directory: d, ref: v1, commit: c}}\n"


def build_package(replicas: int = 2, image: str = "1", note: str = "", lock: str = "", **files: str) -> FileTree:
    kptfile = f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {{name: web}}\n{lock}"
    deployment = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n"
        f"spec:\n  replicas: {replicas}{note}\n  paused: false\n  image: web-{image}\n"
    )
    whole = {"Kptfile": kptfile, "web.yaml": deployment, **{f"{name}.txt": text for name, text in files.items()}}
    return FileTree({path: File(text.encode()) for path, text in whole.items()})


V1, V2 = build_package(), build_package(image="2")
OUTPUT = build_package(lock=LOCK)


def build_branch_package(
    files: FileTree, rendered: FileTree = OUTPUT, merged: FileTree = V1, **fields: FileTree
) -> BranchPackage:
    return BranchPackage(files, rendered, merged, **{"plain": merged, "base": V1, **fields})


def merge(came: FileTree, ours: BranchPackage | None = None, put: BranchPackage | None = None) -> PackageSource:
    return merge_source(RenderInputs(came, ours, put), None, OPTIONS)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(merge(V2), V2, id="never-made"),
        pytest.param(merge(V1, build_branch_package(OUTPUT)), V1, id="untouched"),
        pytest.param(merge(V2, build_branch_package(OUTPUT)), V2, id="untouched-takes-upstream-to-the-byte"),
        pytest.param(merge(V1, build_branch_package(build_package(5, lock=LOCK))), build_package(5), id="edited"),
        pytest.param(
            merge(V2, build_branch_package(build_package(5, lock=LOCK))), build_package(5, "2"), id="edited-and-updated"
        ),
        pytest.param(
            merge(V2, build_branch_package(OUTPUT, merged=build_package(5))),
            build_package(5, "2"),
            id="published-with-the-edit",
        ),
        pytest.param(
            merge(V2, build_branch_package(build_package(note=" # two", lock=LOCK))),
            build_package(2, "2", " # two"),
            id="a-comment",
        ),
        pytest.param(
            merge(V2, build_branch_package(build_package(lock=LOCK, more="x"))),
            build_package(image="2", more="x"),
            id="a-new-file",
        ),
        pytest.param(
            merge(
                V2,
                build_branch_package(OUTPUT),
                build_branch_package(build_package(5, "2", lock=LOCK), build_package(image="2", lock=LOCK), V2),
            ),
            build_package(5, "2"),
            id="edited-on-the-draft",
        ),
        pytest.param(
            merge(V2, None, build_branch_package(build_package(5, lock=LOCK))),
            build_package(5, "2"),
            id="edited-on-the-first-draft",
        ),
        pytest.param(
            merge(
                V2,
                build_branch_package(build_package(5, lock=LOCK)),
                build_branch_package(
                    build_package(5, note=" # why", lock=LOCK), build_package(5, lock=LOCK), build_package(5)
                ),
            ),
            build_package(5, "2", " # why"),
            id="edited-on-both",
        ),
    ],
)
def test_local_changes_are_merged_into_the_desired_upstream(source: PackageSource, expected: FileTree) -> None:
    assert {path: file.data.decode() for path, file in source.files.items()} == {
        path: file.data.decode() for path, file in expected.items()
    }
    assert (source.conflicts, source.findings) == ((), ())


def test_package_without_lock_is_not_updated() -> None:
    theirs = build_package(7)

    source = merge(V2, BranchPackage(theirs, theirs, theirs, V1, V1))

    assert (source.files, source.follows_upstream) == (theirs, False)


def test_conflict_is_resolved_to_upstream_and_recorded() -> None:
    source = merge(V2, build_branch_package(build_package(image="1-hotfix", lock=LOCK)))

    assert [(conflict.local, conflict.upstream, conflict.chosen) for conflict in source.conflicts] == [
        ("web-1-hotfix", "web-2", "upstream")
    ]
    assert source.files == V2


def test_draft_conflict_is_kept_while_its_outcome_stays() -> None:
    edited = build_branch_package(build_package(image="1-hotfix", lock=LOCK))
    (conflict,) = merge(V2, None, edited).draft_conflicts
    after = replace(
        build_branch_package(build_package(image="2", lock=LOCK), build_package(image="2", lock=LOCK), V2, base=V2)
    )

    still = merge(V2, None, replace(after, conflicts=(conflict,)))
    settled = merge(V2, None, replace(after, files=build_package(image="2-hotfix", lock=LOCK), conflicts=(conflict,)))

    assert (still.conflicts, settled.conflicts) == ((conflict,), ())


def test_last_conflict_of_a_field_is_recorded() -> None:
    held, newer = build_package(image="1-hotfix", lock=LOCK), build_package(image="3")
    local = replace(OPTIONS, rules=replace(OPTIONS.rules, winner="local"))
    first = merge_source(RenderInputs(V2, None, build_branch_package(held)), None, local)
    put = BranchPackage(held, held, first.files, first.plain, V2, first.draft_conflicts)

    second = merge_source(RenderInputs(newer, None, put), None, local)

    assert [(conflict.base, conflict.local, conflict.upstream) for conflict in second.conflicts] == [
        ("web-2", "web-1-hotfix", "web-3")
    ]


def test_local_change_that_a_rule_overrides_is_a_conflict() -> None:
    source = merge(V1, build_branch_package(build_package(5, lock=LOCK)))

    conflicts = list(find_overruled_changes(source, build_package(9), "pipeline", OPTIONS))

    assert [(conflict.local, conflict.upstream, conflict.chosen, conflict.rule) for conflict in conflicts] == [
        (5, 9, "rule", "pipeline")
    ]
    assert list(find_overruled_changes(merge(V1), build_package(9), "pipeline", OPTIONS)) == []


def test_invalid_local_file_is_replaced_and_recorded() -> None:
    broken = OUTPUT.with_files({"web.yaml": File(b"spec: {replicas: 5\n")})

    sources = (merge(V2, build_branch_package(broken)), merge(V2, None, build_branch_package(broken)))

    for source in sources:
        assert source.files == V2
        assert [(conflict.kind, conflict.file, conflict.chosen) for conflict in source.conflicts] == [
            ("file", "web.yaml", "upstream")
        ]
        assert [finding.code for finding in source.findings] == ["YamlSyntax"]


def test_lock_of_an_adopted_package_is_no_local_change() -> None:
    theirs = build_package(5, lock=LOCK)
    source = merge(V2, BranchPackage(theirs, theirs, theirs, theirs, V1))

    made_of_it = build_package(5, image="2", lock=LOCK.replace("v1", "v2"))

    assert source.files == build_package(5, image="2", lock=LOCK)
    assert list(find_overruled_changes(source, made_of_it, "PackageVariant", OPTIONS)) == []


def test_package_without_local_changes_parses_only_its_kptfile(monkeypatch: pytest.MonkeyPatch) -> None:
    parses: list[str] = []
    read = compose.CParser
    monkeypatch.setattr(compose, "CParser", lambda text: (parses.append(text), read(text))[1])
    parse_cached.cache_clear()

    source = merge(build_package(image="3"), build_branch_package(OUTPUT))

    assert source.files == build_package(image="3")
    assert parses in ([], [OUTPUT["Kptfile"].data.decode()])


# A controller owns the fields and files that it generates. All other content is a local change.


def merge_generated(came: FileTree, files: FileTree, drafted: FileTree | None = None) -> PackageSource:
    ours = BranchPackage(files, V1, V1, V1, V1)
    put = BranchPackage(drafted, V1, V1, V1, V1) if drafted is not None else None
    return merge_source(RenderInputs(came, ours, put, is_generated=True), None, OPTIONS)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(merge_generated(V1, V1), V1, id="untouched"),
        pytest.param(merge_generated(V2, V1), V2, id="untouched-takes-the-new-one-to-the-byte"),
        pytest.param(merge_generated(V1, build_package(5)), V1, id="an-emitted-field"),
        pytest.param(merge_generated(V2, build_package(5)), V2, id="an-emitted-field-and-a-new-source"),
        pytest.param(merge_generated(V1, V1.without_files("web.yaml")), V1, id="an-emitted-file-that-is-gone"),
        pytest.param(merge_generated(V1, build_package(more="x")), build_package(more="x"), id="a-file-of-theirs"),
        pytest.param(
            merge_generated(build_package(more="x"), build_package(more="y")),
            build_package(more="x"),
            id="an-opaque-file",
        ),
        pytest.param(merge_generated(V1, V1, build_package(5)), V1, id="on-the-draft"),
        pytest.param(
            merge_generated(V1, V1, build_package(more="x")), build_package(more="x"), id="a-file-on-the-draft"
        ),
    ],
)
def test_controller_overrides_local_changes_of_its_fields(source: PackageSource, expected: FileTree) -> None:
    assert source.files == expected
    assert source.base in (V1, V2) or "more.txt" in source.base


def test_fields_that_the_controller_never_generated_are_kept() -> None:
    theirs = V1["web.yaml"].data + b"  minReadySeconds: 9\n"
    source = merge_generated(V2, V1.with_files({"web.yaml": theirs}))

    assert source.files["web.yaml"].data == V2["web.yaml"].data + b"  minReadySeconds: 9\n"


def test_overridden_local_change_is_recorded() -> None:
    source = merge_generated(V1, build_package(5))

    assert [
        (conflict.pointer, conflict.local, conflict.upstream, conflict.chosen, conflict.rule)
        for conflict in source.published_conflicts
    ] == [("/spec/replicas", 5, 2, "upstream", "generated")]


def test_generated_package_follows_its_source_despite_a_local_kptfile() -> None:
    assert merge_generated(V2, build_package(lock="")).follows_upstream
