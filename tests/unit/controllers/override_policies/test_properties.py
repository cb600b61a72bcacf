"""Whatever policies say: applying them is a pure function of the render, and taking them away brings it back."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.controllers.override_policies.attachment import strip_control_metadata
from reconciler.krm.yaml import emit, parse_yaml
from tests.unit.controllers.override_policies.override_world import (
    HERE,
    attached,
    labelled,
    override_package,
    override_resource,
    policy,
    read,
    resource,
    tree,
)
from tests.unit.controllers.override_policies.test_examples import ORDERS

POD = "/spec/template/spec"
texts = st.sampled_from(["a", "b", "app", "part", "--verbose", "x.example/y"])
maps = st.dictionaries(texts, st.sampled_from(["1", "two", ""]), min_size=1, max_size=2)
containers = st.sampled_from(["web", "mesh", "migrate", "nobody"])


def items(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(st.fixed_dictionaries(fields), max_size=2)


map_items = items(operator=st.sampled_from(["addIfAbsent", "overwrite", "delete"]), value=maps)
list_items = items(
    containerName=containers,
    operator=st.sampled_from(["append", "overwrite", "delete"]),
    value=st.lists(texts, min_size=1, max_size=2),
)
pointers = st.sampled_from(
    [
        "/spec/replicas",
        "/metadata/labels/app",
        "/metadata/finalizers/-",
        f"{POD}/containers/0/args/-",
        f"{POD}/nodeName",
    ]
)
patches = items(operator=st.sampled_from(["add", "replace", "remove"]), path=pointers, value=texts)
operations = items(
    imageComponent=st.sampled_from(["Registry", "Repository", "Tag"]),
    operator=st.sampled_from(["addIfAbsent", "overwrite", "delete"]),
    value=st.sampled_from(["a.example", "b", "1.0"]),
)
overriders = st.fixed_dictionaries(
    {},
    optional={
        "labels": map_items,
        "annotations": map_items,
        "args": list_items,
        "command": list_items,
        "jsonpatch": patches,
        "image": items(containerNames=st.lists(containers, max_size=2), operations=operations),
    },
)
rules = st.lists(st.fixed_dictionaries({"overriders": overriders}), max_size=3)


@settings(max_examples=100, deadline=None)
@given(rules)
def test_applying_is_pure_and_its_result_is_yaml(some: list[Any]) -> None:
    subject, policies = resource(emit(attached(ORDERS))), read(policy(some))
    before = copy.deepcopy(subject.data)

    once, second_resource = (override_resource(subject, policies, HERE) for _ in range(2))

    assert (once.document.text, once.findings, once.steps) == (
        second_resource.document.text,
        second_resource.findings,
        second_resource.steps,
    )
    assert subject.data == before
    assert parse_yaml(once.document.text).documents[0].data == once.document.data


@settings(max_examples=100, deadline=None)
@given(rules)
def test_the_steps_lead_from_the_render_to_the_result(some: list[Any]) -> None:
    final_resource = override_resource(resource(emit(attached(ORDERS))), read(policy(some)), HERE)

    if not final_resource.has_errors and not final_resource.steps:
        assert final_resource.document.data == strip_control_metadata(final_resource.resource.data)
    assert {step.source_name for step in final_resource.steps} <= {"ClusterOverridePolicy/tuning"}


@settings(max_examples=100, deadline=None)
@given(rules)
def test_an_emptied_policy_brings_the_original_back(some: list[Any]) -> None:
    files = tree({"orders.yaml": emit(attached(ORDERS))})
    original = override_package(files, read(policy([])), HERE).files

    override_package(files, read(policy(some)), HERE)

    assert override_package(files, read(policy([])), HERE).files == original
    assert original["orders.yaml"].data.decode() == emit(ORDERS)


@settings(max_examples=100, deadline=None)
@given(rules, rules)
def test_rules_of_one_resource_do_not_matter_to_another(some: list[Any], others: list[Any]) -> None:
    first, second = emit(attached(ORDERS, "first")), emit(attached(labelled(ORDERS, part="other"), "second"))
    policies = read(policy(some, name="first"), policy(others, name="second"))

    together = override_package(tree({"a.yaml": first, "b.yaml": second}), policies, HERE)

    alone = [
        override_package(tree({name: text}), policies, HERE) for name, text in (("a.yaml", first), ("b.yaml", second))
    ]
    assert together.findings == alone[0].findings + alone[1].findings
    if not together.findings:
        assert {**together.files} == {**alone[0].files, **alone[1].files}


@settings(max_examples=100, deadline=None)
@given(overriders)
def test_the_order_of_keys_in_a_rule_does_not_matter(some: dict[str, Any]) -> None:
    subject = resource(emit(attached(ORDERS)))
    backwards = dict(reversed(some.items()))

    value, other = (override_resource(subject, read(policy([{"overriders": it}])), HERE) for it in (some, backwards))

    assert (value.document.text, value.steps) == (other.document.text, other.steps)
