"""Commands import only the modules that they need. The numbers are limits: lower them, and raise them with a reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from reconciler.cli.entry import COMMANDS
from tests.support.command_line import run_in

PROJECT = Path(__file__).parents[2]
# No command without a change needs these libraries.
SLOW_LIBRARIES = {
    "asyncio", "distributed", "httpx", "jinja2", "jsonpatch", "jsonschema_rs", "lark", "multiprocessing", "re2", "rich",
    "ruamel", "starlark", "structlog", "watchfiles", "yaml",
}  # fmt: skip
RUN = """
import json, sys
from reconciler.__main__ import main
try:
    main()
finally:
    with open("modules.json", "w") as file:
        json.dump(sorted(sys.modules), file)
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the demo, synced once."""
    folder = tmp_path_factory.mktemp("startup")
    created = run_in(folder, build_environment(folder), "demo", "demo")
    synced = run_in(folder / "demo", build_environment(folder / "demo"), "sync", "config", "--fleet", "fleet.git")
    assert (created.returncode, synced.returncode) == (0, 0), created.stderr + synced.stderr
    return folder / "demo"


def build_environment(folder: Path) -> dict[str, str]:
    places = {"XDG_CACHE_HOME": str(folder.parent), "HOME": str(folder), "RECONCILER_CACHE": f"{folder.parent}/cache"}
    return {**os.environ, "PYTHONPATH": str(PROJECT), **places}


def list_modules(folder: Path, *arguments: str) -> list[str]:
    """Run a command in a new process, and return the names of the modules that it has imported."""
    environment = build_environment(folder)
    subprocess.run([sys.executable, "-c", RUN, *arguments], cwd=folder, env=environment, check=True)
    modules: list[str] = json.loads((folder / "modules.json").read_text())
    return modules


def list_own(modules: Sequence[str]) -> Iterator[str]:
    return (name for name in modules if name.partition(".")[0] == "reconciler")


def list_slow_libraries(modules: Sequence[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules} & SLOW_LIBRARIES


@pytest.mark.parametrize(
    ("command", "limit"),
    # The Git adapter reports to small modules of `telemetry`: the log, metrics, phases and progress. They import no
    # library.
    [("--version", 10), ("--help", 10), ("pkg --help", 11), ("plan config --fleet fleet.git", 115)],
)
def test_a_command_without_a_change_imports_few_modules(demo: Path, command: str, limit: int) -> None:
    modules = list_modules(demo, *command.split())
    own = [*list_own(modules)]

    assert list_slow_libraries(modules) == set()
    assert len(own) <= limit, own


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("command", [*COMMANDS, "pkg get", "pkg update", "pkg render", "pkg diff"])
def test_the_help_of_a_command_imports_few_modules(demo: Path, command: str) -> None:
    modules = list_modules(demo, *command.split(), "--help")
    own = [*list_own(modules)]

    assert list_slow_libraries(modules) == set()
    assert "pydantic" not in modules
    assert len(own) <= 36, own


def test_only_a_command_that_reads_settings_imports_pydantic(demo: Path) -> None:
    assert "pydantic" not in list_modules(demo, "--version")
    assert "pydantic" in list_modules(demo, "plan", "config", "--fleet", "fleet.git")


@pytest.mark.slow
def test_the_plan_of_a_changed_config_imports_the_controllers(demo: Path) -> None:
    (demo / "changed").mkdir()
    for file in (demo / "config").iterdir():
        (demo / "changed" / file.name).write_bytes(file.read_bytes())

    assert "reconciler.controllers.plugin_presets.controller" in list_modules(
        demo, "plan", "changed", "--fleet", "fleet.git"
    )
