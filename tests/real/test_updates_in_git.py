"""Published packages through whole passes: fixed on the cluster, updated, edited on the draft, updated again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.real.line_edits import Side, Story, applied, tell
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
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the packages of other projects are not beside this project")


def short(name: str) -> str:
    return name.rpartition("/")[2]


def without_comments(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the files that are not ours, without merge comments."""
    return {
        path: re.sub(r" # kpt-merge: \S+", "", content.decode())
        for path, content in files.items()
        if path.rpartition("/")[2] not in OURS
    }


def expected(story: Story, *sides: Side) -> dict[str, str]:
    whole = applied(story.first, *sides)
    return {path: text for path, text in whole.items() if path.rpartition("/")[2] not in OURS}


@dataclass
class Life:
    """What stood where after each station, by package."""

    world: World
    stories: Mapping[str, Story]
    second: Mapping[str, dict[str, bytes]]
    third: Mapping[str, dict[str, bytes]]
    published: Mapping[str, dict[str, bytes]]
    told: Mapping[str, set[tuple[str, str]]]
    last: PassResult


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    world = World.create(tmp_path_factory.mktemp("updates") / "world", merge={"conflict_policy": "upstream"})
    stories = {name: tell(read(name), name) for name in (*PLAIN, *RENDERED)}
    world.write({"repositories.yaml": f"{catalog()}---\n{repository(CLUSTER)}"})
    world.write({f"{short(name)}.yaml": variant(short(name), CLUSTER, short(name), "main") for name in stories})
    release(world, stories, "v1")
    world.sync()
    world.merge(CLUSTER, "squash", delete=True)
    world.sync_until_unchanged()
    for name, story in stories.items():
        fix(world, name, story)
    release(world, stories, "v2", "second")
    world.sync_until_unchanged()
    second = {name: drafted(world, DRAFT, short(name)) for name in stories}
    for name in PLAIN:
        review(world, name, stories[name])
    release(world, stories, "v3", "second", "third")
    world.sync_until_unchanged()
    third = {name: drafted(world, DRAFT, short(name)) for name in stories}
    mapping = {name: conflicts(world, name) for name in stories}
    world.merge(CLUSTER, "squash", delete=True)
    last = world.sync_until_unchanged()
    published = {name: drafted(world, BRANCH, short(name)) for name in stories}
    return Life(world, stories, second, third, published, mapping, last)


def read(name: str) -> dict[str, str]:
    return {path: content.decode() for path, content in package_files(DATA / name).items()}


def release(world: World, stories: Mapping[str, Story], version: str, *sides: str) -> None:
    for name, story in stories.items():
        world.release(short(name), version, applied(story.first, *(getattr(story, side) for side in sides)))


def fix(world: World, name: str, story: Story) -> None:
    """Let people edit what is published: the story's edits or, where functions wrote lines, a comment in each file."""
    before = {path: content.decode() for path, content in drafted(world, BRANCH, short(name)).items()}
    after = applied(before, story.people) if name in PLAIN else {path: marked(text) for path, text in before.items()}
    commit(world, BRANCH, name, before, after)


def marked(text: str) -> str:
    """Return the text with a comment behind its first value that is on no other line."""
    lines = text.splitlines(keepends=True)
    for index, line in enumerate(lines):
        if re.fullmatch(r"  +\w+: [\w.-]+\n", line) and lines.count(line) == 1 and "apiVersion: v1\n" not in line:
            return "".join([*lines[:index], line.rstrip("\n") + MARK + "\n", *lines[index + 1 :]])
    return text


def review(world: World, name: str, story: Story) -> None:
    """Let people comment on the draft, on lines that nobody else touches."""
    before = {path: content.decode() for path, content in drafted(world, DRAFT, short(name)).items()}
    plain, commented = (expected(story, story.people, story.second, side) for side in (Side(), story.on_the_draft))
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


@pytest.mark.parametrize("name", PLAIN)
def test_the_draft_has_what_both_sides_changed(life: Life, name: str) -> None:
    story = life.stories[name]

    assert without_comments(life.second[name]) == expected(story, story.people, story.second)


@pytest.mark.parametrize("name", PLAIN)
def test_an_edit_of_the_draft_survives_the_next_update(life: Life, name: str) -> None:
    story = life.stories[name]

    assert without_comments(life.third[name]) == expected(
        story, story.people, story.second, story.third, story.on_the_draft
    )


def test_drafts_were_edited(life: Life) -> None:
    assert sum(len(life.stories[name].on_the_draft.lines) for name in PLAIN) > 1


@pytest.mark.parametrize("name", PLAIN)
def test_the_conflicts_told_are_those_made(life: Life, name: str) -> None:
    assert life.told[name] == life.stories[name].conflicts


@pytest.mark.parametrize("name", RENDERED)
def test_comments_stay_where_functions_write_beside_them(life: Life, name: str) -> None:
    files, story = without_comments(life.third[name]), life.stories[name]
    remaining = {path for path, text in files.items() if MARK in text}
    deleted = {path for path, text in story.third.files.items() if text is None}

    assert [*images(DATA / name)]
    assert len(remaining) > len([path for path in files if path.endswith(".yaml")]) // 2
    assert life.told[name] == {(path, "") for path in deleted & remaining}


@pytest.mark.parametrize("name", [*PLAIN, *RENDERED])
def test_what_was_published_is_what_was_drafted(life: Life, name: str) -> None:
    assert life.published[name] == life.third[name]
    assert life.last.outcomes[f"{CLUSTER}/{short(name)}"] == "published"


def test_a_second_pass_is_silent_and_the_fleet_is_sound(life: Life) -> None:
    assert life.world.sync().is_unchanged
    assert_sound(life.world.fleet)
