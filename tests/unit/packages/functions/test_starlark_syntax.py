"""Tests of the nesting check: it refuses scripts that crash the parser of the interpreter, and accepts ordinary
ones.
"""

from __future__ import annotations

import pytest

from reconciler.packages.functions.starlark_syntax import find_nesting_error

BLOCKS = "def f():\n" + "".join(" " * (n + 1) + "if x:\n" for n in range(100)) + " " * 102 + "pass"


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "source",
    [
        pytest.param("x = [" + "1, " * 10_000 + "]", id="long-list"),
        pytest.param("x = {" + "'a': {'b': [1]}, " * 5_000 + "}", id="long-dictionary"),
        pytest.param("x = 1\n" * 10_000, id="many-statements"),
        pytest.param("x = '" + "[" * 10_000 + "'", id="brackets-in-a-string"),
        pytest.param('x = """' + "[\n" * 10_000 + '"""', id="brackets-in-a-long-string"),
        pytest.param("# " + "[" * 10_000, id="brackets-in-a-comment"),
        pytest.param(
            "def f(x):\n" + "  if x:\n    pass\n  else:\n    pass\n" * 1_000, id="many-blocks-beside-each-other"
        ),
        pytest.param("x = 'never ends", id="string-without-end"),
    ],
)
def test_ordinary_script_is_accepted(source: str) -> None:
    assert find_nesting_error(source) is None


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("x = " + "[" * 1_000, id="brackets"),
        pytest.param("x = " + "(\n" * 1_000, id="brackets-over-lines"),
        pytest.param("x = " + "not " * 1_000 + "1", id="unary"),
        pytest.param("x = " + "1 + " * 1_000 + "1", id="chain"),
        pytest.param("x = y" + "[0]" * 1_000, id="subscripts"),
        pytest.param("x = " + ("not " * 30 + "(") * 30 + "1" + ")" * 30, id="unary-and-brackets"),
        pytest.param("x = " + "{1: " * 1_000, id="dictionaries"),
        pytest.param("x = " + "lambda a, b: " * 1_000 + "1", id="lambdas"),
        pytest.param("def f(x):\n  if x: pass\n" + "  elif x: pass\n" * 1_000, id="elifs"),
        pytest.param(BLOCKS, id="blocks"),
    ],
)
def test_script_that_would_crash_the_process_is_refused(source: str) -> None:
    assert find_nesting_error(source) is not None
