"""The fields of a response: present fields, missing fields, and the error messages."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.forge.errors import ForgeAnswerError
from reconciler.forge.responses import ResponseFields

ANSWER = {
    "title": "t",
    "number": 7,
    "draft": False,
    "nothing": None,
    "list": [],
    "created_at": "2026-11-22T01:00:00Z",
    "head": {"sha": "a" * 40, "ref": "x", "long": "b" * 64},
}
Read = Callable[[ResponseFields], object]


@pytest.mark.parametrize(
    ("read", "value"),
    [
        pytest.param(lambda fields: fields.get_text("title"), "t", id="text"),
        pytest.param(lambda fields: fields.get_text("head", "ref"), "x", id="below"),
        pytest.param(lambda fields: fields.get_text("nothing", default=""), "", id="null-has-a-default"),
        pytest.param(lambda fields: fields.get_text("none", "at", "all", default="-"), "-", id="absent-has-a-default"),
        pytest.param(lambda fields: fields.get_number("number"), 7, id="number"),
        pytest.param(lambda fields: fields.get_bool("draft"), False, id="truth"),
        pytest.param(lambda fields: fields.get_bool("nothing", default=True), True, id="truth-by-default"),
        pytest.param(lambda fields: fields.get_bool("draft", default=True), False, id="false-is-no-absence"),
        pytest.param(lambda fields: fields.get_commit("head", "sha"), "a" * 40, id="commit"),
        pytest.param(lambda fields: fields.get_commit("head", "long"), "b" * 64, id="commit-of-sha-256"),
        pytest.param(lambda fields: fields.get_time("created_at"), 1795309200, id="moment"),
        pytest.param(lambda fields: fields.find("list"), [], id="find"),
        pytest.param(lambda fields: fields.find("list", "x"), None, id="find-below-a-list"),
    ],
)
def test_present_fields(read: Read, value: object) -> None:
    assert read(ResponseFields(ANSWER, "GET /a")) == value


@pytest.mark.parametrize(
    ("read", "words"),
    [
        pytest.param(lambda fields: fields.get_text("nothing"), "nothing must be text, but is null", id="null"),
        pytest.param(
            lambda fields: fields.get_text("head", "label"), "head.label must be text, but is null", id="absent"
        ),
        pytest.param(
            lambda fields: fields.get_text("number", default=""), "number must be text, but is int", id="default"
        ),
        pytest.param(
            lambda fields: fields.get_number("draft"), "draft must be a number, but is bool", id="false-is-no-zero"
        ),
        pytest.param(
            lambda fields: fields.get_number("title"), "title must be a number, but is 't'", id="text-is-no-number"
        ),
        pytest.param(lambda fields: fields.get_bool("number"), "number must be true or false, but is int", id="number"),
        pytest.param(
            lambda fields: fields.get_commit("head", "ref"), "head.ref must be a commit, but is 'x'", id="no-commit"
        ),
        pytest.param(lambda fields: fields.get_time("title"), "title must be a time, but is 't'", id="no-moment"),
    ],
)
def test_the_error_names_an_undocumented_value(read: Read, words: str) -> None:
    with pytest.raises(ForgeAnswerError) as refused:
        read(ResponseFields(ANSWER, "GET /a"))

    assert refused.value.message == f"GET /a: {words}"


def test_a_moment_without_its_zone_is_no_moment() -> None:
    with pytest.raises(ForgeAnswerError, match="a time with a time zone, but is '2026-11-22T01:00:00'"):
        ResponseFields({"at": "2026-11-22T01:00:00"}, "GET /a").get_time("at")


@pytest.mark.parametrize("answer", [None, [], "text", 7])
def test_an_answer_must_be_an_object(answer: object) -> None:
    with pytest.raises(ForgeAnswerError, match="GET /a: the response must be an object"):
        ResponseFields(answer, "GET /a")
