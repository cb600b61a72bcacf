"""CPU time of one evaluation of CEL expressions, beside cel-go: `beside/expressions.py` contains the expressions.

    python -m benchmarks cel [--rounds N]

The table contains the shortest times in microseconds. The exit status is 1 if any results are different. The benchmark
is skipped if the Go program in `beside/cel_go` cannot be built.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from benchmarks.beside.expressions import compare_expressions  # noqa: E402
from benchmarks.beside.programs import SkippedError  # noqa: E402


@click.command()
@click.option("--rounds", default=5, show_default=True, help="Measurements of each expression.")
def main(rounds: int) -> None:
    """Measure all expressions, and print the table."""
    try:
        rows = [*compare_expressions(rounds)]
    except SkippedError as error:
        click.echo(f"skipped: {error}")
        return
    click.echo("| expression | µs | cel-go, µs | ratio | equal? |\n|---|---:|---:|---:|---|")
    for row in rows:
        figures = f"{row.ours * 1000:.2f} | {row.theirs * 1000:.2f} | {row.ours / row.theirs:.1f}"
        click.echo(f"| {row.work} | {figures} | {'yes' if row.is_equal else '**no**'} |")
    click.echo(f"median ratio: {statistics.median(row.ours / row.theirs for row in rows):.1f}")
    sys.exit(not all(row.is_equal for row in rows))


if __name__ == "__main__":
    main()
