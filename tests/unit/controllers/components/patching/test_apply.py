"""Tests of patch operations on an object: the result of each operation at each kind of location."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import jsonpointer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.cel import OMIT
from reconciler.controllers.components.field_findings import FieldFindingError
from reconciler.controllers.components.patching.budget import MAX_DEPTH, MAX_PATCH_COST, PatchBudget
from reconciler.controllers.components.patching.locations import MAX_LOCATIONS, Location, find_locations
from reconciler.controllers.components.patching.operations import PatchOperation, Write, apply_operation
from reconciler.controllers.components.patching.paths import PatchPath, parse_patch_path
from reconciler.krm.json_patch import apply_patch
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3.rules import ABSENT
from tests.unit.controllers.components.patching.patch_helpers import AT, build_operation, patch_copy

WEB, LOG = {"name": "web", "port": 8080, "on": True}, {"name": "log", "port": 9, "on": False, "tag": None}
LETTERS = [{"n": "a"}, {"n": "b"}, {"n": "a"}, {"n": "c"}]


def find_replace_locations(document: Any, text: str) -> list[Location] | str:
    """Return the existing locations of a path, or the name of the finding code."""
    path = parse_patch_path(text)
    assert isinstance(path, PatchPath)
    try:
        return list(find_locations(document, path, "replace", PatchBudget(), AT))
    except FieldFindingError as error:
        return error.field_finding.code.name


@pytest.mark.parametrize(
    ("document", "path", "expected"),
    [
        pytest.param({"c": [1, 2]}, "/c/[*]", [("c", 0), ("c", 1)], id="every-item-in-order"),
        pytest.param({"c": [WEB, LOG]}, "/c[?(@.name=='log')]/port", [("c", 1, "port")], id="filter"),
        pytest.param({"c": LETTERS}, "/c[?(@.n=='a')]", [("c", 0), ("c", 2)], id="filter-that-finds-two"),
        pytest.param(
            {"c": [{"d": [1, 2]}, {"d": [3]}]},
            "/c[*]/d[*]",
            [("c", 0, "d", 0), ("c", 0, "d", 1), ("c", 1, "d", 0)],
            id="product-of-two",
        ),
        pytest.param({"c": [{"d": [WEB]}, {"d": [LOG]}]}, "/c[*]/d[?(@.on==true)]", [("c", 0, "d", 0)], id="one-side"),
        pytest.param({"c": [[1, 2], [3, 4]]}, "/c/1/0", [("c", 1, 0)], id="list-in-a-list"),
        pytest.param({"c": [WEB, LOG]}, "/c[?(@.port=='8080')]", [("c", 0)], id="quoted-text-is-that-of-a-number"),
        pytest.param({"c": [WEB, LOG]}, "/c[?(@.port==8080)]", [("c", 0)], id="number"),
        pytest.param({"c": [{"n": 3.0}]}, "/c[?(@.n=='3')]", [("c", 0)], id="quoted-text-is-that-of-a-double"),
        pytest.param({"c": [{"n": 10**6}]}, "/c[?(@.n=='1000000')]", [("c", 0)], id="row-18-text-of-a-large-number"),
        pytest.param({"c": [{"n": 1e-7}]}, "/c[?(@.n=='0.0000001')]", [("c", 0)], id="text-of-a-small-number"),
        pytest.param({"c": [WEB, LOG]}, "/c[?(@.on=='true')]", [("c", 0)], id="quoted-text-is-that-of-a-boolean"),
        pytest.param({"c": [WEB, LOG]}, "/c[?(@.tag=='')]", [("c", 1)], id="empty-text-is-null-and-never-missing"),
        pytest.param({"c": [WEB, LOG]}, "/c[?(@.tag==null)]", [("c", 1)], id="null-is-never-missing"),
        pytest.param({"c": [{"a": {"b c": 1}}, {"a": 1}, 7]}, "/c[?(@.a['b c']==1)]", [("c", 0)], id="fields"),
        pytest.param({"c": LETTERS}, "/c[?(@.n=='z')]", "PatchPathNotFound", id="row-27-filter-finds-nothing"),
        pytest.param({"c": []}, "/c[*]", "PatchPathNotFound", id="every-item-of-none"),
        pytest.param({"c": [WEB]}, "/c[?(@.port==true)]", "PatchPathNotFound", id="a-boolean-is-no-number"),
        pytest.param({"c": [{"n": 1}]}, "/c[?(@.n==true)]", "PatchPathNotFound", id="one-is-not-true"),
        pytest.param({"c": [{"n": "1"}]}, "/c[?(@.n==1)]", "PatchPathNotFound", id="text-is-no-number"),
        pytest.param({"c": [{"n": [1]}]}, "/c[?(@.n=='[1]')]", "PatchPathNotFound", id="a-list-has-no-text"),
        pytest.param({}, "/c[?(@.n=='a')]", "PathNotArray", id="row-26-filter-on-a-missing-field"),
        pytest.param({"c": None}, "/c[*]", "PathNotArray", id="wildcard-on-null"),
        pytest.param({"c": {"0": 1}}, "/c[0]", "PathNotArray", id="index-on-a-map"),
        pytest.param({"c": "x"}, "/c[0]", "PathNotArray", id="index-on-a-single-value"),
        pytest.param({"c": [1]}, "/c/1", "PathIndexOutOfRange", id="index-behind-the-last"),
        pytest.param({"c": [1]}, "/c[1]/d", "PathIndexOutOfRange", id="index-behind-the-last-on-the-way"),
        pytest.param({"c": [1]}, "/c/d", "PathNotObject", id="key-on-a-list"),
        pytest.param({"c": "x"}, "/c/d", "PathNotObject", id="key-on-a-single-value"),
        pytest.param({"c": "x"}, "/c/0", "PathNotObject", id="number-on-a-single-value"),
        pytest.param({"c": {}}, "/c/d", "PatchPathNotFound", id="row-33-missing-key"),
        pytest.param({}, "/c/d/e", "PatchPathNotFound", id="missing-map"),
        pytest.param({}, "/c/0", "PatchPathNotFound", id="number-below-a-missing-map"),
        pytest.param({"c": [0] * (MAX_LOCATIONS + 1)}, "/c[*]", "PathTooMany", id="too-many"),
        pytest.param({"c": [[0] * 101] * 100}, "/c[*][*]", "PathTooMany", id="too-many-in-product"),
    ],
)  # fmt: skip
def test_locations_of_a_path(document: Any, path: str, expected: Any) -> None:
    assert find_replace_locations(document, path) == expected


def test_missing_location_is_reported_with_the_number_of_items() -> None:
    with pytest.raises(FieldFindingError) as raised:
        apply_operation({"c": [1, 2]}, build_operation("replace", "/c/[5]/d", 1), PatchBudget())

    message = (
        'spec.patches[0].patch.path points to index 5 of /c, but the list has only 2 items; the path is "/c/[5]/d"'
    )
    assert raised.value.field_finding.message == message
    assert raised.value.field_finding.path == (*AT, "path")


def test_maximum_number_of_locations_is_allowed() -> None:
    assert len(find_replace_locations({"c": [0] * MAX_LOCATIONS}, "/c[*]")) == MAX_LOCATIONS


@pytest.mark.parametrize(
    ("document", "op", "path", "value", "expected"),
    [
        pytest.param({}, "add", "/v/-", 1, {"v": [1]}, id="row-23-list-is-made"),
        pytest.param({"v": None}, "add", "/v/-", 1, {"v": [1]}, id="row-23-list-is-made-of-null"),
        pytest.param({"v": {}}, "add", "/v/-", 1, "PathNotArray", id="row-24-append-to-a-map"),
        pytest.param({"v": "x"}, "add", "/v/-", 1, "PathNotArray", id="append-to-a-single-value"),
        pytest.param({"c": [{"n": "a"}]}, "add", "/c[?(@.n=='a')]/m/-", 1, {"c": [{"n": "a", "m": [1]}]}, id="row-25"),
        pytest.param({}, "add", "/c[?(@.n=='a')]/m", 1, "PathNotArray", id="row-26"),
        pytest.param({"c": LETTERS}, "remove", "/c[?(@.n=='a')]", ABSENT, {"c": [{"n": "b"}, {"n": "c"}]}, id="row-28"),
        pytest.param({"c": [1, 2]}, "remove", "/c/[*]", ABSENT, {"c": []}, id="row-29"),
        pytest.param({"data": {}}, "add", "/data/8080", 1, {"data": {"8080": 1}}, id="row-30"),
        pytest.param({}, "add", "/data/8080", 1, "PathAmbiguousContainer", id="row-31"),
        pytest.param({"data": None}, "merge", "/data/0/x", 1, "PathAmbiguousContainer", id="row-31-on-the-way"),
        pytest.param({}, "add", "/data/['8080']", 1, {"data": {"8080": 1}}, id="row-31-the-key-is-quoted"),
        pytest.param({}, "add", "/data/[0]", 1, "PathNotArray", id="row-31-an-index-makes-no-list"),
        pytest.param({"c": [1, 2]}, "add", "/c/2", 3, {"c": [1, 2, 3]}, id="row-32-at-the-length"),
        pytest.param({"c": [1, 2]}, "add", "/c/[2]", 3, {"c": [1, 2, 3]}, id="row-32-at-the-length-in-brackets"),
        pytest.param({"c": [1, 2]}, "add", "/c/3", 3, "PathIndexOutOfRange", id="row-32-behind-the-length"),
        pytest.param({"c": [1, 2]}, "add", "/c/0", 0, {"c": [0, 1, 2]}, id="insert"),
        pytest.param({"c": [[1], [2]]}, "add", "/c[*]/0", 0, {"c": [[0, 1], [0, 2]]}, id="insert-in-every-list"),
        pytest.param({"c": [1]}, "add", "/c/-", [2, 3], {"c": [1, [2, 3]]}, id="a-list-is-appended-as-one-item"),
        pytest.param({"c": [[1]]}, "add", "/c/0/-", 2, {"c": [[1, 2]]}, id="list-in-a-list"),
        pytest.param({"a": 1}, "replace", "/b", 2, "PatchPathNotFound", id="row-33"),
        pytest.param({"a": None}, "replace", "/a", 2, {"a": 2}, id="null-exists"),
        pytest.param({"c": [1, 2]}, "replace", "/c/1", 3, {"c": [1, 3]}, id="replace-an-item"),
        pytest.param({"a": 1}, "remove", "/b", ABSENT, {"a": 1}, id="row-34-missing-key"),
        pytest.param({"a": 1}, "remove", "/b/c/d", ABSENT, {"a": 1}, id="row-34-below-a-missing-map"),
        pytest.param({"b": None}, "remove", "/b/c", ABSENT, {"b": None}, id="row-34-below-null"),
        pytest.param({}, "remove", "/b/0", ABSENT, {}, id="row-34-number-below-a-missing-map"),
        pytest.param({}, "remove", "/b/c[0]", ABSENT, {}, id="row-34-list-below-a-missing-map"),
        pytest.param({}, "remove", "/b[0]", ABSENT, "PathNotArray", id="row-26-also-when-removing"),
        pytest.param({"b": [1]}, "remove", "/b/1", ABSENT, "PathIndexOutOfRange", id="no-such-item"),
        pytest.param({"b": [1]}, "remove", "/b/c", ABSENT, "PathNotObject", id="key-of-a-list"),
        pytest.param({}, "add", "/m/x.io~1b", 1, {"m": {"x.io/b": 1}}, id="row-35"),
        pytest.param({}, "add", "/m/['x.io/b']", 1, {"m": {"x.io/b": 1}}, id="row-35-quoted"),
        pytest.param(
            {"c": [{"url": "http://x/y"}]}, "add", "/c[?(@.url=='http://x/y')]/k", 1,
            {"c": [{"url": "http://x/y", "k": 1}]}, id="row-36",
        ),
        pytest.param({}, "add", "/a/b/c", 1, {"a": {"b": {"c": 1}}}, id="parents-are-made"),
        pytest.param({"a": {"b": None}}, "add", "/a/b/c", 1, {"a": {"b": {"c": 1}}}, id="parents-are-made-of-null"),
        pytest.param({"l": [None]}, "add", "/l/0/c", 1, {"l": [{"c": 1}]}, id="parents-are-made-of-a-null-item"),
        pytest.param({"a": {"b": 1}}, "add", "/a/b/c", 1, "PathNotObject", id="parents-are-not-overwritten"),
        pytest.param({"a": {"x": 1}}, "add", "/a", {"y": 2}, {"a": {"y": 2}}, id="add-replaces-a-key"),
        pytest.param({"a": 1}, "add", "/a", None, {"a": None}, id="null-is-a-value"),
        pytest.param(
            {"a": {"x": 1}, "l": [1]}, "merge", "/['a']", {"y": 2}, {"a": {"x": 1, "y": 2}, "l": [1]}, id="merge-maps",
        ),
        pytest.param(
            {"o": {"a": {"x": 1}, "l": [1]}}, "merge", "/o", {"a": {"y": 2}, "l": [2]},
            {"o": {"a": {"x": 1, "y": 2}, "l": [1, 2]}}, id="row-37",
        ),
        pytest.param({"a": "x"}, "merge", "/a", {"y": 2}, "MergeTypeMismatch", id="row-38"),
        pytest.param({"a": "x"}, "merge", "/a", [2], "MergeTypeMismatch", id="list-onto-a-single-value"),
        pytest.param({"a": {"x": 1}}, "merge", "/a", 2, "MergeTypeMismatch", id="single-value-onto-a-map"),
        pytest.param({"a": {"x": 1}}, "merge", "/a", [2], "MergeTypeMismatch", id="list-onto-a-map"),
        pytest.param({"a": {"x": 1}}, "merge", "/a", None, "MergeTypeMismatch", id="null-onto-a-map"),
        pytest.param({"a": [1]}, "merge", "/a", [2, 3], {"a": [1, 2, 3]}, id="lists-are-joined"),
        pytest.param({"a": [1]}, "merge", "/a", 2, {"a": [1, 2]}, id="single-value-joins-a-list"),
        pytest.param({"a": [1]}, "merge", "/a", {"x": 2}, {"a": [1, {"x": 2}]}, id="map-joins-a-list"),
        pytest.param({"a": 1}, "merge", "/a", 2, {"a": 2}, id="single-value-wins"),
        pytest.param({"a": 1}, "merge", "/a", None, {"a": None}, id="null-wins"),
        pytest.param({"a": None}, "merge", "/a", {"x": 1}, {"a": {"x": 1}}, id="map-onto-null"),
        pytest.param({}, "merge", "/a/b", {"x": 1}, {"a": {"b": {"x": 1}}}, id="merge-with-a-missing-field"),
        pytest.param({"a": {"x": 1}}, "merge", "/a", {}, {"a": {"x": 1}}, id="merge-nothing"),
        pytest.param(
            {"c": [{"n": "a"}, {"n": "b"}]}, "merge", "/c[*]", {"k": 1},
            {"c": [{"n": "a", "k": 1}, {"n": "b", "k": 1}]}, id="merge-every-item",
        ),
        pytest.param({"c": [1]}, "merge", "/c/1", 2, "PathIndexOutOfRange", id="merge-behind-the-last"),
        pytest.param({"c": [1]}, "add", "/c/-", OMIT, {"c": [1]}, id="an-omitted-value-has-no-effect"),
        pytest.param({}, "replace", "/c/d", OMIT, {}, id="an-omitted-value-needs-no-location"),
        pytest.param({"c": [1, 2, 3, 1]}, "remove", "/c/0", ABSENT, {"c": [2, 3, 1]}, id="remove-an-item"),
        pytest.param({"c": [{"n": 1}, {"n": 1}]}, "remove", "/c[?(@.n==1)]", ABSENT, {"c": []}, id="all"),
    ],
)  # fmt: skip
def test_operation_result(document: Any, op: str, path: str, value: Any, expected: Any) -> None:
    assert patch_copy(document, op, path, value) == expected


@pytest.mark.parametrize(
    ("document", "op", "path", "expected"),
    [
        pytest.param({"c": LETTERS}, "replace", "/c[?(@.n=='z')]", {"c": LETTERS}, id="row-27-filter-finds-nothing"),
        pytest.param({"a": 1}, "replace", "/b", {"a": 1}, id="missing-key"),
        pytest.param({"c": [{"k": 0}, {}]}, "replace", "/c[*]/k", {"c": [{"k": 9}, {}]}, id="where-it-is"),
        pytest.param({}, "replace", "/c[0]", "PathNotArray", id="a-list-is-still-a-list"),
    ],
)
def test_missing_locations_can_be_skipped(document: Any, op: str, path: str, expected: Any) -> None:
    assert patch_copy(document, op, path, 9, skip_missing=True) == expected


def test_each_location_gets_its_own_copy_of_the_value() -> None:
    value, document = {"x": [1]}, {"c": [{}, {}]}

    apply_operation(document, build_operation("add", "/c[*]/v", value), PatchBudget())
    document["c"][0]["v"]["x"].append(2)  # type: ignore[index]

    assert document["c"][1] == {"v": {"x": [1]}}
    assert value == {"x": [1]}


def test_added_keys_are_last_in_the_order_of_the_value() -> None:
    result = patch_copy({"m": {"z": 1, "b": 2}}, "merge", "/m", {"y": 3, "b": 4, "a": 5})

    assert list(result["m"].items()) == [("z", 1), ("b", 4), ("y", 3), ("a", 5)]


@pytest.mark.parametrize(
    ("document", "op", "path", "value", "expected"),
    [
        pytest.param({}, "add", "/a", 1, [Write("add", ("a",), ABSENT, 1)], id="new-key"),
        pytest.param({"a": 0}, "add", "/a", 1, [Write("replace", ("a",), 0, 1)], id="key-that-is-there"),
        pytest.param(
            {}, "add", "/a/b", 1, [Write("add", ("a",), ABSENT, {"b": 1}, path_in_after=("b",))], id="parents",
        ),
        pytest.param(
            {"a": None}, "add", "/a/-", 1, [Write("replace", ("a",), None, [1], path_in_after=(0,))], id="parents-of-null",
        ),
        pytest.param({"c": [0]}, "add", "/c/0", 1, [Write("add", ("c", 0), ABSENT, 1)], id="insert"),
        pytest.param({"c": [0]}, "add", "/c/-", 1, [Write("add", ("c", 1), ABSENT, 1, True)], id="append"),
        pytest.param({"c": [0]}, "add", "/c/1", 1, [Write("add", ("c", 1), ABSENT, 1, True)], id="append-by-index"),
        pytest.param(
            {"c": [1, 2]}, "remove", "/c[*]", ABSENT,
            [Write("remove", ("c", 1), 2, ABSENT), Write("remove", ("c", 0), 1, ABSENT)], id="remove-from-the-end",
        ),
        pytest.param({}, "remove", "/a", ABSENT, [], id="nothing-to-remove"),
        pytest.param(
            {"m": {"x": 1, "l": [1]}}, "merge", "/m", {"x": 2, "y": 3, "l": [4]},
            [
                Write("replace", ("m", "x"), 1, 2, path_in_value=("x",)),
                Write("add", ("m", "y"), ABSENT, 3, path_in_value=("y",)),
                Write("add", ("m", "l", 1), ABSENT, 4, True, path_in_value=("l", 0)),
            ], id="merge-leaf-by-leaf",
        ),
    ],
)  # fmt: skip
def test_writes_of_an_operation(document: Any, op: str, path: str, value: Any, expected: list[Write]) -> None:
    assert list(apply_operation(document, build_operation(op, path, value), PatchBudget())) == expected


def build_nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = {"a": value}
    return value


def test_too_deep_result_is_refused() -> None:
    assert patch_copy({}, "add", "/a", build_nested(MAX_DEPTH - 1)) == build_nested(MAX_DEPTH)
    assert patch_copy({}, "add", "/a", build_nested(MAX_DEPTH)) == "PatchTooLarge"
    assert patch_copy({}, "add", "/a" * MAX_DEPTH, 0) == build_nested(MAX_DEPTH)
    assert patch_copy({}, "add", "/a" * MAX_DEPTH, build_nested(1)) == "PatchTooLarge"
    assert patch_copy({"a": {}}, "merge", "/a", build_nested(MAX_DEPTH)) == "PatchTooLarge"
    assert patch_copy({}, "add", "/a", build_nested(100_000)) == "PatchTooLarge"


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("x" * (MAX_PATCH_COST // 10), id="text"),
        pytest.param(["x"] * (MAX_PATCH_COST // 90), id="items"),
        pytest.param({"k" * (MAX_PATCH_COST // 10): 1}, id="keys"),
    ],
)
def test_cost_of_a_value_is_counted_for_each_location(value: Any) -> None:
    items = [{} for _ in range(11)]

    assert patch_copy({"c": items[:1]}, "add", "/c[*]/v", value) == {"c": [{"v": value}]}
    assert patch_copy({"c": items}, "add", "/c[*]/v", value) == "PatchTooLarge"


@pytest.mark.slow
def test_exponential_growth_exceeds_the_budget() -> None:
    document, allowance = {"a": {"x": 1}}, PatchBudget()

    def double_repeatedly() -> None:
        for number in range(60):
            apply_operation(document, build_operation("add", f"/a/k{number}", copy.copy(document["a"])), allowance)

    with pytest.raises(
        FieldFindingError,
        match="exceeds a limit: all patches of a render together can write at most 4,000,000 characters",
    ):
        double_repeatedly()


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("path", ["/c[*]/v", "/c[?(@.n=='z')]/v", "/d"])
def test_cost_of_a_search_is_counted(path: str) -> None:
    document, allowance, patch_operation = (
        {"c": [{}] * 5_000, "d": 0},
        PatchBudget(),
        build_operation("replace", path, 0),
    )

    def apply_repeatedly() -> None:
        for _ in range(MAX_PATCH_COST):
            apply_operation(document, patch_operation, allowance, skip_missing=True)

    with pytest.raises(
        FieldFindingError, match="each operation and each read counts as additional characters"
    ) as raised:
        apply_repeatedly()
    assert raised.value.field_finding.code.name == "PatchTooLarge"


# The next tests use generated documents and operations.

scalars = st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.sampled_from(["a", "b", ""]))
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc01"), inner, max_size=3)
)
documents = st.dictionaries(st.sampled_from("abc01"), values, max_size=4)
steps = st.sampled_from(["a", "b", "c", "0", "1", "-", "[0]", "[*]", "[1]", "['0']", "[?(@.a=='a')]", "[?(@.b==1)]"])
paths = st.lists(steps, min_size=1, max_size=4).map(lambda value: "/" + "/".join(value))
ops = st.sampled_from(["add", "replace", "remove", "merge"])


def apply_to_copy(document: Any, op: str, text: str, value: Any) -> tuple[Any, tuple[Write, ...]] | None:
    """Apply an operation to a copy. Return the copy and the writes, or None if the operation fails."""
    path, copied = parse_patch_path(text), copy.deepcopy(document)
    if not isinstance(path, PatchPath) or (op != "add" and path.is_append) or (op == "add" and path.can_match_many):
        return None
    try:
        return copied, apply_operation(copied, PatchOperation(op, path, value, AT), PatchBudget())  # type: ignore[arg-type]
    except FieldFindingError:
        return None


@pytest.mark.slow
@given(documents, ops, paths, values)
def test_writes_replayed_as_rfc_6902_give_the_result(document: Any, op: str, path: str, value: Any) -> None:
    result, before = apply_to_copy(document, op, path, value), copy.deepcopy(value)
    if result is None:
        return

    replay = [{"op": write.op, "path": format_pointer(write.location), "value": write.after} for write in result[1]]

    assert repr(apply_patch(document, replay)) == repr(result[0])
    assert repr(value) == repr(before)


@given(documents, ops, paths, values)
def test_only_the_locations_of_the_path_change(document: Any, op: str, text: str, value: Any) -> None:
    result, path = apply_to_copy(document, op, text, value), parse_patch_path(text)
    if result is None or not isinstance(path, PatchPath):
        return

    chosen = find_locations(document, path, op, PatchBudget(), AT)  # type: ignore[arg-type]

    assert all(any(is_on_same_branch(place, write.location) for place in chosen) for write in result[1])


def is_on_same_branch(place: tuple[str | int, ...], written: tuple[str | int, ...]) -> bool:
    """Return whether a write is at a location, below it, or at a missing parent that the operation adds."""
    shared = min(len(place), len(written))
    return place[:shared] == written[:shared]


plain_ops = st.sampled_from(["add", "replace", "remove"])
plain_steps = st.lists(st.sampled_from("abc01-"), min_size=1, max_size=4)


@pytest.mark.slow
@given(documents, plain_ops, plain_steps, values)
def test_plain_pointers_have_the_rfc_6902_meaning(document: Any, op: str, keys: list[str], value: Any) -> None:
    """Where RFC 6902 reports an error, this engine may add parents or ignore a missing location."""
    pointer = format_pointer(keys)
    try:
        theirs = jsonpatch.apply_patch(document, [{"op": op, "path": pointer, "value": value}])
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError):
        return

    result = apply_to_copy(document, op, pointer, value)

    # This engine refuses "-" as a key.
    assert result is None if "-" in keys[:-1] else result is not None or "-" in keys
    if result is not None:
        assert repr(result[0]) == repr(theirs)
