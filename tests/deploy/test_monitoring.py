"""The alert rules, their tests, the example of Alertmanager, and the dashboard."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.programs import Program

PROJECT = Path(__file__).resolve().parents[2]
MONITORING = PROJECT / "deploy/monitoring"
RULES = MONITORING / "rules.yaml"
TESTS = (MONITORING / "rules_test.yaml", MONITORING / "rules_days_test.yaml")
METRICS = PROJECT / "docs/reference/metrics.md"
RUNBOOKS = PROJECT / "docs/how-to/runbooks"
_UNITS = {"m": 60, "h": 3600}
_VARIABLES = {"$__rate_interval": "5m", "$job": "reconciler", "$shard": ".*"}


def list_alerts() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def list_expressions() -> Iterator[tuple[str, str]]:
    """Yield the title of a panel and an expression, for each target and variable of the dashboard."""
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        yield from ((panel["title"], target["expr"]) for target in panel.get("targets", []))


def list_evaluations() -> dict[str, list[list[tuple[int, bool]]]]:
    """Return for each alert and each test the times in seconds, and whether the alert fires."""
    evaluations: defaultdict[str, list[list[tuple[int, bool]]]] = defaultdict(list)
    for file in TESTS:
        for test in yaml.safe_load(file.read_text())["tests"]:
            rows = test["alert_rule_test"]
            seconds = [int(row["eval_time"][:-1]) * _UNITS[row["eval_time"][-1]] for row in rows]
            states = [bool(row["exp_alerts"]) for row in rows]
            evaluations[rows[0]["alertname"]].append(sorted(zip(seconds, states, strict=True)))
    return evaluations


def test_rules_are_valid(promtool: Program) -> None:
    process = promtool("check", "rules", RULES)

    assert process.returncode == 0, process.stdout + process.stderr


@pytest.mark.slow
def test_alerts_fire_and_resolve(promtool: Program) -> None:
    process = promtool("test", "rules", *TESTS)

    assert process.returncode == 0, process.stdout + process.stderr


@pytest.mark.slow
def test_a_changed_threshold_fails_the_tests(promtool: Program, tmp_path: Path) -> None:
    for file in TESTS:
        (tmp_path / file.name).write_text(file.read_text())
    rules = RULES.read_text()
    assert rules.count("> 900") == 1
    (tmp_path / RULES.name).write_text(rules.replace("> 900", "> 960"))

    assert promtool("test", "rules", tmp_path / TESTS[0].name).returncode != 0


@pytest.mark.parametrize("alert", [rule["alert"] for rule in list_alerts()])
def test_each_alert_has_a_test_that_fires_and_resolves(alert: str) -> None:
    sequences = [[is_firing for _, is_firing in rows] for rows in list_evaluations()[alert]]

    assert [False, True, False] in sequences


@pytest.mark.parametrize("rule", list_alerts(), ids=lambda rule: rule["alert"])
def test_each_alert_names_its_severity_and_an_existing_runbook(rule: dict[str, Any]) -> None:
    page = rule["annotations"]["runbook_url"].rpartition("/")[2]

    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert rule["annotations"]["summary"].endswith(".")
    assert page.endswith(".html")
    assert (RUNBOOKS / page).with_suffix(".md").is_file()


def test_the_example_of_alertmanager_is_valid(amtool: Program) -> None:
    process = amtool("check-config", MONITORING / "alertmanager.yaml")

    assert process.returncode == 0, process.stdout + process.stderr


def test_expressions_of_the_dashboard_are_valid(promtool: Program, tmp_path: Path) -> None:
    rules = []
    for index, (_, expression) in enumerate(list_expressions()):
        for name, value in _VARIABLES.items():
            expression = expression.replace(name, value)
        assert "$" not in expression, expression
        rules.append({"record": f"dashboard:panel:{index}", "expr": expression})
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))

    process = promtool("check", "rules", file)

    assert len(rules) > 25
    assert process.returncode == 0, process.stdout + process.stderr


def test_metrics_of_the_rules_and_the_dashboard_exist() -> None:
    listed = {*re.findall(r"^\| `(reconciler_\w+)` \|", METRICS.read_text(), re.MULTILINE)}
    series = listed | {f"{name}{suffix}" for name in listed for suffix in ("_bucket", "_sum", "_count")}
    expressions = [*(rule["expr"] for rule in list_alerts()), *(expression for _, expression in list_expressions())]
    used = {name for expression in expressions for name in re.findall(r"\breconciler_\w+", expression)}

    assert len(used) > 25
    assert sorted(used - series) == []


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    cells: dict[tuple[int, int], str] = {}
    for panel in dashboard["panels"]:
        area = panel["gridPos"]
        assert area["x"] + area["w"] <= 24, panel["title"]
        for x in range(area["x"], area["x"] + area["w"]):
            for y in range(area["y"], area["y"] + area["h"]):
                assert cells.setdefault((x, y), panel["title"]) == panel["title"]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_the_dashboard_has_the_variables_of_its_expressions() -> None:
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())

    assert dashboard["schemaVersion"] >= 39
    assert [variable["name"] for variable in dashboard["templating"]["list"]] == ["datasource", "job", "shard"]
    for title, expression in list_expressions():
        assert 'job="$job", shard=~"$shard"' in expression, title
