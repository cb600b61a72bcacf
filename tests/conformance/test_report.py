"""The page about conformance matches the results of the tests."""

from __future__ import annotations

import pytest

from tests.conformance.report import COMMAND, DATA, PAGE, UNEXPLAINED, Case, every_case, report


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the test data of other projects is not beside this project")
def test_the_page_is_up_to_date() -> None:
    page = report(every_case())

    assert UNEXPLAINED not in page
    assert PAGE.read_text() == page, f"write the page again: {COMMAND}"


def test_the_page_counts_and_lists() -> None:
    cases = [Case("one", "a"), Case("one", "b", "differs", "why"), Case("one", "c", "differs", "why"), Case("two", "d")]

    page = report(cases)

    assert "| one | 3 | 1 | 2 | 0 |\n| two | 1 | 1 | 0 | 0 |\n| all | 4 | 2 | 2 | 0 |\n" in page
    head = "| case | number | result | reason |\n|---|---:|---|---|\n"
    assert page.endswith(f"\n## one\n\n{head}| `b` | 1 | differs | why |\n| `c` | 1 | differs | why |\n")
