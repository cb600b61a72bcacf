"""set-name-prefix: which names change, and what follows."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.packages.functions.resource_names import set_name_prefix
from tests.unit.packages.builders import config, messages, run, shown

PREFIX = config("ConfigMap", {"prefix": "shop"})
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


def head(name: str, kind: str = "A") -> str:
    """Return the first lines of a resource."""
    return f"apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n"


@pytest.mark.parametrize(
    ("configuration", "before", "after"),
    [
        pytest.param(PREFIX, head("packagename"), head("shop"), id="the-whole-name"),
        pytest.param(PREFIX, head("packagename-db"), head("shop-db"), id="up-to-a-dash"),
        pytest.param(PREFIX, head("packagenames"), head("packagenames"), id="another-word"),
        pytest.param(
            PREFIX, head("packagename", "ResourceGroup"), head("packagename", "ResourceGroup"), id="inventory"
        ),
        pytest.param(
            config("ConfigMap", {"prefix": "shop", "oldPrefix": "x"}), head("x-db"), head("shop-db"), id="old-prefix"
        ),
        pytest.param(
            None, f"{CONTEXT}---\n{head('packagename')}", f"{CONTEXT}---\n{head('blog')}", id="package-context"
        ),
        pytest.param(
            PREFIX,
            f"{head('packagename-c', 'ConfigMap')}---\n{head('p', 'Pod')}"
            "spec:\n  volumes:\n  - configMap:\n      name: packagename-c # why\n",
            f"{head('shop-c', 'ConfigMap')}---\n{head('p', 'Pod')}"
            "spec:\n  volumes:\n  - configMap:\n      name: shop-c # why\n",
            id="references",
        ),
        pytest.param(
            PREFIX,
            f"{head('packagename')}---\n{head('b')}{NOTED}/A/packagename\n",
            f"{head('shop')}---\n{head('b')}{NOTED}/A/shop\n",
            id="depends-on",
        ),
    ],
)
def test_set_name_prefix(configuration: dict[str, Any] | None, before: str, after: str) -> None:
    output = run(set_name_prefix, before, configuration)

    assert messages(output) == []
    assert shown(output.items) == after


def test_local_configuration_keeps_its_name() -> None:
    text = f"{head('packagename')}  annotations:\n    config.kubernetes.io/local-config: 'true'\n"

    assert shown(run(set_name_prefix, text, PREFIX).items) == text


@pytest.mark.parametrize(
    ("configuration", "reason"),
    [
        pytest.param(None, "`data.prefix` should not be empty", id="neither-prefix-nor-context"),
        pytest.param(config("SetPrefix", {"prefix": "x"}), 'not "SetPrefix"', id="kind"),
    ],
)
def test_errors(configuration: dict[str, Any] | None, reason: str) -> None:
    output = run(set_name_prefix, head("packagename"), configuration)

    assert [severity for severity, _ in messages(output)] == ["error"]
    assert reason in messages(output)[0][1]
    assert shown(output.items) == head("packagename")
