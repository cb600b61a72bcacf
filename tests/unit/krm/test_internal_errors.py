"""Tests of the isolation boundary: it turns unexpected exceptions into values with a reproducible reference."""

from __future__ import annotations

import pickle

import pytest

from reconciler.catalog.files import compute_tree_id
from reconciler.krm.findings import SourceLocation, create_internal_error_finding
from reconciler.krm.internal_errors import ExpectedError, InternalFailure, ScopeFailedError, isolation_boundary


class TypedError(ExpectedError):
    """An exception with its own handler."""


def catch_failure(error: BaseException) -> InternalFailure:
    with pytest.raises(ScopeFailedError) as exception_info, isolation_boundary("package berlin/web"):
        raise error
    return exception_info.value.failure


def recurse(depth: int) -> int:
    return recurse(depth + 1)


@pytest.mark.parametrize("error", [ValueError, OSError, MemoryError, RecursionError, KeyError, AssertionError])
def test_unexpected_exception_names_its_scope_and_type(error: type[Exception]) -> None:
    failure = catch_failure(error("the text of the exception"))

    assert (failure.scope, failure.error_type) == ("package berlin/web", error.__name__)
    assert "the text of the exception" in failure.traceback
    assert "the text of the exception" not in failure.message
    assert failure.reference in failure.message


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, TypedError])
def test_expected_exceptions_pass_unchanged(error: type[BaseException]) -> None:
    with pytest.raises(error), isolation_boundary("package berlin/web"):
        raise error


def test_panic_of_a_rust_library_is_an_unexpected_exception() -> None:
    panic = type("PanicException", (BaseException,), {})

    assert catch_failure(panic("index out of bounds")).error_type == "PanicException"


def test_reference_does_not_depend_on_the_stack_depth_or_scope() -> None:
    def catch_at_depth(depth: int) -> InternalFailure:
        if depth:
            return catch_at_depth(depth - 1)
        with pytest.raises(ScopeFailedError) as exception_info, isolation_boundary(f"depth {depth}"):
            recurse(0)
        return exception_info.value.failure

    assert catch_at_depth(0).reference == catch_at_depth(7).reference


def test_reference_depends_on_the_function_that_raised() -> None:
    with pytest.raises(ScopeFailedError) as exception_info, isolation_boundary("a"):
        compute_tree_id([("100644", "a", "no id")])
    with pytest.raises(ScopeFailedError) as same, isolation_boundary("b"):
        compute_tree_id([("100644", "b", "none either")])

    assert exception_info.value.failure.reference == same.value.failure.reference
    assert exception_info.value.failure.reference != catch_failure(ValueError("no id")).reference


def test_traceback_contains_no_credentials_of_urls() -> None:
    failure = catch_failure(ValueError("cannot read https://ada:s3cret-token@example.com/fleet.git"))

    assert "s3cret-token" not in failure.traceback
    assert "example.com/fleet.git" in failure.traceback


def test_findings_with_different_tracebacks_are_equal() -> None:
    finding, other = (
        create_internal_error_finding(catch_failure(ValueError(text)), SourceLocation("a.yaml", 1))
        for text in ("x", "y")
    )

    assert finding == other
    assert hash(finding) == hash(other)


def test_failed_scope_can_be_sent_by_a_worker() -> None:
    failure = catch_failure(ValueError("x"))
    sent = pickle.loads(pickle.dumps(ScopeFailedError(failure)))

    assert sent.failure == failure
    assert sent.failure.traceback == failure.traceback
