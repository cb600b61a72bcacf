"""Tests of set-name-prefix: which names and which references change."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.packages.functions.resource_names import set_name_prefix
from tests.unit.packages.builders import build_config, format_items, list_messages, run_function

PREFIX = build_config("ConfigMap", {"prefix": "shop"})
NOTED = "  annotations:\n    config.kubernetes.io/depends-on: "
CONTEXT = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: kptfile.kpt.dev
  annotations:
    config.kubernetes.io/local-config: "true"
data:
  name: blog
"""


def format_head(name: str, kind: str = "A") -> str:
    """Return the first lines of a resource."""
    return f"apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n"


@pytest.mark.parametrize(
    ("configuration", "before", "after"),
    [
        pytest.param(PREFIX, format_head("packagename"), format_head("shop"), id="the-whole-name"),
        pytest.param(PREFIX, format_head("packagename-db"), format_head("shop-db"), id="up-to-a-dash"),
        pytest.param(PREFIX, format_head("packagenames"), format_head("packagenames"), id="another-word"),
        pytest.param(
            PREFIX,
            format_head("packagename", "ResourceGroup"),
            format_head("packagename", "ResourceGroup"),
            id="inventory",
        ),
        pytest.param(
            build_config("ConfigMap", {"prefix": "shop", "oldPrefix": "x"}),
            format_head("x-db"),
            format_head("shop-db"),
            id="old-prefix",
        ),
        pytest.param(
            None,
            f"{CONTEXT}---\n{format_head('packagename')}",
            f"{CONTEXT}---\n{format_head('blog')}",
            id="package-context",
        ),
        pytest.param(
            PREFIX,
            f"{format_head('packagename-c', 'ConfigMap')}---\n{format_head('p', 'Pod')}"
            "spec:\n  volumes:\n  - configMap:\n      name: packagename-c # why\n",
            f"{format_head('shop-c', 'ConfigMap')}---\n{format_head('p', 'Pod')}"
            "spec:\n  volumes:\n  - configMap:\n      name: shop-c # why\n",
            id="references",
        ),
        pytest.param(
            PREFIX,
            f"{format_head('packagename')}---\n{format_head('b')}{NOTED}/A/packagename\n",
            f"{format_head('shop')}---\n{format_head('b')}{NOTED}/A/shop\n",
            id="depends-on",
        ),
    ],
)
def test_set_name_prefix(configuration: dict[str, Any] | None, before: str, after: str) -> None:
    output = run_function(set_name_prefix, before, configuration)

    assert list_messages(output) == []
    assert format_items(output.items) == after


def test_local_config_resource_keeps_its_name() -> None:
    text = f"{format_head('packagename')}  annotations:\n    config.kubernetes.io/local-config: 'true'\n"

    assert format_items(run_function(set_name_prefix, text, PREFIX).items) == text


@pytest.mark.parametrize(
    ("configuration", "reason"),
    [
        pytest.param(None, "`data.prefix` should not be empty", id="neither-prefix-nor-context"),
        pytest.param(build_config("SetPrefix", {"prefix": "x"}), ' is "SetPrefix"', id="kind"),
    ],
)
def test_errors(configuration: dict[str, Any] | None, reason: str) -> None:
    output = run_function(set_name_prefix, format_head("packagename"), configuration)

    assert [severity for severity, _ in list_messages(output)] == ["error"]
    assert reason in list_messages(output)[0][1]
    assert format_items(output.items) == format_head("packagename")
