"""Checks whether the output of a chart depends on a clock, on randomness or on the order of maps.

The chart is rendered unchanged. Then it is rendered twice with different placeholders for the calls of functions such
as `now` and `randAlphaNum`. A field that differs between these renders depends on such a call. A comparison of two
renders of the unchanged chart would not detect dates, because both renders have the same date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from reconciler.catalog.files import FileTree
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.charts.documents import OutputText
from reconciler.packages.charts.helm_errors import format_report_start
from reconciler.packages.charts.instrumentation import (
    KEY_FUNCTIONS,
    MAP_ORDER_FUNCTIONS,
    CallPlace,
    ChartCalls,
    InstrumentedChart,
    TooManyCallsError,
    Variant,
    find_chart_calls,
    find_markers,
    instrument,
)
from reconciler.packages.charts.output_comparison import FieldDifference, OutputComparison, compare_outputs
from reconciler.packages.charts.request import ChartRequest, RenderFailedError
from reconciler.packages.charts.secrets import collect_secret_values, mask_values
from reconciler.packages.source_codes import SourceCodes
from reconciler.redaction import contains_secret

FixedValues = Literal["possible", "requested", "unsupported"]
"""The use of fixed values for fields that change with each render.

- `possible`: the config can request fixed values.
- `requested`: the config requests fixed values.
- `unsupported`: the source cannot have fixed values.
"""

# If a call cannot be replaced by a placeholder, the unchanged chart is rendered this number of times, and the outputs
# are compared.
_REPEATED_RENDERS = 5
_MAX_FIELDS = 20
_MAX_PLACES = 3


@dataclass(frozen=True)
class DeterministicOutput:
    """The output of a chart as documents, and the findings. The documents are the same in each render.

    If a finding is an error, the documents must not be used.
    """

    texts: tuple[OutputText, ...]
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class TrialRenders:
    """Renders a chart, and copies of the chart in which calls of functions are replaced.

    Attributes:
        request: The inputs of the render.
        label: Name and version of the chart for messages.
        run_all: Function that returns the output of helm for each pair of a chart and values. It raises
            RenderFailedError.
        split: Function that splits the output of helm into documents.
        can_be_fixed: Whether the config can request fixed values.
    """

    chart: FileTree
    request: ChartRequest
    label: str
    run_all: Callable[[Sequence[tuple[FileTree, str]]], Sequence[str]]
    split: Callable[[str], tuple[OutputText, ...]]
    can_be_fixed: bool = True

    @property
    def original(self) -> InstrumentedChart:
        """The chart without replaced calls, in the form that `render` requires."""
        return InstrumentedChart(self.chart, self.request.values, {})

    def create_variant(self, variant: Variant, calls: ChartCalls) -> InstrumentedChart:
        """Return a copy of the chart in which placeholders replace `calls`. `variant` selects the placeholders."""
        return instrument(self.chart, self.request.values, calls, variant, self.request.identity)

    def render(self, *copies: InstrumentedChart) -> tuple[tuple[OutputText, ...], ...]:
        """Render copies of the chart at the same time. Raises RenderFailedError."""
        outputs = self.run_all([(copy.files, copy.values) for copy in copies])
        return tuple(self.split(copy.restore(output)) for copy, output in zip(copies, outputs, strict=True))

    def compare(self, *outputs: tuple[OutputText, ...], has_random_order: bool) -> OutputComparison:
        """Compare the first output with the other outputs. See `compare_outputs`."""
        return compare_outputs(outputs, self.request, has_random_order=has_random_order)


def render_deterministically(renders: TrialRenders) -> DeterministicOutput:
    """Render a chart. The output is the same for the same inputs.

    If a field changes with each render, the request decides whether the field gets a fixed value or is an error.

    Raises:
        RenderFailedError: The chart cannot be rendered.
    """
    (plain,) = renders.render(renders.original)
    try:
        calls = find_chart_calls(renders.chart, renders.request.values)
    except TooManyCallsError as error:
        message = (
            f"{renders.label}: the reconciler cannot check whether all renders have the same output, because the chart"
            f" contains {error}; use a smaller chart"
        )
        return DeterministicOutput((), (SourceCodes.SOURCE_TOO_LARGE.finding(message),))
    findings = tuple(_report_lookups(calls, renders.label))
    repeats = [renders.original] * (_REPEATED_RENDERS - 1) if calls.other_places else []
    variants = [renders.create_variant("a", calls), renders.create_variant("b", calls)] if calls.places else []
    if not (repeats or variants):
        return DeterministicOutput(plain, findings)
    try:
        outputs = renders.render(*repeats, *variants)
    except RenderFailedError as error:
        if error.is_temporary:
            raise
        return DeterministicOutput((), (*findings, _create_trial_finding(renders.label, calls, plain, error)))
    repeated = renders.compare(plain, *outputs[: len(repeats)], has_random_order=True)
    compared = renders.compare(repeated.texts, *outputs[len(repeats) :], has_random_order=bool(repeats))
    problems = _explain_differences(compared, repeated, calls)
    if not problems:
        return DeterministicOutput(compared.texts, findings)
    if renders.request.is_preview and all(problem.has_placeholder for problem in problems):
        return DeterministicOutput(outputs[len(repeats)], findings)
    if renders.request.on_nondeterminism == "refuse":
        policy: FixedValues = "possible" if renders.can_be_fixed else "unsupported"
        return DeterministicOutput((), (*findings, *_create_findings(problems, renders.label, policy)))
    refused = [problem for problem in problems if not problem.can_be_fixed]
    if refused:
        return DeterministicOutput((), (*findings, *_create_findings(refused, renders.label, "requested")))
    (fixed,) = renders.render(renders.create_variant("fixed", calls))
    return DeterministicOutput(tuple(_copy_rewritten_texts(fixed, compared.texts)), findings)


@dataclass(frozen=True)
class _Problem:
    """A field that changes with each render.

    Attributes:
        places: The function calls on which the field depends or may depend.
        is_secret: Whether the field belongs to a Secret, or depends on a key or a certificate.
        has_placeholder: Whether each of these calls can be replaced by a placeholder.
    """

    difference: FieldDifference
    places: tuple[CallPlace, ...]
    is_secret: bool
    has_placeholder: bool = True

    @property
    def can_be_fixed(self) -> bool:
        """Whether the field can get a fixed value. A Secret cannot, because everyone can compute a fixed value."""
        return self.has_placeholder and not self.is_secret


def _explain_differences(
    compared: OutputComparison, repeated: OutputComparison, calls: ChartCalls
) -> tuple[_Problem, ...]:
    places = calls.places
    by_file: dict[str, list[CallPlace]] = {}
    for place in places.values():
        by_file.setdefault(place.file, []).append(place)
    problems = {_get_field(entry): _explain(entry, places, by_file) for entry in compared.differences}
    for entry in repeated.differences:
        is_secret = contains_secret(entry.resource.data)
        field = _get_field(entry)
        # `problems` can already contain a problem of this field, from the comparison of the placeholders. Keep the old
        # problem if its text contains markers, because markers identify the calls on which the field depends.
        if field not in problems or not find_markers(problems[field].difference.text):
            problems[field] = _Problem(entry, tuple(calls.other_places), is_secret, has_placeholder=False)
    return tuple(problems[field] for field in sorted(problems))


def _get_field(difference: FieldDifference) -> tuple[str, str, str]:
    return difference.resource.source.place, difference.resource.label, format_pointer(difference.path)


def _explain(
    difference: FieldDifference, places: Mapping[int, CallPlace], by_file: Mapping[str, list[CallPlace]]
) -> _Problem:
    found = [places[number] for number in sorted(find_markers(difference.text)) if number in places]
    # If the values of the field contain no marker of a placeholder, use all calls in its template as candidates. If the
    # template contains no calls, use all calls of the chart, because the template can include other files.
    candidates = found or by_file.get(difference.resource.source.template) or list(places.values())
    has_key = any(place.function in KEY_FUNCTIONS for place in candidates)
    return _Problem(difference, tuple(candidates), has_key or contains_secret(difference.resource.data))


def _create_findings(problems: Sequence[_Problem], label: str, policy: FixedValues) -> Iterable[Finding]:
    for problem in problems[:_MAX_FIELDS]:
        resource, pointer = problem.difference.resource, format_pointer(problem.difference.path)
        name = resource.label if resource.source.has_stable_name else f"{resource.kind} in {resource.source.template}"
        field = f"{pointer} of {name}" if pointer else name
        places, next_step = _format_places(problem.places), _format_next_step(problem, policy)
        message = f"{label}: {field} depends on {places}, and can change with each render. {next_step}"
        location = SourceLocation(object=resource.location.object, pointer=pointer)
        yield SourceCodes.NONDETERMINISTIC_CHART.finding(message, location)
    if len(problems) > _MAX_FIELDS:
        message = f"{label}: {format_count(len(problems) - _MAX_FIELDS, 'more field')} can change with each render"
        yield SourceCodes.NONDETERMINISTIC_CHART.finding(message)


def _format_next_step(problem: _Problem, policy: FixedValues) -> str:
    example = ", for example the name of an existing Secret" if problem.is_secret else ""
    calls = "this call" if len(problem.places) == 1 else "these calls"
    step = f"Next step: set values that avoid {calls}{example}"
    if policy != "requested":
        return f"{step}, or set `onNondeterminism: fixed`" if problem.can_be_fixed and policy == "possible" else step
    reason = (
        "because a fixed value of a Secret, key or certificate is not secret"
        if problem.is_secret
        else "because the field cannot have a fixed value"
    )
    return f"`onNondeterminism: fixed` does not apply to this field, {reason}. {step}"


def _format_places(places: Sequence[CallPlace]) -> str:
    texts = [f"{'the map order of ' if place.function in MAP_ORDER_FUNCTIONS else ''}{place}" for place in places]
    more = f" or {format_count(len(texts) - _MAX_PLACES, 'other call')}" if len(texts) > _MAX_PLACES else ""
    return " or ".join(texts[:_MAX_PLACES]) + more


def _create_trial_finding(
    label: str, calls: ChartCalls, plain: Sequence[OutputText], error: RenderFailedError
) -> Finding:
    report = mask_values(error.findings[0].message, collect_secret_values(plain))
    reason = report.removeprefix(format_report_start(label))
    message = (
        f"{label}: the reconciler cannot check whether all renders have the same output, because the chart fails"
        f" without the results of {_format_places(list(calls.places.values()))}. Next step: set values that avoid these"
        f" calls. The error was: {reason}"
    )
    return SourceCodes.NONDETERMINISTIC_CHART.finding(message)


def _copy_rewritten_texts(fixed: Iterable[OutputText], compared: Iterable[OutputText]) -> Iterable[OutputText]:
    """Yield the documents of the render with fixed values.

    If a document in `compared` was written again from its data, yield the text in `compared` instead.
    """
    rewritten = {(text.template, text.index): text for text in compared if text.rewrite_reason}
    for text in fixed:
        yield rewritten.get((text.template, text.index), text)


def _report_lookups(calls: ChartCalls, label: str) -> Iterable[Finding]:
    if calls.lookups:
        first, *others = calls.lookups
        more = f" and {len(others)} other call{'s' if len(others) > 1 else ''}" if others else ""
        verb = "return" if others else "returns"
        message = (
            f"{label}: {first}{more} {verb} nothing, because no cluster is read during a render. Next step: if the"
            " chart needs a result, set it as a value"
        )
        yield SourceCodes.LOOKUP_RETURNS_NOTHING.finding(message)
