"""JSON lines: to the byte what json writes, which older engines read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.krm.json_lines import json_lines

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(st.text(), inner, max_size=3),
)


def written(data: object) -> bytes:
    return (json.dumps(data, sort_keys=True, indent=1, ensure_ascii=False) + "\n").encode()


@given(DATA)
def test_it_is_what_json_writes(data: object) -> None:
    assert json_lines(data) == written(data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"b": [], "a": {}, "c": ()}, id="empty"),
        pytest.param({"a": [{"b": [1, [2]]}, 'é\n\u2028\x00"\\']}, id="nested-and-quoted"),
        pytest.param([True, 1, 1.0, None, 1e300, float("inf")], id="scalars"),
    ],
)
def test_json_lines(data: object) -> None:
    assert json_lines(data) == written(data)


@pytest.mark.parametrize("data", [pytest.param({1: "a"}, id="a-number-as-key"), pytest.param({"a": {"b"}}, id="a-set")])
def test_what_is_no_json_data_is_refused(data: object) -> None:
    with pytest.raises(TypeError):
        json_lines(data)
