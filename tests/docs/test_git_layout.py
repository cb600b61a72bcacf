"""The reference page of the Git layout lists all trailers of the source, and shows refs and trailers of the demo.

The comments `<!-- example: refs -->` and `<!-- example: trailers -->` are above the blocks that must equal the output of
Git. `--rewrite-expected` replaces the content of these blocks.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs/reference/git-layout.md"
_EXAMPLE = re.compile(r"<!-- example: (?P<name>\w+) -->\n```text\n.*?```", re.DOTALL)
# Do not match the headers of HTTP responses, which start with "X-".
_TRAILER = re.compile(r"(?<!X-)\bReconciler-[A-Z]\w*(?:-[A-Z]\w*)*")
_COMMANDS = {
    "refs": ("for-each-ref", "--format=%(refname)"),
    "trailers": ("log", "-1", "--format=%(trailers:only)", "drafts/boston", "--", "gateway"),
}


def find_trailers(source: str) -> Iterator[str]:
    """Yield the trailers in the strings of a module, and those whose prefix is added to the keys of `trailers`."""
    if "trailers" not in source and not _TRAILER.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _TRAILER.findall(node.value)
        if isinstance(node, ast.Assign) and "trailers" in [ast.unparse(target) for target in node.targets]:
            dictionaries = [inner for inner in ast.walk(node.value) if isinstance(inner, ast.Dict)]
            keys = [key for dictionary in dictionaries for key in dictionary.keys]
            yield from (f"Reconciler-{key.value}" for key in keys if isinstance(key, ast.Constant))


def list_trailers_of_page() -> set[str]:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `Reconciler-")]
    return {name for row in rows for name in _TRAILER.findall(row.split(" | ")[0])}


def test_the_page_lists_exactly_the_trailers_of_the_source() -> None:
    values = {name for file in (PROJECT / "reconciler").rglob("*.py") for name in find_trailers(file.read_text())}

    assert len(values) > 10
    assert list_trailers_of_page() == values


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param('trailers = {"Task": a, **({"Upstream": b} if b else {})}', {"Task", "Upstream"}, id="keys"),
        pytest.param('f"Reconciler-Approved-By: {name}"', {"Approved-By"}, id="text"),
        pytest.param('data = {"Task": a}', set(), id="other-dictionary"),
    ],
)
def test_trailers_are_found(source: str, expected: set[str]) -> None:
    assert {*find_trailers(source)} == {f"Reconciler-{name}" for name in expected}


def test_examples_equal_the_demo(demo_fleet: Path, should_rewrite: bool) -> None:
    def replace_content(example: re.Match[str]) -> str:
        command = ["git", "-C", str(demo_fleet), *_COMMANDS[example["name"]]]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return f"<!-- example: {example['name']} -->\n```text\n{output.strip()}\n```"

    text = PAGE.read_text()
    expected, count = _EXAMPLE.subn(replace_content, text)
    if should_rewrite:
        PAGE.write_text(expected)

    assert count == len(_COMMANDS)
    assert text == expected
