"""Tests of the scanner that finds expressions in text."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.cel import CelEnvironment
from reconciler.controllers.components.field_findings import FieldFindingError
from reconciler.controllers.components.templates.expressions import EmbeddedExpression, split_expressions
from tests.unit.controllers.components.templates.template_helpers import AT

E = EmbeddedExpression


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        pytest.param("", (), id="nothing"),
        pytest.param("plain {text} with $5", ("plain {text} with $5",), id="no-expression"),
        pytest.param("${a}", (E("a"),), id="whole"),
        pytest.param("${}", (E(""),), id="empty"),
        pytest.param("x-${a}-${b}.y", ("x-", E("a"), "-", E("b"), ".y"), id="within-text"),
        pytest.param("${a}${b}", (E("a"), E("b")), id="side-by-side"),
        pytest.param("${ a\n  + b }\n", (E(" a\n  + b "), "\n"), id="spans-lines"),
        pytest.param("$${a}}", ("$", E("a"), "}"), id="no-escape-and-a-brace-behind"),
        pytest.param("${ {'k': {'l': 1}} }", (E(" {'k': {'l': 1}} "),), id="braces-are-counted"),
        pytest.param("${'}'}", (E("'}'"),), id="brace-in-single-quotes"),
        pytest.param('${"{"}', (E('"{"'),), id="brace-in-double-quotes"),
        pytest.param("${'\\'}'}", (E("'\\'}'"),), id="escaped-quote"),
        pytest.param("${'\\\\'}'}", (E("'\\\\'"), "'}"), id="escaped-backslash-before-the-quote"),
        pytest.param('${"${HOME}"}', (E('"${HOME}"'),), id="an-expression-in-quotes-is-text"),
        pytest.param("${'''it's }'''}", (E("'''it's }'''"),), id="three-quotes"),
        pytest.param('${"""a "" } """}', (E('"""a "" } """'),), id="three-double-quotes"),
        pytest.param("${'''\\'''}'''}", (E("'''\\'''}'''"),), id="three-quotes-escaped"),
        pytest.param("${''}'${a}", (E("''"), "'", E("a")), id="an-empty-string-opens-nothing"),
        pytest.param("${r'\\'}", (E("r'\\'"),), id="raw-has-no-escapes"),
        pytest.param("${R'''\\'''}", (E("R'''\\'''"),), id="raw-in-three-quotes"),
        pytest.param("${bR'\\'}", (E("bR'\\'"),), id="raw-bytes"),
        pytest.param("${b'\\'}'}", (E("b'\\'}'"),), id="bytes-have-escapes"),
        pytest.param("${for'\\'}'}", (E("for'\\'}'"),), id="the-end-of-a-name-is-no-prefix"),
        pytest.param("${a // don't\n}", (E("a // don't\n"),), id="quotes-in-a-comment-open-nothing"),
        pytest.param("${a // } '${b}", (E("a // "), " '", E("b")), id="braces-in-a-comment-count"),
        pytest.param("${'http://x'}", (E("'http://x'"),), id="a-comment-in-quotes-is-none"),
        pytest.param("it's ${a} isn't }", ("it's ", E("a"), " isn't }"), id="quotes-and-braces-of-the-text"),
    ],
)
def test_text_is_split_into_expressions(text: str, pieces: tuple[str | EmbeddedExpression, ...]) -> None:
    assert split_expressions(text, AT) == pieces


@pytest.mark.parametrize(
    ("text", "code", "quoted"),
    [
        pytest.param("a ${b ${c}}", "TemplateNested", '"${b ${c}}"', id="nested"),
        pytest.param("${a // ${b}\n}", "TemplateNested", '"${a // ${b}\\n}"', id="nested-in-a-comment"),
        pytest.param("${a}${", "TemplateUnterminated", '"${"', id="opened-last"),
        pytest.param("a ${ {b }", "TemplateUnterminated", '"${ {b }"', id="one-brace-too-few"),
        pytest.param("${'a}", "TemplateUnterminated", '"${\'a}"', id="string-without-end"),
        pytest.param("${'''a'}'}", "TemplateUnterminated", "\"${'''a'}'}\"", id="three-quotes-without-end"),
        pytest.param("${r'''a'}'}", "TemplateUnterminated", "\"${r'''a'}'}\"", id="raw-without-end"),
        pytest.param("${'a\\'}", "TemplateUnterminated", "\"${'a\\\\'}\"", id="the-end-is-escaped"),
        pytest.param("${'${b}", "TemplateUnterminated", '"${\'${b}"', id="in-a-string-that-has-no-end"),
    ],
)
def test_invalid_expressions_are_reported(text: str, code: str, quoted: str) -> None:
    with pytest.raises(FieldFindingError) as caught:
        split_expressions(text, AT)

    finding = caught.value.field_finding
    assert (finding.code.name, finding.path) == (code, AT)
    assert finding.message.startswith("spec.resources[0].template must ")
    assert finding.message.endswith(quoted)


def scan(text: str) -> list[str] | str:
    """Return texts and expressions alternately, or the finding code."""
    pieces = [""]
    try:
        for piece in split_expressions(text, AT):
            if isinstance(piece, str):
                pieces[-1] = piece
            else:
                pieces += [piece.text, ""]
    except FieldFindingError as error:
        return error.field_finding.code.name
    return pieces


def scan_by_character(text: str) -> list[str] | str:
    """Return the same result as `scan` with a reference implementation that reads one character at a time."""
    pieces, at = [""], 0
    while at < len(text):
        if not text.startswith("${", at):
            pieces[-1] += text[at]
            at += 1
            continue
        start, depth, closing, raw, comment = at + 2, 1, "", False, False
        at = start
        while depth:
            if at >= len(text):
                return "TemplateUnterminated"
            character = text[at]
            if closing:
                if text.startswith(closing, at):
                    at, closing = at + len(closing), ""
                else:
                    at += 1 if raw or character != "\\" else 2
                continue
            if text.startswith("${", at):
                return "TemplateNested"
            if character == "\n":
                comment = False
            if not comment and text.startswith("//", at):
                comment = True
            if not comment and character in "'\"":
                closing = character * 3 if text.startswith(character * 3, at) else character
                word = at
                while word > start and (
                    text[word - 1].isascii() and (text[word - 1].isalnum() or text[word - 1] == "_")
                ):
                    word -= 1
                raw = text[word:at].lower() in ("r", "br")
                at += len(closing)
                continue
            depth += {"{": 1, "}": -1}.get(character, 0)
            at += 1
        pieces += [text[start : at - 1], ""]
    return pieces


@given(st.text(st.sampled_from("$${}{}'\"\\/rRbx \n"), max_size=40))
@example("${r'\\'}'${b}")
@example("${'''\\'''}''')}")
def test_scanner_agrees_with_the_reference_implementation(text: str) -> None:
    assert scan(text) == scan_by_character(text)


LITERAL = st.one_of(
    st.text(st.sampled_from("a{}$/ "), max_size=6).flatmap(
        lambda text: st.sampled_from(
            [f"'{text}'", f'"{text}"', f"'''{text}'a{text}'''", f"r'{text}\\'", f'R"""\\{text}"""']
        )
    ),
    st.sampled_from(["'\\'}'", '"\\"{"', "'\\\\'", "b'}'", "br'\\'"]),
)


@given(st.lists(LITERAL, min_size=1, max_size=5))
def test_quoted_cel_literal_does_not_end_an_expression(literals: list[str]) -> None:
    written = f"[{', '.join(literals)}]"
    assert CelEnvironment().compile(written).names == set()

    assert split_expressions(f"a${{{written}}}z", AT) == ("a", EmbeddedExpression(written), "z")
