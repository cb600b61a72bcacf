"""Tests of object isolation: if work on a catalog fails, it is repeated without the objects that cause the failure."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.catalog.catalog import Catalog
from reconciler.catalog.object_isolation import FaultyObjectSearch
from reconciler.krm.internal_errors import ScopeFailedError
from reconciler.krm.objects import ObjectKey
from tests.support.catalogs import catalog_of

NAMES = [f"n{number}" for number in range(9)]
Work = Callable[[Catalog], list[str]]


def format_config_map(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"


CATALOG = catalog_of(**{name: format_config_map(name) for name in NAMES})


def build_work(*faulty: str, runs: list[int] | None = None) -> Work:
    def work(catalog: Catalog) -> list[str]:
        if runs is not None:
            runs.append(len(catalog.objects))
        names = [key.name for key in catalog.objects]
        if result := sorted({*names} & {*faulty}):
            raise ValueError(result[0])
        return names

    return work


@pytest.mark.parametrize(
    "faulty",
    [
        pytest.param((), id="nothing-fails"),
        pytest.param(("n0",), id="the-first-object"),
        pytest.param(("n8",), id="the-last-object"),
        pytest.param(("n3", "n4"), id="two-objects-in-one-half"),
        pytest.param(("n1", "n7"), id="two-objects-in-two-halves"),
        pytest.param(tuple(NAMES), id="every-object"),
    ],
)
def test_result_contains_all_other_objects(faulty: tuple[str, ...]) -> None:
    work = build_work(*faulty)

    isolation_result = FaultyObjectSearch[list[str]]("config maps").run(CATALOG, work, work)

    assert isolation_result.result == [name for name in NAMES if name not in faulty]
    assert tuple(config_object.key.name for config_object in isolation_result.excluded) == faulty
    assert [(finding.code, finding.location.file) for finding in isolation_result.findings] == [
        ("InternalError", f"{name}.yaml") for name in faulty
    ]
    assert isolation_result.catalog.duplicates == {ObjectKey("", "ConfigMap", "", name) for name in faulty}


def test_failure_without_faulty_object_is_raised() -> None:
    def work(catalog: Catalog) -> list[str]:
        raise ValueError(len(catalog.objects))

    with pytest.raises(ScopeFailedError, match="config maps"):
        FaultyObjectSearch[list[str]]("config maps").run(CATALOG, work, work)


def test_failure_that_does_not_repeat_excludes_no_object() -> None:
    attempts = iter([MemoryError()])

    def work(catalog: Catalog) -> list[str]:
        for error in attempts:
            raise error
        return [key.name for key in catalog.objects]

    isolation_result = FaultyObjectSearch[list[str]]("config maps").run(CATALOG, work, work)

    assert (isolation_result.result, isolation_result.excluded) == (NAMES, ())


def test_faulty_objects_of_the_last_run_are_checked_first() -> None:
    search = FaultyObjectSearch[list[str]]("config maps")
    runs: list[int] = []
    work = build_work("n3", runs=runs)
    search.run(CATALOG, work, work)
    first = len(runs)
    runs.clear()

    isolation_result = search.run(CATALOG, work, work)

    assert [config_object.key.name for config_object in isolation_result.excluded] == ["n3"]
    assert len(runs) < first


def test_repaired_object_is_included_again() -> None:
    search = FaultyObjectSearch[list[str]]("config maps")
    broken, works = build_work("n3"), build_work()
    search.run(CATALOG, broken, broken)

    assert search.run(CATALOG, works, works).excluded == ()
