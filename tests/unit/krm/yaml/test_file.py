"""Tests of YAML files: documents are added and removed, and the text between them stays."""

from __future__ import annotations

import pytest

from reconciler.krm.yaml import Document, YamlError, YamlFile, parse_yaml


def list_texts(file: YamlFile) -> list[str]:
    return [document.text for document in file.documents]


@pytest.mark.parametrize(
    ("text", "documents", "lines"),
    [
        pytest.param("a: 1\n", ["a: 1\n"], [1], id="one"),
        pytest.param("a: 1\n---\nb: 2\n", ["a: 1\n", "b: 2\n"], [1, 3], id="two"),
        pytest.param("---\na: 1\n---\n", ["a: 1\n"], [2], id="separators-around"),
        pytest.param(
            "# only\n---\n# c\na: 1\n--- # x\n\n---\nb: 2", ["# c\na: 1\n", "b: 2"], [3, 8], id="empty-ones-are-skipped"
        ),
        pytest.param(
            "--- {a: 1}\n--- |\n  x\n--- b\n",
            ["--- {a: 1}\n", "--- |\n  x\n", "--- b\n"],
            [1, 2, 4],
            id="content-beside-the-separator",
        ),
        pytest.param("a: 1\n...\nb: 2\n", ["a: 1\n", "b: 2\n"], [1, 3], id="document-end"),
        pytest.param(
            "%YAML 1.1\n---\na: 1\n...\n%YAML 1.1\n---\nb: 2\n",
            ["%YAML 1.1\n---\na: 1\n", "%YAML 1.1\n---\nb: 2\n"],
            [1, 5],
            id="directives",
        ),
        pytest.param(
            "a: |\n  ---\n  x\nb: '---'\n", ["a: |\n  ---\n  x\nb: '---'\n"], [1], id="dashes-that-separate-nothing"
        ),
        pytest.param("a: 1\n---b: 2\n", ["a: 1\n---b: 2\n"], [1], id="a-key-of-dashes"),
        pytest.param("", [], [], id="nothing"),
        pytest.param("# c\n", [], [], id="only-a-comment"),
        pytest.param("a: 1\r\n---\r\nb: 2\r\n", ["a: 1\r\n", "b: 2\r\n"], [1, 3], id="crlf"),
        pytest.param("a: 1\r---\rb: 2\r", ["a: 1\r", "b: 2\r"], [1, 3], id="cr"),
    ],
)
@pytest.mark.parametrize("bom", [pytest.param("", id="no-bom"), pytest.param("\ufeff", id="bom")])
def test_documents(text: str, bom: str, documents: list[str], lines: list[int]) -> None:
    file = parse_yaml((bom + text).encode())

    assert list_texts(file) == documents
    assert [document.line for document in file.documents] == lines
    assert file.to_bytes() == (bom + text).encode()


THREE = "# licence\n---\na: 1\n---\n# between\n---\nb: 2\n---\nc: 3"


@pytest.mark.parametrize(
    ("text", "index", "expected"),
    [
        pytest.param("a: 1\n---\nb: 2\n", 0, "b: 2\n", id="first"),
        pytest.param("a: 1\n---\nb: 2\n", 1, "a: 1\n", id="last"),
        pytest.param("a: 1\n---\nb: 2\n", -1, "a: 1\n", id="counted-from-the-end"),
        pytest.param(THREE, 1, "# licence\n---\na: 1\n---\n# between\n---\nc: 3", id="middle-comments-stay"),
        pytest.param(THREE, 2, "# licence\n---\na: 1\n---\n# between\n---\nb: 2\n", id="last-without-line-end"),
        pytest.param("a: 1\n", 0, "", id="the-only-one"),
        pytest.param("--- {a: 1}\n---\nb: 2\n", 0, "b: 2\n", id="with-its-own-separator"),
        pytest.param("a: 1\n---\nb: 2\n---\n", 1, "a: 1\n---\n", id="separator-at-the-end-stays"),
        pytest.param("a: |\n  x\n--- b\n--- c\n", 1, "a: |\n  x\n--- c\n", id="separators-with-content"),
    ],
)
def test_remove(text: str, index: int, expected: str) -> None:
    file = parse_yaml(text).remove(index)

    assert file.to_bytes().decode() == expected
    assert list_texts(parse_yaml(file.to_bytes())) == list_texts(file)


def test_remove_after_the_end() -> None:
    with pytest.raises(IndexError):
        parse_yaml("a: 1\n").remove(1)


@pytest.mark.parametrize(
    ("text", "added", "expected"),
    [
        pytest.param("a: 1\n", "b: 2\n", "a: 1\n---\nb: 2\n", id="separator-is-added"),
        pytest.param("a: 1", "b: 2\n", "a: 1\n---\nb: 2\n", id="so-is-a-line-end"),
        pytest.param("a: 1\n---\n", "b: 2\n", "a: 1\n---\nb: 2\n", id="an-open-separator-is-used"),
        pytest.param("a: 1\n", "---\nb: 2\n", "a: 1\n---\nb: 2\n", id="its-own-separator-is-enough"),
        pytest.param("", "b: 2\n", "b: 2\n", id="to-nothing"),
        pytest.param("# licence", "b: 2\n", "# licence\nb: 2\n", id="to-a-comment"),
        pytest.param("a: 1\r\n", "b:\n- 2\n", "a: 1\r\n---\r\nb:\r\n- 2\r\n", id="in-the-files-line-ends"),
        pytest.param("a: |\n  x", "b: 2\n", "a: |-\n  x\n---\nb: 2\n", id="behind-a-block-scalar-without-line-end"),
        pytest.param("a: 1\n", "%YAML 1.1\n---\nb: 2\n", "a: 1\n...\n%YAML 1.1\n---\nb: 2\n", id="directives"),
        pytest.param("a: 1\n", "b: 2\n---\nc: 3\n", "a: 1\n---\nb: 2\n---\nc: 3\n", id="two-at-once"),
    ],
)
def test_append(text: str, added: str, expected: str) -> None:
    file = parse_yaml(text).append(added)

    assert file.to_bytes().decode() == expected
    yaml_file = parse_yaml(expected)
    assert [(d.data, d.find_line(())) for d in yaml_file.documents] == [
        (d.data, d.find_line(())) for d in file.documents
    ]
    assert [d.data for d in file.documents[: len(parse_yaml(text).documents)]] == [
        d.data for d in parse_yaml(text).documents
    ]


def test_append_of_invalid_yaml() -> None:
    with pytest.raises(YamlError):
        parse_yaml("a: 1\n").append("b: [")


@pytest.mark.parametrize(
    ("text", "index", "data", "expected"),
    [
        pytest.param("a: 1\n---\nb: 2\n", 0, {"c": 1}, "c: 1\n---\nb: 2\n", id="first"),
        pytest.param("\ufeffa: 1\n---\nb: 2", 1, {"c": 1}, "\ufeffa: 1\n---\nc: 1\n", id="last-and-bom"),
        pytest.param("a: 1\n--- {b: 2}\n", 1, {"c": 1}, "a: 1\n---\nc: 1\n", id="one-that-brought-its-separator"),
        pytest.param("%YAML 1.1\n---\na: 1\n---\nb: 2\n", 0, {"c": 1}, "c: 1\n---\nb: 2\n", id="one-with-directives"),
    ],
)
def test_replace(text: str, index: int, data: object, expected: str) -> None:
    file = parse_yaml(text).replace(index, Document.from_data(data))

    assert file.to_bytes().decode() == expected
    assert [(d.data, d.line) for d in parse_yaml(expected).documents] == [(d.data, d.line) for d in file.documents]


@pytest.mark.parametrize(
    ("text", "order", "expected"),
    [
        pytest.param("a: 1\n---\nb: 2\n", [1, 0], "b: 2\n---\na: 1\n", id="exchanged"),
        pytest.param(
            THREE, [0, 2, 1], "# licence\n---\na: 1\n---\nc: 3\n---\n# between\n---\nb: 2\n", id="with-its-gap"
        ),
        pytest.param(THREE, [2, 0, 1], "# licence\n---\nc: 3\n---\na: 1\n---\n# between\n---\nb: 2\n", id="head-stays"),
        pytest.param("a: 1\n---\nb: 2\n", [0, "n: 1\n", 1], "a: 1\n---\nn: 1\n---\nb: 2\n", id="one-between"),
        pytest.param("a: 1\n---\nb: 2\n", ["n: 1", 0, 1], "n: 1\n---\na: 1\n---\nb: 2\n", id="one-in-front"),
        pytest.param(
            "a: 1\r\n---\r\nb: 2\r\n", ["n:\n- 1\n", 0, 1], "n:\r\n- 1\r\n---\r\na: 1\r\n---\r\nb: 2\r\n", id="crlf"
        ),
        pytest.param("a: 1\n--- {b: 2}\n", [1, 0], "--- {b: 2}\n---\na: 1\n", id="separator-with-content"),
        pytest.param(THREE, [2], "# licence\n---\n# between\n---\nc: 3", id="comments-of-what-is-gone-stay"),
        pytest.param(THREE, [0], "# licence\n---\na: 1\n---\n# between\n", id="comments-at-the-end-stay"),
        pytest.param("# licence", ["b: 2\n", "c: 3"], "# licence\nb: 2\n---\nc: 3", id="into-nothing-but-comments"),
        pytest.param(THREE, [], "# licence\n---\n---\n# between\n", id="nothing-but-comments"),
        pytest.param("a: 1\n---\nb: 2\n---\n", [1, 0], "b: 2\n---\na: 1\n---\n", id="separator-at-the-end-stays"),
    ],
)
def test_arranged(text: str, order: list[int | str], expected: str) -> None:
    before = parse_yaml(text)
    own = [(entry, before.documents[entry]) for entry in order if isinstance(entry, int)]
    new = [(None, parse_yaml(entry).documents[0]) for entry in order if isinstance(entry, str)]

    file = before.with_documents([own.pop(0) if isinstance(entry, int) else new.pop(0) for entry in order])

    assert file.to_bytes().decode() == expected
    yaml_file = parse_yaml(expected)
    assert [(d.data, d.find_line(())) for d in yaml_file.documents] == [
        (d.data, d.find_line(())) for d in file.documents
    ]


def test_replacement_moves_the_lines_below() -> None:
    file = parse_yaml("a: 1\n---\nb: 2\n")

    longer = file.replace(0, file.documents[0].with_data({"a": 1, "x": 2, "z": 3}))

    assert longer.documents[1].find_line(("b",)) == 5


def test_replacement_with_the_same_document_changes_nothing() -> None:
    file = parse_yaml("a: 1\n")

    assert file.replace(0, file.documents[0]) is file


def test_last_document_receives_a_line_end_when_a_document_follows() -> None:
    file = parse_yaml("a: 1\n---\nb: 2\n").replace(0, parse_yaml("c: |\n  x").documents[0])

    assert file.to_bytes() == b"c: |-\n  x\n---\nb: 2\n"
