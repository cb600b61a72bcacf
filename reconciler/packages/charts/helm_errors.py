"""Conversion of the error output of `helm template` to findings."""

from __future__ import annotations

import re

from reconciler.krm.findings import Finding, SourceLocation
from reconciler.packages.source_codes import SourceCodes

_PREFIX = re.compile(r"^(?:.*\n)*?Error: ")
_DEBUG_HINT = "Use --debug flag to render out invalid YAML"
_SCHEMA_ERROR = "values don't meet the specifications of the schema(s) in the following chart(s)"
_SCHEMA_VIOLATION = re.compile(r"^\s*- (?:at '(?P<pointer>[^']*)'|(?P<field>[^:\s]+)): (?P<problem>.*)$")
# Helm 4 writes each call on its own lines and without the word "template".
_CALL_CHAIN = re.compile(r":\s+error calling \w+:\s+(?:template: )?(?=\S+:\d+:)")
_OUT_OF_MEMORY = re.compile(r"^(?:fatal error|runtime): .*(?:out of memory|cannot allocate memory)", re.MULTILINE)
_MAX_CHARACTERS = 1_200


def is_out_of_memory(stderr: str) -> bool:
    """Return whether the program ended because it could not allocate memory."""
    return _OUT_OF_MEMORY.search(stderr) is not None


def convert_helm_error(stderr: str, chart: str, chart_name: str) -> tuple[Finding, ...]:
    """Return the findings for a failed render.

    Args:
        stderr: The error output of `helm template`.
        chart: Name and version of the chart for messages.
        chart_name: Name of the chart, with which the paths of its templates begin.
    """
    text = _PREFIX.sub("", stderr).replace(_DEBUG_HINT, "").strip()
    if text.startswith(_SCHEMA_ERROR) and (violations := _read_schema_violations(text, chart, chart_name)):
        return violations
    problem = _shorten(text)
    message = re.sub(rf"(?<![\w/-]){re.escape(chart_name)}/(?=templates/|charts/|crds/)", "", problem)
    if message:
        return (SourceCodes.CHART_RENDER_FAILED.finding(f'{format_report_start(chart)}"{message}"'),)
    return (SourceCodes.CHART_RENDER_FAILED.finding(f"{chart} cannot be rendered. Helm gives no reason"),)


def format_report_start(chart: str) -> str:
    """Return the start of the message about a chart that Helm cannot render. The report of Helm follows in quotes."""
    return f"{chart} cannot be rendered. Helm reports: "


def _read_schema_violations(text: str, chart: str, chart_name: str) -> tuple[Finding, ...]:
    findings: list[Finding] = []
    subchart = ""
    for line in text.splitlines()[1:]:
        match = _SCHEMA_VIOLATION.match(line)
        if match:
            pointer = subchart + _get_pointer(match["pointer"], match["field"])
            place = f" at {pointer}" if pointer else ""
            message = (
                f'the values of {chart} do not match the schema of the chart{place}. Helm reports: "{match["problem"]}"'
            )
            findings.append(SourceCodes.VALUES_INVALID.finding(message, SourceLocation(pointer=pointer)))
        elif line.endswith(":") and not line.startswith((" ", "-")):
            name = line.removesuffix(":")
            subchart = "" if name == chart_name else f"/{name}"
    return tuple(findings)


def _get_pointer(pointer: str | None, field: str | None) -> str:
    """Return `pointer`, or convert `field`, which is a path from Helm before 3.18, e.g. `(root)` or `a.b`."""
    if pointer is not None:
        return pointer
    return "" if field in (None, "(root)") else "/" + field.replace(".", "/")


def _shorten(text: str) -> str:
    """Return the error with only the outermost and the innermost call of a chain of templates."""
    calls = _CALL_CHAIN.split(text)
    shortened = text if len(calls) <= 2 else f"{calls[0]}: … {calls[-1]}"
    one_line = " ".join(shortened.split())
    return one_line if len(one_line) <= _MAX_CHARACTERS else one_line[:_MAX_CHARACTERS] + "…"
