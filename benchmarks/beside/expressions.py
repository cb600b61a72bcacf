"""The evaluation of CEL expressions, beside cel-go."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.beside.programs import build_program, run_program
from benchmarks.beside.rows import Row
from reconciler.cel import CelEnvironment, CelProgram

_MILLISECONDS = 200
"""CPU time of one measurement of one expression."""

_NANOSECONDS = 1_000_000
"""Nanoseconds of a millisecond."""


@dataclass(frozen=True)
class Case:
    """An expression with the values of its variables."""

    expression: str
    variables: dict[str, Any]


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


def compare_expressions(rounds: int) -> Iterator[Row]:
    """Evaluate each expression many times in both programs. The times are the shortest ones of all rounds."""
    program = build_program("cel_go")
    work = {"milliseconds": _MILLISECONDS, "rounds": rounds, "cases": [asdict(case) for case in CASES]}
    for case, output in zip(CASES, run_program(program, work), strict=True):
        ours = CelEnvironment(frozenset(case.variables)).compile(case.expression)
        result = json.loads(json.dumps(ours.evaluate(case.variables)))
        shortest = min(_measure(ours, case.variables) for _ in range(rounds))
        theirs = output["nanoseconds"] / _NANOSECONDS
        yield Row(f"`{case.expression}`", "cel-go", shortest, theirs, result == output["result"], "data of the result")


def _measure(program: CelProgram, variables: dict[str, Any]) -> float:
    """Return the CPU milliseconds of one evaluation."""
    count, start = 0, time.process_time_ns()
    while time.process_time_ns() - start < _MILLISECONDS * _NANOSECONDS:
        for _ in range(1000):
            program.evaluate(variables)
        count += 1000
    return (time.process_time_ns() - start) / _NANOSECONDS / count
