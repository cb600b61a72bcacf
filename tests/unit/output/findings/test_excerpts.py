"""Tests of excerpts of config files."""

from __future__ import annotations

import pytest

from reconciler.output.findings.excerpts import build_excerpt

CONTENT = "".join(f"line-{number}\n" for number in range(1, 21)).encode()


@pytest.mark.parametrize(
    ("line", "first", "last"),
    [
        pytest.param(10, 5, 15, id="middle"),
        pytest.param(1, 1, 6, id="first-line"),
        pytest.param(20, 15, 20, id="last-line"),
    ],
)
def test_lines_around_the_line(line: int, first: int, last: int) -> None:
    lines = build_excerpt(CONTENT, line).lines

    assert [(entry.number, entry.text) for entry in lines] == [(n, f"line-{n}") for n in range(first, last + 1)]
    assert [entry.number for entry in lines if entry.is_marked] == [line]


@pytest.mark.parametrize("line", [0, 21])
def test_a_line_that_does_not_exist(line: int) -> None:
    excerpt = build_excerpt(CONTENT, line)

    assert excerpt.lines == ()
    assert f"does not contain line {line}" in excerpt.reason


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("kind: ConfigMap\n---\nkind: Secret\nstringData:\n  password: canary\n", id="secret"),
        pytest.param('{"kind": "Secret", "stringData": {"password": "canary"}}\n', id="json"),
        pytest.param("  - kind: Secret\n    data: {password: canary\n", id="not-valid-yaml"),
    ],
)
def test_a_file_with_a_secret_is_not_shown(content: str) -> None:
    excerpt = build_excerpt(content.encode(), 1)

    assert excerpt.lines == ()
    assert "contains a Secret" in excerpt.reason


def test_credentials_and_ciphertexts_are_hidden() -> None:
    content = (
        b"url: https://user:canary@example.com/a\n"
        b"key: ENC[AES256_GCM,data:canary,iv:canary,tag:canary,type:str]\n"
    )  # fmt: skip
    texts = [line.text for line in build_excerpt(content, 1).lines]

    assert "canary" not in str(texts)
    assert texts[1] == "key: ENC[…]"


def test_content_that_is_not_text_and_long_lines() -> None:
    lines = build_excerpt(b"\xff\xfe\n" + b"x" * 10_000, 2).lines

    assert len(lines[1].text) == 500
