"""Tests of image references, with random texts and the grammar of the distribution specification as a second
implementation.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.controllers.override_policies.image import parse_reference
from reconciler.krm.names import validate_image_digest, validate_image_tag
from tests.support.examples import examples

# The grammar of the specification: regular expressions for names, and one rule per digest algorithm.
COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*"
DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
DOMAIN = rf"(?:{DOMAIN_PART}(?:\.{DOMAIN_PART})*|\[(?:[a-fA-F0-9:]+)\])(?::[0-9]+)?"
DIGEST = "sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}"
REFERENCE = re.compile(
    rf"(?:{DOMAIN}/)?{COMPONENT}(?:/{COMPONENT})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?:@(?:{DIGEST}))?"
)
SHA = "sha256:" + "3f" * 32
pieces = st.sampled_from([*"aB9._-/:@é \n", "web", "reg.example", "localhost", "[::1]", "__", SHA, "5000"])


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(pieces, max_size=8).map("".join))
@example("a/b:1\n")
@example("a:" + "t" * 128)
@example("a:" + "t" * 129)
@example("\u0661")
def test_parser_accepts_the_grammar_of_the_specification(text: str) -> None:
    image_reference = parse_reference(text)

    assert (image_reference is not None) == (REFERENCE.fullmatch(text) is not None)
    if image_reference:
        assert str(image_reference) == text


@pytest.mark.parametrize(
    ("text", "registry", "repository", "tag"),
    [
        ("team/web:2", "", "team/web", "2"),
        ("localhost/web", "localhost", "web", ""),
        ("localhost:5000", "", "localhost", "5000"),
        ("[::1]:5000/web", "[::1]:5000", "web", ""),
        ("Reg.Example/web", "Reg.Example", "web", ""),
        ("MYREG/web", "", "MYREG/web", ""),
        ("a.b", "", "a.b", ""),
        ("reg.example:5000/a/b:t", "reg.example:5000", "a/b", "t"),
    ],
)
def test_reference_is_split_into_its_parts(text: str, registry: str, repository: str, tag: str) -> None:
    image_reference = parse_reference(text)

    assert image_reference is not None
    assert (image_reference.registry, image_reference.repository, image_reference.tag, image_reference.digest) == (
        registry,
        repository,
        tag,
        "",
    )


def test_name_has_at_most_255_characters() -> None:
    assert parse_reference("a" * 255 + ":tag") is not None
    assert parse_reference("a" * 256) is None


@pytest.mark.parametrize("text", ["team/WEB", "", ":t", "web:", "a//b", "/a", "https://a.example/b", "a:-x", "a___b"])
def test_invalid_reference_is_refused(text: str) -> None:
    assert parse_reference(text) is None


def test_errors_of_tags_and_digests_state_the_allowed_values() -> None:
    assert (validate_image_tag("v1.0_a"), validate_image_digest(SHA)) == (None, None)
    assert "128" in str(validate_image_tag("x" * 129))
    assert "sha512:<128" in str(validate_image_digest(SHA.upper()))
