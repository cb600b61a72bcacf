"""Tests of Greenhouse Catalogs: the controller ignores them, and reports a Catalog with overrides."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.findings import Severity
from tests.unit.controllers.plugin_presets.controller_world import (
    EAST,
    build_definition,
    build_object,
    build_preset,
    find_finding,
    list_codes,
    run_controller,
)

OVERRIDES = [{"name": "shipper", "optionsOverride": [{"name": "size", "value": 3}]}]


@pytest.mark.parametrize(
    ("spec", "is_reported"),
    [
        pytest.param({"sources": [{"repository": "r"}, {"overrides": OVERRIDES}]}, True, id="overrides"),
        pytest.param({"sources": [{"repository": "r", "overrides": []}]}, False, id="no-overrides"),
        pytest.param({"sources": ["r", None]}, False, id="no-sources"),
        pytest.param({"sources": {"overrides": OVERRIDES}}, False, id="no-list"),
        pytest.param(["sources"], False, id="no-spec"),
    ],
)
def test_catalog_with_overrides_is_reported_as_ignored(spec: Any, is_reported: bool) -> None:
    result = run_controller([EAST, build_definition(), build_preset(), build_object("Catalog", "extensions", spec)])

    assert list_codes(result) == (["CatalogIgnored"] if is_reported else [])
    assert len(result.variants) == 1
    if is_reported:
        actual_finding = find_finding(result, "CatalogIgnored")
        assert (actual_finding.severity, actual_finding.location.pointer) == (
            Severity.WARNING,
            "/spec/sources/1/overrides",
        )
