"""Published packages in complete passes: local changes, an update, an edit of the draft, and a second update."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.real.line_edits import PackageEdits, Side, applied, generate_edits
from tests.real.packages import DATA, drafted, images, package_files
from tests.support.git_repositories import assert_sound
from tests.support.world import PassResult, World, catalog, repository, variant

PLAIN = (
    "kpt/ingress-nginx",
    "nephio/nephio/core/workload-crds",
    "nephio/workloads/free5gc/free5gc-operator",
    "nephio/workloads/oai/pkg-example-ue-bp",
)
"""Packages without functions: what must come out is known to the byte."""
RENDERED = ("kpt/guestbook", "kpt/wordpress", "nephio/workloads/free5gc/free5gc-cp")
CLUSTER, BRANCH, DRAFT = "berlin", "clusters/berlin", "drafts/berlin"
OURS = {"Kptfile", "package-context.yaml"}
MARK = " # ours"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the packages of other projects are not available")


def short(name: str) -> str:
    return name.rpartition("/")[2]


def without_comments(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the files that upstream publishes, without merge comments."""
    return {
        path: re.sub(r" # kpt-merge: \S+", "", content.decode())
        for path, content in files.items()
        if path.rpartition("/")[2] not in OURS
    }


def expected(edits: PackageEdits, *sides: Side) -> dict[str, str]:
    whole = applied(edits.first, *sides)
    return {path: text for path, text in whole.items() if path.rpartition("/")[2] not in OURS}


@dataclass
class UpdateResults:
    """Content of each package after each step."""

    world: World
    edits_by_package: Mapping[str, PackageEdits]
    second: Mapping[str, dict[str, bytes]]
    third: Mapping[str, dict[str, bytes]]
    published: Mapping[str, dict[str, bytes]]
    reported: Mapping[str, set[tuple[str, str]]]
    last: PassResult


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> UpdateResults:
    world = World.create(tmp_path_factory.mktemp("updates") / "world", merge={"conflict_policy": "upstream"})
    edits_by_package = {name: generate_edits(read(name), name) for name in (*PLAIN, *RENDERED)}
    world.write({"repositories.yaml": f"{catalog()}---\n{repository(CLUSTER)}"})
    world.write(
        {f"{short(name)}.yaml": variant(short(name), CLUSTER, short(name), "main") for name in edits_by_package}
    )
    release(world, edits_by_package, "v1")
    world.sync()
    world.merge(CLUSTER, "squash", delete=True)
    world.sync_until_unchanged()
    for name, edits in edits_by_package.items():
        fix(world, name, edits)
    release(world, edits_by_package, "v2", "second")
    world.sync_until_unchanged()
    second = {name: drafted(world, DRAFT, short(name)) for name in edits_by_package}
    for name in PLAIN:
        review(world, name, edits_by_package[name])
    release(world, edits_by_package, "v3", "second", "third")
    world.sync_until_unchanged()
    third = {name: drafted(world, DRAFT, short(name)) for name in edits_by_package}
    mapping = {name: conflicts(world, name) for name in edits_by_package}
    world.merge(CLUSTER, "squash", delete=True)
    last = world.sync_until_unchanged()
    published = {name: drafted(world, BRANCH, short(name)) for name in edits_by_package}
    return UpdateResults(world, edits_by_package, second, third, published, mapping, last)


def read(name: str) -> dict[str, str]:
    return {path: content.decode() for path, content in package_files(DATA / name).items()}


def release(world: World, edits_by_package: Mapping[str, PackageEdits], version: str, *sides: str) -> None:
    for name, edits in edits_by_package.items():
        world.release(short(name), version, applied(edits.first, *(getattr(edits, side) for side in sides)))


def fix(world: World, name: str, edits: PackageEdits) -> None:
    """Commit local changes: the generated edits or, where functions wrote lines, a comment in each file."""
    before = {path: content.decode() for path, content in drafted(world, BRANCH, short(name)).items()}
    after = applied(before, edits.people) if name in PLAIN else {path: marked(text) for path, text in before.items()}
    commit(world, BRANCH, name, before, after)


def marked(text: str) -> str:
    """Return the text with a comment after the first value whose line is unique."""
    lines = text.splitlines(keepends=True)
    for index, line in enumerate(lines):
        if re.fullmatch(r"  +\w+: [\w.-]+\n", line) and lines.count(line) == 1 and "apiVersion: v1\n" not in line:
            return "".join([*lines[:index], line.rstrip("\n") + MARK + "\n", *lines[index + 1 :]])
    return text


def review(world: World, name: str, edits: PackageEdits) -> None:
    """Commit comments on the draft, on lines that no other edit changes."""
    before = {path: content.decode() for path, content in drafted(world, DRAFT, short(name)).items()}
    plain, commented = (expected(edits, edits.people, edits.second, side) for side in (Side(), edits.on_the_draft))
    after = {path: commented_like(text, plain.get(path, ""), commented.get(path, "")) for path, text in before.items()}
    commit(world, DRAFT, name, before, after)


def commented_like(text: str, plain: str, commented: str) -> str:
    rows = (item.splitlines(keepends=True) for item in (text, plain, commented))
    if plain == commented:
        return text
    return "".join(line if old == new else new for line, old, new in zip(*rows, strict=True))


def commit(world: World, branch: str, name: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    changed = {path: after.get(path) for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    if changed:
        world.commit(branch, {f"{short(name)}/{path}": text for path, text in sorted(changed.items())})


def conflicts(world: World, name: str) -> set[tuple[str, str]]:
    result = world.package_status(DRAFT, short(name)).get("conflicts", ())
    return {(item["file"], item.get("pointer", "")) for item in result}


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("name", PLAIN)
def test_the_draft_has_what_both_sides_changed(results: UpdateResults, name: str) -> None:
    edits = results.edits_by_package[name]

    assert without_comments(results.second[name]) == expected(edits, edits.people, edits.second)


@pytest.mark.parametrize("name", PLAIN)
def test_an_edit_of_the_draft_survives_the_next_update(results: UpdateResults, name: str) -> None:
    edits = results.edits_by_package[name]

    assert without_comments(results.third[name]) == expected(
        edits, edits.people, edits.second, edits.third, edits.on_the_draft
    )


def test_drafts_were_edited(results: UpdateResults) -> None:
    assert sum(len(results.edits_by_package[name].on_the_draft.lines) for name in PLAIN) > 1


@pytest.mark.parametrize("name", PLAIN)
def test_the_reported_conflicts_are_the_generated_ones(results: UpdateResults, name: str) -> None:
    assert results.reported[name] == results.edits_by_package[name].conflicts


@pytest.mark.parametrize("name", RENDERED)
def test_comments_stay_where_functions_write_near_them(results: UpdateResults, name: str) -> None:
    files, edits = without_comments(results.third[name]), results.edits_by_package[name]
    remaining = {path for path, text in files.items() if MARK in text}
    deleted = {path for path, text in edits.third.files.items() if text is None}

    assert [*images(DATA / name)]
    assert len(remaining) > len([path for path in files if path.endswith(".yaml")]) // 2
    assert results.reported[name] == {(path, "") for path in deleted & remaining}


@pytest.mark.parametrize("name", [*PLAIN, *RENDERED])
def test_what_was_published_is_what_was_drafted(results: UpdateResults, name: str) -> None:
    assert results.published[name] == results.third[name]
    assert results.last.outcomes[f"{CLUSTER}/{short(name)}"] == "published"


def test_a_second_pass_is_silent_and_the_fleet_is_sound(results: UpdateResults) -> None:
    assert results.world.sync().is_unchanged
    assert_sound(results.world.fleet)
