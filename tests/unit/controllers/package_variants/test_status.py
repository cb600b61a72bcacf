"""Tests of the conditions of variants and sets: status, reason and message."""

from __future__ import annotations

import pytest

from reconciler.controllers.package_variants import status
from reconciler.controllers.package_variants.set_expansion import SetFailure
from reconciler.controllers.package_variants.upstream_resolution import UnresolvedUpstream
from reconciler.krm.objects import Condition

VALID = ("False", "Valid", "all validation checks passed")


@pytest.mark.parametrize(
    ("conditions", "stalled", "ready"),
    [
        pytest.param(
            status.build_invalid_conditions(["a", "b"]),
            ("True", "ValidationError", "a; b"),
            ("False", "Error", "invalid packagevariant object"),
            id="invalid-variant",
        ),
        pytest.param(
            status.build_unresolved_conditions(UnresolvedUpstream("UpstreamNotPublished", "why")),
            ("True", "UpstreamNotPublished", "why"),
            ("False", "Error", "why"),
            id="upstream-not-published",
        ),
        pytest.param(
            status.build_downstream_exists_conditions("r", "a/b"),
            ("True", "DownstreamExists", "package r/a/b already exists and is not owned; use adoptExisting"),
            ("False", "DownstreamExists", "package r/a/b already exists and is not owned; use adoptExisting"),
            id="downstream-exists",
        ),
        pytest.param(status.build_failed_conditions("why"), VALID, ("False", "Error", "why"), id="later-error"),
        pytest.param(
            status.build_waiting_conditions("DownstreamProposed", "why"),
            VALID,
            ("False", "DownstreamProposed", "why"),
            id="waiting-for-review",
        ),
        pytest.param(
            status.build_ready_conditions(),
            VALID,
            ("True", "NoErrors", "successfully ensured downstream package variant"),
            id="success",
        ),
        pytest.param(
            status.build_invalid_set_conditions(["a", "b"]),
            ("True", "ValidationError", "a; b"),
            ("False", "ValidationError", "a; b"),
            id="invalid-set",
        ),
        pytest.param(
            status.build_failed_set_conditions(SetFailure("RenderError", "why")),
            ("True", "RenderError", "why"),
            ("False", "RenderError", "why"),
            id="failed-set",
        ),
        pytest.param(
            status.build_reconciled_set_conditions([]),
            VALID,
            ("True", "Reconciled", "package variants successfully reconciled"),
            id="set-done",
        ),
        pytest.param(
            status.build_reconciled_set_conditions([], ["a", "b"]),
            VALID,
            ("False", "TargetsSkipped", "a; b"),
            id="set-with-skipped-targets",
        ),
    ],
)
def test_conditions(
    conditions: tuple[Condition, ...], stalled: tuple[str, str, str], ready: tuple[str, str, str]
) -> None:
    by_type = {condition.type: (condition.status, condition.reason, condition.message) for condition in conditions}

    assert (by_type["Stalled"], by_type["Ready"]) == (stalled, ready)


@pytest.mark.parametrize(
    ("not_ready", "expected", "message"),
    [
        pytest.param([], "True", "all package variants are ready", id="all"),
        pytest.param(["b", "a"], "False", "2 package variants are not ready: a, b", id="some"),
        pytest.param(list("abcdefg"), "False", "7 package variants are not ready: a, b, c, d, e, ...", id="many"),
    ],
)
def test_variants_ready(not_ready: list[str], expected: str, message: str) -> None:
    condition = status.build_reconciled_set_conditions(not_ready)[-1]

    assert (condition.type, condition.status, condition.message) == ("VariantsReady", expected, message)
