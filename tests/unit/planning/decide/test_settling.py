"""Settling: what a package is decided on while a move of its upstream's reference waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.controllers.results import SettlingReference, UpstreamPackage, Variant
from reconciler.krm.findings import Severity
from reconciler.planning.decide.package_decision import apply_settling, list_settling_findings
from reconciler.planning.model.outcomes import Blocked
from reconciler.planning.model.state import ObservedPackage, PackageRecord
from tests.unit.planning.values import commit, record, tree, upstream, variant

WAITS = SettlingReference(1_000, "tag stable of catalog/gw names another commit")
OLD = replace(upstream("up1", "gw/stable"), is_floating=True)
NEW = replace(upstream("up2", "gw/stable"), is_floating=True)
ELSEWHERE = replace(upstream("up0", "other/v1"), directory="other")


def wanted(source: UpstreamPackage = NEW, settling: SettlingReference | None = WAITS) -> Variant:
    return variant(upstream=source, settling=settling)


def known(source: UpstreamPackage, **fields: object) -> PackageRecord:
    return record(**{"outcome": {"kind": "drafted", "upstream": {**source.as_data(), "seconds": 7}}, **fields})


@pytest.mark.parametrize(
    ("requested_variant", "remembered", "stays_at", "waits"),
    [
        pytest.param(wanted(), known(OLD), OLD, True, id="a-move-waits-at-the-last-upstream"),
        pytest.param(wanted(settling=None), known(OLD), NEW, False, id="a-settled-move-is-followed"),
        pytest.param(wanted(OLD), known(OLD), OLD, False, id="no-move-has-nothing-to-wait-for"),
        pytest.param(
            wanted(replace(OLD, ref="gw/v2")), known(OLD), OLD, False, id="another-name-for-the-same-content-is-no-move"
        ),
        pytest.param(
            wanted(replace(OLD, ref="gw/v2"), None), known(OLD), OLD, False, id="and-not-when-it-has-settled-either"
        ),
        pytest.param(
            wanted(replace(OLD, ref="gw/v2", is_floating=False), None), known(OLD), replace(OLD, ref="gw/v2"), False,
            id="a-pinned-revision-is-what-people-wrote",
        ),
        pytest.param(
            wanted(settling=None), known(ELSEWHERE), NEW, False, id="a-settled-upstream-of-another-package-is-followed"
        ),
    ],
)  # fmt: skip
def test_hold(requested_variant: Variant, remembered: PackageRecord, stays_at: UpstreamPackage, waits: bool) -> None:
    held = apply_settling(requested_variant, remembered, ObservedPackage())

    assert isinstance(held, Variant)
    assert held.upstream.as_data() == stays_at.as_data()
    assert held.dependencies["upstream"] == stays_at.fingerprint
    assert (held.settling is not None) is waits


def test_the_date_of_the_last_upstream_is_kept() -> None:
    held = apply_settling(wanted(), known(OLD), ObservedPackage())

    assert isinstance(held, Variant)
    assert held.upstream.committer_seconds == 7


@pytest.mark.parametrize(
    "remembered",
    [
        pytest.param(None, id="never-seen"),
        pytest.param(known(NEW, is_owned=False), id="only-ever-blocked"),
        pytest.param(record(outcome={"kind": "held", "findings": []}), id="held-before"),
        pytest.param(known(ELSEWHERE), id="made-from-another-package"),
        pytest.param(known(replace(NEW, ref="", commit=commit(""), tree=tree(""))), id="waited-before"),
    ],
)
def test_without_a_last_upstream_nothing_is_made(remembered: PackageRecord | None) -> None:
    held = apply_settling(wanted(), remembered, ObservedPackage())

    assert isinstance(held, Blocked)
    assert [
        (condition.type, condition.status, condition.reason, condition.message) for condition in held.conditions
    ] == [
        ("Ready", "False", "UpstreamSettling", WAITS.message),
        ("Stalled", "True", "UpstreamSettling", WAITS.message),
    ]
    assert [(finding.code, finding.severity) for finding in held.findings] == [("UpstreamSettling", Severity.INFO)]
    assert held.variant.upstream.tree in ("", ELSEWHERE.tree)
    # what was answered before must not count as the answer once it has settled
    assert held.trace == {}


def test_another_packages_upstream_stays_remembered_as_the_last_one() -> None:
    held = apply_settling(wanted(), known(ELSEWHERE), ObservedPackage())

    assert held.variant.upstream.as_data() == ELSEWHERE.as_data() if isinstance(held, Blocked) else False


def test_only_what_waits_is_told() -> None:
    assert [finding.message for finding in list_settling_findings(wanted())] == [WAITS.message]
    assert list_settling_findings(wanted(settling=None)) == ()
