from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.cel import CelEnvironment, ExpressionError
from tests.support.examples import examples

PARTS = CelEnvironment(frozenset({"a", "b", "c"}), openchoreo_functions=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("hash('test')", "afd071e5", id="hash"),
        pytest.param("oc_hash('')", "811c9dc5", id="hash-of-nothing"),
        pytest.param("oc_generate_name('my-app', 'v1.2.3')", "my-app-v1.2.3-4f878dd8", id="generate-name"),
        pytest.param("generateName('My App_', '...')", "my-app-0af7b89f", id="a-part-of-which-nothing-is-left"),
        pytest.param(
            "oc_dns_label('very-long-endpoint-name', 'very-long-component-name', 'very-long-env-name')",
            "very-long-endpoint-very-long-compone-very-long-env-nam-23ab5d45",
            id="dns-label",
        ),
        pytest.param("dnsLabel('a') == oc_dns_label('a')", True, id="both-names"),
        pytest.param("merge({'a': 1, 'b': 1}, {'b': 2}, {'c': 3})", {"a": 1, "b": 2, "c": 3}, id="merge"),
        pytest.param("merge({'a': {'x': 1}}, {'a': {'y': 2}})", {"a": {"y": 2}}, id="merge-is-shallow"),
        pytest.param("{'a': omit(), ?'b': optional.of(omit())}", {}, id="omit"),
    ],
)
def test_openchoreo_functions(text: str, expected: Any) -> None:
    assert PARTS.compile(text).evaluate({}) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("merge({'a': 1})", "CelUnknownFunction", id="merge-of-one"),
        pytest.param("generateName()", "CelUnknownFunction", id="no-parts"),
        pytest.param("generateName(1)", "CelNoOverload", id="a-part-that-is-no-string"),
        pytest.param("omit() == 1 ? 1 : type(omit())", "CelNoOverload", id="omit-has-no-type"),
        pytest.param("omit() && true", "CelNoOverload", id="omit-is-no-bool"),
    ],
)
def test_project_function_errors(text: str, code: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        PARTS.compile(text).evaluate({})

    assert caught.value.code == code


@settings(max_examples=examples(150), deadline=None)
@given(st.tuples(*[st.text("aZ9-._é ", max_size=120)] * 3))
def test_labels_are_valid_and_short(parts: tuple[str, str, str]) -> None:
    bindings = dict(zip("abc", parts, strict=True))

    label = PARTS.compile("dnsLabel(a, b, c)").evaluate(bindings)
    name = PARTS.compile("generateName(a, b, c)").evaluate(bindings)

    assert len(label) <= 63
    assert len(name) <= 253
    assert label[-8:] == name[-8:]
    assert re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", label)
    assert re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", name)
