"""Isolation of config objects: find the objects that cause an unexpected exception, and continue without them.

A controller reads many objects together. If the controller raises an unexpected exception, it runs again on parts of
the catalog until the faulty objects are found. The final result is computed without the faulty objects. A faulty object
has no effect, and its packages are not deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.krm.findings import Finding, create_internal_error_finding
from reconciler.krm.internal_errors import InternalFailure, ScopeFailedError, isolation_boundary
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field

_T = TypeVar("_T")
# The search bisects the objects. If it finds more faulty objects than this limit, it stops without a result, because
# the cause is probably not an object.
_MAX_FAULTY_OBJECTS = 20


@dataclass(frozen=True)
class IsolationResult(Generic[_T]):
    """The result of a function that ran on a catalog without the objects for which the function fails.

    Attributes:
        catalog: The catalog without the excluded objects.
        findings: One finding for each excluded object.
    """

    result: _T
    catalog: Catalog
    excluded: tuple[ConfigObject, ...] = ()
    findings: tuple[Finding, ...] = field(default=())


class FaultyObjectSearch(Generic[_T]):
    """Runs a function on catalogs, and finds the objects that cause an unexpected exception of the function.

    After a failure, the search first tries the objects that were faulty in the previous call of `run`.
    """

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._last_faulty: dict[ObjectKey, ConfigObject] = {}

    def run(
        self, catalog: Catalog, work: Callable[[Catalog], _T], work_without_reuse: Callable[[Catalog], _T]
    ) -> IsolationResult[_T]:
        """Return the result of `work`. If some objects cause an exception in `work`, return the result without them.

        Args:
            work: Computes the result from a catalog. It may reuse results of earlier passes.
            work_without_reuse: Computes the same result and reuses nothing. It is called after a failure of `work`,
                which may have left incomplete results.

        Raises:
            ScopeFailedError: `work_without_reuse` still fails without the faulty objects that the search found.
        """
        first = self._attempt(catalog, work)
        if not isinstance(first, InternalFailure):
            self._last_faulty = {}
            return IsolationResult(first[0], catalog)
        search = _Search(catalog, lambda part: self._attempt(part, work_without_reuse))
        previous_faulty = [faulty for key, faulty in self._last_faulty.items() if catalog.get(key) is faulty]
        faulty = search.find(previous_faulty)
        self._last_faulty = {config_object.key: config_object for config_object in faulty}
        remaining = catalog.without_objects(config_object.key for config_object in faulty)
        result = self._attempt(remaining, work_without_reuse)
        if isinstance(result, InternalFailure):
            raise ScopeFailedError(result)
        findings = tuple(
            _create_finding(config_object, search.failures.get(config_object.key, first)) for config_object in faulty
        )
        return IsolationResult(result[0], remaining, tuple(faulty), findings)

    def _attempt(self, catalog: Catalog, work: Callable[[Catalog], _T]) -> tuple[_T] | InternalFailure:
        try:
            with isolation_boundary(self._scope):
                return (work(catalog),)
        except ScopeFailedError as error:
            return error.failure


def _create_finding(config_object: ConfigObject, failure: InternalFailure) -> Finding:
    return create_internal_error_finding(failure.with_scope(config_object.key.reference), config_object.location)


class _Search(Generic[_T]):
    """The search for objects that cause an exception. `failures` maps the key of each such object to its exception."""

    def __init__(self, catalog: Catalog, attempt: Callable[[Catalog], tuple[_T] | InternalFailure]) -> None:
        self._catalog = catalog
        self._attempt = attempt
        self.failures: dict[ObjectKey, InternalFailure] = {}

    def find(self, candidates: Sequence[ConfigObject]) -> list[ConfigObject]:
        """Return the objects for which the function `work` of `FaultyObjectSearch.run` fails.

        If `work` succeeds without `candidates`, search only these objects. Otherwise, search all objects. Return an
        empty list if too many objects are faulty, or if `work` fails even without any object.
        """
        if candidates and self._find_failure_without(candidates) is None:
            return self._find_among(candidates, ())
        all_objects = list(self._catalog.objects.values())
        if self._find_failure_without(all_objects) is not None:
            return []
        faulty = self._find_among(all_objects, ())
        return faulty if len(faulty) <= _MAX_FAULTY_OBJECTS else []

    def _find_among(self, candidates: Sequence[ConfigObject], excluded: Sequence[ConfigObject]) -> list[ConfigObject]:
        """Return the faulty objects in `candidates`.

        The caller has checked that the function succeeds on the catalog without `candidates` and `excluded`.
        """
        failure = self._find_failure_without(excluded)
        if failure is None:
            return []
        if len(candidates) == 1:
            self.failures[candidates[0].key] = failure
            return [*candidates]
        if len(self.failures) > _MAX_FAULTY_OBJECTS:
            return [*candidates]
        middle = len(candidates) // 2
        first = self._find_among(candidates[:middle], (*excluded, *candidates[middle:]))
        return [*first, *self._find_among(candidates[middle:], (*excluded, *first))]

    def _find_failure_without(self, excluded: Sequence[ConfigObject]) -> InternalFailure | None:
        keys = (config_object.key for config_object in excluded)
        result = self._attempt(self._catalog.without_objects(keys))
        return result if isinstance(result, InternalFailure) else None
