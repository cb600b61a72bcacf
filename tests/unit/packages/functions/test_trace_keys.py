"""Tests of function names in traces, which identify the entry of a pipeline."""

import pytest

from reconciler.api.kpt import FunctionSpec
from reconciler.packages.functions.registry import (
    format_function_trace_key,
    is_function_trace_key,
    parse_function_trace_key,
)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        pytest.param(FunctionSpec(exec="/bin/x"), "function exec /bin/x", id="a-command"),
        pytest.param(FunctionSpec(exec="/bin/x 'a %b'"), "function exec /bin/x%20'a%20%25b'", id="with-arguments"),
        pytest.param(FunctionSpec(image="a/x:v1"), "function image a/x:v1", id="an-image"),
        pytest.param(FunctionSpec(image="a/x", tag="v1"), "function image a/x v1", id="with-a-tag-field"),
    ],
)
def test_trace_key_of_a_function(spec: FunctionSpec, name: str) -> None:
    assert format_function_trace_key(spec) == name
    assert parse_function_trace_key(name) == spec
    assert is_function_trace_key(name)


@pytest.mark.parametrize("name", ["function", "function ", "function shell x", "function exec", "variant", ""])
def test_invalid_trace_key_is_an_empty_function(name: str) -> None:
    assert parse_function_trace_key(name) == FunctionSpec()


def test_other_trace_keys() -> None:
    assert not is_function_trace_key("object v1 ConfigMap default function")
