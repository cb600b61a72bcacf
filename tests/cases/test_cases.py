"""All golden cases: each render gives the expected files, and a second pass changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.case_world import Case, CaseWorld, find_cases, read_expected, rewrite_expected


@pytest.fixture(params=find_cases(), ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    param: Case = request.param
    return param


@pytest.mark.quick_cases(every=4)
def test_what_comes_out(case: Case, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    rendered = CaseWorld(case, tmp_path).render()
    if request.config.getoption("--rewrite-expected", default=False):
        rewrite_expected(case, rendered)
    expected = read_expected(case)

    assert sorted(rendered) == sorted(expected)
    for path, content in expected.items():
        assert rendered[path].decode() == content.decode(), path


@pytest.mark.quick_cases(every=4)
def test_a_second_pass_is_silent_and_everything_comes_out_again(case: Case, tmp_path: Path) -> None:
    world = CaseWorld(case, tmp_path)
    _, first = world.sync()
    report, second = world.sync()

    assert (second, report.render_count) == (first, 0)
    assert [
        verification_result
        for verification_result in world.verify()
        if verification_result.verdict not in ("reproduced", "foreign")
    ] == []


def test_there_are_cases() -> None:
    assert find_cases()
