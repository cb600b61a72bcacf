"""Tests with random policies and resources: the result is always a list of findings, and never an exception."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.controllers.override_policies.read_policies import build_override_policy_key
from reconciler.controllers.override_policies.rollout import RuleId
from reconciler.krm.yaml import emit
from tests.support.examples import examples
from tests.unit.controllers.override_policies.override_world import (
    HERE,
    POLICY,
    attach_policy,
    build_policy,
    build_tree,
    list_error_codes,
    override_package,
    override_resource,
    read_policies,
    read_resource,
)

WORDS = st.sampled_from(
    [
        *"a1[\n",
        "",
        "web",
        "/spec/a",
        "/metadata/name",
        "set",
        "add",
        "remove",
        "delete",
        "overwrite",
        "Tag",
        "x:1@",
        "[a=b]",
        "${cluster.name}",
        "${cluster.x",
        "a = 1",
        "a: 1",
        '{"a": 1}',
    ]
)
KEYS = st.sampled_from(
    [
        "a",
        "name",
        "operator",
        "value",
        "path",
        "containerName",
        "operations",
        "imageComponent",
        "imagePath",
        "fieldPath",
        "subPath",
        "yaml",
        "json",
        "toml",
        "ini",
        "labels",
        "metadata",
        "containers",
        "env",
        "key",
        "values",
    ]
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
item = st.dictionaries(KEYS, anything, max_size=4)
names = st.sampled_from(["image", "command", "args", "envs", "annotations", "labels", "fields", "jsonpatch", "more"])
overriders = st.dictionaries(names, st.lists(item, max_size=2) | anything, max_size=4)
targets = st.dictionaries(
    st.sampled_from(["clusters", "excludeClusters", "clusterSelector", "clusterAffinity"]), anything, max_size=3
)
rollouts = st.fixed_dictionaries({}, optional={"waves": st.lists(targets, max_size=2) | anything, "soak": anything})
rule = st.fixed_dictionaries(
    {"overriders": overriders | anything},
    optional={"targetClusters": targets | anything, "rollout": rollouts | anything, "name": anything},
)
selectors = st.lists(
    st.fixed_dictionaries({"apiVersion": WORDS, "kind": WORDS}, optional={"labelSelector": anything, "name": anything})
)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(rule, max_size=2) | anything, selectors | anything)
def test_any_policy_is_read(rules: Any, chosen: Any) -> None:
    document = build_policy(rules)
    document["spec"]["resourceSelectors"] = chosen

    policies = read_policies(document)

    assert len(policies.valid) + len(policies.invalid) == 1
    assert bool(policies.invalid) == bool(policies.findings)
    assert all(finding.location.line and finding.message for finding in policies.findings)


patch_items = st.fixed_dictionaries(
    {
        "operator": st.sampled_from(["add", "remove", "replace", "set"]),
        "path": st.lists(
            st.sampled_from(["metadata", "labels", "spec", "a", "0", "-", "[a=b]"]), min_size=1, max_size=3
        ).map(lambda steps: "".join(f"/{step}" for step in steps)),
        "value": anything,
    }
)
field_items = st.fixed_dictionaries(
    {
        "fieldPath": st.sampled_from(["/spec/a", "/spec", "/metadata/name", "/data/a"]),
        "FORMAT": st.sampled_from(["yaml", "json", "toml", "ini"]),
        "operations": st.lists(
            st.fixed_dictionaries(
                {
                    "operator": st.sampled_from(["set", "remove"]),
                    "subPath": st.sampled_from(["/a", "/b/c", "/a/0", "/"]),
                    "value": anything,
                }
            ),
            min_size=1,
            max_size=2,
        ),
    }
).map(lambda value: {"fieldPath": value["fieldPath"], value["FORMAT"]: value["operations"]})
sound = st.fixed_dictionaries(
    {},
    optional={
        "jsonpatch": st.lists(patch_items, max_size=3),
        "fields": st.lists(field_items, max_size=2),
        "labels": st.just([{"operator": "set", "value": {"a": "b"}}]),
        "args": st.just([{"containerName": "a", "operator": "append", "value": ["x"]}]),
        "envs": st.just([{"containerName": "a", "operator": "set", "value": [{"name": "x"}]}]),
        "image": st.just([{"operations": [{"imageComponent": "Tag", "value": "2"}]}]),
    },
)
pod = st.fixed_dictionaries({"template": st.fixed_dictionaries({"spec": st.dictionaries(KEYS, anything, max_size=3)})})


@settings(max_examples=examples(100), deadline=None)
@given(sound, anything | pod, anything, st.sampled_from(["Deployment", "ConfigMap", "Secret"]))
def test_any_resource_is_overridden_or_reported(some: dict[str, Any], spec: Any, metadata: Any, kind: str) -> None:
    more = metadata if isinstance(metadata, dict) else {"annotations": metadata}
    document = {
        "apiVersion": "apps/v1" if kind == "Deployment" else "v1",
        "kind": kind,
        "metadata": {**more, "name": "one"},
        "spec": spec,
        "data": spec,
    }
    rules = build_policy([{"overriders": some}])
    rules["spec"]["resourceSelectors"] = [{"apiVersion": document["apiVersion"], "kind": kind}]
    policies = read_policies(rules)

    final_resource = override_resource(read_resource(emit(document)), policies, HERE)

    assert [key.name for key in final_resource.candidate_policies] == [POLICY]
    assert final_resource.has_errors == bool(list_error_codes(final_resource))
    assert final_resource.has_errors or final_resource.document.data["kind"] == kind
    text = emit(document)
    assert override_package(build_tree({"a.yaml": text}), policies, HERE).files["a.yaml"].data.decode() == (
        text if final_resource.has_errors else final_resource.document.text
    )


@settings(max_examples=examples(100), deadline=None)
@given(st.text() | (rule | anything).map(json.dumps))
def test_any_recorded_rule_text_is_applied_or_reported(text: str) -> None:
    policies = read_policies(build_policy([{"rollout": {"waves": [{}]}}]))
    (key,) = policies.valid
    subject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    files = build_tree({"a.yaml": emit(attach_policy(subject))})

    package = override_package(files, policies, HERE, texts={RuleId(key, "0"): text})

    assert package.rule_texts == {RuleId(build_override_policy_key("ClusterOverridePolicy", "", POLICY), "0"): text}
    assert all(finding.message for finding in package.findings)
