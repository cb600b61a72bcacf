"""Tests of the examples in docs/reference/override-policies.md: they have no findings, and the documented effect."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from reconciler.api import kubeadmiral
from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.override_policies.model import OVERRIDERS
from reconciler.controllers.override_policies.package_overrides import OverriddenPackage
from reconciler.controllers.override_policies.read_policies import OverridePolicies
from reconciler.controllers.override_policies.resource_overrides import OverrideOptions
from reconciler.controllers.override_policies.rollout import find_rollouts, find_wave
from reconciler.krm.yaml import parse_yaml
from tests.unit.controllers.override_policies.override_world import (
    build_policy,
    build_tree,
    override_package,
    parse_document,
    read_policies,
)

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "reference" / "override-policies.md").read_text()
SUBJECT, *EXAMPLES = re.findall(r"^```yaml\n(.*?)^```\n(?:\n```diff\n(.*?)^```)?", PAGE, re.DOTALL | re.MULTILINE)
RESOURCES = SUBJECT[0]
CLUSTER = Cluster("edge-1", {"region": "north", "ring": "early"})
NAMES = [re.sub(r"\W+", "-", text.split("\n")[-3].strip()) for text, _ in EXAMPLES]


def read_example(text: str) -> OverridePolicies:
    """Return the policy of an example, which can be a single rule."""
    data: Any = parse_document(text)
    return read_policies(text if "kind" in data else build_policy([data], name="edge"))


def apply_policies(policies: OverridePolicies) -> OverriddenPackage:
    return override_package(
        build_tree({"all.yaml": RESOURCES}), policies, CLUSTER, OverrideOptions(on_missing="ignore")
    )


def read_lines(package: OverriddenPackage) -> list[str]:
    return package.files["all.yaml"].data.decode().splitlines()


@pytest.mark.parametrize(("text", "diff"), EXAMPLES, ids=NAMES)
def test_example_has_the_documented_effect(text: str, diff: str) -> None:
    policies = read_example(text)
    package, without = apply_policies(policies), apply_policies(OverridePolicies())

    assert (policies.findings, package.findings) == ((), ())
    if not find_rollouts(policies):
        changes = difflib.unified_diff(read_lines(without), read_lines(package), n=0, lineterm="")
        assert [line for line in changes if not line.startswith(("---", "+++", "@@"))] == diff.splitlines()


def test_rollout_example_has_the_documented_waves() -> None:
    (rule,) = (rule for text, _ in EXAMPLES for rule in find_rollouts(read_example(text)).values())
    clusters = [Cluster("canary-1", {"ring": "early"}), CLUSTER, Cluster("far", {})]

    assert rule.rollout is not None
    assert [find_wave(rule.rollout, cluster) for cluster in clusters] == [0, 1, 2]


OPERATORS = {
    "image": get_args(kubeadmiral.ImageOperator),
    "command": get_args(kubeadmiral.ListOperator),
    "args": get_args(kubeadmiral.ListOperator),
    "envs": get_args(kubeadmiral.MapOperator),
    "annotations": get_args(kubeadmiral.MapOperator),
    "labels": get_args(kubeadmiral.MapOperator),
    "fields": get_args(kubeadmiral.PatchOperator),
    "jsonpatch": get_args(kubeadmiral.PatchOperator),
}


def test_table_lists_all_overriders_in_order_with_operators() -> None:
    section = PAGE.partition("## Overriders")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", section, re.MULTILINE)

    assert [name for name, _ in rows] == [*OVERRIDERS]
    for name, operators in rows:
        match = re.findall(r"`(\w+)`", operators)
        assert sorted(match) == sorted(OPERATORS[name])
        assert match[0] in ("overwrite", "replace")


def test_all_examples_are_tested() -> None:
    assert PAGE.count("```yaml") == 1 + len(EXAMPLES)
    assert PAGE.count("```diff") == len([text for text, _ in EXAMPLES if not find_rollouts(read_example(text))])
    assert len(parse_yaml(RESOURCES).documents) == 2
