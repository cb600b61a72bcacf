"""remove-local-config-resources: which resources go."""

from __future__ import annotations

import pytest

from reconciler.packages.functions.remove_local_config_resources import remove_local_config_resources
from tests.unit.packages.builders import messages, run

NOTHING = ("warning", "Found no resources to prune with the local config annotation")
GONE = [("info", "Number of resources pruned: 1"), ("info", "Resource name: [a]")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param('"true"', GONE, id="true"),
        pytest.param('"True"', GONE, id="case-does-not-count"),
        pytest.param('"false"', [NOTHING], id="false"),
        pytest.param('"yes"', [NOTHING], id="anything-else"),
    ],
)
def test_remove_local_config_resources(value: str, expected: list[tuple[str, str]]) -> None:
    text = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n"
    marked = f"{text}  annotations:\n    config.kubernetes.io/local-config: {value}\n"
    output = run(remove_local_config_resources, f"{marked}---\n{text}", None)

    assert messages(output) == expected
    assert len(output.items) == (1 if expected == GONE else 2)
