"""Exactly one table contains each code that the code reports, and the page of findings is generated from the tables."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from reconciler.krm.findings import CodeTable, FindingCode, FindingScope, Severity, index_codes_by_name, warning
from reconciler.output.findings.formats import format_findings_page
from reconciler.reconcile.codes import ALL_CODES, CODE_TABLES

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "reconciler"
PAGE = ROOT / "docs" / "reference" / "findings.md"
KNOWN = index_codes_by_name(ALL_CODES)
# functions with a reason that becomes a code, and the position of this argument
REASONS = {"SetFailure": 0, "UnresolvedUpstream": 0, "SkippedTarget": 1}
# errors of edits and of writing, which reading cannot raise; callers turn them into findings of their own
OF_EDITS = {"YamlComment", "YamlEdit", "YamlValue"}
# A finding in the state keeps the code that it was written with.
READS_FINDINGS = {
    SOURCE / "krm" / "findings.py", SOURCE / "planning" / "decide" / "package_decision.py",
    SOURCE / "output" / "findings" / "entries.py",
}  # fmt: skip


@cache
def find_calls(path: Path) -> list[tuple[str, ast.Call]]:
    nodes = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    return [(getattr(node.func, "id", getattr(node.func, "attr", "")), node) for node in nodes]


def calls(name: str) -> list[tuple[Path, ast.Call]]:
    paths = (path for path in sorted(SOURCE.rglob("*.py")) if f"{name}(" in path.read_text())
    return [(path, node) for path in paths for called, node in find_calls(path) if called == name]


def texts(*names: str, at: int = 0) -> set[str]:
    arguments = (node.args[at] for name in names for _, node in calls(name) if len(node.args) > at)
    return {
        argument.value
        for argument in arguments
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


@pytest.mark.slow
def test_a_finding_is_built_from_its_code() -> None:
    direct = [f"{path}:{node.lineno}" for path, node in calls("Finding") if path not in READS_FINDINGS]

    assert direct == [], (
        "declare a finding code in the controller's codes.py, and create the finding with FindingCode.finding"
    )


def test_a_table_contains_each_code() -> None:
    elsewhere = [f"{path}:{node.lineno}" for path, node in calls("FindingCode") if path.name != "findings.py"]
    attributes = [name for table in CODE_TABLES for name, code in vars(table).items() if isinstance(code, FindingCode)]

    assert elsewhere == []
    assert {*CODE_TABLES} == {
        table for table in CodeTable.__subclasses__() if table.__module__.startswith("reconciler.")
    }
    assert len(attributes) == len(ALL_CODES)


def test_name_of_a_code_is_the_name_of_its_attribute() -> None:
    class ExampleCodes(CodeTable):
        CEL_NO_SUCH_KEY = warning("A key does not exist.", FindingScope.PACKAGE)

    assert (
        FindingCode("CelNoSuchKey", Severity.WARNING, FindingScope.PACKAGE, "A key does not exist.")
        == ExampleCodes.CEL_NO_SUCH_KEY
    )
    assert ExampleCodes.by_name == {"CelNoSuchKey": ExampleCodes.CEL_NO_SUCH_KEY}


@pytest.mark.parametrize(("taker", "at"), REASONS.items())
def test_a_reason_that_becomes_a_finding_is_a_code(taker: str, at: int) -> None:
    reasons = texts(taker, at=at)

    assert reasons
    assert reasons <= KNOWN.keys()


def test_the_reason_for_an_unreadable_file_is_a_code() -> None:
    raised = texts("YamlError") | texts("_create_error", at=2) | texts("_create_node_error", at=1)

    assert {name for name in raised if name.startswith("Yaml")} - OF_EDITS == {
        name for name in KNOWN if name.startswith("Yaml")
    }


def test_only_one_table_contains_a_code() -> None:
    assert len(KNOWN) == len(ALL_CODES)


@pytest.mark.parametrize("code", ALL_CODES, ids=lambda code: code.name)
def test_the_description_of_a_code_is_one_sentence(code) -> None:
    assert code.description.endswith(".")
    assert code.description[0].isupper()


def test_the_page_lists_every_code() -> None:
    assert PAGE.read_text() == format_findings_page(ALL_CODES), "run python scripts/make_reference.py"
