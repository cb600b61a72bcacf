"""Tests of equality in the sense of YAML."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

import pytest

from reconciler.krm.yaml.compare import is_equal_data


class StringSubclass(StrEnum):
    A = "a"


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        pytest.param(1, True, False, id="one-and-true"),
        pytest.param(1, 1.0, False, id="integer-and-float"),
        pytest.param(0.0, -0.0, False, id="zeros"),
        pytest.param(math.nan, float("nan"), True, id="nan"),
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, True, id="order-of-keys"),
        pytest.param({"a": 1}, {"a": True}, False, id="deep"),
        pytest.param({"a": None}, {}, False, id="null-and-absent"),
        pytest.param([1, 2], [2, 1], False, id="order-of-items"),
        pytest.param([1], (1,), False, id="a-tuple-is-no-list"),
        pytest.param("a", StringSubclass.A, True, id="an-enumerated-word-is-its-text"),
        pytest.param(None, False, False, id="null-and-false"),
        pytest.param("", None, False, id="empty-and-null"),
        pytest.param([], {}, False, id="empty-collections"),
    ],
)
def test_is_equal_data(left: Any, right: Any, expected: bool) -> None:
    assert is_equal_data(left, right) is expected
    assert is_equal_data(right, left) is expected
