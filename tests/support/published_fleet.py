"""The demo as an operator has it: a config repository, settings, published drafts, and a backup."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.support.page_commands import CommandOutcome, run_command_fast

SETTINGS = "config: {url: config.git}\nfleet: {url: fleet.git}\n"
_VARIABLES = {"FLEET": "fleet.git", "CONFIG": "config.git", "BACKUP": "backup"}


@dataclass(frozen=True)
class Fleet:
    """A published fleet with a clone of its config (`work`) and a backup of its repositories."""

    folder: Path

    @property
    def variables(self) -> dict[str, str]:
        return {name: str(self.folder / path) for name, path in _VARIABLES.items()}

    def run(self, command: str) -> CommandOutcome:
        return run_command_fast(command, self.folder, self.variables)

    def must_run(self, command: str) -> None:
        process = self.run(command)
        assert process.returncode == 0, f"{command}\n{process.stdout}{process.stderr}"

    def change_config(self, file: str, old: str, new: str) -> None:
        path = self.folder / "work" / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        self.must_run("git -C work commit --quiet --all --message 'Change the config' && git -C work push --quiet")


def publish_fleet(parent: Path) -> Path:
    """Create the demo below a folder, publish all drafts, and return the folder of the demo."""
    Fleet(parent).must_run("reconciler demo")
    folder = parent / "demo"
    fleet = Fleet(folder)
    fleet.must_run("git init --quiet --initial-branch=main config && git -C config add --all")
    fleet.must_run("git -C config commit --quiet --message 'Create the platform'")
    fleet.must_run("git clone --quiet --bare config config.git")
    shutil.rmtree(folder / "config")
    (folder / "reconciler.yaml").write_text(SETTINGS)
    fleet.must_run("reconciler approve --all --propose")
    fleet.must_run("reconciler sync")
    for name in ("config.git", "fleet.git"):
        fleet.must_run(f"git clone --quiet --mirror {name} backup/{name}")
    return folder
