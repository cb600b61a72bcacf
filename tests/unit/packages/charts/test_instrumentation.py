"""Tests of the copies of a chart with placeholders: the text of each placeholder, fixed values, and the search for calls."""

from __future__ import annotations

import json

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.packages.charts.instrumentation import (
    ChartCalls,
    TooManyCallsError,
    find_chart_calls,
    find_markers,
    instrument,
)


def build_chart(**texts: str) -> FileTree:
    return FileTree({path.replace("__", "/").replace("_", "."): File(text.encode()) for path, text in texts.items()})


def instrument_template(text: str, variant: str, identity: str = "x") -> str:
    chart = build_chart(templates__a_yaml=text)
    copy = instrument(chart, "{}", find_chart_calls(chart, "{}"), variant, identity)  # type: ignore[arg-type]
    changed = copy.files["templates/a.yaml"].data.decode()
    if variant != "fixed":
        assert copy.restore(changed) == text
    return changed


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        pytest.param(
            "{{ now }}",
            "{{ (toDate `2006-01-02` `2001-02-03`) }}",
            "{{ (toDate `2006-01-02` `2011-12-13`) }}",
            id="now",
        ),
        pytest.param(
            '{{ now | date "06" }}', '{{ (toDate `2006-01-02` `2001-02-03`) | date "06" }}', "", id="now-with-a-pipe"
        ),
        pytest.param(
            "{{ randAlphaNum 5 | quote }}",
            "{{ print `aqz0001zq` 5 | quote }}",
            "{{ print `bqz0001zq` 5 | quote }}",
            id="random-text",
        ),
        pytest.param("{{ list uuidv4 }}", "{{ list ( print `aqz0001zq` ) }}", "", id="argument"),
        pytest.param(
            '{{ $c := genCA "x" 365 }}', '{{ $c := dict `Cert` `aqz0001zq` `Key` `aqz0001zq` "x" 365 }}', "", id="ca"
        ),
        pytest.param(
            "{{ keys .x | first }}",
            "{{ keys .x  |  sortAlpha | first }}",
            "{{ keys .x  |  sortAlpha  |  reverse | first }}",
            id="keys",
        ),
        pytest.param(
            "{{- range keys .x -}}", "{{- range keys .x  |  sortAlpha -}}", "", id="keys-before-a-trim-marker"
        ),
        pytest.param(
            "{{ randInt 1 5 }}",
            "{{ min 9007199254740993 1 5  |  int  |  int }}",
            "{{ max -9007199254740993 1 5  |  int  |  int }}",
            id="random-number",
        ),
        pytest.param("{{ first (uuidv4) }}", "{{ first (print `aqz0001zq`) }}", "", id="parentheses-of-the-chart"),
        pytest.param("{{ len keys }}", "{{ len ( keys  |  sortAlpha ) }}", "", id="keys-as-an-argument"),
        pytest.param('{{ date "06" .x }} {{ .now }} now', '{{ date "06" .x }} {{ .now }} now', "", id="nothing"),
    ],
)
def test_placeholders(text: str, first: str, second: str) -> None:
    assert instrument_template(text, "a") == first
    if second:
        assert instrument_template(text, "b") == second


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("{{ now }}", "{{ (toDate `2006-01-02` `2000-01-01`) }}", id="now"),
        pytest.param("{{ shuffle .x }}", "{{ print `` .x }}", id="shuffle"),
        pytest.param("{{ ago .x }}", "{{ printf `%[1]s` `0s` .x }}", id="ago"),
        pytest.param("{{ keys .x }}", "{{ keys .x  |  sortAlpha }}", id="keys"),
        pytest.param('{{ genPrivateKey "rsa" }}', '{{ genPrivateKey "rsa" }}', id="key-has-no-fixed-value"),
        pytest.param(
            "{{ uuidv4 }}", "{{ print `8f50588d-8e46-4d9d-876c-3157de13da8b` }}", id="uuid-is-equal-in-all-versions"
        ),
    ],
)
def test_fixed_values(text: str, expected: str) -> None:
    assert instrument_template(text, "fixed") == expected


def test_fixed_text_depends_on_package_line_and_function() -> None:
    texts = {
        instrument_template(text, "fixed", identity)
        for text, identity in (
            ("{{ randAlpha 5 }}", "x"),
            ("{{ randAlpha 5 }}", "y"),
            ("\n{{ randAlpha 5 }}", "x"),
            ("{{ randNumeric 5 }}", "x"),
        )
    }

    assert len(texts) == 4
    assert instrument_template("{{ randAlpha 5 }}", "fixed") in texts


def list_places(calls: ChartCalls) -> list[str]:
    return [str(place) for place in calls.places.values()]


def test_calls_are_found_in_texts_that_tpl_can_evaluate() -> None:
    chart = build_chart(
        Chart_yaml="description: '{{ now }}'\n",
        README_md="{{ now }}\n",
        values_yaml="a: 1\nb: '{{ uuidv4 }}'\n",
        files__a_txt="{{ randInt 1 2 }}",
        charts__db__templates___a_tpl="\n\n{{ genCA 1 2 }}",
    )
    values = json.dumps({"a": ["{{ shuffle .x }}", 1], "b": {"c/d": "now"}})

    calls = find_chart_calls(chart, values)

    assert sorted(list_places(calls)) == [
        "genCA (charts/db/templates/.a.tpl:3)",
        "randInt (files/a.txt:1)",
        "shuffle (values/a/0)",
        "uuidv4 (values.yaml:2)",
    ]
    copy = instrument(chart, values, calls, "a", "")
    assert json.loads(copy.values) == {"a": ["{{ print `aqz0004zq` .x }}", 1], "b": {"c/d": "now"}}
    assert json.loads(copy.restore(copy.values)) == json.loads(values)
    assert copy.files["Chart.yaml"] == chart["Chart.yaml"]


def test_calls_without_placeholder() -> None:
    chart = build_chart(templates__a_yaml='{{ values .x }}\n{{ tpl "{{ now }}" . }}\n{{ lookup "v1" "Pod" "" "" }}')

    calls = find_chart_calls(chart, "{}")

    assert list_places(calls) == []
    assert [str(place) for place in calls.other_places] == ["values (templates/a.yaml:1)", "now (templates/a.yaml:2)"]
    assert [str(place) for place in calls.lookups] == ["lookup (templates/a.yaml:3)"]


def test_binary_files_are_skipped() -> None:
    chart = FileTree({"files/a": File(b"\xff{{ now }}")})

    assert list_places(find_chart_calls(chart, "{}")) == []


def test_markers_are_found_after_functions_that_change_the_case() -> None:
    assert find_markers("x AQZ0012ZQ-bqz0003zq aqz12zq") == {12, 3}


@pytest.mark.parametrize(
    "text", ["{{ now }}" * 10_001, f"{{{{ now }}}}{' ' * (32 << 20)}"], ids=["too-many-calls", "too-much-text"]
)
def test_limits(text: str) -> None:
    with pytest.raises(TooManyCallsError):
        find_chart_calls(build_chart(templates__a_yaml=text), "{}")


def test_many_calls_are_replaced_and_restored_in_one_search() -> None:
    text = "{{ randAlpha 5 }}\n" * 9_000
    chart = build_chart(templates__a_yaml=text)
    calls = find_chart_calls(chart, "{}")

    copy = instrument(chart, "{}", calls, "a", "")

    assert [place.line for place in calls.places.values()] == list(range(1, 9_001))
    assert copy.restore(copy.files["templates/a.yaml"].data.decode()) == text
