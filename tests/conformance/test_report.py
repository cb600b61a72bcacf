"""The page on conformance says what the tests that it is about come to."""

from __future__ import annotations

import pytest

from tests.conformance.report import COMMAND, DATA, PAGE, UNEXPLAINED, Case, every_case, report


@pytest.mark.skipif(not DATA.is_dir(), reason="the test data of other projects is not beside this project")
def test_the_page_is_up_to_date() -> None:
    page = report(every_case())

    assert UNEXPLAINED not in page
    assert PAGE.read_text() == page, f"write it anew: {COMMAND}"


def test_the_page_counts_and_lists() -> None:
    cases = [Case("one", "a"), Case("one", "b", "differs", "why"), Case("one", "c", "differs", "why"), Case("two", "d")]

    page = report(cases)

    assert "| one | 3 | 1 | 2 | 0 |\n| two | 1 | 1 | 0 | 0 |\n| all | 4 | 2 | 2 | 0 |\n" in page
    assert page.endswith("\n## one\n\n- 2 differ: why\n  - b\n  - c\n")
