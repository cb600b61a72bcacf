"""Lossless YAML on every file of repositories of other projects: an edit changes only the edited lines."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.krm.yaml import Document, YamlError, YamlFile, parse_yaml
from reconciler.krm.yaml.compare import is_equal_data

DATA = Path(__file__).resolve().parents[2] / "../shared/data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the data of other projects is not on this machine")

EDITS_PER_DOCUMENT = 2
# beyond this the edits of one document would cost more than those of a hundred ordinary ones
LARGEST = 20_000


def _files() -> list[Path]:
    files = sorted(path for path in DATA.rglob("*") if path.is_file())
    return [path for path in files if path.suffix in (".yaml", ".yml") or path.name == "Kptfile"]


@pytest.fixture(scope="module")
def corpus() -> dict[str, YamlFile]:
    read: dict[str, YamlFile] = {}
    for path in _files():
        try:
            read[path.relative_to(DATA).as_posix()] = parse_yaml(path.read_bytes())
        except YamlError:
            # a few are broken on purpose; test_what_is_refused holds them to PyYAML's opinion
            continue
    return read


@pytest.fixture(scope="module")
def documents(corpus: dict[str, YamlFile]) -> list[tuple[str, Document]]:
    return [(name, it) for name, file in corpus.items() for it in file.documents if len(it.text) <= LARGEST]


def test_there_is_enough_to_prove_something(corpus: dict[str, YamlFile]) -> None:
    assert len(corpus) > 500


def test_untouched_files_keep_their_bytes(corpus: dict[str, YamlFile]) -> None:
    changed = [name for name, file in corpus.items() if file.to_bytes() != (DATA / name).read_bytes()]

    assert changed == []


def test_what_is_refused_is_refused_by_pyyaml_too(corpus: dict[str, YamlFile]) -> None:
    for path in _files():
        if path.relative_to(DATA).as_posix() not in corpus:
            with pytest.raises(yaml.YAMLError):
                list(yaml.load_all(path.read_bytes(), Loader=yaml.CSafeLoader))


def test_strings_and_structure_are_those_of_pyyaml(corpus: dict[str, YamlFile]) -> None:
    for name, file in corpus.items():
        loaded = yaml.load_all((DATA / name).read_bytes(), Loader=yaml.CBaseLoader)
        expected = [_shape(it) for it in loaded if it != ""]

        assert [_shape(it.data) for it in file.documents] == expected, name


def _shape(data: Any) -> Any:
    """Return collections with their sizes and keys, scalars as dots; the files have no merge keys."""
    if isinstance(data, dict):
        return {key: _shape(value) for key, value in data.items()}
    return [_shape(value) for value in data] if isinstance(data, list) else "."


def _scalars(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from _scalars(value, (*path, key))
    elif path:
        yield path


def _collections(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(data, dict | list):
        yield path
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from _collections(value, (*path, key))


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for segment in path:
        data = data[segment]
    return data


@pytest.mark.slow
def test_a_scalar_edit_changes_one_line(documents: list[tuple[str, Document]]) -> None:
    for name, document in documents:
        chance = random.Random(name)
        paths = [path for path in _scalars(document.data) if "\n" not in str(_at(document.data, path))]
        for path in chance.sample(paths, min(EDITS_PER_DOCUMENT, len(paths))):
            data = copy.deepcopy(document.data)
            _at(data, path[:-1])[path[-1]] = chance.choice(["on", "a: b", 0.5, 7, "edited", False])

            edited = document.with_data(data)

            assert is_equal_data(edited.data, data), (name, path)
            assert _lines_changed(document, edited) <= max(1, _lines_of(document, path)), (name, path)
            assert _other_comments(document, path) == _other_comments(edited, path), (name, path)
            assert edited.comment(path) == document.comment(path), (name, path)


def _lines_changed(before: Document, after: Document) -> int:
    old, new = before.text.split("\n"), after.text.split("\n")
    if len(old) == len(new):
        return sum(left != right for left, right in zip(old, new, strict=True))
    return abs(len(old) - len(new)) + 1


def _lines_of(document: Document, path: tuple[Any, ...]) -> int:
    """Return the number of lines of a value without line ends. Folded and plain text may have several lines."""
    lines = document.text.split("\n")
    start = document.find_line(path) - document.line
    words = str(_at(document.data, path)).split()
    return next((n for n in range(1, 200) if words[-1:] == [] or words[-1] in " ".join(lines[start : start + n])), 1)


def _other_comments(document: Document, path: tuple[Any, ...]) -> dict[Any, str]:
    return {at: comment for at, comment in document.comments().items() if at != path}


@pytest.mark.slow
def test_what_is_added_leaves_every_line_in_place(documents: list[tuple[str, Document]]) -> None:
    for name, document in documents:
        chance = random.Random(name)
        paths = [path for path in _collections(document.data) if _at(document.data, path)]
        for path in chance.sample(paths, min(EDITS_PER_DOCUMENT, len(paths))):
            data = copy.deepcopy(document.data)
            _add(chance, _at(data, path))

            edited = document.with_data(data)

            assert is_equal_data(edited.data, data), (name, path)
            # a block scalar at the very end, without a line end, has to say so once something follows
            if document.text.endswith("\n") and not _is_flow(document, path):
                assert _is_subsequence(document.text.split("\n"), edited.text.split("\n")), (name, path)


def _add(chance: random.Random, target: Any) -> None:
    value = chance.choice(["x", {"k": ["v", {"w": 1}]}, ["a", "b"], {}, "two\nlines\n"])
    if isinstance(target, list):
        target.insert(chance.randint(0, len(target)), value)
    else:
        items = list(target.items())
        items.insert(chance.randint(0, len(items)), ("added-key", value))
        target.clear()
        target.update(items)


def _is_flow(document: Document, path: tuple[Any, ...]) -> bool:
    line = document.text.split("\n")[document.find_line(path) - document.line]
    return "{" in line or "[" in line


def test_what_is_removed_takes_only_lines_away(documents: list[tuple[str, Document]]) -> None:
    for name, document in documents:
        chance = random.Random(name)
        paths = [path for path in _collections(document.data) if len(_at(document.data, path)) > 1]
        for path in chance.sample(paths, min(EDITS_PER_DOCUMENT, len(paths))):
            data = copy.deepcopy(document.data)
            target = _at(data, path)
            # the first entry may share its line with a dash
            del target[
                chance.choice(list(target)[1:]) if isinstance(target, dict) else chance.randrange(1, len(target))
            ]

            edited = document.with_data(data)

            assert is_equal_data(edited.data, data), (name, path)
            if not _is_flow(document, path):
                assert _is_subsequence(edited.text.split("\n"), document.text.split("\n")), (name, path)


def _is_subsequence(part: list[str], whole: list[str]) -> bool:
    rest = iter(whole)
    return all(line in rest for line in part)


@pytest.mark.slow
def test_an_edit_undone_means_what_it_meant(documents: list[tuple[str, Document]]) -> None:
    for name, document in documents:
        chance = random.Random(name)
        paths = list(_collections(document.data))
        data = copy.deepcopy(document.data)
        for path in chance.sample(paths, min(1, len(paths))):
            _add(chance, _at(data, path))

        assert is_equal_data(document.with_data(data).with_data(document.data).data, document.data), name


def test_comments_can_be_taken_off_and_put_back(documents: list[tuple[str, Document]]) -> None:
    for name, document in documents:
        comments = list(document.comments().items())
        for path, comment in comments[:2]:
            bare = document.with_comment(path, None)

            assert bare.comment(path) is None, (name, path)
            assert len(bare.comments()) == len(comments) - 1, (name, path)
            assert bare.with_comment(path, comment).comments() == document.comments(), (name, path)
