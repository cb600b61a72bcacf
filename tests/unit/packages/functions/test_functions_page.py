"""Test that the documentation page of functions lists exactly the built-in functions."""

from collections.abc import Sequence
from pathlib import Path

from reconciler.packages.functions.registry import BUILTIN_FUNCTIONS, FunctionRelease

PAGE = Path(__file__).resolve().parents[4] / "docs" / "reference" / "functions.md"


def test_page_lists_every_function_with_its_versions() -> None:
    lines = PAGE.read_text().splitlines()
    start = lines.index("| function | versions |") + 2
    listed = lines[start : lines.index("", start)]

    assert listed == [
        f"| `{name}` | {format_versions(function_releases)} |"
        for name, function_releases in sorted(BUILTIN_FUNCTIONS.releases.items())
    ]


def format_versions(releases: Sequence[FunctionRelease]) -> str:
    since, until = releases[0].since, releases[-1].until
    if not until[1]:
        return f"v{until[0] - 1}"
    first, last = f"v{since[0]}.{since[1]}", f"v{until[0]}.{until[1] - 1}"
    return first if first == last else f"{first} to {last}"
