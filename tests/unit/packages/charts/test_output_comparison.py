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
