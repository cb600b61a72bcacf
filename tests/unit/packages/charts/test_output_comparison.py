"""The renders of a chart are compared field by field. The keys of YAML documents become texts."""

from __future__ import annotations

import pytest

from reconciler.packages.charts.documents import OutputText
from reconciler.packages.charts.output_comparison import compare_outputs
from reconciler.packages.charts.request import ChartRequest

REQUEST = ChartRequest("web", "shop", "1.34.0")
HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"


@pytest.mark.parametrize(
    ("first", "second", "paths", "texts"),
    [
        pytest.param("data: {a: x}", "data: {a: z}", [("data", "a")], ["z"], id="text"),
        pytest.param("data: [x, x]", "data: [x, z]", [("data", 1)], ["z"], id="list"),
        pytest.param("data: {80: x}", "data: {80: z}", [("data", "80")], ["z"], id="integer-key"),
        pytest.param("data: {true: x}", "data: {true: z}", [("data", "true")], ["z"], id="boolean-key"),
        pytest.param("data: {80: {a: x}}", "data: {80: {a: z}}", [("data", "80", "a")], ["z"], id="below-a-key"),
        pytest.param("data: {a: x}", "data: {}", [("data", "a")], ["null"], id="missing"),
        pytest.param("data: {a: x, b: x}", "data: {b: x, a: x}", [], [], id="order"),
    ],
)
def test_differences(first: str, second: str, paths: list[tuple[str | int, ...]], texts: list[str]) -> None:
    outputs = [(OutputText("templates/web.yaml", 1, HEAD + text),) for text in (first, second)]
    differences = compare_outputs(outputs, REQUEST).differences
    assert [difference.path for difference in differences] == paths
    assert [difference.text.split("\n")[0] for difference in differences] == texts


@pytest.mark.parametrize(
    ("texts", "has_random_order", "expected"),
    [
        pytest.param(["{b: x, a: x}", "{a: x, b: x}"], True, "data:\n  a: x\n  b: x\n", id="random order"),
        pytest.param(["{a: x, b: x}", "{b: x, a: x}"], True, "data:\n  a: x\n  b: x\n", id="other random order"),
        pytest.param(["{a: x, b: x}", "{b: x, a: x}"], False, "data:\n  b: x\n  a: x\n", id="order of placeholders"),
        pytest.param(
            ["[{z: {d: x, c: x}, b: x}]", "[{z: {c: x, d: x}, b: x}]"],
            True,
            "data:\n- z:\n    c: x\n    d: x\n  b: x\n",
            id="only the changed mapping is sorted",
        ),
    ],
)
def test_document_with_another_order_of_keys_is_written_again(
    texts: list[str], has_random_order: bool, expected: str
) -> None:
    outputs = [(OutputText("templates/web.yaml", 1, f"{HEAD}data: {text}"),) for text in texts]

    result = compare_outputs(outputs, REQUEST, has_random_order=has_random_order)

    assert result.differences == ()
    assert result.texts[0].text.partition("name: web\n")[2] == expected
