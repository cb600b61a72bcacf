"""Tests of the selection of a variant by its key and its target."""

from __future__ import annotations

import pytest

from reconciler.server.console.selected_drafts import select_variant
from tests.unit.output.fleet.builders import build_draft, build_index


def format_settings(size: int) -> dict[str, str]:
    return {
        "s.yaml": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{size: '{size}'}}\n",
    }


CHANGES = build_index(
    *(build_draft(name, format_settings(0), format_settings(size)) for name, size in (("c1", 1), ("c2", 2), ("c3", 2)))
).changes
VARIANTS = {member.target: variant for variant in CHANGES[0].variants for member in variant.members}


@pytest.mark.parametrize(
    ("key", "target", "expected"),
    [
        pytest.param("", "", "c2", id="most targets"),
        pytest.param("", "c1", "c1", id="target"),
        pytest.param(VARIANTS["c1"].key, "", "c1", id="key"),
        pytest.param(VARIANTS["c1"].key, "c3", "c1", id="key before target"),
        pytest.param("unknown", "c1", "c1", id="target of an unknown key"),
        pytest.param("unknown", "unknown", "c2", id="unknown"),
    ],
)
def test_select_variant(key: str, target: str, expected: str) -> None:
    assert select_variant(CHANGES[0], key, target) is VARIANTS[expected]
