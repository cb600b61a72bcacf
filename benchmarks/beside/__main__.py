"""The same work by this project and by programs of other projects: CPU time, ratio, and equality of the results.

    python -m benchmarks beside                                    all comparisons; about ten minutes
    python -m benchmarks beside --only merge --only publish        some of them
    python -m benchmarks beside --only fleet --clusters 50         a larger fleet

The command builds the Go programs of this folder (README.md). A comparison whose program cannot be built or found is
skipped, and the reason is below the table. The exit status is 1 if any results are different.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))

from benchmarks.beside.engine import compare_engine  # noqa: E402
from benchmarks.beside.expressions import compare_expressions  # noqa: E402
from benchmarks.beside.fleets import compare_fleets  # noqa: E402
from benchmarks.beside.merges import compare_merges  # noqa: E402
from benchmarks.beside.programs import SkippedError  # noqa: E402
from benchmarks.beside.publish import compare_publish  # noqa: E402
from benchmarks.beside.rows import Row, format_table  # noqa: E402

COMPARISONS: Mapping[str, Callable[[int, int], Iterator[Row]]] = {
    "merge": lambda rounds, clusters: compare_merges(rounds),
    "engine": lambda rounds, clusters: compare_engine(rounds),
    "publish": lambda rounds, clusters: compare_publish(rounds),
    "cel": lambda rounds, clusters: compare_expressions(rounds),
    "fleet": lambda rounds, clusters: compare_fleets(clusters),
}


@click.command()
@click.option("--only", multiple=True, type=click.Choice(list(COMPARISONS)), help="A comparison to run. Default: all.")
@click.option("--rounds", default=5, show_default=True, help="Rounds of each program; the table has their medians.")
@click.option("--clusters", type=click.IntRange(min=4), default=8, show_default=True, help="Clusters of the fleet.")
def main(only: tuple[str, ...], rounds: int, clusters: int) -> None:
    """Run the comparisons, and print one table."""
    rows: list[Row] = []
    skipped: list[str] = []
    for name in only or COMPARISONS:
        try:
            rows += COMPARISONS[name](rounds, clusters)
        except SkippedError as error:
            skipped.append(f"{name} is skipped: {error}")
    click.echo("\n".join([*format_table(rows), "", *skipped]).rstrip())
    sys.exit(not all(row.is_equal for row in rows))


if __name__ == "__main__":
    main()
