"""What the service logs about a pass: levels equal severities, and counts include blocked objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from reconciler.krm.findings import Finding, Severity, SourceLocation
from reconciler.reconcile.pass_runner import PassSummary, log_pass
from tests.support.world import World, small_world, variant

SET = """\
apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata:
  name: broken
spec:
  upstream: {repo: catalog, package: gateway, revision: v1}
  targets: []
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return small_world(tmp_path)


@pytest.mark.parametrize("severity", Severity, ids=str)
def test_a_finding_is_logged_at_the_level_of_its_severity(severity: Severity) -> None:
    finding = Finding("SomeCode", "some message", SourceLocation("a.yaml", 3, "ConfigMap/default/a"), severity)

    events = _logged(PassSummary("c1", {}, (finding,)))

    assert events[0] == {
        "log_level": severity.value,
        "event": "finding_reported",
        "code": "SomeCode",
        "severity": severity.value,
        "message": "some message",
        "file": "a.yaml",
        "line": 3,
        "object": "ConfigMap/default/a",
    }


def test_a_pass_with_an_invalid_set_is_not_clean(world: World) -> None:
    world.write({"broken.yaml": SET})

    finished = _finished(world)

    assert (finished["clean"], finished["blocked"]) == (False, 1)
    assert finished["findings"]["error"] > 0


def test_a_blocked_object_with_a_blocked_package_counts_once(world: World) -> None:
    # The second variant claims the place of the first one, and is blocked there.
    world.write({"second.yaml": variant("metrics-second", "berlin", "metrics")})

    assert _finished(world)["blocked"] == 1


def test_an_unreadable_file_counts_as_blocked(world: World) -> None:
    world.write({"broken.yaml": "a: [\n"})

    assert _finished(world)["blocked"] == 1


def test_a_pass_without_errors_is_clean(world: World) -> None:
    finished = _finished(world)

    assert (finished["clean"], finished["blocked"], finished["findings"]["error"]) == (True, 0, 0)


def _finished(world: World) -> dict[str, Any]:
    passes = world.service()
    passes.run()
    return _logged(passes.summary)[-1]


def _logged(pass_summary: PassSummary) -> list[dict[str, Any]]:
    with capture_logs() as events:
        log_pass(pass_summary)
    return [dict(event) for event in events]
