"""Units whose refs Git cannot create beside other refs: a ref is not also a folder of refs."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconciler.git.push import _find_conflicting_units
from reconciler.git.push_outcomes import PushRefused, PushUnit, RefUpdate

NEW, OLD = "1" * 40, "2" * 40


def create(name: str, *branches: str) -> PushUnit:
    return PushUnit(name, tuple(RefUpdate(f"refs/heads/{branch}", NEW, None) for branch in branches))


def delete(name: str, *branches: str) -> PushUnit:
    return PushUnit(name, tuple(RefUpdate(f"refs/heads/{branch}", None, OLD) for branch in branches))


@pytest.mark.parametrize(
    ("existing", "units", "refused"),
    [
        pytest.param(("d",), [create("a", "e"), create("b", "e2")], {}, id="no-conflict"),
        pytest.param(("d",), [create("a", "d/x")], {"a": ("d/x", "d")}, id="below-an-existing-ref"),
        pytest.param(("d/x",), [create("a", "d")], {"a": ("d", "d/")}, id="above-an-existing-ref"),
        pytest.param(("d",), [create("a", "d")], {}, id="an-existing-ref"),
        pytest.param(("d",), [create("a", "d/x"), delete("b", "d")], {}, id="below-a-deleted-ref"),
        pytest.param(("d/x",), [create("a", "d"), delete("b", "d/x")], {}, id="above-a-deleted-ref"),
        pytest.param((), [create("a", "x"), create("b", "x/y")], {"b": ("x/y", "x")}, id="below-a-new-ref"),
        pytest.param((), [create("a", "x/y"), create("b", "x")], {"b": ("x", "x/")}, id="above-a-new-ref"),
        pytest.param((), [create("b", "x"), create("a", "x/y")], {"b": ("x", "x/")}, id="the-first-name-wins"),
        pytest.param((), [delete("a", "x"), create("b", "x/y")], {}, id="a-deletion-creates-no-ref"),
        pytest.param(
            ("d", "e/x"),
            [create("a", "f/1"), create("b", "d/x"), create("c", "e"), create("d", "f")],
            {"b": ("d/x", "d"), "c": ("e", "e/"), "d": ("f", "f/")},
            id="all-refs-count-for-all-units",
        ),
        pytest.param(
            ("d",), [create("a", "x", "d/1"), create("b", "x/y")], {"a": ("d/1", "d")}, id="a-refused-unit-creates-no-ref"
        ),
        pytest.param(
            ("d", "e"), [create("a", "x", "e/1", "d/1")], {"a": ("e/1", "e")}, id="the-message-names-the-first-conflict"
        ),
    ],
)  # fmt: skip
def test_conflicting_units_are_refused(
    existing: tuple[str, ...], units: list[PushUnit], refused: Mapping[str, tuple[str, str]]
) -> None:
    outcomes = _find_conflicting_units(units, {f"refs/heads/{branch}": OLD for branch in existing})

    assert outcomes == {
        name: PushRefused(f"refs/heads/{ref} cannot be created while refs/heads/{other} exists")
        for name, (ref, other) in refused.items()
    }
