"""Tests of the detection of upstream downgrades."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.catalog.files import CommitId
from reconciler.controllers.results import UpstreamPackage
from reconciler.planning.decide.package_decision import is_downgrade
from tests.unit.planning.builders import build_upstream

KNOWN = {**build_upstream("new", "gw/v10").as_data(), "seconds": 0}
MOVED = {**KNOWN, "ref": "gw/stable"}


@pytest.mark.parametrize(
    ("upstream_package", "known", "history", "back"),
    [
        pytest.param(build_upstream("old", "gw/v9"), KNOWN, False, True, id="a-lower-number"),
        pytest.param(build_upstream("old", "gw/v11"), KNOWN, True, False, id="higher-number-regardless-of-history"),
        pytest.param(
            build_upstream("old", "gw/v1.2.0"), {**KNOWN, "ref": "gw/v1.10.0"}, False, True, id="numbers-of-a-version"
        ),
        pytest.param(build_upstream("old", "gw/stable"), MOVED, True, True, id="a-tag-that-moved-into-its-history"),
        pytest.param(build_upstream("old", "gw/stable"), MOVED, False, False, id="a-tag-that-moved-on"),
        pytest.param(build_upstream("old", "gw/v9"), MOVED, True, True, id="from-a-tag-to-an-older-revision"),
        pytest.param(
            replace(build_upstream("new", "gw/beta"), commit=CommitId("at-new")),
            MOVED,
            True,
            False,
            id="another-name-only",
        ),
        pytest.param(
            replace(build_upstream("old", "gw/v9"), directory="edge"),
            KNOWN,
            True,
            False,
            id="another-package-is-no-way-back",
        ),
        pytest.param(build_upstream("old", "gw/v9"), {}, True, False, id="nothing-known"),
        pytest.param(
            build_upstream("old", "gw/v9"),
            {**KNOWN, "ref": "", "commit": "", "tree": ""},
            True,
            False,
            id="never-acted-on",
        ),
    ],
)
def test_is_downgrade(upstream_package: UpstreamPackage, known: dict[str, object], history: bool, back: bool) -> None:
    assert is_downgrade(upstream_package, known, lambda upstream, commit: history) is back
