"""The pictures of the console in the documentation show the current pages."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.browser import MISSING

PROJECT = Path(__file__).parents[2]
SCRIPT = PROJECT / "scripts/make_console_pictures.py"
IMAGES = PROJECT / "docs/images"
MAX_BYTES = 3_000_000
OTHER_FONTS = 3
needs_browser = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def test_the_pictures_are_small() -> None:
    sizes = [file.stat().st_size for file in IMAGES.iterdir()]

    assert len(sizes) > 1
    assert sum(sizes) <= MAX_BYTES


def test_a_page_of_the_documentation_shows_each_picture() -> None:
    pages = "\n".join(page.read_text() for page in PROJECT.glob("docs/**/*.md"))

    assert [file.name for file in IMAGES.glob("*.png") if f"images/{file.name})" not in pages] == []


@pytest.mark.slow
@needs_browser
def test_the_pictures_show_the_current_pages() -> None:
    command = [sys.executable, str(SCRIPT), "--check"]
    result = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=200, check=False)
    if result.returncode == OTHER_FONTS:
        pytest.skip(result.stderr.strip())

    assert result.returncode == 0, f"{result.stderr}run python scripts/make_console_pictures.py, and view the pictures"


@pytest.mark.slow
@needs_browser
def test_the_comparison_finds_other_content_and_other_sizes() -> None:
    script = runpy.run_path(str(SCRIPT))
    names = ("fleet", "fleet-dark", "change", "change-phone")
    light, dark, change, phone = ((IMAGES / f"console-{name}.png").read_bytes() for name in names)
    with script["open_browser"]() as driver:
        found = [script["compare_pictures"](driver, light, other) for other in (light, dark, change, phone)]

    assert script["OTHER_FONTS"] == OTHER_FONTS
    assert found[0] == 0
    assert found[1] > 0.9
    assert found[2:] == [1, 1]
