"""Catalogs do nothing here, and that is told where they would do something."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.findings import Severity
from tests.unit.controllers.plugin_presets.presets_world import EAST, definition, finding, preset, room, told, written

OVERRIDES = [{"name": "shipper", "optionsOverride": [{"name": "size", "value": 3}]}]


@pytest.mark.parametrize(
    ("spec", "told_of"),
    [
        pytest.param({"sources": [{"repository": "r"}, {"overrides": OVERRIDES}]}, True, id="overrides"),
        pytest.param({"sources": [{"repository": "r", "overrides": []}]}, False, id="no-overrides"),
        pytest.param({"sources": ["r", None]}, False, id="no-sources"),
        pytest.param({"sources": {"overrides": OVERRIDES}}, False, id="no-list"),
        pytest.param(["sources"], False, id="no-spec"),
    ],
)
def test_catalogs(spec: Any, told_of: bool) -> None:
    result = room([EAST, definition(), preset(), written("Catalog", "extensions", spec)])

    assert told(result) == (["CatalogIgnored"] if told_of else [])
    assert len(result.variants) == 1
    if told_of:
        actual_finding = finding(result, "CatalogIgnored")
        assert (actual_finding.severity, actual_finding.location.pointer) == (
            Severity.WARNING,
            "/spec/sources/1/overrides",
        )
