"""Tests of patch paths: all valid forms, and the findings about invalid paths."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.controllers.components.field_findings import FieldFinding
from reconciler.controllers.components.patching.paths import (
    MAX_LENGTH,
    MAX_STEPS,
    AppendStep,
    FilterStep,
    IndexStep,
    KeyStep,
    NumericStep,
    PatchPath,
    WildcardStep,
    parse_patch_path,
)
from reconciler.krm.json_pointer import format_pointer

AT = ("spec", "patches", 0, "patch", "path")
ZERO, LAST = NumericStep("0", 0), AppendStep()


def field(name: str, literal: Any, *, quoted: bool = True) -> FilterStep:
    return FilterStep((name,), literal, quoted)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("/spec/replicas", (KeyStep("spec"), KeyStep("replicas")), id="keys"),
        pytest.param("/a/[0]", (KeyStep("a"), IndexStep(0)), id="index-in-a-segment-of-its-own"),
        pytest.param("/a[0]", (KeyStep("a"), IndexStep(0)), id="index-behind-its-key"),
        pytest.param("/a/0", (KeyStep("a"), ZERO), id="number-without-brackets"),
        pytest.param("/a/8080", (KeyStep("a"), NumericStep("8080", 8080)), id="row-30-number-that-may-be-a-key"),
        pytest.param(f"/a/{10**30}", (KeyStep("a"), NumericStep(str(10**30), 10**30)), id="number-of-any-size"),
        pytest.param("/a/['8080']", (KeyStep("a"), KeyStep("8080")), id="number-that-is-a-key"),
        pytest.param("/a/٣", (KeyStep("a"), KeyStep("٣")), id="digits-of-other-scripts-are-letters"),
        pytest.param("/a/[*]/b", (KeyStep("a"), WildcardStep(), KeyStep("b")), id="every-item"),
        pytest.param("/a[*][0]['k']", (KeyStep("a"), WildcardStep(), IndexStep(0), KeyStep("k")), id="many-selectors"),
        pytest.param("/a/-", (KeyStep("a"), LAST), id="behind-the-last"),
        pytest.param("/a[-]", (KeyStep("a"), LAST), id="behind-the-last-in-brackets"),
        pytest.param("/a/-x", (KeyStep("a"), KeyStep("-x")), id="dash-in-a-key"),
        pytest.param("/a/['-']", (KeyStep("a"), KeyStep("-")), id="dash-as-a-key"),
        pytest.param("/a/x.io~1b~0c", (KeyStep("a"), KeyStep("x.io/b~c")), id="row-35-slash-and-tilde-escaped"),
        pytest.param("/a/~01", (KeyStep("a"), KeyStep("~1")), id="escapes-once"),
        pytest.param("/a/['x.io/b']", (KeyStep("a"), KeyStep("x.io/b")), id="row-35-slash-quoted"),
        pytest.param("/a/['x.io~1b']", (KeyStep("a"), KeyStep("x.io/b")), id="slash-quoted-and-escaped"),
        pytest.param("/a/['x]y']/z", (KeyStep("a"), KeyStep("x]y"), KeyStep("z")), id="bracket-quoted"),
        pytest.param('/a/["it\'s"]', (KeyStep("a"), KeyStep("it's")), id="double-quotes"),
        pytest.param("/a/['']", (KeyStep("a"), KeyStep("")), id="key-without-a-name"),
        pytest.param("/['a']", (KeyStep("a"),), id="quoted-key-of-the-object"),
        pytest.param("/../x", (KeyStep(".."), KeyStep("x")), id="dots-are-a-key-like-any"),
        pytest.param("/a/[?(@.n=='x')]/b", (KeyStep("a"), field("n", "x"), KeyStep("b")), id="filter"),
        pytest.param("/a[?(@.n=='x')]", (KeyStep("a"), field("n", "x")), id="filter-behind-its-key"),
        pytest.param('/[?(@.n=="x")]', (field("n", "x"),), id="filter-with-double-quotes"),
        pytest.param("/[?( @.n == 'x' )]", (field("n", "x"),), id="filter-with-blanks"),
        pytest.param("/[?(@.a.b['c d']=='x')]", (FilterStep(("a", "b", "c d"), "x", True),), id="filter-below-fields"),
        pytest.param("/[?(@['a/b']=='x')]", (field("a/b", "x"),), id="filter-of-a-quoted-field"),
        pytest.param("/[?(@.url=='http://x/y')]", (field("url", "http://x/y"),), id="row-36-slash-in-quotes"),
        pytest.param("/[?(@.url=='http:~1~1x~1y')]", (field("url", "http://x/y"),), id="row-36-escaped-in-quotes"),
        pytest.param("/[?(@.a==')]')]", (field("a", ")]"),), id="bracket-in-quotes"),
        pytest.param("/[?(@.a=='')]", (field("a", ""),), id="empty-text"),
        pytest.param("/[?(@.a==8080)]", (field("a", 8080, quoted=False),), id="number"),
        pytest.param("/[?(@.a==-1.5e3)]", (field("a", -1500.0, quoted=False),), id="double"),
        pytest.param("/[?(@.a==true)]", (field("a", True, quoted=False),), id="true"),
        pytest.param("/[?(@.a==null)]", (field("a", None, quoted=False),), id="null"),
    ],
)
def test_parse_path(text: str, expected: tuple[Any, ...]) -> None:
    assert parse_patch_path(text, AT) == PatchPath(text, expected)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        pytest.param("", "PathRoot", "must address a field", id="empty"),
        pytest.param("/", "PathRoot", "must address a field", id="slash"),
        pytest.param("spec/x", "PathSyntax", "must begin with /", id="no-slash"),
        pytest.param("../x", "PathSyntax", "must begin with /", id="climbing"),
        pytest.param("//", "PathSyntax", "['']", id="empty-segments"),
        pytest.param("/a//b", "PathSyntax", "must have a step after every /", id="empty-segment"),
        pytest.param("/a/", "PathSyntax", "must have a step after every /", id="slash-at-the-end"),
        pytest.param("/a/007", "PathSyntax", '"007"', id="leading-zero"),
        pytest.param("/a/[01]", "PathSyntax", '"[01]"', id="leading-zero-in-brackets"),
        pytest.param("/a/-1", "PathSyntax", '"-1"', id="sign"),
        pytest.param("/a/+1", "PathSyntax", '"+1"', id="plus"),
        pytest.param("/a/[-1]", "PathSyntax", '"[-1]"', id="sign-in-brackets"),
        pytest.param("/a/-/b", "PathSyntax", "must use - only as the last step", id="dash-in-the-middle"),
        pytest.param(
            "/a/[-][0]", "PathSyntax", "must use - only as the last step", id="dash-in-brackets-in-the-middle"
        ),
        pytest.param("/a~b", "PathSyntax", "~0", id="tilde"),
        pytest.param("/a]", "PathSyntax", '"]"', id="bracket-in-a-key"),
        pytest.param("/a[", "PathSyntax", "must close the bracket", id="open-bracket"),
        pytest.param("/a['b'", "PathSyntax", '"]" after the quoted key', id="open-bracket-behind-a-key"),
        pytest.param("/a['b", "PathSyntax", "must close the bracket", id="open-quote"),
        pytest.param("/a[]", "PathSyntax", '"[]"', id="empty-brackets"),
        pytest.param("/a[b]", "PathSyntax", '"[b]"', id="word-in-brackets"),
        pytest.param("/a[0]b", "PathSyntax", 'must not continue with "b"', id="key-behind-brackets"),
        pytest.param("/a[?@.n=='x']", "PathSyntax", "[?(@.field=='value')]", id="filter-without-parentheses"),
        pytest.param("/a[?(@.n=='x')", "PathSyntax", "must close the filter", id="open-filter"),
        pytest.param("/a[?(@.n=='x)]", "PathSyntax", "must close the filter", id="open-quote-in-a-filter"),
        pytest.param("/a[?(@.n!='x')]", "PathFilterUnsupported", "@.field==literal", id="unequal"),
        pytest.param("/a[?(@.n=='x' && @.m=='y')]", "PathFilterUnsupported", "@.field==literal", id="and"),
        pytest.param("/a[?(@.n)]", "PathFilterUnsupported", "@.field==literal", id="existence"),
        pytest.param("/a[?(@=='x')]", "PathFilterUnsupported", "@.field==literal", id="the-item-itself"),
        pytest.param("/a[?(@.n==x)]", "PathFilterUnsupported", "@.field==literal", id="word-without-quotes"),
        pytest.param("/a[?(@.n=~'x')]", "PathFilterUnsupported", "@.field==literal", id="pattern"),
        pytest.param("/a[?(length(@.n)==1)]", "PathFilterUnsupported", "@.field==literal", id="function"),
        pytest.param("/a[?(@.n==01)]", "PathFilterUnsupported", "@.field==literal", id="literal-with-leading-zero"),
        pytest.param("/a[?(@.n==1e999)]", "PathFilterUnsupported", "@.field==literal", id="number-without-end"),
        pytest.param("/a" * (MAX_STEPS + 1), "PathSyntax", "at most 100 steps, but has 101", id="too-many-steps"),
        pytest.param("/" + "a" * MAX_LENGTH, "PathSyntax", "at most 4,096 characters, but has 4,097", id="too-long"),
    ],
)
def test_invalid_path_is_reported(text: str, code: str, message: str) -> None:
    patch_path = parse_patch_path(text, AT)

    assert isinstance(patch_path, FieldFinding)
    assert (patch_path.code.name, patch_path.path) == (code, AT)
    assert patch_path.message.startswith("spec.patches[0].patch.path must ")
    assert message in patch_path.message


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_keys_can_be_written_as_a_json_pointer(keys: list[str]) -> None:
    """Keys with a special meaning in patch paths are excluded: brackets, numbers and the dash."""
    patch_path = parse_patch_path(format_pointer(keys))

    if isinstance(patch_path, PatchPath) and all(isinstance(step, KeyStep) for step in patch_path.steps):
        assert patch_path.steps == tuple(map(KeyStep, keys))
    else:
        assert any(set("[]") & set(key) or key == "-" or key.lstrip("+-").isdigit() for key in keys)


pieces = st.sampled_from([*"/[]()?@.='\"~01-*ab ", "[?(", ")]", "==", "@.a", "'x'", "[0]", "/-", "null"])


@given(st.one_of(st.text(), st.lists(pieces, max_size=30).map("".join)))
def test_any_text_is_a_path_or_a_finding(text: str) -> None:
    patch_path = parse_patch_path(text, AT)

    assert isinstance(patch_path, PatchPath | FieldFinding)
    if isinstance(patch_path, PatchPath):
        assert patch_path.steps
        assert not any(isinstance(step, AppendStep) for step in patch_path.steps[:-1])


@pytest.mark.parametrize("unit", ["[", "/", "/[?(@", "/a['", "[?(@['a']", "['"])
def test_long_hostile_text_is_parsed_fast(unit: str) -> None:
    assert isinstance(parse_patch_path("/" + unit * (MAX_LENGTH // len(unit) - 1), AT), FieldFinding)
