"""Tests of the values on which a field of a rendered chart depends."""

from __future__ import annotations

from typing import Any

from reconciler.catalog.files import File, FileTree
from reconciler.krm.helm_paths import parse_option_name
from reconciler.krm.yaml import emit
from reconciler.packages.charts.values import LayerKind, ValuesLayer, format_values_path
from reconciler.planning.attribution.value_dependencies import (
    FieldReference,
    ValueDependencies,
    find_value_dependencies,
)

DEFAULTS: dict[str, Any] = {
    "image": {"repository": "nginx", "tag": "1"}, "replicas": 1, "debug": False, "args": ["a"], "strict": "on",
    "extra": {}, "other": 1,
}  # fmt: skip
TEMPLATE = "{{ .Values.image.tag }} {{ with .Values.args }} {{ .Values.debug }} {{ .Values.strict }} .Values.extra"


def render(values: dict[str, Any]) -> FileTree | None:
    """Render a Deployment as a chart does. The chart fails if `strict` has an unknown value."""
    if values["strict"] != "on":
        return None
    tag = values["image"]["tag"]
    image = f"{values['image']['repository']}:{tag}{'-debug' if values['debug'] else ''}"
    container = {"image": image, "args": values["args"], **values["extra"]}
    spec = {"replicas": values["replicas"], "containers": [container]}
    resource = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": spec,
    }
    return FileTree({"deployment-web.yaml": File(emit(resource).encode())})


def build_layers(*layers: tuple[LayerKind, Any, str]) -> list[ValuesLayer]:
    return [
        ValuesLayer(kind, kind, values, parse_option_name(target) if target else ())
        for kind, values, target in (("chart-default", DEFAULTS, ""), *layers)
    ]


def find(*layers: tuple[LayerKind, Any, str], path: str, limit: int = 40) -> ValueDependencies:
    steps = parse_option_name(path)
    reference = FieldReference("Deployment/shop/web", steps)
    return find_value_dependencies(build_layers(*layers), TEMPLATE, reference, render, limit)


def list_found(dependencies: ValueDependencies) -> list[str]:
    return [format_values_path(history.path) for history in dependencies.found]


def test_values_of_all_layers() -> None:
    """A field depends on values of each layer, and on defaults whose path is in the template."""
    dependencies = find(
        ("values", {"replicas": 3, "image": {"repository": "httpd"}}, ""), ("parameter", "2", "image.tag"),
        path="spec.containers[0].image",
    )  # fmt: skip
    assert list_found(dependencies) == ["image.repository", "image.tag", "debug"]
    assert [step.layer.kind for step in dependencies.found[1].steps] == ["chart-default", "parameter"]
    assert [format_values_path(history.path) for history in dependencies.unknown] == ["strict"]
    assert dependencies.unchecked_count == 0


def test_default_that_the_template_does_not_mention() -> None:
    """A default is not checked if the template does not contain its path. The same value of a layer is checked."""
    assert list_found(find(path="spec.replicas")) == []
    assert list_found(find(("values", {"replicas": 1}, ""), path="spec.replicas")) == ["replicas"]


def test_lists_and_maps() -> None:
    """Items of lists are removed, and empty lists and maps get an item."""
    assert list_found(find(path="spec.containers[0].args")) == ["args"]
    assert list_found(find(("values", {"args": []}, ""), path="spec.containers[0].args")) == ["args"]
    assert list_found(find(path="spec.containers[0].x")) == ["extra"]


def test_value_that_changes_nothing() -> None:
    """A value without an effect on the field is not a dependency."""
    assert list_found(find(("values", {"other": 2}, ""), path="spec.replicas")) == []


def test_limit() -> None:
    """Values above the limit are counted, and values above the defaults are checked first."""
    dependencies = find(("values", {"replicas": 3}, ""), path="spec.replicas", limit=1)
    assert list_found(dependencies) == ["replicas"]
    assert dependencies.unchecked_count == 5


def test_chart_that_cannot_be_rendered() -> None:
    """Without an original render, no dependency is known."""
    assert find(("values", {"strict": "off"}, ""), path="spec.replicas") == ValueDependencies()
