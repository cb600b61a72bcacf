"""Tests of reading operations: one read reports all errors of an operation."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.cel import OMIT
from reconciler.controllers.components.field_findings import FieldFinding, FieldFindingError
from reconciler.controllers.components.patching.operations import OperationTemplate, PatchOperation
from reconciler.controllers.components.patching.paths import PatchPath
from reconciler.krm.merge3.rules import ABSENT
from tests.unit.controllers.components.patching.patch_helpers import AT, read_operation

WHERE = "spec.patches[0].patch"


def read_valid(written: Any) -> OperationTemplate:
    operation = read_operation(written)
    assert isinstance(operation, OperationTemplate)
    return operation


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param({"op": "add", "path": "/a", "value": 1}, ("add", 1), id="add"),
        pytest.param({"op": "replace", "path": "/a", "value": None}, ("replace", None), id="null-is-a-value"),
        pytest.param({"op": "merge", "path": "/a", "value": {}}, ("merge", {}), id="merge"),
        pytest.param({"op": "remove", "path": "/a"}, ("remove", ABSENT), id="remove"),
        pytest.param({"op": "remove", "path": "/a", "x-why": "old"}, ("remove", ABSENT), id="a-field-of-their-own"),
    ],
)
def test_read_operation(written: dict[str, Any], expected: tuple[Any, ...]) -> None:
    operation_template = read_valid(written)

    assert (operation_template.op, operation_template.value) == expected
    assert isinstance(operation_template.path, PatchPath)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("add", ["AddonInvalid: must be a mapping"], id="text"),
        pytest.param({"path": "/a"}, ['PatchOpUnsupported.op: must be one of "add", "replace"'], id="no-op"),
        pytest.param(
            {"op": "test", "path": "/a"},
            ['PatchOpUnsupported.op: must be one of "add", "replace", "remove", "merge", but is "test"'],
            id="test",
        ),
        pytest.param({"op": "mergeShallow", "path": "/a"}, ["PatchOpUnsupported.op:"], id="merge-shallow"),
        pytest.param({"op": "Add", "path": "/a"}, ["PatchOpUnsupported.op:"], id="upper-case"),
        pytest.param({"op": ["add"], "path": "/a"}, ["PatchOpUnsupported.op:"], id="list-as-op"),
        pytest.param({"op": "add", "value": 1}, ["PathSyntax.path: must be a string"], id="no-path"),
        pytest.param({"op": "add", "path": 5, "value": 1}, ["PathSyntax.path: must be a string"], id="number-as-path"),
        pytest.param({"op": "add", "path": "", "value": 1}, ["PathRoot.path:"], id="path-of-the-object"),
        pytest.param({"op": "add", "path": "/a"}, ["AddonInvalid.value: must be set"], id="no-value"),
        pytest.param(
            {"op": "remove", "path": "/a", "value": 1}, ["AddonInvalid.value: must not be set"], id="value-of-remove"
        ),
        pytest.param({"op": "remove", "path": "/a/-"}, ["PathDashOnlyAdd.path:"], id="remove-dash"),
        pytest.param({"op": "merge", "path": "/a[-]", "value": 1}, ["PathDashOnlyAdd.path:"], id="merge-dash"),
        pytest.param({"op": "add", "path": "/a[*]", "value": 1}, ["PathAmbiguousAdd.path:"], id="add-wildcard"),
        pytest.param({"op": "add", "path": "/a[?(@.n=='x')]", "value": 1}, ["PathAmbiguousAdd.path:"], id="add-filter"),
        pytest.param(
            {"op": "add", "path": 5, "valu": 1},
            [
                "PathSyntax.path:",
                "AddonInvalid.value:",
                'UnknownField.valu: is an unknown field; allowed fields: op, path, value; did you mean "value"?',
            ],
            id="all-at-once",
        ),
        pytest.param(
            {"op": "move", "path": "/a", "from": "/b"}, ["PatchOpUnsupported.op:", "UnknownField.from:"], id="move"
        ),
    ],
)
def test_invalid_operation_is_reported(written: Any, expected: list[str]) -> None:
    operation = read_operation(written)

    assert isinstance(operation, tuple)
    values = [
        f"{field_finding.code.name}{'.'.join(['', *map(str, field_finding.path[len(AT) :])])}: {strip_field(field_finding)}"
        for field_finding in operation
    ]
    assert len(values) == len(expected)
    assert all(item.startswith(start) for item, start in zip(values, expected, strict=True))


def strip_field(finding: FieldFinding) -> str:
    """Return a message without its leading field."""
    assert finding.message.startswith(WHERE)
    return finding.message.partition(" ")[2]


def test_static_path_is_parsed_once() -> None:
    template = read_valid({"op": "add", "path": "/a", "value": "${spec.a}"})

    assert template.render(7) == PatchOperation("add", template.path, 7, AT)  # type: ignore[arg-type]


def test_templated_path_is_parsed_after_rendering() -> None:
    template = read_valid({"op": "add", "path": "/a/${spec.key}", "value": 1})

    assert template.path == "/a/${spec.key}"
    assert template.render(1, "/a/b").path.text == "/a/b"


@pytest.mark.parametrize(
    ("op", "path", "code"),
    [
        pytest.param("add", "a", "PathSyntax", id="no-path"),
        pytest.param("add", "/a[?(@.n!='x')]", "PathFilterUnsupported", id="filter"),
        pytest.param("add", "/a[*]", "PathAmbiguousAdd", id="add-wildcard"),
        pytest.param("replace", "/a/-", "PathDashOnlyAdd", id="replace-dash"),
        pytest.param("replace", 5, "PathSyntax", id="number"),
        pytest.param("replace", OMIT, "PathSyntax", id="omitted"),
    ],
)
def test_invalid_rendered_path_is_reported(op: str, path: Any, code: str) -> None:
    template = read_valid({"op": op, "path": "${spec.path}", "value": 1})

    with pytest.raises(FieldFindingError) as raised:
        template.render(1, path)

    assert raised.value.field_finding.code.name == code
    assert raised.value.field_finding.path == (*AT, "path")
