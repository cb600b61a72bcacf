"""The reference page of status files matches the files of the demo and the conditions in the source.

The comment `<!-- example: BRANCH:PATH -->` above a block of YAML names the file of the demo that the block must equal.
`--rewrite-expected` replaces the content of these blocks.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reconciler.krm.yaml import parse_yaml

PROJECT = Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs/reference/status-files.md"
FIELDS = PROJECT / "docs/reference/fields/reconciler.md"
_EXAMPLE = re.compile(r"<!-- example: (?P<file>\S+) -->\n```yaml\n(?P<content>.*?)```", re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
# The keys below these fields are names in the config, and not fields of status files.
_FREE_KEYS = frozenset({"spec", "labels", "annotations", "ownerReferences", "before", "after", "fields", "settings"})
_ARGUMENTS = ("type", "status", "reason")


def read_git(fleet: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(fleet), *arguments], check=True, capture_output=True, text=True).stdout


def list_codes() -> set[str]:
    """Return the names that the pages contain as code; for a path such as `status.owner`, all of its parts."""
    without_blocks = re.sub(r"```.*?```", "", PAGE.read_text() + FIELDS.read_text(), flags=re.DOTALL)
    codes = _CODE.findall(without_blocks)
    return {*codes, *(part for code in codes for part in re.split(r"\.|\[\]\.?", code))}


def list_fields(data: Any) -> Iterator[str]:
    """Yield the names of all fields of a status file."""
    if isinstance(data, list):
        for item in data:
            yield from list_fields(item)
    elif isinstance(data, dict):
        for name, value in data.items():
            yield name
            if name not in _FREE_KEYS:
                yield from list_fields(value)


def list_status_files(fleet: Path) -> Iterator[tuple[str, str]]:
    branches = read_git(fleet, "for-each-ref", "--format=%(refname:short)", "refs/heads/drafts").split()
    for branch in ("reconciler/status", *branches):
        for path in read_git(fleet, "ls-tree", "-r", "--name-only", branch).split():
            if path.startswith((".reconciler/", "objects/", "summary.yaml")):
                yield f"{branch}:{path}", read_git(fleet, "show", f"{branch}:{path}")


def list_conditions() -> Iterator[tuple[str, str]]:
    """Yield the location and each constant type and reason of conditions in the source."""
    sources = ((file, file.read_text()) for file in sorted((PROJECT / "reconciler").rglob("*.py")))
    for file, source in sources:
        for node in ast.walk(ast.parse(source)) if "Condition(" in source else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Condition":
                for name, argument in zip(_ARGUMENTS, node.args, strict=False):
                    if name != "status" and isinstance(argument, ast.Constant):
                        yield f"{file.relative_to(PROJECT)}:{node.lineno}", str(argument.value)


def test_examples_equal_the_files_of_the_demo(demo_fleet: Path, should_rewrite: bool) -> None:
    def replace_content(example: re.Match[str]) -> str:
        content = read_git(demo_fleet, "show", example["file"])
        return f"<!-- example: {example['file']} -->\n```yaml\n{content}```"

    text = PAGE.read_text()
    expected, count = _EXAMPLE.subn(replace_content, text)
    if should_rewrite:
        PAGE.write_text(expected)

    assert count == 3
    assert text == expected


def test_the_page_describes_all_fields_of_the_demo(demo_fleet: Path) -> None:
    codes = list_codes()
    files = [*list_status_files(demo_fleet)]

    missing = {
        f"{file}: {name}"
        for file, text in files
        for document in parse_yaml(text.encode()).documents
        for name in list_fields(document.data)
        if name not in codes
    }

    assert len(files) > 20
    assert missing == set()


def test_the_page_describes_all_conditions_of_the_source() -> None:
    codes = list_codes()
    conditions = [*list_conditions()]

    assert len(conditions) > 30
    assert [f"{place}: {name}" for place, name in conditions if name not in codes] == []
