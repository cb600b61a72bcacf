"""Templates of ApplicationSets are evaluated as data."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.adopt.argocd.templates import TemplateError, render_template

NESTED = {
    "name": "Berlin__1", "half": 0.5, "whole": 2.0, "large": 123456789012, "path": {"basename": "web", "segments": ["apps", "web"]}, "n": 3, "on": True, "empty": "",
    "metadata": {"labels": {"a/b": "x"}},
}  # fmt: skip
FLAT = {"name": "berlin", "path": "apps/web", "path[1]": "web", "metadata.labels.region": "eu"}


@pytest.mark.parametrize(
    ("template", "parameters", "expected"),
    [
        ("{{.path.basename}}-{{ .n }}", NESTED, "web-3"),
        ("{{- .on -}}", NESTED, "true"),
        ("a {{- .n }} {{ .n -}} b {{.n}}", NESTED, "a3 3b 3"),
        ("{{-3}}", {"-3": "x"}, "x"),
        ("{{ .half }}{{ .whole }}", NESTED, "0.52"),
        ('{{ index .metadata.labels "a/b" }}', NESTED, "x"),
        ("{{ index .path.segments 0 }}", NESTED, "apps"),
        ("{{ .name | normalize }}", NESTED, "berlin--1"),
        ('{{ .empty | default "none" | upper }}', NESTED, "NONE"),
        ('{{ .absent | default "none" }}', NESTED, "none"),
        ({"a{{.n}}": ["{{.n}}", 1, None]}, NESTED, {"a3": ["3", 1, None]}),
        ("{{name}} {{ path[1] }} {{metadata.labels.region}}", FLAT, "berlin web eu"),
        ("no template", FLAT, "no template"),
    ],
)
def test_references_are_replaced(template: Any, parameters: dict[str, Any], expected: Any) -> None:
    assert render_template(template, parameters, is_go_template=parameters is NESTED) == expected


@pytest.mark.parametrize(
    ("template", "parameters", "message"),
    [
        ("{{ if .name }}x{{ end }}", NESTED, "contains unsupported template code"),
        ('{{ printf "%s" .name }}', NESTED, "contains unsupported template code"),
        ('{{ .name | replace "a" "b" }}', NESTED, "uses the unsupported function"),
        ("{{ .absent }}", NESTED, "names a missing parameter"),
        ("{{ .name.first }}", NESTED, "names a missing parameter"),
        ('{{ index .metadata.labels "x" }}', NESTED, "names a missing parameter"),
        ("{{ .path }}", NESTED, "must return a text, not a mapping"),
        ("{{ .large }}", NESTED, "returns a number that Go can write with an exponent"),
        ("{{absent}}", FLAT, "no generator returns the parameter {{absent}}"),
    ],
)
def test_other_code_is_refused(template: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        render_template(template, parameters, is_go_template=parameters is NESTED)
