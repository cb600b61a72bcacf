"""Masked names: a parse or an edit of a masked text, with the names written back, equals the direct result."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.krm.yaml import NameMask, YamlError, YamlFile, parse_yaml
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.krm.yaml.nodes import AliasNode, MappingNode, ScalarNode, YamlNode
from tests.support.examples import examples

_NAME = "edge-04"
_MASK = NameMask.from_names([_NAME])


@pytest.mark.parametrize(
    ("names", "masked"),
    [
        pytest.param(["edge-04"], ["edge-04"], id="a name"),
        pytest.param(["web-edge-04", "edge-04"], ["edge-04"], id="a name that contains another name"),
        pytest.param(["edge-04", "site.example"], ["edge-04", "site.example"], id="a DNS subdomain"),
        pytest.param(["edge"], [], id="a short name"),
        pytest.param([""], [], id="no name"),
        pytest.param(["Edge_04"], [], id="characters that are not allowed in names"),
        pytest.param(["edge..04"], [], id="two dots"),
        pytest.param(["edge-zqx"], [], id="a name with the mark"),
    ],
)
def test_selected_names(names: list[str], masked: list[str]) -> None:
    """A mask replaces only names that are not part of YAML syntax."""
    assert [name for name, _ in NameMask.from_names(names).pairs] == masked


def test_placeholder_has_length_of_name() -> None:
    """Positions in the masked text equal those in the text."""
    assert _MASK.mask("name: a-edge-04 # edge-04") == "name: a-zqx0qqq # zqx0qqq"
    assert _MASK.unmask("name: a-zqx0qqq # zqx0qqq") == "name: a-edge-04 # edge-04"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: zqx0qqq", id="a placeholder"),
        pytest.param("a: &edge-04 1\nb: *edge-04", id="an alias"),
        pytest.param("a: !edge-04 1", id="a tag"),
    ],
)
def test_refused_texts(text: str) -> None:
    """A text that can contain names in YAML syntax is not masked."""
    assert _MASK.mask(text) is None


def test_refuses_names_that_overlap_a_placeholder() -> None:
    """Two names whose placeholders cannot be separated again are not masked."""
    mask = NameMask.from_names(["edge-04", "qqqsite-1"])
    assert mask.mask("edge-04qqqsite-1") is not None
    assert mask.mask("edge-04site-1") is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        pytest.param("a: 1e10000", "1e10000", id="a name that is a number"),
        pytest.param("a: 2001-01-01t00.example", "t00.example", id="a name in a date"),
        pytest.param("a: 0x1abcde", "1abcde", id="a name in a hexadecimal number"),
    ],
)
def test_ambiguous_scalars_are_not_unmasked(text: str, name: str) -> None:
    """If a scalar with the name can be another type than the scalar with the placeholder, the mask has no result."""
    mask = NameMask.from_names([name])
    masked = mask.mask(text)
    assert masked is not None
    assert masked != text
    assert mask.unmask_file(parse_yaml(masked)) is None


_TEXTS = st.sampled_from(
    [
        *("a", "edge-04", "web-edge-04.example", "edge-041", "l1\nedge-04\n", "edge-04: x", "- edge-04", "# edge-04"),
        *("edge-04 ", "it's edge-04", '"edge-04"', "\\edge-04", "\x85edge-04", "2001-01-01 edge-04"),
        *("", "1", "on", "0x"),
    ]
)
_SCALARS = st.one_of(_TEXTS, st.none(), st.booleans(), st.integers(-9, 9))
_DATA = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_TEXTS, inner, max_size=4)),
    max_leaves=12,
)
_PIECES = [
    "k{n}: edge-04 # edge-04",
    "# about edge-04",
    "k{n}: 'edge-04' # c{n}",
    'k{n}: "\\edge-04"',
    'k{n}: "x\\nedge-04"',
    "k{n}: {{name: edge-04, b: [x, web-edge-04]}} # c{n}",
    "k{n}:\n  - name: web-edge-04\n    # edge-04\n    value: 1\n  - name: other",
    "edge-04.{n}: 1",
    "k{n}: |\n  text edge-04\n\n   more\n",
    "k{n}: >-\n  folded\n  edge-04",
    "k{n}: edge-04\n  over lines # c{n}",
    "? edge-04{n}\n: a: 1",
    "k{n}: [\n  edge-04, # i\n  b\n]",
    "k{n}: 0x1edge-04",
    "---\nk{n}: edge-04",
    "k{n}: &a{n} edge-04",
    "k{n}: [edge-04",
]


@st.composite
def _files(draw: st.DrawFn) -> str:
    pieces = draw(st.lists(st.sampled_from(_PIECES), min_size=1, max_size=6))
    lines = "\n".join(piece.format(n=number) for number, piece in enumerate(pieces))
    return lines + draw(st.sampled_from(["\n", "", "\n# edge-04\n"]))


@settings(max_examples=examples(400), deadline=None)
@given(text=_files())
def test_parse_of_masked_text_equals_parse(text: str) -> None:
    """The file from a masked text has the same texts, data, positions and styles as the parsed file."""
    unmasked = _parse_masked(text)
    if unmasked is not None:
        _assert_equal_files(unmasked, parse_yaml(text))


@settings(max_examples=examples(400), deadline=None)
@given(text=_files(), key=_TEXTS, value=_DATA)
def test_edit_of_masked_text_equals_edit(text: str, key: str, value: Any) -> None:
    """An edit of a masked text, with the names written back, has the same text as the edit itself."""
    unmasked, masked = _parse_masked(text), _MASK.mask(text)
    data, masked_key = ({key: value}, _MASK.mask(key)) if unmasked else ({}, None)
    if unmasked is None or masked is None or masked_key is None or _MASK.mask(repr(value)) is None:
        return
    for document, template in zip(unmasked.documents, parse_yaml(masked).documents, strict=True):
        if not isinstance(document.data, dict):
            continue
        new = document.data | data
        edited = _MASK.unmask_document(template.with_data(_MASK.mask_data(new)))
        expected = document.with_data(new)
        if edited is not None:
            assert edited.text == expected.text
            assert is_equal_data(edited.data, new)


def _parse_masked(text: str) -> YamlFile | None:
    masked = _MASK.mask(text)
    try:
        return _MASK.unmask_file(parse_yaml(masked)) if masked is not None else None
    except YamlError:
        return None


def _assert_equal_files(left: YamlFile, right: YamlFile) -> None:
    assert left == right
    for one, other in zip(left.documents, right.documents, strict=True):
        assert is_equal_data(one.data, other.data)
        assert _describe(one.root) == _describe(other.root)


def _describe(node: YamlNode) -> Any:
    assert not isinstance(node, AliasNode)
    position = (node.start, node.end, node.tag, node.anchor, repr(node.data), type(node))
    if isinstance(node, ScalarNode):
        return (*position, node.value, node.style)
    values = list(node.data) if isinstance(node, MappingNode) else []
    return (*position, node.flow, values, [_describe(child) for child in node.children])
