"""CPU time of one evaluation of CEL expressions, compared with cel-go.

    python -m benchmarks cel [--milliseconds N] [--rounds N]

The benchmark builds and runs the Go program in `beside/cel_go`. It evaluates the same expressions with the same
variables in both engines, compares the results, and prints the shortest CPU time of each expression. Without Go, or if
the program cannot be built, the table contains only the times of this project, and the reason follows.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from reconciler.cel import CelEnvironment, CelProgram  # noqa: E402

GO_PROGRAM = PROJECT / "benchmarks/beside/cel_go"


@dataclass(frozen=True)
class Case:
    """An expression with the values of its variables."""

    expression: str
    variables: dict[str, Any]


@dataclass(frozen=True)
class Measurement:
    """The result of an expression, and the CPU time of one evaluation in nanoseconds."""

    result: Any
    nanoseconds: float


_DOORS = [{"name": f"door-{number}", "port": 8000 + number, "public": number % 2 == 0} for number in range(8)]

CASES = (
    # The name of a package of a PackageVariantSet.
    Case("'endpoints-' + repository.labels['region']", {"repository": {"name": "r", "labels": {"region": "west"}}}),
    # A condition of an OpenChoreo resource.
    Case(
        "has(spec.scaling) && spec.scaling.max > 1 && environment.name in ['staging', 'production']",
        {"spec": {"scaling": {"min": 1, "max": 5}}, "environment": {"name": "production"}},
    ),
    # A list for the template of a Deployment.
    Case(
        "spec.doors.filter(d, d.public).map(d, {'name': d.name, 'containerPort': d.port})",
        {"spec": {"doors": _DOORS}},
    ),
    # An option of a Greenhouse plugin.
    Case(
        "spec.names.map(n, n.lowerAscii().replace('_', '-')).join(',')",
        {"spec": {"names": ["North_Wing", "South_Wing", "Tower", "Main_Hall", "Garden"]}},
    ),
    # A validation rule.
    Case(
        "spec.replicas * spec.memory <= 4096 && spec.guests.all(g, g.startsWith('team-') && size(g) < 64)",
        {"spec": {"replicas": 3, "memory": 512, "guests": [f"team-{name}" for name in "abcdef"]}},
    ),
)


@click.command()
@click.option("--milliseconds", default=200, show_default=True, help="CPU time of one measurement of one expression.")
@click.option("--rounds", default=5, show_default=True, help="Measurements of each expression.")
def main(milliseconds: int, rounds: int) -> None:
    """Measure all expressions, and print the shortest CPU times in microseconds."""
    ours = [_measure(case, milliseconds, rounds) for case in CASES]
    go, reason = _measure_cel_go(milliseconds, rounds)
    click.echo("| expression | µs | cel-go, µs | ratio |\n|---|---:|---:|---:|")
    for index, (case, measured) in enumerate(zip(CASES, ours, strict=True)):
        columns = _format_columns(measured, go[index]) if go else "| |"
        click.echo(f"| `{case.expression}` | {measured.nanoseconds / 1000:.2f} | {columns}")
    if not go:
        click.echo(f"cel-go was not measured: {reason}")
        return
    ratios = [mine.nanoseconds / other.nanoseconds for mine, other in zip(ours, go, strict=True)]
    click.echo(f"median ratio: {statistics.median(ratios):.1f}")
    different = [
        case.expression for case, mine, other in zip(CASES, ours, go, strict=True) if mine.result != other.result
    ]
    if different:
        raise SystemExit(f"different results: {different}")
    click.echo("all results are equal")


def _format_columns(ours: Measurement, go: Measurement) -> str:
    return f"{go.nanoseconds / 1000:.2f} | {ours.nanoseconds / go.nanoseconds:.1f} |"


def _measure(case: Case, milliseconds: int, rounds: int) -> Measurement:
    program = CelEnvironment(frozenset(case.variables)).compile(case.expression)
    result = program.evaluate(case.variables)
    return Measurement(
        json.loads(json.dumps(result)), min(_measure_once(program, case.variables, milliseconds) for _ in range(rounds))
    )


def _measure_once(program: CelProgram, variables: dict[str, Any], milliseconds: int) -> float:
    """Return the CPU CPU time of one evaluation in nanoseconds."""
    count, start = 0, time.process_time_ns()
    end = start + milliseconds * 1_000_000
    while time.process_time_ns() < end:
        for _ in range(1000):
            program.evaluate(variables)
        count += 1000
    return (time.process_time_ns() - start) / count


def _measure_cel_go(milliseconds: int, rounds: int) -> tuple[list[Measurement], str]:
    """Return the measurements of cel-go, or the reason why there are none."""
    go = shutil.which("go", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/go/bin")))
    if go is None:
        return [], "Go is not installed"
    work = {"milliseconds": milliseconds, "rounds": rounds, "cases": [asdict(case) for case in CASES]}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "cel-go"
        built = subprocess.run(
            [go, "build", "-o", str(program), "."], cwd=GO_PROGRAM, capture_output=True, text=True, check=False
        )
        if built.returncode:
            return [], f"`go build` failed: {built.stderr.strip()}"
        output = subprocess.run([program], input=json.dumps(work), capture_output=True, text=True, check=True).stdout
    return [Measurement(**json.loads(line)) for line in output.splitlines()], ""


if __name__ == "__main__":
    main()
