"""Sources: what enters the pipeline, from upstream, an offer and what people made of it (git.md 3)."""

from dataclasses import replace

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.krm.yaml import compose
from reconciler.packages.parsing import parse_cached
from reconciler.packages.update import MergeOptions
from reconciler.planning.model.sources import (
    BranchPackage,
    PackageSource,
    RenderInputs,
    find_overruled_changes,
    merge_source,
)

OPTIONS = MergeOptions()
LOCK = "upstreamLock: {type: git, git: {repo: r, directory: d, ref: v1, commit: c}}\n"


def package(replicas: int = 2, image: str = "1", note: str = "", lock: str = "", **files: str) -> FileTree:
    kptfile = f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {{name: web}}\n{lock}"
    deployment = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n"
        f"spec:\n  replicas: {replicas}{note}\n  paused: false\n  image: web-{image}\n"
    )
    whole = {"Kptfile": kptfile, "web.yaml": deployment, **{f"{name}.txt": text for name, text in files.items()}}
    return FileTree({path: File(text.encode()) for path, text in whole.items()})


V1, V2 = package(), package(image="2")
OUTPUT = package(lock=LOCK)


def standing(files: FileTree, rendered: FileTree = OUTPUT, merged: FileTree = V1, **fields: FileTree) -> BranchPackage:
    return BranchPackage(files, rendered, merged, **{"plain": merged, "base": V1, **fields})


def made(came: FileTree, ours: BranchPackage | None = None, put: BranchPackage | None = None) -> PackageSource:
    return merge_source(RenderInputs(came, ours, put), None, OPTIONS)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(made(V2), V2, id="never-made"),
        pytest.param(made(V1, standing(OUTPUT)), V1, id="untouched"),
        pytest.param(made(V2, standing(OUTPUT)), V2, id="untouched-takes-upstream-to-the-byte"),
        pytest.param(made(V1, standing(package(5, lock=LOCK))), package(5), id="edited"),
        pytest.param(made(V2, standing(package(5, lock=LOCK))), package(5, "2"), id="edited-and-updated"),
        pytest.param(made(V2, standing(OUTPUT, merged=package(5))), package(5, "2"), id="published-with-the-edit"),
        pytest.param(made(V2, standing(package(note=" # two", lock=LOCK))), package(2, "2", " # two"), id="a-comment"),
        pytest.param(made(V2, standing(package(lock=LOCK, more="x"))), package(image="2", more="x"), id="a-new-file"),
        pytest.param(
            made(V2, standing(OUTPUT), standing(package(5, "2", lock=LOCK), package(image="2", lock=LOCK), V2)),
            package(5, "2"),
            id="edited-on-the-draft",
        ),
        pytest.param(made(V2, None, standing(package(5, lock=LOCK))), package(5, "2"), id="edited-on-the-first-draft"),
        pytest.param(
            made(
                V2,
                standing(package(5, lock=LOCK)),
                standing(package(5, note=" # why", lock=LOCK), package(5, lock=LOCK), package(5)),
            ),
            package(5, "2", " # why"),
            id="edited-on-both",
        ),
    ],
)
def test_edits_are_carried_to_the_wanted_upstream(source: PackageSource, expected: FileTree) -> None:
    assert {path: file.data.decode() for path, file in source.files.items()} == {
        path: file.data.decode() for path, file in expected.items()
    }
    assert (source.conflicts, source.findings) == ((), ())


def test_a_package_without_a_lock_is_never_updated() -> None:
    theirs = package(7)

    source = made(V2, BranchPackage(theirs, theirs, theirs, V1, V1))

    assert (source.files, source.follows_upstream) == (theirs, False)


def test_what_both_sides_changed_is_upstreams_and_told() -> None:
    source = made(V2, standing(package(image="1-hotfix", lock=LOCK)))

    assert [(conflict.local, conflict.upstream, conflict.chosen) for conflict in source.conflicts] == [
        ("web-1-hotfix", "web-2", "upstream")
    ]
    assert source.files == V2


def test_a_conflict_of_the_draft_is_remembered_while_its_outcome_stands() -> None:
    edited = standing(package(image="1-hotfix", lock=LOCK))
    (conflict,) = made(V2, None, edited).draft_conflicts
    after = replace(standing(package(image="2", lock=LOCK), package(image="2", lock=LOCK), V2, base=V2))

    still = made(V2, None, replace(after, conflicts=(conflict,)))
    settled = made(V2, None, replace(after, files=package(image="2-hotfix", lock=LOCK), conflicts=(conflict,)))

    assert (still.conflicts, settled.conflicts) == ((conflict,), ())


def test_of_the_conflicts_in_one_place_the_last_is_told() -> None:
    held, newer = package(image="1-hotfix", lock=LOCK), package(image="3")
    local = replace(OPTIONS, rules=replace(OPTIONS.rules, winner="local"))
    first = merge_source(RenderInputs(V2, None, standing(held)), None, local)
    put = BranchPackage(held, held, first.files, first.plain, V2, first.draft_conflicts)

    second = merge_source(RenderInputs(newer, None, put), None, local)

    assert [(conflict.base, conflict.local, conflict.upstream) for conflict in second.conflicts] == [
        ("web-2", "web-1-hotfix", "web-3")
    ]


def test_an_edit_that_a_rule_undoes_is_told_with_the_rule() -> None:
    source = made(V1, standing(package(5, lock=LOCK)))

    conflicts = list(find_overruled_changes(source, package(9), "pipeline", OPTIONS))

    assert [(conflict.local, conflict.upstream, conflict.chosen, conflict.rule) for conflict in conflicts] == [
        (5, 9, "rule", "pipeline")
    ]
    assert list(find_overruled_changes(made(V1), package(9), "pipeline", OPTIONS)) == []


def test_a_file_that_people_broke_makes_way_and_is_told() -> None:
    broken = OUTPUT.with_files({"web.yaml": File(b"spec: {replicas: 5\n")})

    sources = (made(V2, standing(broken)), made(V2, None, standing(broken)))

    for source in sources:
        assert source.files == V2
        assert [(conflict.kind, conflict.file, conflict.chosen) for conflict in source.conflicts] == [
            ("file", "web.yaml", "upstream")
        ]
        assert [finding.code for finding in source.findings] == ["YamlSyntax"]


def test_the_lock_that_a_package_was_adopted_with_is_no_edit() -> None:
    theirs = package(5, lock=LOCK)
    source = made(V2, BranchPackage(theirs, theirs, theirs, theirs, V1))

    made_of_it = package(5, image="2", lock=LOCK.replace("v1", "v2"))

    assert source.files == package(5, image="2", lock=LOCK)
    assert list(find_overruled_changes(source, made_of_it, "PackageVariant", OPTIONS)) == []


def test_for_a_package_that_nobody_edited_no_more_than_a_kptfile_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parses: list[str] = []
    read = compose.CParser
    monkeypatch.setattr(compose, "CParser", lambda text: (parses.append(text), read(text))[1])
    parse_cached.cache_clear()

    source = made(package(image="3"), standing(OUTPUT))

    assert source.files == package(image="3")
    assert parses in ([], [OUTPUT["Kptfile"].data.decode()])


# what a room makes is the room's: fields and files that it emits come back, the rest is people's


def generated(came: FileTree, files: FileTree, drafted: FileTree | None = None) -> PackageSource:
    ours = BranchPackage(files, V1, V1, V1, V1)
    put = BranchPackage(drafted, V1, V1, V1, V1) if drafted is not None else None
    return merge_source(RenderInputs(came, ours, put, is_generated=True), None, OPTIONS)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(generated(V1, V1), V1, id="untouched"),
        pytest.param(generated(V2, V1), V2, id="untouched-takes-the-new-one-to-the-byte"),
        pytest.param(generated(V1, package(5)), V1, id="an-emitted-field"),
        pytest.param(generated(V2, package(5)), V2, id="an-emitted-field-and-a-new-source"),
        pytest.param(generated(V1, V1.without_files("web.yaml")), V1, id="an-emitted-file-that-is-gone"),
        pytest.param(generated(V1, package(more="x")), package(more="x"), id="a-file-of-theirs"),
        pytest.param(generated(package(more="x"), package(more="y")), package(more="x"), id="an-opaque-file"),
        pytest.param(generated(V1, V1, package(5)), V1, id="on-the-draft"),
        pytest.param(generated(V1, V1, package(more="x")), package(more="x"), id="a-file-on-the-draft"),
    ],
)
def test_a_room_has_the_last_word_on_what_it_emits(source: PackageSource, expected: FileTree) -> None:
    assert source.files == expected
    assert source.base in (V1, V2) or "more.txt" in source.base


def test_what_a_room_never_emitted_is_kept() -> None:
    theirs = V1["web.yaml"].data + b"  minReadySeconds: 9\n"
    source = generated(V2, V1.with_files({"web.yaml": theirs}))

    assert source.files["web.yaml"].data == V2["web.yaml"].data + b"  minReadySeconds: 9\n"


def test_what_a_room_takes_back_is_told() -> None:
    source = generated(V1, package(5))

    assert [
        (conflict.pointer, conflict.local, conflict.upstream, conflict.chosen, conflict.rule)
        for conflict in source.published_conflicts
    ] == [("/spec/replicas", 5, 2, "upstream", "generated")]


def test_a_generated_package_is_followed_whatever_kptfile_people_put_into_it() -> None:
    assert generated(V2, package(lock="")).follows_upstream
