"""Tests of TOML and ini texts: lines and comments stay, and an unsupported value is an error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.controllers.nested_values import copy_with_value, copy_without_value, get_value
from reconciler.controllers.override_policies.text_fields import TEXT_EDITORS
from reconciler.controllers.override_policies.text_formats import TextFormatError
from tests.support.examples import examples

TOML = """\
# the site
name = 'north'   # by hand
started = 2024-05-01
"a.b" = 1

[cache]
ttl = 60 # seconds
sizes = [
  1, # small
  2,
]
point = { x = 1, y = "#2" }

# who listens
[server.http]
port = 8080
server.dotted = true

[[users]]
name = "a"

[[users]]
name = "b"
"""
INI = """\
; first
mode = fast   ; for now
empty =

[cache]
# seconds
ttl=60
path: /var/cache

[log]
level = info
"""


def edit_value(form: Any, text: str, path: tuple[Any, ...], value: Any) -> str:
    data = form.read(text)
    for depth in range(1, len(path)):
        if get_value(data, path[:depth]) is get_value({}, ("absent",)):
            data = copy_with_value(data, path[:depth], {})
    edited: str = form.edit(
        text, copy_without_value(data, path) if value is None else copy_with_value(data, path, value)
    )
    return edited


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        pytest.param(("name",), "south", "'north'", "'south'", id="single-quotes-stay"),
        pytest.param(("name",), "it's", "'north'", '"it\'s"', id="where-they-can"),
        pytest.param(("a.b",), 2, '"a.b" = 1', '"a.b" = 2', id="quoted-key"),
        pytest.param(("cache", "ttl"), 30, "ttl = 60 #", "ttl = 30 #", id="beside-a-comment"),
        pytest.param(("cache", "ttl"), 1.5, "ttl = 60 #", "ttl = 1.5 #", id="float"),
        pytest.param(("cache", "ttl"), True, "ttl = 60 #", "ttl = true #", id="boolean"),
        pytest.param(("cache", "sizes"), [3], "[\n  1, # small\n  2,\n]", "[3]", id="list-of-several-lines"),
        pytest.param(("cache", "point", "y"), 3, '{ x = 1, y = "#2" }', "{x = 1, y = 3}", id="inline-table"),
        pytest.param(("cache", "point", "x"), None, '{ x = 1, y = "#2" }', '{y = "#2"}', id="out-of-an-inline-table"),
        pytest.param(("cache", "ttl"), None, "ttl = 60 # seconds\n", "", id="removed"),
        pytest.param(("cache", "sizes"), None, "sizes = [\n  1, # small\n  2,\n]\n", "", id="removed-lines"),
        pytest.param(("server", "http", "host"), "h", "dotted = true\n", 'dotted = true\nhost = "h"\n', id="added"),
        pytest.param(("server", "http", "server", "dotted"), False, "dotted = true", "dotted = false", id="dotted"),
        pytest.param(("users", 1, "name"), "c", '"b"', '"c"', id="table-of-a-list"),
        pytest.param(("new",), [1, {"a": "b"}], '"a.b" = 1\n', '"a.b" = 1\nnew = [1, {a = "b"}]\n', id="top-level"),
        pytest.param(("cache",), None, TOML[TOML.index("[cache]") : TOML.index("# who")], "", id="table"),
        pytest.param(("server",), None, TOML[TOML.index("# who") : TOML.index("[[users]]")], "", id="tables-inside"),
    ],
)  # fmt: skip
def test_toml_value_is_edited(path: tuple[Any, ...], value: Any, old: str, new: str) -> None:
    assert edit_value(TEXT_EDITORS["toml"], TOML, path, value) == TOML.replace(old, new, 1)


def test_header_is_added_to_a_toml_table_without_one() -> None:
    assert edit_value(TEXT_EDITORS["toml"], TOML, ("server", "name"), "s") == TOML + '\n[server]\nname = "s"\n'


def test_date_in_toml_stays() -> None:
    edited = edit_value(TEXT_EDITORS["toml"], "a = { when = 2024-05-01, x = 1 }\n", ("a", "x"), 2)

    assert edited == "a = {when = 2024-05-01, x = 2}\n"


def test_toml_tables_are_added_at_the_end() -> None:
    edited = edit_value(TEXT_EDITORS["toml"], TOML, ("log", "a b"), {"x": {"y": 1}, "z": "t"})

    assert edited == TOML + '\n[log]\n\n[log."a b"]\nz = "t"\n\n[log."a b".x]\ny = 1\n'


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        pytest.param(("mode",), "slow", "fast ", "slow ", id="beside-a-comment"),
        pytest.param(("empty",), "no", "empty =", "empty =no", id="empty"),
        pytest.param(("cache", "ttl"), 30, "ttl=60", "ttl=30", id="number"),
        pytest.param(("cache", "path"), "/tmp/x", "/var/cache", "/tmp/x", id="colon"),
        pytest.param(("cache", "on"), True, "cache\n\n", "cache\non = true\n\n", id="added"),
        pytest.param(("top",), "x", "empty =\n", "empty =\ntop = x\n", id="top-level"),
        pytest.param(("cache", "ttl"), None, "ttl=60\n", "", id="removed"),
        pytest.param(("log",), None, "[log]\nlevel = info\n", "", id="last-section"),
        pytest.param(("cache",), None, INI[INI.index("[cache]") : INI.index("[log]")], "", id="section"),
        pytest.param(("new",), {"a": "b"}, "level = info\n", "level = info\n\n[new]\na = b\n", id="new-section"),
    ],
)
def test_ini_value_is_edited(path: tuple[Any, ...], value: Any, old: str, new: str) -> None:
    assert edit_value(TEXT_EDITORS["ini"], INI, path, value) == INI.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "path", "value", "edited"),
    [
        ("", ("a",), "b", "a = b\n"),
        ("", ("a",), {"b": "c"}, "[a]\nb = c\n"),
        ("a = 1", ("b",), "2", "a = 1\nb = 2\n"),
        ("[s]", ("s", "b"), "2", "[s]\nb = 2\n"),
        ("# only\n", ("b",), "2", "# only\nb = 2\n"),
        ("# of s\n[s]\nx = 1\n", ("b",), "2", "b = 2\n# of s\n[s]\nx = 1\n"),
        ("a = 1\r\n", ("b",), "2", "a = 1\r\nb = 2\r\n"),
    ],
)
def test_short_ini_text_is_edited(text: str, path: tuple[str, ...], value: Any, edited: str) -> None:
    assert edit_value(TEXT_EDITORS["ini"], text, path, value) == edited


@pytest.mark.parametrize(
    ("form", "text", "path", "value"),
    [
        pytest.param("toml", "a = [", (), None, id="no-toml"),
        pytest.param("toml", "a = 1\na = 2\n", (), None, id="a-key-twice"),
        pytest.param("toml", "a = 1\n", ("a",), [None], id="no-null-in-toml"),
        pytest.param("toml", "[[a]]\nb = 1\n", ("a",), [], id="a-list-of-tables-that-shrinks"),
        pytest.param("toml", "[[a]]\nb = 1\n", ("a", 0, "c"), {"d": 1}, id="a-table-in-one-of-a-list"),
        pytest.param("ini", "no key\n", (), None, id="no-ini"),
        pytest.param("ini", "a = 1\na = 2\n", (), None, id="an-ini-key-twice"),
        pytest.param("ini", "[a]\n[a]\n", (), None, id="an-ini-section-twice"),
        pytest.param("ini", "a = 1\n", ("a",), ["x"], id="no-lists-in-ini"),
        pytest.param("ini", "a = 1\n", ("a",), "x\ny", id="no-lines-in-ini"),
        pytest.param("ini", "a = 1\n", ("a",), "x # y", id="text-that-looks-like-a-comment"),
        pytest.param("ini", "a = 1\n", ("b=c",), "x", id="text-that-is-no-key"),
        pytest.param("ini", "a = 1\n", ("s",), {"t": {"u": "v"}}, id="no-section-in-a-section"),
    ],
)
def test_unsupported_text_or_value_is_an_error(form: Any, text: str, path: tuple[Any, ...], value: Any) -> None:
    with pytest.raises(TextFormatError):
        edit_value(TEXT_EDITORS[form], text, path, value) if path else TEXT_EDITORS[form].read(text)


names = st.sampled_from(["a", "b", "c d", "e.f"])
scalars = st.integers(-5, 5) | st.booleans() | st.sampled_from(["", "x", "#", "'", '"', "\\", "ä", "\n", "="])
tables = st.dictionaries(
    names, scalars | st.lists(scalars, max_size=2) | st.dictionaries(names, scalars, max_size=2), max_size=3
)


@settings(max_examples=examples(100), deadline=None)
@given(tables, tables)
def test_edited_toml_has_the_intended_data(before: dict[str, Any], after: dict[str, Any]) -> None:
    form = TEXT_EDITORS["toml"]
    text = form.edit("# top\n", before)
    assert form.read(text) == before

    try:
        edited = form.edit(text, after)
    except TextFormatError:
        return
    assert form.read(edited) == after
    assert edited.startswith("# top\n") or "# top" in edited
