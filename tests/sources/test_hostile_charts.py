"""Tests with the program helm: charts that would use too much time, memory or output are refused with their limit."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from reconciler.lazy_dataclasses import replace
from reconciler.processes.process import ProcessLimits
from tests.support.charts import LIMITS, REQUEST, build_chart, build_engine, format_config_map
from tests.support.programs import find_program

NESTED_LOOPS = "{{ range until 30000 }}{{ range until 30000 }}{{ $x := add 1 2 }}{{ end }}{{ end }}"
LONG_TEXT = '{{ range until 2000 }}{{ repeat 1000 "x" }}{{ end }}'
VALUES_URL = '{{ tpl "{{ .Files.Get `https://example.com/x` }}" . | default "nothing" }}'


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize(
    ("templates", "limits", "code", "text"),
    [
        pytest.param(
            {"a.yaml": NESTED_LOOPS},
            replace(LIMITS, seconds=1.0),
            "RenderTimeout",
            "timeout_seconds",
            id="endless-loop",
        ),
        pytest.param(
            {"a.yaml": "{{ range until 100000000 }}{{ end }}"},
            replace(LIMITS, memory_bytes=300_000_000),
            "RenderOutOfMemory",
            "memory_bytes",
            id="memory",
        ),
        pytest.param(
            {"a.yaml": format_config_map("a", LONG_TEXT)}, LIMITS, "SourceTooLarge", "output_bytes", id="output"
        ),
        pytest.param(
            {"a.yaml": '{{ define "f" }}{{ include "f" . }}{{ end }}{{ include "f" . }}'},
            LIMITS,
            "ChartRenderFailed",
            "templates/a.yaml",
            id="endless-include",
        ),
        pytest.param(
            {"a.yaml": f"{{{{ range $i := until 101 }}}}---\n{format_config_map('a{{ $i }}')}\n{{{{ end }}}}"},
            LIMITS,
            "SourceTooLarge",
            "more than 100 resources",
            id="resources",
        ),
        pytest.param(
            {"a.yaml": "{{ if false }}" + "{{ now }}" * 10_001 + "{{ end }}"},
            LIMITS,
            "SourceTooLarge",
            "more than 10000 calls of functions",
            id="calls",
        ),
    ],
)
def test_limits(tmp_path: Path, templates: dict[str, str], limits: ProcessLimits, code: str, text: str) -> None:
    engine = build_engine(find_program("helm"), tmp_path, limits)

    source = engine.render(build_chart(templates), REQUEST)

    assert [finding.code for finding in source.findings] == [code]
    assert text in source.findings[0].message
    assert not source.files
    other = engine.render(build_chart({"b.yaml": format_config_map("b")}), REQUEST)
    assert list(other.files) == ["configmap-b.yaml"]


def test_file_of_a_url_is_empty(tmp_path: Path) -> None:
    source = build_engine(find_program("helm"), tmp_path).render(
        build_chart({"a.yaml": format_config_map("a", VALUES_URL)}), REQUEST
    )

    assert b"key: nothing" in source.files["configmap-a.yaml"].data


@pytest.mark.slow
def test_large_output_does_not_increase_the_memory_of_the_daemon(tmp_path: Path) -> None:
    limits = replace(LIMITS, output_bytes=64 << 20)
    engine = build_engine(find_program("helm"), tmp_path, limits)
    chart = build_chart({"a.yaml": format_config_map("a", '{{ repeat 100000000 "x" }}')})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    source = engine.render(chart, REQUEST)

    assert [finding.code for finding in source.findings] == ["SourceTooLarge"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024
