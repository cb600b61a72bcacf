"""Secrets that are written out where they do not count: they lie in Git all the same (greenhouse 7.2)."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.findings import Finding, Severity
from tests.unit.controllers.plugin_presets.presets_world import (
    EAST,
    WEST,
    by_expression,
    definition,
    findings,
    given,
    option,
    override,
    plugins,
    preset,
    room,
    secret,
)

KEY = definition([option("key", "secret", default="")])


def literals(*texts: str) -> set[Finding]:
    return {finding for finding in findings(room(texts)) if finding.code == "SecretLiteral"}


def test_it_is_told_once_for_all_plugins_and_withholds_none() -> None:
    texts = [EAST, WEST, KEY, preset([given("key", "hunter2")]), override([secret("key")])]

    (finding,) = literals(*texts)

    assert finding.severity is Severity.WARNING
    assert (finding.location.file, finding.location.object) == ("03.yaml", "PluginPreset/acme/logs")
    assert "spec.plugin.optionValues[0]" in finding.message
    assert "hunter2" not in repr(finding)
    assert set(plugins(room(texts))) == {"east/logs-east", "west/logs-west"}


@pytest.mark.parametrize(
    ("loser", "winner"),
    [
        pytest.param(secret("key", "old"), secret("key"), id="reference"),
        pytest.param(given("key", "vault+kvv2:///a/b"), secret("key"), id="vault"),
        pytest.param(by_expression("key", "${broken"), secret("key"), id="expression-is-not-looked-at"),
        pytest.param(given("free", "hunter2"), secret("free"), id="option-that-is-no-secret"),
    ],
)
def test_what_is_no_secret_written_out_is_not_told(loser: Any, winner: Any) -> None:
    assert literals(EAST, KEY, preset([loser]), override([winner])) == set()


def test_the_one_that_wins_is_an_error_beside_the_warning() -> None:
    actual_findings = literals(EAST, KEY, preset([given("key", "one")]), override([given("key", "two")]))

    assert {(finding.location.object, finding.severity) for finding in actual_findings} == {
        ("PluginPreset/acme/logs", Severity.WARNING),
        ("PluginOverride/acme/ov", Severity.ERROR),
    }
