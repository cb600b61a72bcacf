"""Tests of finding calls in template texts: what is a call, its position, and where its command ends."""

from __future__ import annotations

import pytest

from reconciler.packages.charts.template_calls import TemplateCall, find_calls

FUNCTIONS = {"now", "keys", "rand"}


def find_one(text: str) -> TemplateCall:
    (call,) = find_calls(text, FUNCTIONS)
    return call


@pytest.mark.parametrize(
    ("text", "command"),
    [
        pytest.param("{{ rand 5 }}", "rand 5", id="action"),
        pytest.param("{{- rand 5 -}}", "rand 5", id="trim-markers"),
        pytest.param("{{rand 5}}", "rand 5", id="without-spaces"),
        pytest.param("{{ rand 5 | quote }}", "rand 5", id="before-a-pipe"),
        pytest.param("{{ 5 | rand | quote }}", "rand", id="after-a-pipe"),
        pytest.param("{{ upper (rand (len (list 1 2))) }}", "rand (len (list 1 2))", id="parentheses"),
        pytest.param("{{ $x := rand 5 }}", "rand 5", id="assignment"),
        pytest.param("{{ if keys .x }}", "keys .x", id="condition"),
        pytest.param("{{ else if keys .x }}", "keys .x", id="else-if"),
        pytest.param("{{ range $i, $k := keys .x }}", "keys .x", id="range"),
        pytest.param('{{ template "a" rand 5 }}', "rand 5", id="argument-of-template"),
        pytest.param('{{ rand ")}}" "|" }}', 'rand ")}}" "|"', id="syntax-in-strings"),
        pytest.param("{{ rand `\n}}` }}", "rand `\n}}`", id="raw-string"),
        pytest.param("{{ rand\n 5\n }}", "rand\n 5", id="lines"),
        pytest.param('a: "{{ rand \\"x|y\\" | quote }}"', 'rand \\"x|y\\"', id="escaped-quotes"),
        pytest.param("{{ now.Unix }}", "now.Unix", id="field-of-the-result"),
    ],
)
def test_command(text: str, command: str) -> None:
    call = find_one(text)

    assert text[call.start : call.command_end] == command
    assert (call.is_argument, call.is_quoted) == (False, False)


@pytest.mark.parametrize("text", ['{{ date "2006" now }}', "{{ list now | first }}", "{{ list (1) now }}"])
def test_argument(text: str) -> None:
    call = find_one(text)

    assert call.is_argument
    assert text[call.start : call.command_end] == "now"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("now rand keys", id="no-action"),
        pytest.param("{{ .Values.now }} {{ $now }} {{ $.keys }}", id="fields-and-variables"),
        pytest.param("{{ (index .x 1).keys }}", id="field-of-a-result"),
        pytest.param("{{ nowhere }} {{ brand 5 }} {{ keysX }}", id="parts-of-names"),
        pytest.param("{{/* now */}} {{- /* {{ rand 5 }} */ -}}", id="comments"),
        pytest.param('{{ print "now" `rand` }}', id="strings"),
        pytest.param("{{ now", id="no-end"),
        pytest.param("{{/* now }}", id="comment-without-an-end"),
        pytest.param("now }} {{", id="reversed"),
    ],
)
def test_no_call(text: str) -> None:
    assert find_calls(text, FUNCTIONS) == ()


@pytest.mark.parametrize("text", ['{{ tpl "{{ now }}" . }}', "{{ `{{ now }}` }}", '{{ "a {{ rand 5 | quote }}" }}'])
def test_call_in_a_string(text: str) -> None:
    assert find_one(text).is_quoted


def test_action_after_an_action_without_an_end() -> None:
    assert find_one("a {{ b {{ now }}").start == 10


def test_several_calls_are_in_the_order_of_the_text() -> None:
    text = "{{ rand (keys now) }}{{ now }}"

    assert [text[call.start : call.command_end] for call in find_calls(text, FUNCTIONS)] == [
        "rand (keys now)",
        "keys now",
        "now",
        "now",
    ]


def test_large_text_without_ends_is_fast() -> None:
    assert find_calls("{{/*" * 200_000, FUNCTIONS) == ()
    assert find_calls('{{ " ' * 100_000, FUNCTIONS) == ()
