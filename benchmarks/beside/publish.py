"""One changed file on a hundred branches: commits and a push, beside go-git."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.beside.programs import build_program, run_program
from benchmarks.beside.rows import Row
from benchmarks.processes import cpu_seconds
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit, PutFile
from reconciler.git.push_outcomes import PushUnit, RefUpdate

BRANCHES = 100
_PACKAGES = 10
_FILES = 10
_CHANGED = "package-3/file-4.yaml"
_CONTENT = "changed: true\n"
_SECONDS = 1_700_000_000


def compare_publish(rounds: int) -> Iterator[Row]:
    """Change a file on each branch and push all branches, in turns with go-git. Each run has new repositories.

    go-git pushes all branches together, and then each branch in a push of its own, as Porch pushes its drafts.
    """
    program = build_program("go_git_publish")
    runs: dict[str, Callable[[Path], float]] = {
        "": _publish,
        "go-git, one push": lambda folder: _publish_with_go_git(program, folder, "together"),
        "go-git, one push per branch": lambda folder: _publish_with_go_git(program, folder, "each"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    trees: dict[str, list[str]] = {}
    for _ in range(rounds):
        for name, publish in runs.items():
            taken, trees[name] = _run_in_fleet(publish)
            seconds[name].append(taken)
    ours, *others = (statistics.median(taken) * 1000 / BRANCHES for taken in seconds.values())
    for name, theirs in zip([name for name in runs if name], others, strict=True):
        checked = f"trees of {len(trees[name])} branches"
        yield Row("a changed file on a branch: commit and push", name, ours, theirs, trees[name] == trees[""], checked)


def _run_in_fleet(publish: Callable[[Path], float]) -> tuple[float, list[str]]:
    """Run `publish` in a folder with a new remote. Return its CPU seconds and the trees of the remote branches."""
    with tempfile.TemporaryDirectory(prefix="publish-") as temporary:
        folder = Path(temporary)
        remote = folder / "remote.git"
        _run_git("init", "--quiet", "--bare", str(remote))
        mirror = Mirror.open(folder / "setup", str(remote))
        files = tuple(
            PutFile(f"package-{package}/file-{file}.yaml", b"changed: false\n")
            for package in range(_PACKAGES)
            for file in range(_FILES)
        )
        (first,) = mirror.write_commits([NewCommit((), files, "install\n", _SECONDS, has_empty_base=True)])
        branches = (RefUpdate(f"refs/heads/b{index}", first, None) for index in range(BRANCHES))
        mirror.push([PushUnit("all", tuple(branches))])
        seconds = publish(folder)
        trees = _run_git("-C", str(remote), "for-each-ref", "--format=%(refname) %(tree)")
        return seconds, trees.splitlines()


def _publish(folder: Path) -> float:
    mirror = Mirror.open(folder / "cache", str(folder / "remote.git"))
    mirror.fetch("target")
    before = cpu_seconds()
    heads = {ref: commit for ref, commit in mirror.refs().items() if ref.startswith("refs/heads/")}
    change = (PutFile(_CHANGED, _CONTENT.encode()),)
    commits = mirror.write_commits([NewCommit((head,), change, "update\n", _SECONDS) for head in heads.values()])
    units = [
        PushUnit(ref, (RefUpdate(ref, commit, head),))
        for (ref, head), commit in zip(heads.items(), commits, strict=True)
    ]
    mirror.push(units)
    return cpu_seconds() - before


def _publish_with_go_git(program: Path, folder: Path, pushes: str) -> float:
    remote, clone = folder / "remote.git", folder / "clone.git"
    _run_git("clone", "--quiet", "--mirror", str(remote), str(clone))
    return float(run_program(program, None, str(clone), str(remote), _CHANGED, _CONTENT, pushes)["cpuSeconds"])


def _run_git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout
