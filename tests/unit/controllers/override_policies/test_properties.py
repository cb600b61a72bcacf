"""Tests with random policies: the result depends only on the inputs, and an empty policy restores the original."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.controllers.override_policies.attachment import strip_control_metadata
from reconciler.krm.yaml import emit, parse_yaml
from tests.support.examples import examples
from tests.unit.controllers.override_policies.override_world import (
    HERE,
    add_labels,
    attach_policy,
    build_policy,
    build_tree,
    override_package,
    override_resource,
    read_policies,
    read_resource,
)
from tests.unit.controllers.override_policies.test_examples import ORDERS

POD = "/spec/template/spec"
texts = st.sampled_from(["a", "b", "app", "part", "--verbose", "x.example/y"])
maps = st.dictionaries(texts, st.sampled_from(["1", "two", ""]), min_size=1, max_size=2)
containers = st.sampled_from(["web", "mesh", "migrate", "nobody"])


def draw_items(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(st.fixed_dictionaries(fields), max_size=2)


map_items = draw_items(operator=st.sampled_from(["addIfAbsent", "overwrite", "delete"]), value=maps)
list_items = draw_items(
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
patches = draw_items(operator=st.sampled_from(["add", "replace", "remove"]), path=pointers, value=texts)
operations = draw_items(
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
        "image": draw_items(containerNames=st.lists(containers, max_size=2), operations=operations),
    },
)
rules = st.lists(st.fixed_dictionaries({"overriders": overriders}), max_size=3)


@settings(max_examples=examples(100), deadline=None)
@given(rules)
def test_application_is_pure_and_its_result_is_yaml(some: list[Any]) -> None:
    subject, policies = read_resource(emit(attach_policy(ORDERS))), read_policies(build_policy(some))
    before = copy.deepcopy(subject.data)

    once, second_resource = (override_resource(subject, policies, HERE) for _ in range(2))

    assert (once.document.text, once.findings, once.steps) == (
        second_resource.document.text,
        second_resource.findings,
        second_resource.steps,
    )
    assert subject.data == before
    assert parse_yaml(once.document.text).documents[0].data == once.document.data


@settings(max_examples=examples(100), deadline=None)
@given(rules)
def test_resource_without_steps_is_unchanged(some: list[Any]) -> None:
    final_resource = override_resource(
        read_resource(emit(attach_policy(ORDERS))), read_policies(build_policy(some)), HERE
    )

    if not final_resource.has_errors and not final_resource.steps:
        assert final_resource.document.data == strip_control_metadata(final_resource.resource.data)
    assert {step.source_name for step in final_resource.steps} <= {"ClusterOverridePolicy/tuning"}


@settings(max_examples=examples(100), deadline=None)
@given(rules)
def test_empty_policy_restores_the_original(some: list[Any]) -> None:
    files = build_tree({"orders.yaml": emit(attach_policy(ORDERS))})
    original = override_package(files, read_policies(build_policy([])), HERE).files

    override_package(files, read_policies(build_policy(some)), HERE)

    assert override_package(files, read_policies(build_policy([])), HERE).files == original
    assert original["orders.yaml"].data.decode() == emit(ORDERS)


@settings(max_examples=examples(100), deadline=None)
@given(rules, rules)
def test_rules_of_one_resource_do_not_affect_another(some: list[Any], others: list[Any]) -> None:
    first, second = (
        emit(attach_policy(ORDERS, "first")),
        emit(attach_policy(add_labels(ORDERS, part="other"), "second")),
    )
    policies = read_policies(build_policy(some, name="first"), build_policy(others, name="second"))

    together = override_package(build_tree({"a.yaml": first, "b.yaml": second}), policies, HERE)

    alone = [
        override_package(build_tree({name: text}), policies, HERE)
        for name, text in (("a.yaml", first), ("b.yaml", second))
    ]
    assert together.findings == alone[0].findings + alone[1].findings
    if not together.findings:
        assert {**together.files} == {**alone[0].files, **alone[1].files}


@settings(max_examples=examples(100), deadline=None)
@given(overriders)
def test_order_of_keys_in_a_rule_does_not_matter(some: dict[str, Any]) -> None:
    subject = read_resource(emit(attach_policy(ORDERS)))
    backwards = dict(reversed(some.items()))

    value, other = (
        override_resource(subject, read_policies(build_policy([{"overriders": it}])), HERE) for it in (some, backwards)
    )

    assert (value.document.text, value.steps) == (other.document.text, other.steps)
