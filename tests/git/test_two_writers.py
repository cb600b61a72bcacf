"""Two writers of one branch: the writer that loses the race reads and appends again. Nothing is lost or duplicated.

60 rounds here; RECONCILER_RACE_ROUNDS=1000 for the long run.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from reconciler.catalog.files import CommitId
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit, PutFile
from reconciler.git.push_outcomes import PushDone, PushOutcome, PushStale, PushUnit, RefUpdate
from tests.support.git_repositories import assert_sound, git, make_bare, read_file

ROUNDS = int(os.environ.get("RECONCILER_RACE_ROUNDS", "60"))
REF = "refs/heads/counter"
FILE = "counter.txt"
_SECONDS = 60.0


def append(mirror: Mirror, head: CommitId, line: str) -> CommitId:
    with mirror.open_reader() as reader:
        blob = reader.find_object_id(reader.read_commit(head).tree, FILE)
        text = reader.read_blob(blob) if blob else b""  # type: ignore[arg-type]
    [commit] = mirror.write_commits([NewCommit((head,), (PutFile(FILE, text + line.encode() + b"\n"),), line, 0)])
    return commit


def push_until_done(mirror: Mirror, line: str) -> list[PushOutcome]:
    outcomes: list[PushOutcome] = []
    while PushDone() not in outcomes:
        head = mirror.refs()[REF]
        new = append(mirror, head, line)
        outcomes.append(mirror.push([PushUnit("counter", (RefUpdate(REF, new, head),))])["counter"])
        if outcomes[-1] != PushDone():
            mirror.fetch("target")
    return outcomes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("caches", "rounds"),
    [
        pytest.param(("one", "two"), ROUNDS, id="two-machines"),
        pytest.param(("one", "one"), ROUNDS // 10, id="one-cache"),
    ],
)
def test_two_writers_lose_nothing_and_duplicate_nothing(tmp_path: Path, caches: tuple[str, str], rounds: int) -> None:
    remote = make_bare(tmp_path / "remote.git", receive__autogc="false", receive__fsckObjects="true")
    mirrors = [Mirror.open(tmp_path / name, str(remote)) for name in caches]
    root = mirrors[0].write_root_commit()
    assert mirrors[0].push([PushUnit("start", (RefUpdate(REF, root, None),))]).is_complete
    start = Barrier(2, timeout=_SECONDS)

    def write(writer: int) -> list[PushOutcome]:
        mirrors[writer].fetch("target")
        outcomes: list[PushOutcome] = []
        for number in range(rounds):
            start.wait()
            outcomes += push_until_done(mirrors[writer], f"{number} from {writer}")
            if number % 20 == 19:
                mirrors[writer].maintain()
        return outcomes

    with ThreadPoolExecutor(2) as pool:
        outcomes = [outcome for item in pool.map(write, range(2)) for outcome in item]

    lines = read_file(remote, REF, FILE).splitlines()
    assert sorted(lines) == sorted(f"{number} from {writer}" for number in range(rounds) for writer in range(2))
    assert {type(outcome) for outcome in outcomes} == {PushDone, PushStale}
    assert int(git(remote, "rev-list", "--count", REF)) == 2 * rounds + 1
    for repository in (remote, *(mirror.folder for mirror in mirrors)):
        assert_sound(repository)
