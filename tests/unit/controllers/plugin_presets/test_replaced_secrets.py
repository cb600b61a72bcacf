"""Tests of literal secrets that another layer replaces: they are reported, because Git contains them."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.findings import Finding, Severity
from tests.unit.controllers.plugin_presets.controller_world import (
    EAST,
    WEST,
    build_definition,
    build_expression_value,
    build_option,
    build_override,
    build_preset,
    build_secret_value,
    build_value,
    list_findings,
    list_plugins,
    run_controller,
)

KEY = build_definition([build_option("key", "secret", default="")])


def list_literal_findings(*texts: str) -> set[Finding]:
    return {finding for finding in list_findings(run_controller(texts)) if finding.code == "SecretLiteral"}


def test_literal_that_loses_is_one_warning_and_withholds_no_plugin() -> None:
    texts = [
        EAST,
        WEST,
        KEY,
        build_preset([build_value("key", "hunter2")]),
        build_override([build_secret_value("key")]),
    ]

    (finding,) = list_literal_findings(*texts)

    assert finding.severity is Severity.WARNING
    assert (finding.location.file, finding.location.object) == ("03.yaml", "PluginPreset/acme/logs")
    assert "spec.plugin.optionValues[0]" in finding.message
    assert "hunter2" not in repr(finding)
    assert set(list_plugins(run_controller(texts))) == {"east/logs-east", "west/logs-west"}


@pytest.mark.parametrize(
    ("loser", "winner"),
    [
        pytest.param(build_secret_value("key", "old"), build_secret_value("key"), id="reference"),
        pytest.param(build_value("key", "vault+kvv2:///a/b"), build_secret_value("key"), id="vault"),
        pytest.param(
            build_expression_value("key", "${broken"), build_secret_value("key"), id="expression-is-not-evaluated"
        ),
        pytest.param(build_value("free", "hunter2"), build_secret_value("free"), id="option-that-is-no-secret"),
    ],
)
def test_value_that_is_no_literal_secret_is_not_reported(loser: Any, winner: Any) -> None:
    assert list_literal_findings(EAST, KEY, build_preset([loser]), build_override([winner])) == set()


def test_literal_that_wins_is_an_error_and_the_other_one_a_warning() -> None:
    actual_findings = list_literal_findings(
        EAST, KEY, build_preset([build_value("key", "one")]), build_override([build_value("key", "two")])
    )

    assert {(finding.location.object, finding.severity) for finding in actual_findings} == {
        ("PluginPreset/acme/logs", Severity.WARNING),
        ("PluginOverride/acme/ov", Severity.ERROR),
    }
