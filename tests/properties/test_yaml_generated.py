"""Lossless YAML on generated documents: `edit(parse(x))` read again equals the edit of the data, in any style."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reconciler.krm.yaml import YamlError, emit, parse_yaml
from reconciler.krm.yaml.compare import is_equal_data
from tests.support.examples import examples

_WORDS = st.sampled_from(["a", "b", "c", "name", "y", "80", "x z", "#", "é", ""])
_SCALARS = st.one_of(
    _WORDS,
    st.sampled_from(
        ["on", "0644", "1e3", "a: b", "- a", "l1\nl2\n", "l1\n\nl2", " lead", "it's", '"', "\x85", "\u2028"]
    ),
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
)
_DATA = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_WORDS, inner, max_size=4)),
    max_leaves=12,
)

# lines of documents in styles that no emitter of ours writes, to be put together at random
_PIECES = [
    "k{n}: 1 # c{n}",
    "# head {n}",
    "",
    "k{n}: 'quoted' # c{n}",
    "k{n}: {{a: 1, b: [x, y]}} # c{n}",
    "k{n}: {{}}",
    "k{n}: []",
    "k{n}:",
    "k{n}: # c{n}\n  a: 1\n  # foot\n  b:\n  - x # i\n  -   y\n  - p: 1\n    q: 2",
    "k{n}:\n    - - 1\n      - 2\n    # between\n    - {{a: b}}\n    -\n      c: d",
    "k{n}: |\n  text\n\n   more\n",
    "k{n}: >-\n  folded\n  text",
    "k{n}: |+\n  kept\n\n",
    "k{n}: plain\n  over lines # c{n}",
    "k{n}: &a{n} {{a: [1]}}\nl{n}: *a{n} # c{n}",
    "k{n}: &a{n}\n  a: 1\nl{n}:\n  <<: *a{n}\n  b: 2",
    "? k{n}\n: a: 1\n  b: 2",
    "k{n}: [\n  a, # i\n  b\n]",
    "k{n}: !t [1, 2]",
    '"k{n}" : !!str 1',
    "0{n}: octal key",
]


@st.composite
def _texts(draw: st.DrawFn) -> str:
    pieces = draw(st.lists(st.sampled_from(_PIECES), min_size=1, max_size=6))
    lines = "\n".join(piece.format(n=number) for number, piece in enumerate(pieces))
    end = draw(st.sampled_from(["\n", "", "\n\n", "\n# foot\n"]))
    return (lines + end).replace("\n", draw(st.sampled_from(["\n", "\n", "\r\n"])))


@st.composite
def _edited(draw: st.DrawFn, data: Any) -> Any:
    """Return the data with something in it replaced, removed, added or moved."""
    match data:
        case dict() if data and draw(st.integers(0, 3)):
            key = draw(st.sampled_from(sorted(data)))
            return data | {key: draw(_edited(data[key]))}
        case dict() if data and draw(st.booleans()):
            deleted = draw(st.sampled_from(sorted(data)))
            return {key: value for key, value in data.items() if key != deleted}
        case dict():
            return data | {draw(_WORDS): draw(_DATA)}
        case list() if data and draw(st.integers(0, 3)):
            index = draw(st.integers(0, len(data) - 1))
            return [*data[:index], draw(_edited(data[index])), *data[index + 1 :]]
        case list() if data and draw(st.booleans()):
            return draw(st.permutations(data))[1:]
        case list():
            index = draw(st.integers(0, len(data)))
            return [*data[:index], draw(_DATA), *data[index:]]
        case _:
            return draw(_DATA)


@settings(max_examples=examples(200), deadline=None)
@given(_DATA)
def test_emitted_data_is_read_back(data: Any) -> None:
    file = parse_yaml(emit(data))

    assert [is_equal_data(it.data, data) for it in file.documents] == [True]


@settings(max_examples=examples(150), deadline=None)
@given(_DATA, st.data())
def test_editing_what_we_wrote(data: Any, draw: st.DataObject) -> None:
    expected = draw.draw(_edited(copy.deepcopy(data)))

    edited = parse_yaml(emit(data)).documents[0].with_data(expected)

    assert is_equal_data(parse_yaml(edited.text).documents[0].data, expected)


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(_texts(), st.data())
def test_editing_what_others_wrote(text: str, draw: st.DataObject) -> None:
    file = parse_yaml(text)
    assert file.to_bytes() == text.encode()
    for document in file.documents:
        expected = draw.draw(_edited(copy.deepcopy(document.data)))

        edited = document.with_data(expected)

        assert is_equal_data(edited.data, expected)
        yaml_file = parse_yaml(file.replace(0, edited).to_bytes())
        assert [is_equal_data(it.data, expected) for it in yaml_file.documents] == [True]
        assert is_equal_data(edited.with_data(document.data).data, document.data)


@settings(max_examples=examples(100), deadline=None)
@given(_texts(), _DATA, st.integers(0, 50))
def test_a_top_level_edit_leaves_the_comments_of_the_others(text: str, value: Any, choice: int) -> None:
    # values below a question mark go through ruamel.yaml, which moves comments of flow collections
    assume("? k" not in text)
    for document in parse_yaml(text).documents:
        key = sorted(document.data)[choice % len(document.data)]

        edited = document.with_data(document.data | {key: value})

        mapping = {
            path: comment for path, comment in document.comments().items() if path[0] not in (key, f"l{key[1:]}")
        }
        assert mapping.items() <= edited.comments().items()


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(_texts(), max_size=4), st.integers(0, 3), st.booleans())
def test_documents_come_and_go(texts: list[str], index: int, bom: bool) -> None:
    source = ("\ufeff" if bom else "") + "\n---\n".join(texts)
    file = parse_yaml(source)
    assert file.to_bytes() == source.encode()
    if index >= len(file.documents):
        return

    shorter = file.remove(index)
    longer = shorter.append(file.documents[index].text)

    expected = [it.data for number, it in enumerate(file.documents) if number != index]
    assert [it.data for it in parse_yaml(shorter.to_bytes()).documents] == expected
    assert [it.data for it in parse_yaml(longer.to_bytes()).documents] == [*expected, file.documents[index].data]


@settings(max_examples=examples(200), deadline=None)
@given(st.text(st.sampled_from("ab:-?,[]{}#&*!|>'\"%@`~<=. \t\n\r\x85\u20280123\ufeff"), max_size=40))
def test_whatever_is_read_is_kept(text: str) -> None:
    try:
        file = parse_yaml(text)
    except YamlError:
        return

    assert file.to_bytes() == text.encode()
    for document in file.documents:
        document.comments()

        assert is_equal_data(document.with_data({"other": [document.data]}).data, {"other": [document.data]})
