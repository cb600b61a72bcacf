"""Tests of the exchange with external functions: the request, and how the response is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.krm.yaml import parse_yaml
from reconciler.packages.functions.resource_list import (
    ProcessResponse,
    build_resource_list,
    format_request,
    read_response,
)
from tests.unit.packages.builders import build_config, format_items, list_messages, parse_items

MOST = 1_000_000
COMMENTED = """\
# top
apiVersion: v1
kind: ConfigMap # kind
metadata:
    name: a
# between
data:
    k: "v" # the value
    list: # the list
      - one # first
      - two
"""


def read_reply(text: str, reply: str, code: int = 0, log: str = "") -> Any:
    return read_response(parse_items(text), ProcessResponse(code, reply.encode(), log), MOST)


def run_text_replacement(text: str, old: str = "", new: str = "") -> str:
    """Return the documents of a text after a function that replaces only text."""
    input_items = parse_items(text)
    output = read_response(
        input_items, ProcessResponse(0, format_request(input_items, None).replace(old, new).encode()), MOST
    )
    assert not output.has_failed, output.error
    return format_items(output.items)


def test_request_contains_items_and_configuration() -> None:
    text = format_request(parse_items(COMMENTED), build_config("ConfigMap", {"a": "b"}))

    assert yaml.safe_load(text) == build_resource_list(parse_items(COMMENTED), build_config("ConfigMap", {"a": "b"}))
    assert text == (
        "apiVersion: config.kubernetes.io/v1\n"
        "kind: ResourceList\n"
        "items:\n"
        "-\n"
        "  # top\n"
        "  apiVersion: v1\n"
        "  kind: ConfigMap # kind\n"
        "  metadata:\n"
        "      name: a\n"
        "      annotations:\n"
        "          internal.config.kubernetes.io/path: r.yaml\n"
        "          config.kubernetes.io/path: r.yaml\n"
        '          internal.config.kubernetes.io/index: "0"\n'
        '          config.kubernetes.io/index: "0"\n'
        '          internal.config.kubernetes.io/kpt-resource-id: "0"\n'
        '          internal.config.kubernetes.io/id: "0"\n'
        '          config.k8s.io/id: "0"\n'
        "  # between\n"
        "  data:\n"
        '      k: "v" # the value\n'
        "      list: # the list\n"
        "        - one # first\n"
        "        - two\n"
        "functionConfig:\n"
        "  apiVersion: v1\n"
        "  kind: ConfigMap\n"
        "  metadata:\n"
        "    name: function-input\n"
        "  data:\n"
        "    a: b\n"
    )


def test_request_without_items() -> None:
    assert yaml.safe_load(format_request([], None)) == {
        "apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": [], "functionConfig": {},
    }  # fmt: skip


ONE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(COMMENTED, id="comments"),
        pytest.param(ONE + "  k: |\n    a\n\n     b\n  l: >-\n    x\n    y\n", id="block-scalars"),
        pytest.param(ONE + "  k: |+\n    a\n\n", id="kept-line-ends"),
        pytest.param(ONE + '  k: "a\n    b"\n  l: c\n    d\n', id="scalars-of-many-lines"),
        pytest.param("%YAML 1.1\n---\n" + ONE + "  k: v\n", id="directives"),
        pytest.param("--- # first\n" + ONE + "  k: v\n---\n" + ONE + "  k: w\n", id="two-documents"),
        pytest.param(ONE + "  k: &a v\n  l: *a\n", id="anchors"),
        pytest.param(ONE.replace("\n", "\r\n") + "  k: v\r\n", id="line-ends-of-windows"),
        pytest.param('{apiVersion: v1, kind: A, metadata: {name: a},\n "k": [1,\n 2]}\n', id="flow"),
        pytest.param(ONE + "  k: v", id="no-line-end"),
        pytest.param(ONE + '  k: "a\u2028    b"\n', id="yaml-only-line-breaks"),
        pytest.param("metadata: 1\n", id="no-resource"),
    ],
)
def test_unchanged_response_keeps_all_documents(text: str) -> None:
    input_items = parse_items(text)
    wire = format_request(input_items, None)

    assert parse_yaml(wire).documents[0].data == build_resource_list(input_items, None)
    output = read_response(input_items, ProcessResponse(0, wire.encode()), MOST)
    assert [item.document for item in output.items] == [item.base for item in input_items]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param('k: "v"', "k: w", COMMENTED.replace('"v"', '"w"'), id="a-value-keeps-its-quotes-and-comment"),
        pytest.param(" # the value", "", COMMENTED, id="a-dropped-comment-is-still-there"),
        pytest.param("# the value", "# set", COMMENTED.replace("# the value", "# set"), id="a-changed-comment"),
        pytest.param("- two", "- two # new", COMMENTED.replace("- two", "- two # new"), id="a-new-comment"),
        pytest.param(
            "- one # first\n        - two", "- zero\n        - one\n        - two",
            COMMENTED.replace("      - one", "      - zero\n      - one"), id="a-comment-stays-with-its-element",
        ),
        pytest.param("name: a", "name: b # renamed", COMMENTED.replace("name: a", "name: b # renamed"), id="a-name"),
    ],
)  # fmt: skip
def test_comments(old: str, new: str, expected: str) -> None:
    assert run_text_replacement(COMMENTED, old, new) == expected


def test_comment_is_never_moved_to_another_resource() -> None:
    text = ONE + "  k: v # mine\n---\n" + ONE.replace("name: a", "name: b") + "  k: v\n"

    reply = yaml.safe_load(format_request(parse_items(text), None))
    reply["items"].reverse()

    assert format_items(read_reply(text, yaml.safe_dump(reply)).items).count("# mine") == 1
    assert read_reply(text, yaml.safe_dump(reply)).items[1].document.text == parse_items(text)[0].document.text


def test_new_items_keep_their_comments() -> None:
    entry = "".join(f"  {line}\n" for line in f"{ONE}  k: v # x".splitlines())
    reply = format_request([], None).replace("items: []\n", f"items:\n-\n{entry}")

    (item,) = read_reply("", reply).items

    assert (item.id, item.path, item.index) == (None, "", -1)
    assert "  k: v # x\n" in item.document.text


def format_resource_list(*entries: Any, **more: Any) -> str:
    return json.dumps({"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": [*entries], **more})


def format_list_with_items(items: str) -> str:
    return format_resource_list().replace("[]", items)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        pytest.param("", "it must contain one document, but cont", id="nothing"),
        pytest.param("panic: no", ' is "None None"', id="prose"),
        pytest.param("- 1", "it must be a mapping, but is list", id="a-list"),
        pytest.param("a: [", "the text is not valid YAML", id="broken"),
        pytest.param(format_resource_list() + "\n---\n" + format_resource_list(), "one document, but c", id="two"),
        pytest.param('{"kind": "ResourceList", "items": []}', ' is "None ResourceList"', id="no-version"),
        pytest.param(
            '{"kind": "ResourceList", "apiVersion": "v1", "items": []}', ' is "v1 ResourceList"', id="version"
        ),
        pytest.param(
            '{"kind": "ResourceList", "apiVersion": "config.kubernetes.io/v1"}', "items are mappings", id="no-items"
        ),
        pytest.param(format_resource_list(1), "items are mappings", id="a-number-for-an-item"),
        pytest.param(format_list_with_items("[{1: 2, a: .nan}]"), "must be finite", id="nan"),
        pytest.param(format_list_with_items('[{"a": NaN}]'), "NaN is not allowed in JSON", id="json-nan"),
        pytest.param(format_list_with_items('[{"a": 1, "a": 2}]'), 'key "a" is repeated in one mapping', id="a-key-twice"),
        pytest.param(format_list_with_items('[{"a": "\\ud800"}]'), "surrogates not allowed", id="half-a-character"),
        pytest.param(format_list_with_items('[{"a": ' + "[" * 200 + "]" * 200 + "}]"), "levels", id="deep"),
        pytest.param("a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
            f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 10)}]\n" for n in range(9)
        ), "alias", id="a-bomb"),
        pytest.param("a: " + "x" * MOST, "must not be larger than 1000000 bytes", id="large"),
        pytest.param("a: \x00", "is not allowed in YAML", id="control-characters"),
    ],
)  # fmt: skip
def test_invalid_response_is_refused(reply: str, error: str) -> None:
    output = read_reply(ONE + "  k: v\n", reply)

    assert output.has_failed
    assert output.exit_code == 1
    assert error in output.error
    assert format_items(output.items) == ONE + "  k: v\n"


def test_response_that_is_not_utf8() -> None:
    assert "UTF-8" in read_response([], ProcessResponse(0, b"a: \xff"), MOST).error


@pytest.mark.parametrize(
    ("log", "error"),
    [
        pytest.param("", "the function ended with exit code 3", id="no-message"),
        pytest.param("no\n\n  such thing\n", "the function ended with exit code 3: no; such thing", id="words"),
        pytest.param("x" * 600, f"the function ended with exit code 3: {'x' * 500}…", id="many-words"),
    ],
)
def test_nonzero_exit_code_is_a_failure(log: str, error: str) -> None:
    output = read_reply(ONE, "{}" if log else "", 3, log)

    assert (output.has_failed, output.exit_code, output.error, output.log) == (True, 3, error, log)


def test_error_message_from_the_output() -> None:
    assert (
        read_reply(ONE, "2024/05/06 07:08:09 unknown flag", 1).error
        == "the function ended with exit code 1: unknown flag"
    )


def test_failed_function_keeps_its_results_and_not_its_items() -> None:
    reply = format_resource_list(results=[{"message": "no", "severity": "error"}])

    output = read_reply(ONE + "  k: v\n", reply, 1)

    assert list_messages(output) == [("error", "no")]
    assert len(output.items) == 1


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
trees = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=15)


@pytest.mark.slow
@given(trees, st.sampled_from([json.dumps, yaml.safe_dump]))
def test_every_accepted_response_can_be_written(tree: Any, dump: Any) -> None:
    entry = {"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "annotations": tree}, "spec": tree}
    reply = dump({"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": [entry], "results": tree})

    output = read_response([], ProcessResponse(0, reply.encode(), ""), MOST)

    for item in output.items:
        assert parse_yaml(item.document.text.encode()).documents[0].data == item.data or output.has_failed
