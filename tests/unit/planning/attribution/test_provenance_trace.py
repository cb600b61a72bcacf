"""Tests of provenance traces: each value has the step that set it, also after moves, renames and deletions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from reconciler.api.kpt import FunctionSpec
from reconciler.controllers.override_policies.resource_overrides import OverriddenResource, OverrideStage
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath
from reconciler.packages.functions.function import Item
from reconciler.packages.package import Package
from reconciler.planning.attribution.provenance_trace import ResourceTrace, find_previous_path, trace_resources
from reconciler.planning.model.outcomes import FilesStage, FunctionStage, PackageRender, PolicyStage, RenderStage
from reconciler.planning.model.sources import PackageSource
from tests.unit.output.builders import build_tree

FILE = "web.yaml"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web{more}}}\ndata: {data}\n"


def format_config_map(data: str, more: str = "") -> str:
    return MAP.format(data=data, more=more)


def trace_stages(stages: Sequence[Mapping[str, str]], *more: RenderStage) -> tuple[ResourceTrace, ...]:
    """Return the traces. The trees are: source, branch edits, draft edits, rendered."""
    came, merged, drafted, files = map(build_tree, stages)
    remaining = (*more, FilesStage("controller", files))
    return trace_resources(PackageRender(files, source=PackageSource(drafted, merged, came), stages=remaining))


def list_layers(stages: Sequence[Mapping[str, str]], path: DataPath) -> list[str]:
    (track,) = (resource_trace for resource_trace in trace_stages(stages) if resource_trace.data is not ABSENT)
    return [change.state.cause.layer for change in track.list_changes(path)]


@pytest.mark.parametrize(
    ("stages", "path", "expected"),
    [
        pytest.param(["{a: 1}"] * 4, ("a",), ["source"], id="as-it-came"),
        pytest.param(["{a: 1}", "{a: 2}", "{a: 2}", "{a: 2}"], ("a",), ["source", "edit"], id="edited-on-the-branch"),
        pytest.param(["{a: 1}", "{a: 1}", "{a: 2}", "{a: 2}"], ("a",), ["source", "draft"], id="edited-on-the-draft"),
        pytest.param(["{a: 1}", "{a: 2}", "{a: 1}", "{a: 1}"], ("a",), ["source", "edit", "draft"], id="put-back"),
        pytest.param(["{a: 1}"] * 3 + ["{a: 2}"], ("a",), ["source", "controller"], id="rendered"),
        pytest.param(["{a: 1}"] * 3 + ["{a: '1'}"], ("a",), ["source", "controller"], id="a-type-is-part-of-a-value"),
        pytest.param(["{a: 1}"] * 3 + ["{a: 1, b: 2}"], ("b",), ["controller"], id="added"),
        pytest.param(["{a: 1}", "{}", "{}", "{a: 1}"], ("a",), ["source", "edit", "controller"], id="taken-and-given-back"),
        pytest.param(["{a: [1, 2]}"] * 3 + ["{a: [1, 3]}"], ("a", 0), ["source"], id="an-item-beside"),
        pytest.param(["{a: [1, 2]}"] * 3 + ["{a: [0, 1, 2]}"], ("a", 1), ["source"], id="an-item-that-moved"),
        pytest.param(["{a: [1, 2]}"] * 3 + ["{a: [0, 1, 2]}"], ("a", 0), ["controller"], id="an-item-that-was-put-before"),
        pytest.param(
            ["{a: [{name: x, v: 1}]}"] * 3 + ["{a: [{name: n, v: 0}, {name: x, v: 2}]}"],
            ("a", 1, "v"), ["source", "controller"], id="an-item-by-its-name",
        ),
    ],
)  # fmt: skip
def test_layers_of_a_value(stages: list[str], path: DataPath, expected: list[str]) -> None:
    assert list_layers([{FILE: format_config_map(stage)} for stage in stages], ("data", *path)) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({FILE: format_config_map("{a: 1}")}, {"moved.yaml": format_config_map("{a: 1}")}, ["source"], id="moved-file"),
        pytest.param({FILE: format_config_map("{a: 1}")}, {FILE: format_config_map("{a: 1}", ", namespace: x")}, ["source"], id="namespace"),
        pytest.param({FILE: format_config_map("{a: 1}")}, {FILE: format_config_map("{a: 1}").replace("web", "app")}, ["source"], id="renamed"),
        pytest.param({FILE: format_config_map("{a: 1}")}, {"b.yaml": format_config_map("{a: 1}", ", namespace: x")}, ["controller"], id="both"),
        pytest.param({}, {FILE: format_config_map("{a: 1}")}, ["controller"], id="new"),
        pytest.param(
            {FILE: f"{format_config_map('{b: 1}').replace('web', 'app')}---\n{format_config_map('{a: 1}')}"}, {FILE: format_config_map("{a: 1}")},
            ["source"], id="the-one-before-it-went",
        ),
    ],
)  # fmt: skip
def test_resource_is_matched_with_its_source(
    before: dict[str, str], after: dict[str, str], expected: list[str]
) -> None:
    assert list_layers([before, before, before, after], ("data", "a")) == expected


def test_copied_resource_is_new_and_the_original_stays() -> None:
    came, mapping = (
        {FILE: format_config_map("{a: 1}")},
        {"copy.yaml": format_config_map("{a: 1}"), FILE: format_config_map("{a: 1}")},
    )

    fields = {
        resource_trace.location[0]: resource_trace.states[0].cause.layer
        for resource_trace in trace_stages([came, came, came, mapping])
    }

    assert fields == {FILE: "source", "copy.yaml": "controller"}


def test_deleted_value_has_the_step_that_deleted_it() -> None:
    stages = [
        {FILE: format_config_map(item)} for item in ("{a: 1, b: [x, y]}", "{b: [x, y]}", "{b: [x, y]}", "{b: [y]}")
    ]
    (track,) = trace_stages(stages)

    deleted = {
        changes[-1].path: [traced_change.state.cause.layer for traced_change in changes]
        for changes in track.list_removals()
    }

    assert deleted == {("data", "a"): ["source", "edit"], ("data", "b", 0): ["source", "controller"]}


def test_deletion_of_a_resource_ends_its_trace() -> None:
    (track,) = trace_stages([{FILE: format_config_map("{a: 1}")}] * 3 + [{}])

    assert track.data is ABSENT
    assert [traced_change.state.cause.layer for traced_change in track.list_changes(("data", "a"))] == [
        "source",
        "controller",
    ]


def build_items(files: Mapping[str, str]) -> list[Item]:
    result = enumerate(Package(build_tree(files)).resources)
    return [
        Item(
            package_resource.package,
            package_resource.path,
            package_resource.index,
            package_resource.data,
            number,
            package_resource.document,
        )
        for number, package_resource in result
    ]


def test_function_changes_are_matched_with_their_input() -> None:
    came = {FILE: f"{format_config_map('{a: 1}')}---\n{format_config_map('{a: 2}').replace('web', 'app')}"}
    item, two = build_items(came)
    renamed = two.with_values([(("metadata", "name"), "other"), (("data", "a"), 3)]).with_location("other.yaml", 0)
    first = FunctionStage("", 0, FunctionSpec(image="rename:v1"), (renamed, item))
    second = FunctionStage("", 1, FunctionSpec(image="drop:v1"), (renamed,))
    files = {"other.yaml": renamed.document.text}

    known = trace_stages([came, came, came, files], first, second)

    mapping = {
        track.last_data["metadata"]["name"]: [
            (traced_change.state.cause.layer, traced_change.state.cause.source_name, traced_change.after)
            for traced_change in track.list_changes(("data", "a"))
        ]
        for track in known
    }
    assert mapping == {
        "other": [("source", "", 2), ("function", "rename:v1", 3)],
        "web": [("source", "", 1), ("function", "drop:v1", ABSENT)],
    }


def test_each_item_of_a_policy_is_a_step() -> None:
    came, mapping = {FILE: format_config_map("{a: 1}")}, {FILE: format_config_map("{a: 3}")}
    (resource,) = Package(build_tree(came)).resources

    def build_stage(by: str, where: str, value: Any) -> OverrideStage:
        return OverrideStage(by, where, {**resource.data, "data": {"a": value}})

    turns = (build_stage("", "", 1), build_stage("P/site", "x[0]", 2), build_stage("P/site", "x[1]", 3))
    stage = PolicyStage((OverriddenResource(resource, resource.document, stages=turns),))

    (track,) = trace_stages([came, came, came, mapping], stage)

    assert [
        (traced_change.state.cause.policy_item, traced_change.before, traced_change.after)
        for traced_change in track.list_changes(("data", "a"))
    ] == [
        ("", ABSENT, 1),
        ("x[0]", 1, 2),
        ("x[1]", 2, 3),
    ]


@pytest.mark.parametrize(
    ("before", "after", "path", "expected"),
    [
        pytest.param({"a": [1, 2]}, {"a": [2]}, ("a", 0), ("a", 1), id="moved-up"),
        pytest.param({"a": [1]}, {"a": [0, 1]}, ("a", 0), None, id="new"),
        pytest.param({"a": 1}, {"a": [1]}, ("a", 0), None, id="no-list-before"),
        pytest.param({}, {"a": {"b": 1}}, ("a", "b"), ("a", "b"), id="key-at-its-path"),
        pytest.param({"a": [1]}, {"a": [1]}, ("a", 7), None, id="not-there"),
    ],
)
def test_find_previous_path(before: Any, after: Any, path: DataPath, expected: DataPath | None) -> None:
    assert find_previous_path(before, after, path) == expected
