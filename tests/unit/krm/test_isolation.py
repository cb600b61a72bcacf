"""A boundary turns unexpected exceptions into values, with a reference that does not depend on the run."""

from __future__ import annotations

import pickle

import pytest

from reconciler.catalog.files import compute_tree_id
from reconciler.krm.findings import SourceLocation, create_internal_error_finding
from reconciler.krm.isolation import ExpectedError, InternalFailure, ScopeFailedError, isolation_boundary


class TypedError(ExpectedError):
    """An exception with a handler of its own."""


def failure_of(error: BaseException) -> InternalFailure:
    with pytest.raises(ScopeFailedError) as exception_info, isolation_boundary("package berlin/web"):
        raise error
    return exception_info.value.failure


def recurse(depth: int) -> int:
    return recurse(depth + 1)


@pytest.mark.parametrize("error", [ValueError, OSError, MemoryError, RecursionError, KeyError, AssertionError])
def test_an_unexpected_exception_names_its_scope_and_type(error: type[Exception]) -> None:
    failure = failure_of(error("the text of the exception"))

    assert (failure.scope, failure.error_type) == ("package berlin/web", error.__name__)
    assert "the text of the exception" in failure.traceback
    assert "the text of the exception" not in failure.message
    assert failure.reference in failure.message


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, TypedError])
def test_these_pass_unchanged(error: type[BaseException]) -> None:
    with pytest.raises(error), isolation_boundary("package berlin/web"):
        raise error


def test_a_panic_of_a_rust_library_is_an_unexpected_exception() -> None:
    panic = type("PanicException", (BaseException,), {})

    assert failure_of(panic("index out of bounds")).error_type == "PanicException"


def test_a_reference_is_the_same_whatever_the_depth_of_the_stack_and_the_scope() -> None:
    def deeper(depth: int) -> InternalFailure:
        if depth:
            return deeper(depth - 1)
        with pytest.raises(ScopeFailedError) as exception_info, isolation_boundary(f"depth {depth}"):
            recurse(0)
        return exception_info.value.failure

    assert deeper(0).reference == deeper(7).reference


def test_a_reference_follows_the_function_that_raised() -> None:
    with pytest.raises(ScopeFailedError) as exception_info, isolation_boundary("a"):
        compute_tree_id([("100644", "a", "no id")])
    with pytest.raises(ScopeFailedError) as same, isolation_boundary("b"):
        compute_tree_id([("100644", "b", "none either")])

    assert exception_info.value.failure.reference == same.value.failure.reference
    assert exception_info.value.failure.reference != failure_of(ValueError("no id")).reference


def test_a_traceback_has_no_credentials_of_urls() -> None:
    failure = failure_of(ValueError("cannot read https://ada:s3cret-token@example.com/fleet.git"))

    assert "s3cret-token" not in failure.traceback
    assert "example.com/fleet.git" in failure.traceback


def test_findings_are_equal_whatever_the_traceback() -> None:
    finding, other = (
        create_internal_error_finding(failure_of(ValueError(text)), SourceLocation("a.yaml", 1)) for text in ("x", "y")
    )

    assert finding == other
    assert hash(finding) == hash(other)


def test_a_failed_scope_can_be_sent_by_a_worker() -> None:
    failure = failure_of(ValueError("x"))
    sent = pickle.loads(pickle.dumps(ScopeFailedError(failure)))

    assert sent.failure == failure
    assert sent.failure.traceback == failure.traceback
