"""The page about typical mistakes shows the real output of `reconciler validate`.

The comment `<!-- mistake: FILE -->` is above three blocks: the wrong part of a config file of the demo, the output, and
the correct part. `--rewrite-expected` replaces the outputs.
"""

from __future__ import annotations

import fcntl
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconciler.cli.entry import commands

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/debug-config.md"
_MISTAKE = re.compile(
    r"### (?P<title>[^\n]+)\n\n(?:[^\n]+\n)+\n<!-- mistake: (?P<file>\S+) -->\n```yaml\n(?P<wrong>.*?)```\n\n"
    r"```text\n(?P<output>.*?)```\n\nCorrect:\n\n```yaml\n(?P<correct>.*?)```\n",
    re.DOTALL,
)
MISTAKES = list(_MISTAKE.finditer(PAGE.read_text()))


@pytest.fixture
def demo(demo_fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the demo, which is the current folder during the test."""
    folder = tmp_path / "demo"
    shutil.copytree(demo_fleet.parent, folder)
    monkeypatch.chdir(folder)
    return folder


def run_validate() -> str:
    result = CliRunner().invoke(commands, ["validate", "config", "--fleet", "fleet.git"])
    assert result.exit_code in (0, 1), result.output
    return f"{result.output.rstrip()}\n"


def rewrite_output(mistake: re.Match[str], output: str) -> None:
    old, new = (f"{mistake['wrong']}```\n\n```text\n{part}```" for part in (mistake["output"], output))
    with PAGE.open("r+") as file:
        # Several workers of pytest rewrite the page at the same time.
        fcntl.flock(file, fcntl.LOCK_EX)
        text = file.read().replace(old, new)
        file.seek(0)
        file.truncate()
        file.write(text)
        file.flush()


def test_the_page_contains_all_mistakes() -> None:
    titles = [mistake["title"] for mistake in MISTAKES]

    assert len(titles) == PAGE.read_text().count("\n### ") == len(set(titles)) == 36


@pytest.mark.slow
def test_the_demo_is_valid(demo: Path) -> None:
    assert run_validate() == "no findings\n"


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake["title"].replace(" ", "-"))
def test_validate_prints_the_output_on_the_page(mistake: re.Match[str], demo: Path, should_rewrite: bool) -> None:
    file = demo / "config" / mistake["file"]
    text = file.read_text()
    assert text.count(mistake["correct"]) == 1
    file.write_text(text.replace(mistake["correct"], mistake["wrong"]))

    output = run_validate()
    if should_rewrite:
        rewrite_output(mistake, output)

    assert output == mistake["output"]
