"""Tests of the normalization of documents that templates wrote: which text is kept, and which data is written."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.yaml import DEFAULT_YAML_LIMITS, NormalizedDocument, YamlError, normalize_document
from reconciler.krm.yaml.rendered_text import DUPLICATE_KEYS, TABS, VERSION_DEPENDENT_VALUES


def normalize(text: str, *, allow_duplicate_keys: bool = True) -> NormalizedDocument:
    document = normalize_document(text, DEFAULT_YAML_LIMITS, allow_duplicate_keys=allow_duplicate_keys)
    assert document is not None
    return document


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("b: 'x' # c\na: \"y\"\n", "b: 'x' # c\na: \"y\"\n", id="order-quotes-comments"),
        pytest.param("# head\n\na: 1", "# head\n\na: 1\n", id="comment-at-the-top"),
        pytest.param("a: 1  \nb: 2\t\n\n  \nc: 3\n\n\n", "a: 1\nb: 2\n\n\nc: 3\n", id="trailing-spaces"),
        pytest.param("a: |\n  x  \n  y\t\nb: 1 \n", "a: |\n  x  \n  y\t\nb: 1\n", id="spaces-in-a-block-scalar"),
        pytest.param('a: "x  \n  y"  \n', 'a: "x  \n  y"  \n', id="spaces-in-a-quoted-scalar-of-two-lines"),
        pytest.param("a: |+\n  x\n\n", "a: |+\n  x\n\n", id="kept-line-ends-of-a-block-scalar"),
        pytest.param("a: |\n  #!/bin/sh\n  \tx\n", "a: |\n  #!/bin/sh\n  \tx\n", id="tab-in-a-block-scalar"),
        pytest.param("a: &x {b: 1}\nc: *x\n", "a: &x {b: 1}\nc: *x\n", id="aliases"),
        pytest.param("a: 'yes'\nb: yesterday\nc: 10\n", "a: 'yes'\nb: yesterday\nc: 10\n", id="clear-values"),
        pytest.param("a: |\n  yes\n  0644\n", "a: |\n  yes\n  0644\n", id="words-in-a-block-scalar"),
        pytest.param("a: 1 \r\nb: 2\r\n", "a: 1\r\nb: 2\r\n", id="line-ends-of-windows"),
        pytest.param('a: ""\nb: \n', 'a: ""\nb:\n', id="space-before-an-empty-value"),
    ],
)
def test_text_is_kept(text: str, expected: str) -> None:
    normalized = normalize(text)

    assert (normalized.document.text, normalized.reasons) == (expected, ())


@pytest.mark.parametrize(
    ("text", "data", "reason"),
    [
        pytest.param("a: yes\nb: x", {"a": True, "b": "x"}, VERSION_DEPENDENT_VALUES, id="yes"),
        pytest.param("a: [n, Y]", {"a": [False, True]}, VERSION_DEPENDENT_VALUES, id="letters"),
        pytest.param("mode: 0644", {"mode": 420}, VERSION_DEPENDENT_VALUES, id="octal"),
        pytest.param("a: 1_000", {"a": 1000}, VERSION_DEPENDENT_VALUES, id="underscore"),
        pytest.param("a: 0b11", {"a": 3}, VERSION_DEPENDENT_VALUES, id="binary"),
        pytest.param("on: 1", {"true": 1}, VERSION_DEPENDENT_VALUES, id="key"),
        pytest.param("a: 1\nb: 2\na: 3\n", {"a": 3, "b": 2}, DUPLICATE_KEYS, id="last-value-counts"),
        pytest.param("a: 1\nb: 2\na: no\n", {"a": False, "b": 2}, DUPLICATE_KEYS, id="duplicate-with-word"),
        pytest.param("a:\t1\n", {"a": 1}, TABS, id="tab-before-a-value"),
        pytest.param("a: 1\t# c\n", {"a": 1}, TABS, id="tab-before-a-comment"),
    ],
)
def test_text_is_written_again(text: str, data: Any, reason: str) -> None:
    normalized = normalize(text)

    assert normalized.document.data == data
    assert reason in normalized.reasons
    assert normalize(normalized.document.text).reasons == ()


@pytest.mark.parametrize("text", ["", "# only a comment\n", "\n\n"])
def test_empty_documents(text: str) -> None:
    assert normalize_document(text, DEFAULT_YAML_LIMITS, allow_duplicate_keys=True) is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("a: 1\na: 2\n", "YamlDuplicateKey", id="duplicate-key-in-strict-mode"),
        pytest.param("a: b: c\n", "YamlSyntax", id="syntax"),
    ],
)
def test_errors(text: str, code: str) -> None:
    with pytest.raises(YamlError) as caught:
        normalize(text, allow_duplicate_keys=False)

    assert caught.value.code == code
