"""Isolation of config objects: when the work on a catalog fails, find the objects that it fails for.

Controllers read many objects together. When one of them raises an unexpected exception, the work is repeated on parts
of the catalog until the objects are known that it fails for, and its result is that of all other objects. An excluded
object is in doubt, like one that is defined twice: it has no effect, and nothing that it owns is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from reconciler.krm.codes import internal_error
from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.krm.isolation import InternalFailure, ScopeFailedError, boundary
from reconciler.snapshot.catalog import Catalog, ConfigObject

_T = TypeVar("_T")
# The search for one faulty object halves the catalog repeatedly. With more of them than this, the whole is defective.
_MAX_FAULTY_OBJECTS = 20


@dataclass(frozen=True)
class Isolated(Generic[_T]):
    """The result of work on a catalog, the catalog it was done on, and why objects were excluded from it."""

    result: _T
    catalog: Catalog
    excluded: tuple[ConfigObject, ...] = ()
    findings: tuple[Finding, ...] = field(default=())


class FaultyObjectSearch(Generic[_T]):
    """Runs one kind of work on catalogs; what it failed for is tried first when it fails again."""

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._last: dict[ObjectKey, ConfigObject] = {}

    def run(self, catalog: Catalog, work: Callable[[Catalog], _T], again: Callable[[Catalog], _T]) -> Isolated[_T]:
        """Return the result of `work`, without the objects that it fails for.

        Args:
            catalog: all objects of the config.
            work: the work on a catalog, which may reuse results of earlier passes.
            again: the same work without reuse, for repetitions: the failure may have left half of a result behind.

        Raises:
            ScopeFailedError: the work fails with every set of objects.
        """
        first = self._attempt(catalog, work)
        if not isinstance(first, InternalFailure):
            self._last = {}
            return Isolated(first[0], catalog)
        search = _Search(catalog, lambda part: self._attempt(part, again))
        known = [one for key, one in self._last.items() if catalog.get(key) is one]
        faulty = search.find(known)
        self._last = {one.key: one for one in faulty}
        part = catalog.excluding(one.key for one in faulty)
        result = self._attempt(part, again)
        if isinstance(result, InternalFailure):
            raise ScopeFailedError(result)
        findings = tuple(self._finding(one, search.failures.get(one.key, first)) for one in faulty)
        return Isolated(result[0], part, tuple(faulty), findings)

    def _attempt(self, catalog: Catalog, work: Callable[[Catalog], _T]) -> tuple[_T] | InternalFailure:
        try:
            with boundary(self._scope):
                return (work(catalog),)
        except ScopeFailedError as error:
            return error.failure

    def _finding(self, one: ConfigObject, failure: InternalFailure) -> Finding:
        return internal_error(failure.in_scope(str(one.key)), one.where)


class _Search(Generic[_T]):
    """The search for the objects that some work fails for; `failures` are by object."""

    def __init__(self, catalog: Catalog, attempt: Callable[[Catalog], tuple[_T] | InternalFailure]) -> None:
        self._catalog = catalog
        self._attempt = attempt
        self.failures: dict[ObjectKey, InternalFailure] = {}

    def find(self, known: Sequence[ConfigObject]) -> list[ConfigObject]:
        """Return the objects without which the work succeeds; `known` are tried first. [] where nothing helps."""
        if known and self._failure_without(known) is None:
            return self._among(known, ())
        everything = list(self._catalog.objects.values())
        if self._failure_without(everything) is not None:
            return []
        found = self._among(everything, ())
        return found if len(found) <= _MAX_FAULTY_OBJECTS else []

    def _among(self, candidates: Sequence[ConfigObject], excluded: Sequence[ConfigObject]) -> list[ConfigObject]:
        """Return the faulty objects among `candidates`; without these and `excluded` the work succeeds."""
        failure = self._failure_without(excluded)
        if failure is None:
            return []
        if len(candidates) == 1:
            self.failures[candidates[0].key] = failure
            return [*candidates]
        if len(self.failures) > _MAX_FAULTY_OBJECTS:
            return [*candidates]
        middle = len(candidates) // 2
        first = self._among(candidates[:middle], (*excluded, *candidates[middle:]))
        return [*first, *self._among(candidates[middle:], (*excluded, *first))]

    def _failure_without(self, excluded: Sequence[ConfigObject]) -> InternalFailure | None:
        found = self._attempt(self._catalog.excluding(one.key for one in excluded))
        return found if isinstance(found, InternalFailure) else None
