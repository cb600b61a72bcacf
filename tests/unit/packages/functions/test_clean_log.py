"""Tests of cleaned logs, which do not depend on the time and place of the run."""

from __future__ import annotations

import pytest

from reconciler.packages.functions.resource_list import clean_log


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("no such field\n", "no such field", id="plain"),
        pytest.param("2024/05/06 07:08:09 failed", "failed", id="go-log"),
        pytest.param("a\n2024-05-06T07:08:09.123Z failed", "a\nfailed", id="iso-on-a-later-line"),
        pytest.param("E0506 07:08:09.123456   17 main.go:3] no", "main.go:3] no", id="klog"),
        pytest.param("since 2024/05/06 07:08:09 it fails", "since 2024/05/06 07:08:09 it fails", id="not-at-the-start"),
        pytest.param("\x1b[31mred\x1b[0m\x07", "red", id="colours"),
        pytest.param("/tmp/x1/c.yaml: no\r\n", "./c.yaml: no", id="the-folder-of-the-call"),
        pytest.param("x" * 5_000, "x" * 4_000 + "…", id="long"),
    ],
)
def test_clean_log(text: str, expected: str) -> None:
    assert clean_log(text, "/tmp/x1") == expected
