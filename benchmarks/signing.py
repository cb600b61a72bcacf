"""Cost of signed commits: the same draft commits without a signature and with each kind of key.

    python -m benchmarks signing [--commits N] [--rounds N]

Each round writes all commits into a new mirror. The table has the median of each key, and its ratio to unsigned
commits. Keys that need one process per signature write only a fiftieth of the commits.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from benchmarks.processes import cpu_seconds  # noqa: E402
from reconciler.git.mirror import Mirror, MirrorSigning  # noqa: E402
from reconciler.git.object_writer import NewCommit, PutFile  # noqa: E402
from reconciler.git.signing import Signer, SigningOptions  # noqa: E402

COMMITS_PER_BRANCH = 10
FILES_PER_COMMIT = 10
SLOW_SHARE = 50


def build_commits(count: int) -> list[NewCommit]:
    """Return the commits of draft branches. Each commit adds one package."""
    commits = []
    for index in range(count):
        files = tuple(PutFile(f"p{index}/{name}.yaml", b"name: %d\n" % index) for name in range(FILES_PER_COMMIT))
        is_first = index % COMMITS_PER_BRANCH == 0
        message = f"install p{index} v1\n\nReconciler-Package: p{index}\n"
        commits.append(
            NewCommit(() if is_first else (index - 1,), files, message, 1_700_000_000, has_empty_base=is_first)
        )
    return commits


def create_keys(folder: Path) -> Mapping[str, SigningOptions | None]:
    """Create one key of each kind, and return the options that use the key. None signs nothing."""
    keys: dict[str, SigningOptions | None] = {"unsigned": None}
    for key_type in ("ed25519", "rsa", "ecdsa"):
        file = folder / key_type
        bits = ["-b", "3072"] if key_type == "rsa" else []
        subprocess.run(["ssh-keygen", "-q", "-t", key_type, *bits, "-N", "", "-f", file], check=True)
        keys[key_type] = SigningOptions("ssh", str(file))
    return keys


def measure(options: SigningOptions | None, commits: list[NewCommit]) -> tuple[float, float]:
    """Write commits into a new mirror, and return the seconds and the CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        remote = Path(folder) / "remote.git"
        subprocess.run(["git", "init", "-q", "--bare", remote], check=True)
        signing = MirrorSigning(Signer(options)) if options else None
        mirror = Mirror.open(Path(folder) / "cache", str(remote), signing=signing)
        start, cpu = time.perf_counter(), cpu_seconds()
        mirror.write_commits(commits)
        return time.perf_counter() - start, cpu_seconds() - cpu


@click.command()
@click.option("--commits", "count", default=10_000, show_default=True)
@click.option("--rounds", default=5, show_default=True)
def main(count: int, rounds: int) -> None:
    """Measure all keys in each round, and print the medians."""
    with tempfile.TemporaryDirectory() as folder:
        keys = create_keys(Path(folder))
        counts = {name: count // SLOW_SHARE if name == "ecdsa" else count for name in keys}
        commits = build_commits(count)
        measured: dict[str, list[tuple[float, float]]] = {name: [] for name in keys}
        for _ in range(rounds):
            for name, options in keys.items():
                measured[name].append(measure(options, commits[: counts[name]]))
    medians = {
        name: [statistics.median(column) / counts[name] for column in zip(*rows, strict=True)]
        for name, rows in measured.items()
    }
    print("| key | commits | seconds | CPU seconds | CPU ms per commit | ratio of CPU seconds |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, (seconds, cpu) in medians.items():
        number = counts[name]
        ratio = cpu / medians["unsigned"][1]
        print(f"| {name} | {number:,} | {seconds * number:.2f} | {cpu * number:.2f} | {cpu * 1000:.2f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
