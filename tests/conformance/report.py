"""Run the tests of other projects and write their results as the page docs/reference/conformance.md.

The test modules contain the cases, their execution, and the reasons why a case differs or is not run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest

from tests.conformance import test_kpt_kptfile, test_kpt_packages, test_kpt_render, test_merge3
from tests.unit.cel import test_conformance as test_cel
from tests.unit.krm import test_json_patch as test_patch
from tests.unit.packages import test_merge_comments

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "conformance.md"
DATA = Path(__file__).resolve().parents[2] / "../shared/data"
COMMAND = "python -m tests.conformance.report > docs/reference/conformance.md"
UNEXPLAINED = "unexplained"
_HEAD = f"""\
# Conformance

This page lists the results of the tests of kpt, of its function catalogs, of CEL and of JSON Patch. The repository does
not contain these tests. This command runs them and writes the page:

<!-- no-test: needs the test data of other projects -->
```sh
{COMMAND}
```

| result | meaning |
|---|---|
| passes | the result equals the expected result |
| differs | another result is intended |
| not run | the case does not apply to this project |

The cases of kpt use the profile `compat`, which reproduces kpt. The set `merge3, safe` uses the profile `safe`. A number such as
`D14` identifies a deviation of this profile from kpt. The setting `merge.deviations` switches single deviations on or off
([how edits are merged](../explanation/how-edits-are-merged.md#compatibility-with-kpt)).

## Results
"""

Verdict = Literal["passes", "differs", "not run"]


@dataclass(frozen=True)
class Case:
    """One case of a set, and its result."""

    of: str
    name: str
    verdict: Verdict = "passes"
    reason: str = ""


def every_case() -> Iterator[Case]:
    """Run all cases of all sets, and yield them."""
    yield from _merge_cases()
    yield from _table_cases()
    yield from _render_cases()
    yield from _patch_cases()
    yield from _cel_cases()


def report(cases: Iterable[Case]) -> str:
    """Return the page."""
    actual_cases = list(cases)
    sets = dict.fromkeys(case.of for case in actual_cases)
    rows = [_row(name, [case for case in actual_cases if case.of == name]) for name in sets]
    table = ["| set | cases | pass | differ | not run |", "|---|---:|---:|---:|---:|", *rows, _row("all", actual_cases)]
    listed = [line for name in sets for line in _listed(name, [case for case in actual_cases if case.of == name])]
    return "\n".join([_HEAD, *table, *listed]) + "\n"


def _row(name: str, cases: list[Case]) -> str:
    counts = (sum(case.verdict == verdict for case in cases) for verdict in ("passes", "differs", "not run"))
    return f"| {name} | {len(cases)} | {' | '.join(map(str, counts))} |"


def _listed(name: str, cases: list[Case]) -> Iterator[str]:
    counts = Counter((case.name, case.verdict, case.reason) for case in cases if case.verdict != "passes")
    if counts:
        yield from ("", f"## {name}", "", "| case | number | result | reason |", "|---|---:|---|---|")
    for (case_name, verdict, reason), count in counts.items():
        yield f"| `{case_name}` | {count} | {verdict} | {reason} |"


def _merge_cases() -> Iterator[Case]:
    for name, row in test_merge3.NAMED.items():
        described = f"{name}: {row['description']}"
        reason = test_merge3.ONLY_OLD_KPT.get(name, "")
        yield _run_case("merge3, compat", described, partial(test_merge3.test_as_kpt_does_it, name), reason)
    for name, row in test_merge3.NAMED.items():
        table = row["file"].removesuffix("_test.go")
        rule, why = test_merge3.SAFE_DIFFERS.get(f"{table}: {row['description']}", ("", ""))
        reason = test_merge3.GOES_ON if row["expect_error"] else f"{rule}: {why}" if rule else ""
        described = f"{name}: {row['description']}"
        yield _run_case("merge3, safe", described, partial(test_merge3.test_safely, name), reason)


def _table_cases() -> Iterator[Case]:
    kptfile, packages = test_kpt_kptfile.TABLES, test_kpt_packages.TABLES
    cases = [
        *_run_tables(test_kpt_packages, packages),
        *_run_tables(test_kpt_kptfile, kptfile),
        *_run_tables(test_merge_comments, {"TestAddMetadataComment": test_merge_comments.ROWS}),
    ]
    for table, why in test_kpt_kptfile.NOT_RUN.items():
        cases += [Case(f"packages, {table}", row["case"], "not run", why) for row in kptfile.get(table, ())]
    yield from sorted(cases, key=lambda case: case.of)


def _run_tables(module: ModuleType, tables: Mapping[str, list[dict[str, Any]]]) -> Iterator[Case]:
    """Run the rows of these tables in all tests of a module, and yield them. A row can occur several times."""
    table_of = {id(row): name for name, rows in tables.items() for row in rows}
    for test in vars(module).values():
        for names, parameters in _parameters(test):
            for parameter in parameters:
                table = next((table_of[id(value)] for value in parameter.values if id(value) in table_of), None)
                if table is not None:
                    named = dict(zip(names, parameter.values, strict=True))
                    yield _run_case(f"packages, {table}", parameter.id, partial(test, **named))


def _parameters(test: Any) -> Iterator[tuple[list[str], list[Any]]]:
    for mark in getattr(test, "pytestmark", ()) if callable(test) else ():
        if mark.name == "parametrize":
            names, parameters = mark.args
            yield [names] if isinstance(names, str) else list(names), parameters


def _render_cases() -> Iterator[Case]:
    for case in sorted(test_kpt_render.CASES, key=lambda case: test_kpt_render.FOLDERS.index(case.parent.name)):
        names = {test_kpt_render.base_name(label) for label in test_kpt_render.missing_functions(case)}
        missing = [f"`{name}` {why}" for name, why in test_kpt_render.CONTAINERS_ONLY.items() if name in names]
        yield _run_case(
            case.parent.name,
            case.name,
            partial(test_kpt_render.test_case, case),
            "; ".join(missing) or test_kpt_render.GAPS.get(case.name, ""),
            "not run" if missing else "differs",
        )


def _patch_cases() -> Iterator[Case]:
    for (row,), name in (
        (conformance_row.values, conformance_row.id) for conformance_row in test_patch.list_conformance_rows()
    ):
        yield _run_case("json-patch", name, partial(test_patch.test_conformance, row))
    for row in test_patch.list_disabled_rows():
        yield Case("json-patch", row["comment"], "not run", "disabled by its authors")


def _cel_cases() -> Iterator[Case]:
    for test in json.loads(test_cel.TESTS.read_text(encoding="utf-8")):
        name = test_cel.format_test_name(test)
        if why := test_cel.find_skip_reason(test):
            yield Case("cel", f"{test['file']}/{test['section']}", "not run", why)
        elif test_cel.is_passing(test):
            yield Case("cel", name)
        else:
            yield Case("cel", name, "differs", test_cel.KNOWN_GAPS.get(name, UNEXPLAINED))


def _run_case(of: str, name: str, run: Callable[[], object], reason: str = "", kind: Verdict = "differs") -> Case:
    """Run a case, and return it. A case with a reason has another result than in its own project."""
    try:
        run()
    except AssertionError:
        return Case(of, name, "differs", UNEXPLAINED)
    except pytest.skip.Exception as skipped:
        return Case(of, name, "not run", str(skipped))
    return Case(of, name, kind, reason) if reason else Case(of, name)


if __name__ == "__main__":
    print(report(every_case()), end="")
