"""Tests of several addons that write one object: writers of values, and findings about overwritten values."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.controllers.components.field_findings import FieldFindingError
from reconciler.controllers.components.model import AddonInstance
from reconciler.controllers.components.patching.budget import PatchBudget
from reconciler.controllers.components.patching.operations import PatchOperation
from reconciler.controllers.components.patching.paths import PatchPath, parse_patch_path
from reconciler.controllers.components.patching.pod_templates import check_duplicate_list_keys
from reconciler.controllers.components.patching.writers import WriteTracker
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3.rules import ABSENT
from tests.unit.controllers.components.patching.patch_helpers import AT, build_operation

A, B, C = AddonInstance("a"), AddonInstance("b"), AddonInstance("c")
Step = tuple[Any, ...]


def is_same_instance(addon_instance: AddonInstance, other: AddonInstance) -> bool:
    """Return whether two instances are equal. No instance declares an order."""
    return addon_instance == other


def apply_steps(
    document: Any, steps: list[Step], is_ordered: Any = is_same_instance
) -> tuple[Any, list[str], WriteTracker]:
    """Apply the operations of instances to a copy. Return the copy, the notes and the writers of its values."""
    result, writers, notes, allowance = copy.deepcopy(document), WriteTracker(is_ordered), list[str](), PatchBudget()
    for by, op, path, *value in steps:
        patch_result = writers.apply_patch(result, build_operation(op, path, *value), by, allowance)
        notes += [f"{note.code.name} {format_pointer(note.path)}" for note in patch_result.notes]
    return result, notes, writers


@pytest.mark.parametrize(
    ("document", "steps", "expected", "notes"),
    [
        pytest.param(
            {},
            [(A, "add", "/m", {"x": 1}), (B, "add", "/m", {"y": 2})],
            {"m": {"x": 1, "y": 2}},
            ["MergedWrite /m"],
            id="row-39-maps",
        ),
        pytest.param(
            {},
            [(A, "add", "/l", [1]), (B, "add", "/l", [2])],
            {"l": [1, 2]},
            ["MergedWrite /l"],
            id="row-39-lists",
        ),
        pytest.param(
            {},
            [(A, "add", "/v", True), (B, "add", "/v", False)],
            {"v": False},
            ["LastWriterWins /v"],
            id="row-40-the-later-wins",
        ),
        pytest.param({}, [(A, "add", "/v", 1), (B, "add", "/v", 1)], {"v": 1}, [], id="equal-values-are-not-reported"),
        pytest.param(
            {}, [(A, "add", "/v", 1), (B, "add", "/v", 1.0)], {"v": 1.0}, ["LastWriterWins /v"], id="equal-in-python"
        ),
        pytest.param(
            {},
            [(A, "add", "/v", {"x": 1}), (B, "add", "/v", [1])],
            {"v": [1]},
            ["LastWriterWins /v"],
            id="a-list-onto-a-map-wins",
        ),
        pytest.param(
            {},
            [(A, "add", "/m", {"x": 1, "z": 0}), (B, "add", "/m", {"x": 2})],
            {"m": {"x": 2, "z": 0}},
            ["MergedWrite /m", "LastWriterWins /m/x"],
            id="different-values-in-merged-maps",
        ),
        pytest.param(
            {"m": {"x": 1}},
            [(A, "add", "/m", {"y": 2})],
            {"m": {"y": 2}},
            [],
            id="a-value-of-the-definition-is-replaced",
        ),
        pytest.param(
            {},
            [(A, "add", "/m", {"x": 1}), (A, "add", "/m", {"y": 2})],
            {"m": {"y": 2}},
            [],
            id="a-value-of-the-same-instance-is-replaced",
        ),
        pytest.param(
            {},
            [(A, "add", "/m", {"x": 1}), (AddonInstance("a", "2"), "add", "/m", {"y": 2})],
            {"m": {"x": 1, "y": 2}},
            ["MergedWrite /m"],
            id="two-instances-of-one-addon-are-two",
        ),
        pytest.param(
            {},
            [(A, "add", "/m", {"x": 1}), (B, "add", "/m", {"y": 2}), (C, "add", "/m", {"z": 3})],
            {"m": {"x": 1, "y": 2, "z": 3}},
            ["MergedWrite /m", "MergedWrite /m"],
            id="three-addons",
        ),
        pytest.param(
            {},
            [(A, "add", "/m", {"x": {"y": [1]}}), (B, "add", "/m/x/y", [2])],
            {"m": {"x": {"y": [1, 2]}}},
            ["MergedWrite /m/x/y"],
            id="below-a-value-of-another-instance",
        ),
        pytest.param(
            {},
            [(A, "add", "/m/x", 1), (B, "add", "/m", {"y": 2})],
            {"m": {"x": 1, "y": 2}},
            ["MergedWrite /m"],
            id="a-parent-that-another-made",
        ),
        pytest.param(
            {},
            [(A, "add", "/l/-", 1), (B, "add", "/l", [2])],
            {"l": [1, 2]},
            ["MergedWrite /l"],
            id="a-list-that-another-made-by-appending",
        ),
        pytest.param(
            {"m": {"k": 0}},
            [(A, "add", "/m/x", 1), (B, "add", "/m", {"y": 2})],
            {"m": {"y": 2}},
            ["OverwrittenWrite /m/x"],
            id="a-lost-value-below-a-replaced-value",
        ),
        pytest.param(
            {"m": {"k": 0}},
            [(A, "add", "/m/x", 1), (B, "add", "/m", {"x": 1})],
            {"m": {"x": 1}},
            [],
            id="a-kept-value-below-a-replaced-value",
        ),
        pytest.param(
            {"v": 0},
            [(A, "replace", "/v", 1), (B, "replace", "/v", 2)],
            {"v": 2},
            ["OverwrittenWrite /v"],
            id="replace-a-value-of-another-instance",
        ),
        pytest.param(
            {},
            [(A, "add", "/v", 1), (B, "remove", "/v")],
            {},
            ["OverwrittenWrite /v"],
            id="remove-a-value-of-another-instance",
        ),
        pytest.param(
            {"m": {}},
            [(A, "add", "/m/x", 1), (B, "remove", "/m")],
            {},
            ["OverwrittenWrite /m/x"],
            id="remove-a-parent-of-a-value-of-another-instance",
        ),
        pytest.param({"v": 0}, [(A, "remove", "/v"), (B, "add", "/v", 1)], {"v": 1}, [], id="add-a-removed-value"),
        pytest.param({}, [(A, "add", "/v", 1), (A, "replace", "/v", 2), (A, "remove", "/v")], {}, [], id="own-changes"),
        pytest.param(
            {},
            [(A, "merge", "/m", {"l": [1], "d": {"x": 1}}), (B, "merge", "/m", {"l": [2], "d": {"y": 2}})],
            {"m": {"l": [1, 2], "d": {"x": 1, "y": 2}}},
            [],
            id="merge-of-maps-and-lists-is-not-reported",
        ),
        pytest.param(
            {},
            [(A, "merge", "/m", {"v": 1}), (B, "merge", "/m", {"v": 2})],
            {"m": {"v": 2}},
            ["LastWriterWins /m/v"],
            id="merge-of-single-values",
        ),
        pytest.param(
            {"l": []},
            [(A, "add", "/l/-", 1), (B, "add", "/l/-", 2), (C, "remove", "/l[0]")],
            {"l": [2]},
            [],
            id="appended-items-have-no-writer",
        ),
        pytest.param(
            {"l": [{"n": "a"}, {"n": "b"}]},
            [(A, "replace", "/l[?(@.n=='b')]/n", "c"), (B, "add", "/l/0", {"n": "z"}), (C, "replace", "/l/2/n", "d")],
            {"l": [{"n": "z"}, {"n": "a"}, {"n": "d"}]},
            ["OverwrittenWrite /l/2/n"],
            id="an-item-that-was-moved-by-an-insert",
        ),
        pytest.param(
            {"l": [{"n": 0}, {"n": 1}, {"n": 2}]},
            [(A, "replace", "/l/2/n", 9), (B, "remove", "/l/0"), (C, "replace", "/l[*]/n", 7)],
            {"l": [{"n": 7}, {"n": 7}]},
            ["OverwrittenWrite /l/1/n"],
            id="an-item-that-was-moved-by-a-removal",
        ),
        pytest.param(
            {"l": [1, 2, 3]},
            [(A, "replace", "/l/1", 9), (B, "remove", "/l[*]"), (C, "add", "/l/0", 5), (C, "replace", "/l/0", 6)],
            {"l": [6]},
            ["OverwrittenWrite /l/1"],
            id="writers-of-removed-items-are-not-reported",
        ),
        pytest.param(
            {},
            [(A, "add", "/d/x", 1), (A, "add", "/d/y", 1), (C, "add", "/d/z", 1), (B, "replace", "/d", {"y": 1})],
            {"d": {"y": 1}},
            ["OverwrittenWrite /d", "OverwrittenWrite /d/z"],
            id="each-writer-is-reported-once",
        ),
    ],
)
def test_overwritten_values_are_reported(document: Any, steps: list[Step], expected: Any, notes: list[str]) -> None:
    result = apply_steps(document, steps)

    assert result[:2] == (expected, notes)


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([(A, "add", "/v", 1), (B, "add", "/v", 2)], id="last-writer"),
        pytest.param([(A, "add", "/v", [1]), (B, "add", "/v", [2])], id="merged"),
        pytest.param([(A, "add", "/v", 1), (B, "remove", "/v")], id="overwritten"),
    ],
)
def test_declared_order_reports_nothing(steps: list[Step]) -> None:
    result = apply_steps({}, steps)
    meant = apply_steps({}, steps, lambda value, other: {value, other} == {A, B})

    assert result[0] == meant[0]
    assert result[1]
    assert meant[1] == []


def test_note_names_both_addons_and_the_next_step() -> None:
    writers, document = WriteTracker(is_same_instance), {"v": 0}
    writers.apply_patch(document, build_operation("replace", "/v", 1), AddonInstance("first", "main"), PatchBudget())

    patch_result = writers.apply_patch(document, build_operation("replace", "/v", 2), B, PatchBudget())

    expected = (
        'the addon "b/default" overwrites the value that the addon "first/main" set at /v;'
        " if this is intended, declare the order of the addons with requires or loadOrder"
    )
    assert [note.message for note in patch_result.notes] == [expected]
    assert not patch_result.notes[0].is_error


def test_one_note_for_all_locations_of_an_operation() -> None:
    document, writers = {"c": [{"v": 0} for _ in range(1_500)]}, WriteTracker(is_same_instance)
    writers.apply_patch(document, build_operation("replace", "/c[*]/v", 1), A, PatchBudget())

    patch_result = writers.apply_patch(document, build_operation("merge", "/c[*]/v", 2), B, PatchBudget())

    assert len(patch_result.writes) == 1_500
    assert [format_pointer(note.path) for note in patch_result.notes] == ["/c/0/v"]
    assert patch_result.notes[0].message.endswith("(and at 1,499 more locations)")


def test_creator_of_an_object_is_its_writer_without_a_note() -> None:
    document, writers = {"data": {"x": 1}}, WriteTracker(is_same_instance, creator=A)

    patch_result = writers.apply_patch(document, build_operation("add", "/data", {"y": 2}), B, PatchBudget())

    assert (document, patch_result.notes) == ({"data": {"y": 2}}, ())
    assert (writers.get_writer(("data", "y")), writers.get_writer(("kind",))) == (B, A)


# The next test uses generated operations. Each written value is the name of its writer.

PEOPLE = {addon_instance.addon: addon_instance for addon_instance in (A, B, C)}
marks = st.sampled_from("abc")
paths = st.lists(st.sampled_from(["k", "m", "l", "l", "[0]", "[1]", "-", "0", "[*]"]), min_size=1, max_size=4).map(
    lambda value: "/" + "/".join(value)
)
shapes = st.recursive(
    st.just("leaf"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("kml"), inner, max_size=3),
)
moves = st.lists(
    st.tuples(marks, st.sampled_from(["add", "add", "replace", "remove", "merge"]), paths, shapes), max_size=8
)


def fill_leaves(shape: Any, who: str) -> Any:
    """Return a value of this shape in which each leaf is the name of the writer."""
    match shape:
        case dict():
            return {key: fill_leaves(item, who) for key, item in shape.items()}
        case list():
            return [fill_leaves(item, who) for item in shape]
        case _:
            return who


def iterate_leaves(value: Any, at: tuple[str | int, ...] = ()) -> Any:
    """Yield the path and the value of each leaf."""
    if isinstance(value, dict | list):
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from iterate_leaves(item, (*at, step))
    else:
        yield at, value


@pytest.mark.slow
@given(shapes, moves)
def test_writers_follow_their_values(shape: Any, steps: list[tuple[str, Any, str, Any]]) -> None:
    document: Any = {"k": fill_leaves(shape, "definition"), "l": ["definition"] * 3}
    writers = WriteTracker(is_same_instance)
    for who, op, text, item in steps:
        path = parse_patch_path(text)
        if not isinstance(path, PatchPath) or (op == "add" and path.can_match_many) or (op != "add" and path.is_append):
            continue
        value = ABSENT if op == "remove" else fill_leaves(item, who)
        before = copy.deepcopy((document, writers))
        try:
            writers.apply_patch(document, PatchOperation(op, path, value, AT), PEOPLE[who], PatchBudget())
        except FieldFindingError:
            document, writers = before

    for place, who in iterate_leaves(document):
        assert writers.get_writer(place) == PEOPLE.get(who)


def deployment(**spec: Any) -> dict[str, Any]:
    return {"kind": "Deployment", "spec": {"template": {"spec": spec}}}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(deployment(containers=[{"name": "a"}, {"name": "b"}]), [], id="nothing-twice"),
        pytest.param(
            deployment(containers=[{"name": "a"}, {"name": "b"}, {"name": "a"}]),
            ["ListKeyDuplicate /spec/template/spec/containers/2/name"],
            id="containers",
        ),
        pytest.param(
            deployment(containers=[{"name": "a"}], initContainers=[{"name": "a"}]),
            ["ListKeyDuplicate /spec/template/spec/initContainers/0/name"],
            id="container-and-init-container",
        ),
        pytest.param(
            {"kind": "Pod", "spec": {"volumes": [{"name": "v"}] * 3}},
            ["ListKeyDuplicate /spec/volumes/1/name", "ListKeyDuplicate /spec/volumes/2/name"],
            id="row-41-volumes",
        ),
        pytest.param(
            deployment(containers=[{"name": "a", "volumeMounts": [{"mountPath": "/d"}, {"mountPath": "/d"}]}]),
            ["ListKeyDuplicate /spec/template/spec/containers/0/volumeMounts/1/mountPath"],
            id="mount-paths-of-one-container",
        ),
        pytest.param(
            deployment(containers=[{"name": n, "volumeMounts": [{"mountPath": "/d"}]} for n in "ab"]),
            [],
            id="mount-paths-of-two-containers",
        ),
        pytest.param(
            deployment(initContainers=[{"name": "a", "env": [{"name": "E"}, {"name": "F"}, {"name": "E"}]}]),
            ["DuplicateEnvName /spec/template/spec/initContainers/0/env/2/name"],
            id="variables",
        ),
        pytest.param(
            deployment(containers=[{"name": None}, {"name": None}, 1, 1], volumes={"name": "v"}),
            [],
            id="what-is-no-name-and-no-list",
        ),
        pytest.param({"kind": "ConfigMap", "data": {"a": "b"}}, [], id="no-pod-template"),
    ],
)
def test_duplicate_list_keys_are_reported(document: Any, expected: list[str]) -> None:
    notes = check_duplicate_list_keys(document, WriteTracker(is_same_instance))

    assert [f"{note.code.name} {format_pointer(note.path)}" for note in notes] == expected


def test_both_writers_of_a_duplicate_are_named() -> None:
    addon_instance, two = AddonInstance("disk", "one"), AddonInstance("disk", "two")
    place, volume = "/spec/template/spec/volumes", {"name": "data"}
    steps = [(who, "add", f"{place}/-", volume) for who in (addon_instance, two)]

    document, _, writers = apply_steps(deployment(volumes=[{"name": "tmp"}]), [*steps, (C, "remove", f"{place}/0")])
    notes = check_duplicate_list_keys(document, writers)

    message = f'the name "data" must be unique, but is used at {place}/0 (set by the addon "disk/one") and {place}/1 (set by the addon "disk/two")'
    assert [note.message for note in notes] == [message]
    assert [note.is_error for note in notes] == [True]
