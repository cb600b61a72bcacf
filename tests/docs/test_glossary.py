"""The glossary is sorted, has one entry per term, and names only classes that exist."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs/glossary.md"
_ROW = re.compile(r"^\| (?P<term>[\w -]+) \| (?P<meaning>.+) \| (?P<places>.+) \|$", re.MULTILINE)
_CLASS = re.compile(r"^(?:class (\w+)\b|([A-Z]\w+)(?:: TypeAlias)? = )", re.MULTILINE)
_MAX_WORDS = 25


def list_rows() -> list[re.Match[str]]:
    table = PAGE.read_text().partition("|---|---|---|\n")[2].partition("\n\n")[0]
    rows = [*_ROW.finditer(table)]
    assert len(rows) == table.count("\n") + 1, "each line is a row"
    return rows


def test_terms_are_sorted_and_unique() -> None:
    terms = [row["term"] for row in list_rows()]

    assert len(terms) > 80
    assert terms == sorted(set(terms), key=str.casefold)


def test_meanings_are_short_sentences() -> None:
    sentences = [sentence for row in list_rows() for sentence in re.split(r"(?<=\.) ", row["meaning"])]

    assert [sentence for sentence in sentences if not sentence.endswith(".")] == []
    assert [sentence for sentence in sentences if len(sentence.split()) > _MAX_WORDS] == []


def test_classes_exist() -> None:
    texts = [file.read_text() for file in (PROJECT / "reconciler").rglob("*.py")]
    classes = {name for text in texts for names in _CLASS.findall(text) for name in names}
    named = {name for row in list_rows() for name in re.findall(r"`([A-Z]\w+)`", row["places"])}

    assert len(named) > 60
    assert sorted(named - classes) == []
