"""Tests of digests: they distinguish values as YAML does, and do not depend on the order of keys."""

from __future__ import annotations

import math
from typing import Any

import pytest

from reconciler.krm.json_text import compute_digest, encode_canonical_json


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param({"b": 1, "a": [1, 2]}, b'{"a":[1,2],"b":1}', id="keys-sorted-items-not"),
        pytest.param({"a": 1.0}, b'{"a":1.0}', id="a-float-stays-a-float"),
        pytest.param("\u00fc\u2028", '"\u00fc\u2028"'.encode(), id="text-as-utf-8"),
        pytest.param("\ud800", b'"\xed\xa0\x80"', id="a-lone-surrogate-does-not-stop-us"),
        pytest.param([math.inf, -math.inf, math.nan], b"[Infinity,-Infinity,NaN]", id="what-is-no-number"),
        pytest.param(2**70, b"1180591620717411303424", id="a-large-integer"),
    ],
)
def test_canonical_json(data: Any, expected: bytes) -> None:
    assert encode_canonical_json(data) == expected


def test_digest() -> None:
    # The expected value is the SHA-256 of the two bytes {}.
    assert compute_digest({}) == "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param(1, 1.0, id="integer-and-float"),
        pytest.param(1, True, id="one-and-true"),
        pytest.param("1", 1, id="text-and-number"),
        pytest.param(None, "null", id="null-and-its-name"),
        pytest.param([1, 2], [2, 1], id="order-of-items"),
    ],
)
def test_different_values_have_different_digests(left: Any, right: Any) -> None:
    assert compute_digest(left) != compute_digest(right)


@pytest.mark.parametrize(
    "data", [pytest.param({1: "a"}, id="number"), pytest.param([{"a": {None: 1}}], id="null-deep")]
)
def test_keys_must_be_strings(data: Any) -> None:
    with pytest.raises(TypeError, match="keys must be strings"):
        compute_digest(data)
