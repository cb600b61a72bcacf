"""What docs/reference/override-policies.md tells people to write is read without findings, and does what the page says."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

import pytest

from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.override_policies import read_rules as known
from reconciler.controllers.override_policies.model import OVERRIDERS
from reconciler.controllers.override_policies.package_overrides import OverriddenPackage
from reconciler.controllers.override_policies.read_policies import OverridePolicies
from reconciler.controllers.override_policies.resource_overrides import OverrideOptions
from reconciler.controllers.override_policies.rollout import find_rollouts, find_wave
from reconciler.krm.yaml import parse_yaml
from tests.unit.controllers.override_policies.override_world import override_package, policy, read, tree, yaml

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "reference" / "override-policies.md").read_text()
SUBJECT, *EXAMPLES = re.findall(r"^```yaml\n(.*?)^```\n(?:\n```diff\n(.*?)^```)?", PAGE, re.DOTALL | re.MULTILINE)
RESOURCES = SUBJECT[0]
CLUSTER = Cluster("edge-1", {"region": "north", "ring": "early"})
NAMES = [re.sub(r"\W+", "-", text.split("\n")[-3].strip()) for text, _ in EXAMPLES]


def policies_of(text: str) -> OverridePolicies:
    """Return the policy of an example, which may be one rule of it."""
    data: Any = yaml(text)
    return read(text if "kind" in data else policy([data], name="edge"))


def applied(policies: OverridePolicies) -> OverriddenPackage:
    return override_package(tree({"all.yaml": RESOURCES}), policies, CLUSTER, OverrideOptions(on_missing="ignore"))


def lines_of(package: OverriddenPackage) -> list[str]:
    return package.files["all.yaml"].data.decode().splitlines()


@pytest.mark.parametrize(("text", "diff"), EXAMPLES, ids=NAMES)
def test_an_example_does_what_the_page_says(text: str, diff: str) -> None:
    policies = policies_of(text)
    package, without = applied(policies), applied(OverridePolicies())

    assert (policies.findings, package.findings) == ((), ())
    if not find_rollouts(policies):
        changes = difflib.unified_diff(lines_of(without), lines_of(package), n=0, lineterm="")
        assert [line for line in changes if not line.startswith(("---", "+++", "@@"))] == diff.splitlines()


def test_the_example_of_a_rollout_has_the_waves_that_the_page_tells_of() -> None:
    (rule,) = (rule for text, _ in EXAMPLES for rule in find_rollouts(policies_of(text)).values())
    clusters = [Cluster("canary-1", {"ring": "early"}), CLUSTER, Cluster("far", {})]

    assert rule.rollout is not None
    assert [find_wave(rule.rollout, cluster) for cluster in clusters] == [0, 1, 2]


OPERATORS = {
    "image": known.IMAGE_OPERATORS,
    "command": known.LIST_OPERATORS,
    "args": known.LIST_OPERATORS,
    "envs": known.MAP_OPERATORS,
    "annotations": known.MAP_OPERATORS,
    "labels": known.MAP_OPERATORS,
    "fields": known.PATCH_OPERATORS,
    "jsonpatch": known.PATCH_OPERATORS,
}


def test_the_table_has_every_overrider_in_order_with_its_operators() -> None:
    section = PAGE.partition("## Overriders")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", section, re.MULTILINE)

    assert [name for name, _ in rows] == [*OVERRIDERS]
    for name, operators in rows:
        match = re.findall(r"`(\w+)`", operators)
        assert sorted(match) == sorted(OPERATORS[name])
        assert match[0] in ("overwrite", "replace")


def test_no_example_is_left_out() -> None:
    assert PAGE.count("```yaml") == 1 + len(EXAMPLES)
    assert PAGE.count("```diff") == len([text for text, _ in EXAMPLES if not find_rollouts(policies_of(text))])
    assert len(parse_yaml(RESOURCES).documents) == 2
