"""Git objects and bytes of one draft, by kind.

    python -m benchmarks objects                   30 clusters with ten packages each; half a minute
    python -m benchmarks objects --clusters 300

The figures are the objects that the first pass pushes to the fleet repositories, divided by the number of drafts. The
bytes are those in the packs, after compression. The status branch is not included.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from structlog.testing import capture_logs  # noqa: E402

from benchmarks.passes import build_service  # noqa: E402
from benchmarks.scale.world import PACKAGES_FOLDER, Sizes, build_world  # noqa: E402

_DRAFTS, _STATES = "refs/heads/drafts/", "refs/reconciler/state/"
_BLOBS = {"Kptfile": "Kptfile", "package-context.yaml": "package context"}


@click.command()
@click.option("--clusters", default=30, show_default=True)
def main(clusters: int) -> None:
    """Run a first pass, and print the objects by kind."""
    if not PACKAGES_FOLDER.is_dir():
        raise SystemExit(f"the packages of this world are read from {PACKAGES_FOLDER}, which is not there")
    with tempfile.TemporaryDirectory(prefix="objects-") as temporary:
        world = Path(temporary).resolve()
        build_world(world, Sizes(clusters, clusters))
        os.chdir(world)
        passes = build_service("./fleet-0.git", workers=1)
        with capture_logs():
            passes.run()
        drafts = passes.summary.counts["drafted"]
        counts: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for kind, size in _list_objects(world / "fleet-0.git"):
            counts[kind] += 1
            sizes[kind] += size
    click.echo("| kind | objects of one draft | bytes of one draft |\n|---|---:|---:|")
    for kind, count in sorted(counts.items()):
        click.echo(f"| {kind} | {count / drafts:.2f} | {sizes[kind] / drafts:.0f} |")
    click.echo(f"| all | {counts.total() / drafts:.2f} | {sizes.total() / drafts:.0f} |")


def _list_objects(repository: Path) -> Iterator[tuple[str, int]]:
    """Yield the kind of each object of drafts and states, and its bytes in the pack."""
    seen: set[str] = set()
    for prefix in (_DRAFTS, _STATES):
        lines = _git(repository, "for-each-ref", "--format=%(objectname)", prefix)
        listed = dict(
            line.partition(" ")[::2] for line in _git(repository, "rev-list", "--objects", "--stdin", stdin=lines)
        )
        new = {item: path for item, path in listed.items() if item not in seen}
        seen |= new.keys()
        request = ["cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize:disk)"]
        for line in _git(repository, *request, stdin=list(new)):
            item, kind, size = line.split()
            yield _describe(prefix, kind, new[item]), int(size)


def _describe(prefix: str, kind: str, path: str) -> str:
    is_draft = prefix == _DRAFTS
    if kind == "commit":
        return "draft: commit" if is_draft else "state: commit"
    if not is_draft:
        return "state: record of the package" if path.startswith("packages/") else "state: other objects"
    if kind == "tree":
        is_status = path.startswith(".reconciler")
        return "draft: tree of status files" if is_status else f"draft: {'package' if path else 'root'} tree"
    if path.startswith(".reconciler"):
        return "draft: status file"
    return f"draft: {_BLOBS.get(path.rpartition('/')[2], 'other file')}"


def _git(repository: Path, *arguments: str, stdin: list[str] | None = None) -> list[str]:
    """Return the lines that a git command prints."""
    text = "".join(f"{line}\n" for line in stdin or ())
    command = ["git", *arguments]
    return subprocess.run(
        command, cwd=repository, input=text, text=True, check=True, stdout=subprocess.PIPE
    ).stdout.splitlines()


if __name__ == "__main__":
    main()
