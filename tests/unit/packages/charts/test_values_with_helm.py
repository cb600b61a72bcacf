"""Comparison of the merge of values with Helm: the merged document gives the same values as the single layers."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from reconciler.krm.helm_paths import format_option_name, parse_option_name
from reconciler.packages.charts.values import ValuesLayer, merge_layers
from tests.support.programs import find_program

PAIR_COUNT = 200
BATCH_SIZE = 50
KEYS = ("a", "b", "c.d", "e f")
SCALARS: tuple[Any, ...] = (
    None, None, True, False, 0, -1, 3, 10**6, 2**53, 1.5, 1e21, "", "text", "yes", "1e3", "null", "{{ x }}", "${y}", "ü\n",
)  # fmt: skip


def create_map(rng: random.Random, depth: int = 3) -> dict[str, Any]:
    return {rng.choice(KEYS): create_value(rng, depth - 1) for _ in range(rng.randrange(4))}


def create_value(rng: random.Random, depth: int) -> Any:
    kind = rng.random()
    if depth and kind < 0.45:
        return create_map(rng, depth)
    if depth and kind < 0.6:
        return [create_value(rng, depth - 1) for _ in range(rng.randrange(3))]
    return rng.choice(SCALARS)


def create_target(rng: random.Random) -> str:
    steps: list[str | int] = [rng.choice(KEYS) for _ in range(rng.randrange(1, 4))]
    if rng.random() < 0.3:
        steps.insert(rng.randrange(1, len(steps) + 1), rng.randrange(3))
    return format_option_name(steps)


def create_layers(rng: random.Random) -> list[ValuesLayer]:
    """Return layers that Helm can merge: two files, an object, values, and up to three parameters."""
    while True:
        layers = [
            ValuesLayer(kind, "", create_map(rng)) for kind in ("values-file", "values-file", "values-from", "values")
        ]
        layers += [
            ValuesLayer("parameter", "", create_value(rng, 2), parse_option_name(create_target(rng)))
            for _ in range(rng.randrange(4))
        ]
        if not merge_layers(layers).problems:
            return layers


def nest(layer: ValuesLayer, key: str) -> ValuesLayer:
    """Return the layer below a key, so that one render can compare many pairs."""
    if layer.target:
        return ValuesLayer(layer.kind, "", layer.values, (key, *layer.target))
    return ValuesLayer(layer.kind, "", {key: layer.values})


def build_renderer(helm: str, chart: Path) -> Callable[..., Any]:
    def render(*arguments: str) -> Any:
        command = [helm, "template", "--kube-version", "1.34.0", *arguments, "release", str(chart)]
        process = subprocess.run(command, text=True, capture_output=True, check=False, timeout=60)
        assert process.returncode == 0, process.stderr
        return json.loads(process.stdout.partition("# Source: probe/templates/values.yaml\n")[2])

    return render


def write_chart(folder: Path, defaults: Mapping[str, Any]) -> Path:
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("{apiVersion: v2, name: probe, version: 1.0.0}\n")
    (folder / "values.yaml").write_text(json.dumps(defaults))
    (folder / "templates/values.yaml").write_text("{{ .Values | toJson }}\n")
    return folder


def test_merged_values_equal_the_values_of_helm(tmp_path: Path) -> None:
    """For 200 pairs of chart defaults and layers, one merged document and the single layers give equal values."""
    helm = find_program("helm")
    rng = random.Random(24)
    for start in range(0, PAIR_COUNT, BATCH_SIZE):
        folder = tmp_path / str(start)
        cases = {f"case{number}": create_layers(rng) for number in range(start, start + BATCH_SIZE)}
        render = build_renderer(helm, write_chart(folder / "chart", {key: create_map(rng) for key in cases}))
        arguments = []
        for index in range(4):
            file = folder / f"layer-{index}.json"
            file.write_text(json.dumps({key: layers[index].values for key, layers in cases.items()}))
            arguments += ["--values", str(file)]
        nested = [nest(layer, key) for key, layers in cases.items() for layer in layers]
        for layer in nested:
            if layer.kind == "parameter":
                arguments += ["--set-json", f"{format_option_name(layer.target)}={json.dumps(layer.values)}"]
        merged_file = folder / "merged.json"
        merged_file.write_text(merge_layers(nested).text)
        assert render("--values", str(merged_file)) == render(*arguments)
