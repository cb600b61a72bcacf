"""Tests of the merge of documents: which document is the result, and its text."""

from __future__ import annotations

import pytest

from reconciler.krm.merge3 import COMPAT, SAFE, DocumentMergeResult, MergeRules, merge3
from reconciler.krm.merge3.merge import apply_comment_schemas
from reconciler.krm.merge3.rules import ABSENT, Conflict
from reconciler.krm.schema.builtin import read_schema_comment
from reconciler.krm.schema.merge_schemas import UNKNOWN_SCHEMA, MergeSchema
from reconciler.krm.yaml import Document, parse_yaml

BY_NAME = MergeSchema(fields={"list": MergeSchema(keys=("name",), is_closed=True)})
CONTAINERS_COMMENT = '{"x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"merge","type":"array"}'


def parse_document(text: str) -> Document:
    return parse_yaml(text).documents[0]


def merge_texts(
    origin: str, updated: str, local: str, rules: MergeRules = SAFE, shape: MergeSchema = UNKNOWN_SCHEMA
) -> tuple[str, list[str]]:
    result = merge3(parse_document(origin), parse_document(updated), parse_document(local), shape, rules)
    assert result.document is not None
    return result.document.text, [f"{conflict.rule} {conflict.pointer}" for conflict in result.conflicts]


ONE, TWO, THREE = parse_document("a: 1\n"), parse_document("a: 2\n"), parse_document("a: 3\n")


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param(ONE, ONE, TWO, TWO, id="nothing-changed-upstream"),
        pytest.param(ONE, TWO, ONE, TWO, id="nothing-changed-locally"),
        pytest.param(ONE, TWO, TWO, TWO, id="changed-alike"),
        pytest.param(None, TWO, None, TWO, id="added-upstream"),
        pytest.param(ONE, TWO, None, TWO, id="missing-locally"),
        pytest.param(None, None, TWO, TWO, id="ours-alone"),
        pytest.param(ONE, None, ONE, None, id="removed-upstream"),
        pytest.param(ONE, None, None, None, id="removed-on-both-sides"),
        pytest.param(None, None, None, None, id="nothing-at-all"),
    ],
)
@pytest.mark.parametrize("rules", [pytest.param(SAFE, id="safe"), pytest.param(COMPAT, id="compat")])
def test_chosen_document(
    origin: Document | None,
    updated: Document | None,
    local: Document | None,
    expected: Document | None,
    rules: MergeRules,
) -> None:
    result = merge3(origin, updated, local, UNKNOWN_SCHEMA, rules)

    assert result == DocumentMergeResult(expected)


def test_modified_document_that_upstream_deleted_stays_complete() -> None:
    result = merge3(ONE, None, TWO)

    assert result.document is TWO
    assert result.conflicts == (Conflict("resource", "", {"a": 1}, {"a": 2}, ABSENT, "local", "D3"),)


def test_document_added_on_both_sides() -> None:
    result = merge3(None, parse_document("a: 1\nb: 1\n"), parse_document("a: 2\nc: 1\n"))

    assert result.document
    assert result.document.text == "a: 1\nb: 1\nc: 1\n"
    assert [conflict.rule for conflict in result.conflicts] == ["D2"]


@pytest.mark.parametrize("rules", [pytest.param(SAFE, id="safe"), pytest.param(COMPAT, id="compat")])
def test_unchanged_document_is_the_same_object(rules: MergeRules) -> None:
    local = parse_document("# of ours\na:   1 # here\nb: {x:  2}\n")

    assert (
        merge3(parse_document("a: 1\nc: 1\n"), parse_document("a: 1 \nc: 1\n"), local, UNKNOWN_SCHEMA, rules).document
        is local
    )


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param(
            "a: 1\nb: 1\n", "a: 2\nb: 1\n", "a:   1 # c\n\n\nb: 'x'\n", "a:   2 # c\n\n\nb: 'x'\n", id="bytes"
        ),
        pytest.param("a: x\n", "a: y z\n", "a: 'x'\nb: 1\n", "a: 'y z'\nb: 1\n", id="the-style-of-ours"),
        pytest.param("a: |\n  x\n", "a: |\n  y\n", "a: |\n  x\nb: 1\n", "a: |\n  y\nb: 1\n", id="a-block-scalar"),
        pytest.param("a: {b: 1}\n", "a: {b: 1, c: 'x'}\n", "a: {b: 2}\n", "a: {b: 2, c: x}\n", id="flow-into-flow"),
        pytest.param(
            "a: {b: 1}\n", "a: {b: 1, c: 'x'}\n", "a:\n  b: 2\n", "a:\n  b: 2\n  c: 'x'\n", id="flow-into-block"
        ),
        pytest.param(
            "a: 1\n",
            "a: 1\nb:\n    c: ['x', \"y\"]   # d\n",
            "a: 2\n",
            "a: 2\nb:\n    c: ['x', \"y\"]   # d\n",
            id="as-upstream-wrote-it",
        ),
        pytest.param(
            "a: 1\n",
            "a: 1\n\n# one\n# two\nb: 2 # three\n",
            "a: 3\n",
            "a: 3\n\n# one\n# two\nb: 2 # three\n",
            id="with-the-comments-and-blank-lines-above",
        ),
        pytest.param(
            "b: 1\n",
            "# one\n\n# two\na: 1\nb: 1\n",
            "# zero\n\nb: 2\n",
            "# zero\n\n# two\na: 1\nb: 2\n",
            id="in-front-of-everything-but-a-licence",
        ),
        pytest.param(
            "a: 1\r\nb: 1\r\n",
            "a: 1\nb: 2\nc: |\n  x\n  y\n",
            "a: 2\r\nb: 1\r\n",
            "a: 2\r\nb: 2\r\nc: |\r\n  x\r\n  y\r\n",
            id="line-ends-of-ours",
        ),
        pytest.param(
            "a: 1\n", "a: 1\nb: &x [1]\nc: *x\n", "a: 2\n", "a: 2\nb:\n- 1\nc:\n- 1\n", id="aliases-stay-there"
        ),
        pytest.param(
            "a: 1\n",
            "a: 1\nb: &x [1] # n\nc: 1\n",
            "a: 2\n",
            "a: 2\nb: # n\n- 1\nc: 1\n",
            id="comments-without-aliases",
        ),
        pytest.param(
            "- a\n- b\n",
            "- a\n- b\n- c\n",
            "# ours\n- a\n- b\n",
            "# ours\n- a\n- b\n- c\n",
            id="a-document-that-is-a-list",
        ),
        pytest.param("x\n", "y\n", "'x'\n", "'y'\n", id="a-document-that-is-a-scalar"),
        pytest.param(
            "80: a\n", "80: b\ntrue: c\n", "80: a\nx: 1\n", "80: b\ntrue: c\nx: 1\n", id="keys-that-are-no-text"
        ),
        pytest.param('{"a": 1}\n', '{"a": 1, "b": "x"}\n', '{"a": 2}\n', '{"a": 2, "b": "x"}\n', id="json-stays-json"),
        pytest.param("a: 1\n", "a: {b: 1} # c\n", "a: 1\nd: 1\n", "a: # c\n  b: 1\nd: 1\n", id="another-kind"),
        pytest.param(
            "a: {}\n", "a:\n  # c\n  b: 'x'\n", "a: {}\nd: 1\n", "a:\n  # c\n  b: 'x'\nd: 1\n", id="into-an-empty-one"
        ),
    ],
)
def test_merged_text(origin: str, updated: str, local: str, expected: str) -> None:
    assert merge_texts(origin, updated, local) == (expected, [])


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param(
            "list:\n- name: a\n",
            "list:\n- name: a\n# the b\n- name: b # of\n  x: 'y'\n",
            "list:\n- name: a\n  z: 1\n",
            "list:\n- name: a\n  z: 1\n# the b\n- name: b # of\n  x: 'y'\n",
            id="an-element-with-its-comments",
        ),
        pytest.param(
            "list:\n- name: a\n",
            "list:\n- name: a\n- name: b\n",
            "list:\n  - name: a\n    z: 1\n",
            "list:\n  - name: a\n    z: 1\n  - name: b\n",
            id="the-indentation-of-ours",
        ),
        pytest.param(
            "list:\n- name: a\n- name: b\n",
            "list:\n- name: b\n- name: a\n",
            "list:\n# 1\n- name: a # 2\n- name: b\nx: 1\n",
            "list:\n- name: b\n# 1\n- name: a # 2\nx: 1\n",
            id="an-element-that-moved-keeps-its-comments",
        ),
        pytest.param(
            "list:\n- name: a\n  x: 1\n- name: b\n",
            "list:\n- name: a\n  x: 2 # c\n- name: b\n",
            "list:\n- name: b\n- name: a\n  x: 1\n",
            "list:\n- name: b\n- name: a\n  x: 2 # c\n",
            id="comments-find-their-element",
        ),
    ],
)
def test_merged_text_of_list_elements(origin: str, updated: str, local: str, expected: str) -> None:
    assert merge_texts(origin, updated, local, SAFE, BY_NAME) == (expected, [])


@pytest.mark.parametrize(
    ("origin", "updated", "local", "safely", "as_kpt"),
    [
        pytest.param("a: 1\n", "a: 1 # x\n", "a: 1\nb: 1\n", "a: 1 # x\nb: 1\n", "a: 1\nb: 1\n", id="added-upstream"),
        pytest.param(
            "a: 1 # x\n", "a: 1\n", "a: 1 # x\nb: 1\n", "a: 1\nb: 1\n", "a: 1 # x\nb: 1\n", id="removed-upstream"
        ),
        pytest.param("a: 1 # x\n", "a: 1 # y\n", "a: 1 # z\n", "a: 1 # z\n", "a: 1 # z\n", id="changed-on-both-sides"),
        pytest.param("a: 1 # x\n", "a: 1 # y\n", "a: 1\n", "a: 1\n", "a: 1\n", id="removed-locally"),
        pytest.param("a: 1\n", "a: 2\n", "a: 1 # z\n", "a: 2 # z\n", "a: 2\n", id="ours-beside-a-value-of-theirs"),
        pytest.param(
            "a: 1\n", "a: 2 # y\n", "a: 1 # z\n", "a: 2 # z\n", "a: 2 # y\n", id="both-beside-a-value-of-theirs"
        ),
        pytest.param("a: 1\n", "a: 2 # y\n", "a: 3 # z\n", "a: 2 # y\n", "a: 2 # y\n", id="comment-of-the-chosen-side"),
        pytest.param("a: 1\n", "a: 1\n", "a: 2 # z\n", "a: 2 # z\n", "a: 2 # z\n", id="ours-beside-a-value-of-ours"),
        pytest.param(
            "a: 1\n# x\nb: 1\n",
            "a: 1\n# y\n# z\nb: 1\n",
            "a: 2\n# x\nb: 1\n",
            "a: 2\n# y\n# z\nb: 1\n",
            "a: 2\n# x\nb: 1\n",
            id="changed-above",
        ),
        pytest.param(
            "# 2020\na: 1\n",
            "# 2021\na: 1\n",
            "# 2020\na: 1\nb: 1\n",
            "# 2021\na: 1\nb: 1\n",
            "# 2020\na: 1\nb: 1\n",
            id="a-licence",
        ),
        pytest.param(
            "a: # x\n- 1\n",
            "a: # y\n- 2\n",
            "a: # z\n- 1\n",
            "a: # z\n- 2\n",
            "a: # z\n- 2\n",
            id="beside-a-list",
        ),
        pytest.param(
            "a:\n- 1 # x\n- 2\n",
            "a:\n- 1 # y\n- 3\n",
            "a:\n- 1 # x\n- 2 # z\nb: 1\n",
            "a:\n- 1 # y\n- 3 # z\nb: 1\n",
            "a:\n- 1 # y\n- 3\nb: 1\n",
            id="inside-an-atomic-list",
        ),
        pytest.param(
            "a:\n  b: 1\n",
            "a: # x\n  b: 1\n",
            "a: {b: 1, c: 1}\n",
            "a: {b: 1, c: 1} # x\n",
            "a: {b: 1, c: 1}\n",
            id="where-the-style-differs",
        ),
        pytest.param(
            "{a: 1}\n",
            "{a: 1 # x\n}\n",
            "{a: 1, b: 1}\n",
            "{a: 1, b: 1}\n",
            "{a: 1, b: 1}\n",
            id="no-position-for-the-comment",
        ),
    ],
)
def test_merged_comments(origin: str, updated: str, local: str, safely: str, as_kpt: str) -> None:
    safe, compat = merge_texts(origin, updated, local), merge_texts(origin, updated, local, COMPAT)

    assert (safe[0], compat[0]) == (safely, as_kpt)


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param("a: 1\n", "a: 1\nc: 1\nb: 'x' # y\n", "a: 2\n", "a: 2\nb: 'x' # y\nc: 1\n", id="keys-in-order"),
        pytest.param(
            "a: 1\n",
            "a: 1\n# m\nm: # n\n  # o\n  z: ['1'] # p\n  b: {x: 1}\n",
            "a: 2\n",
            "a: 2\n# m\nm: # n\n  b:\n    x: 1\n  # o\n  z: ['1'] # p\n",
            id="mappings-anew",
        ),
        pytest.param(
            "list: []\n",
            "list:\n# e\n- name: a # f\n  image: |\n    x\n",
            "list: []\n",
            "list:\n# e\n- image: |\n    x\n  name: a # f\n",
            id="elements-anew",
        ),
        pytest.param(
            "x: &x [1]\ny: *x\n", "x: &x [1]\ny: *x\nz: 1\n", "x: &x [1]\ny: *x\n", "x: &x [1]\nz: 1\n", id="aliases"
        ),
        pytest.param(
            "a: &x {b: 1}\nc:\n  <<: *x\n  d: 1\n",
            "a: {b: 1}\nc: {d: 2}\n",
            "a: &x {b: 1}\nc:\n  <<: *x\n  d: 1\n",
            "a: &x {b: 1}\nc:\n  d: 2\n",
            id="merge-keys",
        ),
        pytest.param("a: null\nb: 1\n", "a: null\nb: 2\n", "a: null\nb: 1\n", "b: 2\n", id="nulls"),
    ],
)
def test_compat_text_is_equal_to_kpt(origin: str, updated: str, local: str, expected: str) -> None:
    assert merge_texts(origin, updated, local, COMPAT, BY_NAME)[0] == expected


@pytest.mark.parametrize(
    "local",
    [
        pytest.param(f"a:\n  list: # {CONTAINERS_COMMENT}\n  - name: x\n    y: 1\n", id="beside"),
        pytest.param(f"a:\n  # {CONTAINERS_COMMENT}\n  list:\n  - name: x\n    y: 1\n", id="above"),
        pytest.param(
            '# {"$ref":"#/definitions/unknown"}\n\n# {"$ref":"#/definitions/io.k8s.api.core.v1.Nothing"}\na: # {"no\n'
            f"  list: # {CONTAINERS_COMMENT}\n  - name: x\n    y: 1\n",
            id="beside-documents-without-content",
        ),
    ],
)
def test_schema_comments_distinguish_lists(local: str) -> None:
    text, conflicts = merge_texts("a:\n  list:\n  - name: x\n", "a:\n  list:\n  - name: x\n    z: 1\n", local, COMPAT)

    assert text == local + "    z: 1\n"
    assert conflicts == []


def comment_schema(key: str) -> str:
    return f'{{"x-kubernetes-patch-merge-key":"{key}","x-kubernetes-patch-strategy":"merge","type":"array"}}'


NAMED = read_schema_comment(comment_schema("name"))
NUMBERED = read_schema_comment(comment_schema("number"))
OTHER = MergeSchema(keys=("other",))


@pytest.mark.parametrize(
    ("documents", "schema", "expected"),
    [
        pytest.param(
            [f"a:\n- b:\n    list: # {comment_schema('name')}\n    - name: x\n"],
            MergeSchema(fields={"a": MergeSchema(keys=("k",), items=MergeSchema(fields={"c": OTHER}))}),
            MergeSchema(
                fields={
                    "a": MergeSchema(
                        keys=("k",),
                        items=MergeSchema(fields={"c": OTHER, "b": MergeSchema(fields={"list": NAMED})}),
                    )
                }
            ),
            id="below-a-list-element",
        ),
        pytest.param(
            [f"a:\n  list: # {comment_schema('name')}\n  - name: x\n"],
            MergeSchema(fields={"a": MergeSchema(fields={"c": OTHER})}),
            MergeSchema(fields={"a": MergeSchema(fields={"c": OTHER, "list": NAMED})}),
            id="beside-a-known-field",
        ),
        pytest.param(
            [f"list: # {comment_schema(key)}\n- name: x\n" for key in ("name", "number")],
            MergeSchema(),
            MergeSchema(fields={"list": NAMED}),
            id="the-earlier-document-takes-precedence",
        ),
        pytest.param(
            [f"a: 1\nlist: # {comment_schema('name')}\n- name: x\nmore: # {comment_schema('number')}\n- number: 1\n"],
            MergeSchema(),
            MergeSchema(fields={"list": NAMED, "more": NUMBERED}),
            id="two-fields",
        ),
        pytest.param(
            [f"# {comment_schema('name')}\n\na: 1\n", f"# {comment_schema('name')}\na: 1\n"],
            MergeSchema(fields={"a": OTHER}),
            MergeSchema(fields={"a": OTHER}),
            id="above-the-first-field",
        ),
    ],
)
def test_schema_comment_replaces_only_the_schema_of_its_field(
    documents: list[str], schema: MergeSchema, expected: MergeSchema
) -> None:
    assert apply_comment_schemas(schema, [None, *map(parse_document, documents)]) == expected


@pytest.mark.parametrize(
    ("rules", "expected"), [pytest.param(SAFE, "null\n", id="safe"), pytest.param(COMPAT, None, id="compat")]
)
def test_document_that_is_null_afterwards(rules: MergeRules, expected: str | None) -> None:
    result = merge3(ONE, parse_document("null\n"), ONE, UNKNOWN_SCHEMA, rules)

    assert (result.document.text if result.document else None) == expected


def test_unchanged_side_is_not_copied() -> None:
    assert merge3(ONE, TWO, TWO).document is TWO
    assert merge3(ONE, ONE, TWO).document is TWO
    assert merge3(ONE, TWO, ONE).document is TWO


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param(MergeRules(), "a: 1\n", id="safe"),
        pytest.param(MergeRules(removes_emptied_collections=False), "m: {}\na: 1\n", id="D1-off"),
    ],
)
def test_option_applies_where_upstream_has_no_change(rules: MergeRules, expected: str) -> None:
    origin = "m: {x: 1}\na: 1\n"

    assert merge_texts(origin, origin, "a: 1\n", rules)[0] == expected


@pytest.mark.parametrize(
    ("before", "after", "written"),
    [
        pytest.param("0644", "0755", "0755", id="octal"),
        pytest.param("1.5", "2.50", "2.50", id="zeros"),
        pytest.param("1e3", "2e3", "2e3", id="exponent"),
        pytest.param("2001-01-01", "2002-02-02", "2002-02-02", id="date"),
        pytest.param("null", "~", "null", id="the-same-value-is-left-alone"),
        pytest.param("~", "True", "True", id="capital"),
        pytest.param('"a"', '"\\x62"', '"\\x62"', id="escape"),
        pytest.param('"a"', "b", '"b"', id="local-quotes-stay"),
        pytest.param("a", "&anchor b", "b", id="no-anchor"),
        pytest.param("a", "!!str 1", '"1"', id="no-tag"),
    ],
)
def test_changed_value_has_the_style_of_upstream(before: str, after: str, written: str) -> None:
    origin, updated, local = (f"a: {item}\nb: {two}\n" for item, two in ((1, before), (1, after), (2, before)))

    assert merge_texts(origin, updated, local) == (f"a: 2\nb: {written}\n", [])
