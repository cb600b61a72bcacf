"""Tests of remove-local-config-resources: which resources are removed."""

from __future__ import annotations

import pytest

from reconciler.api.profile import Profile
from reconciler.packages.functions.function import FunctionContext
from reconciler.packages.functions.resources import remove_local_config_resources
from tests.unit.packages.builders import KPTFILE, list_messages, parse_items, run_function

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
    output = run_function(remove_local_config_resources, f"{marked}---\n{text}", None)

    assert list_messages(output) == expected
    assert len(output.items) == (1 if expected == GONE else 2)


@pytest.mark.parametrize(
    ("profile", "remaining"),
    [pytest.param("safe", 1, id="safe"), pytest.param("compat", 0, id="upstream-does-not")],
)
def test_local_config_kptfile(profile: Profile, remaining: int) -> None:
    text = f"{KPTFILE}  annotations:\n    config.kubernetes.io/local-config: 'true'\n"
    output = remove_local_config_resources(parse_items(text, "Kptfile"), None, FunctionContext(profile))

    assert len(output.items) == remaining
