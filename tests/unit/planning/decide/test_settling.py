"""Tests of settling: which upstream a package uses while a moved reference waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.controllers.results import SettlingReference, UpstreamPackage, Variant
from reconciler.krm.findings import Severity
from reconciler.planning.decide.package_decision import apply_settling, list_settling_findings
from reconciler.planning.model.outcomes import Blocked
from reconciler.planning.model.state import ObservedPackage, PackageRecord
from tests.unit.planning.builders import build_commit_id, build_record, build_tree_id, build_upstream, build_variant

WAITS = SettlingReference(1_000, "tag stable of catalog/gw names another commit")
OLD = replace(build_upstream("up1", "gw/stable"), is_floating=True)
NEW = replace(build_upstream("up2", "gw/stable"), is_floating=True)
ELSEWHERE = replace(build_upstream("up0", "other/v1"), directory="other")


def build_waiting_variant(source: UpstreamPackage = NEW, settling: SettlingReference | None = WAITS) -> Variant:
    return build_variant(upstream=source, settling=settling)


def build_upstream_record(source: UpstreamPackage, **fields: object) -> PackageRecord:
    return build_record(**{"outcome": {"kind": "drafted", "upstream": {**source.as_data(), "seconds": 7}}, **fields})


@pytest.mark.parametrize(
    ("requested_variant", "remembered", "stays_at", "waits"),
    [
        pytest.param(build_waiting_variant(), build_upstream_record(OLD), OLD, True, id="a-move-waits-at-the-last-upstream"),
        pytest.param(build_waiting_variant(settling=None), build_upstream_record(OLD), NEW, False, id="a-settled-move-is-followed"),
        pytest.param(build_waiting_variant(OLD), build_upstream_record(OLD), OLD, False, id="no-move-has-nothing-to-wait-for"),
        pytest.param(
            build_waiting_variant(replace(OLD, ref="gw/v2")), build_upstream_record(OLD), OLD, False, id="another-name-for-the-same-content-is-no-move"
        ),
        pytest.param(
            build_waiting_variant(replace(OLD, ref="gw/v2"), None), build_upstream_record(OLD), OLD, False, id="and-not-when-it-has-settled-either"
        ),
        pytest.param(
            build_waiting_variant(replace(OLD, ref="gw/v2", is_floating=False), None), build_upstream_record(OLD), replace(OLD, ref="gw/v2"), False,
            id="a-pinned-revision-is-what-people-wrote",
        ),
        pytest.param(
            build_waiting_variant(settling=None), build_upstream_record(ELSEWHERE), NEW, False, id="a-settled-upstream-of-another-package-is-followed"
        ),
    ],
)  # fmt: skip
def test_upstream_while_settling(
    requested_variant: Variant, remembered: PackageRecord, stays_at: UpstreamPackage, waits: bool
) -> None:
    held = apply_settling(requested_variant, remembered, ObservedPackage())

    assert isinstance(held, Variant)
    assert held.upstream.as_data() == stays_at.as_data()
    assert held.dependencies["upstream"] == stays_at.fingerprint
    assert (held.settling is not None) is waits


def test_date_of_the_last_upstream_is_kept() -> None:
    held = apply_settling(build_waiting_variant(), build_upstream_record(OLD), ObservedPackage())

    assert isinstance(held, Variant)
    assert held.upstream.committer_seconds == 7


@pytest.mark.parametrize(
    "remembered",
    [
        pytest.param(None, id="never-seen"),
        pytest.param(build_upstream_record(NEW, is_owned=False), id="only-ever-blocked"),
        pytest.param(build_record(outcome={"kind": "held", "findings": []}), id="held-before"),
        pytest.param(build_upstream_record(ELSEWHERE), id="made-from-another-package"),
        pytest.param(
            build_upstream_record(replace(NEW, ref="", commit=build_commit_id(""), tree=build_tree_id(""))),
            id="waited-before",
        ),
    ],
)
def test_package_without_last_upstream_is_blocked(remembered: PackageRecord | None) -> None:
    held = apply_settling(build_waiting_variant(), remembered, ObservedPackage())

    assert isinstance(held, Blocked)
    assert [
        (condition.type, condition.status, condition.reason, condition.message) for condition in held.conditions
    ] == [
        ("Ready", "False", "UpstreamSettling", WAITS.message),
        ("Stalled", "True", "UpstreamSettling", WAITS.message),
    ]
    assert [(finding.code, finding.severity) for finding in held.findings] == [("UpstreamSettling", Severity.INFO)]
    assert held.variant.upstream.tree in ("", ELSEWHERE.tree)
    # The recorded dependencies must not match after the reference has settled.
    assert held.trace == {}


def test_last_upstream_of_another_repository_is_kept() -> None:
    held = apply_settling(build_waiting_variant(), build_upstream_record(ELSEWHERE), ObservedPackage())

    assert held.variant.upstream.as_data() == ELSEWHERE.as_data() if isinstance(held, Blocked) else False


def test_only_waiting_references_have_findings() -> None:
    assert [finding.message for finding in list_settling_findings(build_waiting_variant())] == [WAITS.message]
    assert list_settling_findings(build_waiting_variant(settling=None)) == ()
