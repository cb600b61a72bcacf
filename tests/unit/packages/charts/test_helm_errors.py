"""Tests of the conversion of helm's error output to findings. The texts are the output of helm 3.14, 3.22 and
4.3."""

from __future__ import annotations

import pytest

from reconciler.packages.charts.helm_errors import convert_helm_error, is_out_of_memory

DEBUG = "\n\nUse --debug flag to render out invalid YAML\n"
SCHEMA = "values don't meet the specifications of the schema(s) in the following chart(s):\n"
CALL = ': error calling include: template: web/templates/a.yaml:1:35: executing "f" at <include "f" .>'
CALL_4 = '    error calling include:\nweb/templates/a.yaml:1:61\n  executing "g" at <include "f" .>:\n'


@pytest.mark.parametrize(
    ("stderr", "message"),
    [
        pytest.param(
            'Error: template: web/templates/a.yaml:1:13: executing "web/templates/a.yaml" at <.Values.x.y>: nil pointer'
            f" evaluating interface {{}}.y{DEBUG}",
            'template: templates/a.yaml:1:13: executing "templates/a.yaml" at <.Values.x.y>: nil pointer'
            " evaluating interface {}.y",
            id="nil-pointer",
        ),
        pytest.param(
            f"Error: execution error at (web/templates/a.yaml:1:6): boom{DEBUG}",
            "execution error at (templates/a.yaml:1:6): boom",
            id="fail",
        ),
        pytest.param(
            "walk.go:75: found symbolic link\nError: YAML parse error on web/charts/s/templates/a.yaml: yaml: line 3",
            "YAML parse error on charts/s/templates/a.yaml: yaml: line 3",
            id="warning-before-the-error",
        ),
        pytest.param(
            f"Error: template: web/templates/a.yaml:1:3{CALL * 1000}: nested reference",
            'template: web/templates/a.yaml:1:3: … web/templates/a.yaml:1:35: executing "f" at <include'
            ' "f" .>: nested reference'.replace("web/templates", "templates"),
            id="endless-include",
        ),
        pytest.param(
            f'Error: web/templates/a.yaml:1:92\n  executing "web/templates/a.yaml" at <include "g" .>:\n{CALL_4}{CALL_4}'
            f"    nil pointer{DEBUG}",
            'templates/a.yaml:1:92 executing "templates/a.yaml" at <include "g" .>: … templates/a.yaml:1:61'
            ' executing "g" at <include "f" .>: nil pointer',
            id="chain-of-helm-4",
        ),
        pytest.param("", "", id="no-output"),
        pytest.param(f"Error: {'x' * 5000}", f"{'x' * 1200}…", id="long-text"),
    ],
)
def test_render_error(stderr: str, message: str) -> None:
    findings = convert_helm_error(stderr, "chart web 1", "web")
    report = f'Helm reports: "{message}"' if message else "Helm gives no reason"

    assert [(finding.code, finding.message) for finding in findings] == [
        ("ChartRenderFailed", f"chart web 1 cannot be rendered. {report}")
    ]


@pytest.mark.parametrize(
    ("stderr", "violations"),
    [
        pytest.param(
            f"Error: {SCHEMA}web:\n- at '/image/pullPolicy': got string, want boolean\n- at '/policy': got number\n\n",
            {
                "/image/pullPolicy": 'the values of chart web 1 do not match the schema of the chart at /image/pullPolicy. Helm reports: "got string, want boolean"',
                "/policy": 'the values of chart web 1 do not match the schema of the chart at /policy. Helm reports: "got number"',
            },
            id="helm-3.18-and-later",
        ),
        pytest.param(
            f"Error: {SCHEMA}web:\n- (root): policy is required\n- image.tag: Invalid type\n",
            {
                "": 'the values of chart web 1 do not match the schema of the chart. Helm reports: "policy is required"',
                "/image/tag": 'the values of chart web 1 do not match the schema of the chart at /image/tag. Helm reports: "Invalid type"',
            },
            id="older-versions",
        ),
        pytest.param(
            f"Error: {SCHEMA}db:\n- at '/size': got string, want integer\n",
            {
                "/db/size": 'the values of chart web 1 do not match the schema of the chart at /db/size. Helm reports: "got string, want integer"'
            },
            id="subchart",
        ),
    ],
)
def test_schema_violations(stderr: str, violations: dict[str, str]) -> None:
    findings = convert_helm_error(stderr, "chart web 1", "web")

    assert {finding.code for finding in findings} == {"ValuesInvalid"}
    assert {finding.location.pointer: finding.message for finding in findings} == violations


@pytest.mark.parametrize(
    ("stderr", "expected"),
    [
        ("fatal error: runtime: out of memory\n\ngoroutine 1:\n", True),
        ("runtime: cannot allocate memory\n", True),
        ("Error: execution error at (web/templates/a.yaml:1:6): out of memory", False),
    ],
)
def test_out_of_memory(stderr: str, expected: bool) -> None:
    assert is_out_of_memory(stderr) is expected
