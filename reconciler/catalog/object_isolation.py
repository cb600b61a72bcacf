"""Isolation of config objects: find the objects that cause an unexpected exception, and continue without them.

Controllers read many objects together. If one object causes an unexpected exception, the work is repeated on parts of
the catalog until the faulty objects are known. The result is that of all other objects. A faulty object has no effect,
and nothing that it owns is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.krm.findings import Finding, create_internal_error_finding
from reconciler.krm.isolation import InternalFailure, ScopeFailedError, isolation_boundary
from reconciler.krm.objects import ObjectKey

_T = TypeVar("_T")
# The search for one faulty object is a bisection. With more faulty objects than this, the cause is not the objects.
_MAX_FAULTY_OBJECTS = 20


@dataclass(frozen=True)
class IsolationResult(Generic[_T]):
    """The result of work on a catalog, the catalog without the excluded objects, and the findings about them."""

    result: _T
    catalog: Catalog
    excluded: tuple[ConfigObject, ...] = ()
    findings: tuple[Finding, ...] = field(default=())


class FaultyObjectSearch(Generic[_T]):
    """Runs one kind of work on catalogs. Objects that failed before are tried first after a failure."""

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._last_faulty: dict[ObjectKey, ConfigObject] = {}

    def run(
        self, catalog: Catalog, work: Callable[[Catalog], _T], work_without_reuse: Callable[[Catalog], _T]
    ) -> IsolationResult[_T]:
        """Return the result of `work`, without the objects that it fails for.

        Args:
            catalog: All objects of the config.
            work: The work on a catalog. It may reuse results of earlier passes.
            work_without_reuse: The same work without reuse, for repetitions, because the failure may have left
                incomplete results.

        Raises:
            ScopeFailedError: The work fails with every set of objects.
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
    return create_internal_error_finding(failure.with_scope(str(config_object.key)), config_object.location)


class _Search(Generic[_T]):
    """The search for the objects that some work fails for. `failures` are keyed by object."""

    def __init__(self, catalog: Catalog, attempt: Callable[[Catalog], tuple[_T] | InternalFailure]) -> None:
        self._catalog = catalog
        self._attempt = attempt
        self.failures: dict[ObjectKey, InternalFailure] = {}

    def find(self, candidates: Sequence[ConfigObject]) -> list[ConfigObject]:
        """Return the objects without which the work succeeds; [] if there is no such set. Try `candidates` first."""
        if candidates and self._find_failure_without(candidates) is None:
            return self._find_among(candidates, ())
        all_objects = list(self._catalog.objects.values())
        if self._find_failure_without(all_objects) is not None:
            return []
        faulty = self._find_among(all_objects, ())
        return faulty if len(faulty) <= _MAX_FAULTY_OBJECTS else []

    def _find_among(self, candidates: Sequence[ConfigObject], excluded: Sequence[ConfigObject]) -> list[ConfigObject]:
        """Return the faulty objects among `candidates`. The work succeeds without `candidates` and `excluded`."""
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
