"""Tests of the search for the commits of people that changed parts of a package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.catalog.files import CommitId
from reconciler.inspect.local_commits import LocalCommits
from reconciler.output.entries import ConflictEntry
from tests.support.git_repositories import SQUASH_MESSAGE
from tests.support.prepared_worlds import begin, berlin_published, drafted
from tests.support.world import World

SQUASH = SQUASH_MESSAGE.partition("\n")[0]
FILE, RESOURCE = "gateway/deployment.yaml", "Deployment/_cluster/gateway"


def find(world: World, ref: str, search: Callable[[LocalCommits], object]) -> object:
    """Return the result of a search in the history of a branch of Berlin."""
    indexer = world.create_indexer()
    indexer.update(world.observe_pass(), lambda _done, _total: None)
    with indexer.open_target("berlin") as found:
        assert found
        reader, target = found
        head = CommitId(world.head(ref))
        return search(LocalCommits(target.target, reader.get_remote(target.target), "gateway", head))


def find_subjects(commits: LocalCommits) -> list[str]:
    found = [commits.find_value(RESOURCE, pointer) for pointer in ("/spec/replicas", "/spec/template")]
    found += [commits.find_file(name) for name in ("notes.txt", "Kptfile", "missing")]
    conflicts = (
        ConflictEntry(kind="field", file="deployment.yaml", resource=RESOURCE, pointer="/spec/replicas", chosen="local", rule=""),
        ConflictEntry(kind="file", file="notes.txt", chosen="local", rule=""),
        ConflictEntry(kind="package", chosen="local", rule=""),
    )  # fmt: skip
    found += map(commits.find_conflict, conflicts)
    return [commit.subject if commit else "" for commit in found]


def change_replicas(world: World, branch: str, count: int, message: str) -> None:
    text = world.text(branch, FILE)
    lines = [f"  replicas: {count}" if line.startswith("  replicas:") else line for line in text.splitlines()]
    world.commit(branch, {FILE: "\n".join(lines) + "\n"}, message)


def test_last_change_of_each_part(tmp_path: Path) -> None:
    """The commit of a value is the last commit that changed this value, and not the last commit of the file."""
    world = begin(tmp_path, berlin_published)
    change_replicas(world, "clusters/berlin", 4, "four")
    change_replicas(world, "clusters/berlin", 5, "more load")
    world.commit("clusters/berlin", {"gateway/notes.txt": "call Luis"}, "notes")
    world.edit("clusters/berlin", FILE, "kind: Deployment", "kind: Deployment # ours")
    world.commit("clusters/berlin", {"other.txt": "x"}, "another folder")

    subjects = find(world, "clusters/berlin", find_subjects)

    # A person published the draft with a squash, so this commit changed all other parts.
    assert subjects == ["more load", SQUASH, "notes", SQUASH, "", "more load", "notes", ""]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["merge", "fast-forward"])
def test_change_of_a_draft_that_was_merged(tmp_path: Path, how: str) -> None:
    """The person is the author on the draft branch, and not the person who merged the draft."""
    world = begin(tmp_path, drafted)
    change_replicas(world, "drafts/berlin", 7, "on the draft")
    world.merge("berlin", how)

    (subject, *_) = find(world, "clusters/berlin", find_subjects)

    assert subject == "on the draft"


def test_package_that_people_have_not_changed(tmp_path: Path) -> None:
    world = begin(tmp_path, drafted)
    world.merge("berlin", "fast-forward")
    world.commit("clusters/berlin", {"other.txt": "x"}, "another folder")
    assert find(world, "clusters/berlin", find_subjects) == [""] * 8
