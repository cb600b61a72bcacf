"""The field merge on generated and published documents: every lost value is reported."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reconciler.krm.merge3 import COMPAT, SAFE, MergeError, MergeRules, merge3, merge_data
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.schema.merge_schemas import MergeSchema
from reconciler.krm.yaml import Document, YamlError, emit, parse_yaml
from reconciler.krm.yaml.compare import is_equal_data
from tests.support.examples import examples

DATA = Path(__file__).resolve().parents[2] / "../shared/data"

_PORT = MergeSchema(is_closed=True)
_CONTAINER = MergeSchema(
    fields={
        "env": MergeSchema(keys=("name",), items=MergeSchema(is_closed=True), is_closed=True),
        "ports": MergeSchema(keys=("port", "protocol"), defaults={"protocol": "TCP"}, items=_PORT, is_closed=True),
    },
    is_closed=True,
)
SHAPE = MergeSchema(
    fields={
        "containers": MergeSchema(keys=("name",), items=_CONTAINER, is_closed=True),
        "finalizers": MergeSchema(keys=(), is_closed=True),
        "tolerations": MergeSchema(is_closed=True),
    }
)
# the names of peers are found by looking at them
_SEEN = replace(SHAPE, fields={**SHAPE.fields, "peers": MergeSchema(keys=("name",))})

_NAMES = st.sampled_from(["a", "b", "c", "d"])
_SCALARS = st.sampled_from(["x", "y", "z w", "1", 1, 2, True, "l1\nl2\n", "", None])
_MAPS = st.dictionaries(_NAMES, st.one_of(_SCALARS, st.dictionaries(_NAMES, _SCALARS, max_size=2)), max_size=3)


def _keyed(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[list[dict[str, Any]]]:
    named = st.builds(lambda name, rest: {"name": name, **rest}, _NAMES, inner)
    return st.lists(named, max_size=3, unique_by=lambda element: element["name"])


_PORTS = st.lists(
    st.fixed_dictionaries({"port": st.sampled_from([80, 81])}, optional={"protocol": st.sampled_from(["TCP", "UDP"])}),
    max_size=3,
)
_CONTAINERS = _keyed(
    st.fixed_dictionaries(
        {},
        optional={
            "image": _SCALARS,
            "env": _keyed(st.fixed_dictionaries({}, optional={"value": _SCALARS})),
            "ports": _PORTS,
            "args": st.lists(_SCALARS, max_size=3),
        },
    )
)
_OBJECTS = st.fixed_dictionaries(
    {"kind": st.just("Thing")},
    optional={
        "labels": _MAPS,
        "spec": st.one_of(_MAPS, _SCALARS, st.lists(_SCALARS, max_size=2)),
        "containers": _CONTAINERS,
        "finalizers": st.lists(_NAMES, max_size=3, unique=True),
        "tolerations": st.lists(_MAPS, max_size=2),
        "peers": _keyed(_MAPS),
    },
)


@st.composite
def _edited(draw: st.DrawFn, data: dict[str, Any]) -> dict[str, Any]:
    """Return the object with some of its fields from another one, in part or whole."""
    other = draw(_OBJECTS)
    result = draw(st.lists(st.sampled_from(sorted({*data, *other})), max_size=3, unique=True))
    return _mixed(
        draw, data, {key: other.get(key) for key in result}, deleted=[key for key in result if key not in other]
    )


def _mixed(draw: st.DrawFn, data: Any, other: dict[str, Any], deleted: list[str]) -> dict[str, Any]:
    mixed = dict(data)
    for key, value in other.items():
        if key in deleted:
            mixed.pop(key, None)
        elif isinstance(value, dict) and isinstance(data.get(key), dict) and draw(st.booleans()):
            mixed[key] = data[key] | value
        elif isinstance(value, list) and isinstance(data.get(key), list) and draw(st.booleans()):
            mixed[key] = [*data[key], *(item for item in value if _name(item) not in map(_name, data[key]))]
        else:
            mixed[key] = value
    return mixed


def _name(item: Any) -> Any:
    return item.get("name", repr(item)) if isinstance(item, dict) else item


@st.composite
def _documents(draw: st.DrawFn, data: Any) -> Document:
    """Return a document with the content of `data`, and comments after and above its lines."""
    text, chance = emit(data), random.Random(draw(st.integers(0, 99)))
    lines = []
    for number, line in enumerate(text.splitlines()):
        indent = line[: len(line) - len(line.lstrip(" "))]
        if chance.random() < 0.15:
            lines.append(f"{indent}# above {chance.choice('abc')}")
        has_comment = chance.random() < 0.15 and line.rstrip()[-1:] not in ("|", "")
        lines.append(f"{line} # {chance.choice('abc')}{number}" if has_comment else line)
    commented = parse_yaml("\n".join(lines) + "\n").documents
    return (
        commented[0]
        if len(commented) == 1 and is_equal_data(commented[0].data, data)
        else parse_yaml(text).documents[0]
    )


@st.composite
def _triples(draw: st.DrawFn) -> tuple[Document, Document, Document]:
    origin = draw(_OBJECTS)
    sides = origin, draw(_edited(origin)), draw(_edited(origin))
    value, two, three = (draw(_documents(side)) for side in sides)
    return value, two, three


def reread(document: Document | None) -> Any:
    assert document is not None
    return parse_yaml(document.text).documents[0].data


def leaves(data: Any, shape: MergeSchema, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield every value that merges whole, by a path that names elements by their keys."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves(value, shape.find_field(key), (*path, key))
    elif isinstance(data, list) and shape.keys is not None:
        for item in data:
            keys = [str(item.get(key, shape.defaults.get(key))) for key in shape.keys] if shape.keys else [item]
            yield from leaves(item, shape.element_schema, (*path, *keys))
    else:
        yield path, data


def holds(data: Any, value: Any) -> bool:
    """Return whether a value occurs anywhere in the data."""
    if is_equal_data(data, value):
        return True
    inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return any(holds(child, value) for child in inner)


@settings(max_examples=examples(80), deadline=None)
@given(_triples())
def test_what_one_side_left_alone_is_the_other_sides(triple: tuple[Document, Document, Document]) -> None:
    origin, updated, local = triple

    unchanged, untouched = merge3(origin, origin, local, SHAPE), merge3(origin, updated, origin, SHAPE)
    alike = merge3(origin, updated, updated, SHAPE)

    assert unchanged.document is local
    assert untouched.document is not None
    assert untouched.document.text == updated.text
    assert alike.document is updated
    assert unchanged.conflicts + untouched.conflicts + alike.conflicts == ()


@settings(max_examples=examples(80), deadline=None)
@given(_triples())
def test_what_one_side_left_alone_as_data_is_the_other_sides(triple: tuple[Document, Document, Document]) -> None:
    origin, updated, local = triple
    document = parse_yaml(emit(origin.data)).documents[0]

    assert is_equal_data(reread(merge3(origin, updated, document, SHAPE).document), updated.data)
    assert is_equal_data(reread(merge3(origin, document, local, SHAPE).document), local.data)
    assert is_equal_data(reread(merge3(document, updated, updated, SHAPE).document), updated.data)


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(_triples(), st.sampled_from([SAFE, MergeRules(winner="local")]))
def test_nothing_local_is_lost_without_a_word(triple: tuple[Document, Document, Document], rules: MergeRules) -> None:
    origin, updated, local = triple

    merged = merge3(origin, updated, local, SHAPE, rules)

    result = reread(merged.document)
    now, before, ours = (dict(leaves(side, _SEEN)) for side in (result, origin.data, local.data))
    values = [conflict.local for conflict in merged.conflicts]
    for path, value in ours.items():
        is_ours = path not in before or not is_equal_data(before[path], value)
        assert not is_ours or is_equal_data(now.get(path, ABSENT), value) or any(holds(it, value) for it in values), (
            path
        )
    if not merged.conflicts:
        assert not [
            path for path in before if path not in ours and path in now and is_equal_data(before[path], now[path])
        ]


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(_triples(), st.sampled_from([SAFE, MergeRules(winner="local")]))
def test_a_second_merge_is_silent(triple: tuple[Document, Document, Document], rules: MergeRules) -> None:
    origin, updated, local = triple
    first = merge3(origin, updated, local, SHAPE, rules).document
    assert first is not None

    document = merge3(origin, updated, first, SHAPE, rules).document

    assert document is not None
    assert document.text == first.text
    assert merge3(updated, updated, first, SHAPE, rules).document is first


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(_triples())
def test_lists_stay_free_of_duplicates(triple: tuple[Document, Document, Document]) -> None:
    assume(all(_is_unique(side.data) for side in triple))

    assert _is_unique(reread(merge3(*triple, SHAPE).document))


def _is_unique(data: Any) -> bool:
    paths = [path for path, _ in leaves(data, SHAPE)]
    return len(set(paths)) == len(paths)


@settings(max_examples=examples(100), deadline=None)
@given(_triples())
def test_data_and_documents_merge_alike(triple: tuple[Document, Document, Document]) -> None:
    for rules in (SAFE, COMPAT):
        try:
            data, conflicts = merge_data(triple[0].data, triple[1].data, triple[2].data, SHAPE, rules)
        except MergeError:
            assert rules is COMPAT
            continue
        merged = merge3(*triple, SHAPE, rules)

        assert is_equal_data(reread(merged.document), data)
        assert merged.conflicts == conflicts or merged.document in triple


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the data of other projects is not on this machine")
def test_any_three_documents_of_other_people() -> None:
    documents = list(chain.from_iterable(_read(path) for path in sorted(DATA.rglob("*.yaml"))))
    chance = random.Random(3)
    for _ in range(600):
        origin, updated, local = chance.sample(documents, 3)
        merged = merge3(origin, updated, local, SHAPE).document

        assert merged is None or is_equal_data(reread(merged), merged.data)


def _read(path: Path) -> list[Document]:
    try:
        documents = parse_yaml(path.read_bytes()).documents
    except YamlError:
        return []
    return [document for document in documents if len(document.text) < 10_000]
