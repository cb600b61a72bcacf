"""Parameters have the values that Helm sets."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reconciler.adopt.helm_parameters import ParameterError, parse_set_text, parse_set_value, parse_target_value
from tests.support.programs import find_program

TEXTS = {
    "true": True, "True": True, "NULL": None, "0": 0, "-0": 0, "+5": 5, "-007": -7, "007": "007", "12": 12, "1.5": "1.5",
    "": "", "{}": [""], "{a,1}": ["a", 1], r"{a\,b,c}": ["a,b", "c"], r"a\,b": "a,b", r"C:\\dir": r"C:\dir", r"a\.b": "a.b",
    "9223372036854775807": 9223372036854775807, "9223372036854775808": "9223372036854775808", "1e3": "1e3",
}  # fmt: skip


@pytest.mark.parametrize(("text", "value"), TEXTS.items(), ids=TEXTS)
def test_values_of_parameters(text: str, value: Any) -> None:
    actual = parse_set_value(text)

    assert (actual, type(actual)) == (value, type(value))


def test_values_equal_those_of_helm(tmp_path: Path) -> None:
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: c\nversion: 1.0.0\n")
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates/a.yaml").write_text("values: {{ .Values | toJson | quote }}\n")
    for option, parse in (("--set", parse_set_value), ("--set-string", parse_set_text)):
        texts = [text for text in TEXTS if option == "--set" or not text.startswith("{")]
        options = [part for number, text in enumerate(texts) for part in (option, f"k{number}={text}")]
        command = [find_program("helm"), "template", "r", ".", *options]
        output = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=True).stdout
        values = json.loads(json.loads(output.partition("values: ")[2]))
        assert {name: value for name, value in values.items() if value is not None} == {
            f"k{number}": value for number, text in enumerate(texts) if (value := parse(text)) is not None
        }


@pytest.mark.parametrize(
    ("text", "value"), [("'1'", "1"), ('"a,b"', "a,b"), ("{a,b}", ["a", "b"]), ("3", 3), ("'", "'")]
)
def test_values_of_target_paths(text: str, value: Any) -> None:
    assert parse_target_value(text) == value


def test_several_parameters_in_a_target_path_are_refused() -> None:
    with pytest.raises(ParameterError, match="must not contain a comma"):
        parse_target_value("a,b=c")
