"""Property tests of the normalization of rendered documents: the data and the text do not change a second time."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.krm.yaml import DEFAULT_YAML_LIMITS, YamlError, emit, normalize_document, parse_yaml
from reconciler.krm.yaml.compare import is_equal_data
from tests.support.examples import examples

SCALARS = st.one_of(
    st.sampled_from(["yes", "y", "0644", "1_000", "a  ", "x\ty", "on", "~", "|", "text # no comment"]),
    st.text(max_size=8),
    st.integers(),
    st.booleans(),
    st.none(),
)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
LINES = st.lists(
    st.sampled_from(
        [
            "a: yes",
            "b: 'x'  ",
            "  c: 1",
            "d:\t2",
            "e: |",
            "  text  ",
            "",
            "   ",
            "# comment \t",
            "a: 2",
            "- 0o7",
            "f: >-",
        ]
    ),
    max_size=6,
)


@given(DATA)
@settings(max_examples=examples(200))
def test_written_data_stays_equal(data: Any) -> None:
    try:
        text = emit({"data": data})
    except YamlError:
        return
    normalized = normalize_document(text, DEFAULT_YAML_LIMITS, allow_duplicate_keys=False)

    assert normalized is not None
    assert is_equal_data(normalized.document.data, parse_yaml(text).documents[0].data)
    assert normalized.reasons == ()


@given(LINES)
@settings(max_examples=examples(400))
def test_second_normalization_changes_nothing(lines: list[str]) -> None:
    try:
        first = normalize_document("\n".join(lines), DEFAULT_YAML_LIMITS, allow_duplicate_keys=True)
    except YamlError:
        return
    if first is None:
        return
    second = normalize_document(first.document.text, DEFAULT_YAML_LIMITS, allow_duplicate_keys=False)

    assert second is not None
    assert second.document.text == first.document.text
    assert second.reasons == ()
    assert is_equal_data(second.document.data, first.document.data)
