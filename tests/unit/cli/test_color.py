"""Tests of the option --color: diffs are colored on a terminal, unless NO_COLOR is set."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from reconciler.cli import options


@pytest.mark.parametrize(
    ("color", "is_terminal", "environment", "expected"),
    [
        pytest.param("auto", True, {}, True, id="terminal"),
        pytest.param("auto", False, {}, False, id="pipe"),
        pytest.param("auto", True, {"NO_COLOR": "1"}, False, id="no-color"),
        pytest.param("auto", True, {"NO_COLOR": ""}, True, id="empty-variable-has-no-effect"),
        pytest.param("always", False, {"NO_COLOR": "1"}, True, id="always"),
        pytest.param("never", True, {}, False, id="never"),
    ],
)
def test_should_color(
    color: str, is_terminal: bool, environment: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "sys", SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: is_terminal)))
    monkeypatch.setattr(options, "initial_environment", lambda: environment)

    assert options.should_color(color) is expected
