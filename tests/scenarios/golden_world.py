"""Reader and world of the golden scenarios, which are folders in `fixtures/scenarios`.

A scenario folder contains `scenario.yaml` and one folder for each step. The fields of `scenario.yaml`:

- `title` and `covers`: the rule that the scenario tests, and its source.
- `spec`: fields of the PackageVariant that puts the package `web` on the cluster `site`. The upstream is the branch
  main of the catalog. Without `spec`, there is no PackageVariant.
- `config`: other files of the config folder.

A step folder contains `step.yaml` and, optionally, `upstream/`: the whole package after an upstream commit. The fields
of `step.yaml`:

- `title`.
- `spec` and `config`: the new content, from this step on.
- `people`: the local changes before the upstream commit, in order. A change is one of these:
  - `publish: squash`, or another method to merge a draft.
  - `branch` and `path`, with `replace` and `with`, or `write` (a whole file), or `remove: true`, or `move` (the new
    path).

The text `<commit 1>` in a written file stands for the ID of the first upstream commit.
The folder `expected/` of a step contains the draft branch after the last pass. Without a draft, it contains the status
of the PackageVariant.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from reconciler.krm.yaml import parse_yaml
from tests.support.git_repositories import read_tree
from tests.support.golden import read_folder
from tests.support.world import World, catalog, repository

SCENARIOS = Path(__file__).resolve().parents[2] / "fixtures" / "scenarios"
PACKAGE, CLUSTER = "web", "site"
DRAFT, BRANCH = f"drafts/{CLUSTER}", f"clusters/{CLUSTER}"
_STATUS = f"objects/default/PackageVariant/{PACKAGE}.yaml"


def _read_yaml(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = parse_yaml(path.read_bytes()).documents[0].data if path.exists() else {}
    return read


@dataclass(frozen=True)
class Step:
    """One step of a scenario."""

    folder: Path

    @property
    def expected(self) -> Path:
        """The folder with the expected result."""
        return self.folder / "expected"

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The content of step.yaml."""
        return _read_yaml(self.folder / "step.yaml")

    @cached_property
    def upstream(self) -> Mapping[str, bytes]:
        """The package after the upstream commit of this step. Empty if the step has no upstream commit."""
        return read_folder(self.folder / "upstream")


@dataclass(frozen=True)
class GoldenScenario:
    """One folder of `fixtures/scenarios`."""

    folder: Path

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The content of scenario.yaml."""
        return _read_yaml(self.folder / "scenario.yaml")

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps of the scenario, in order."""
        return tuple(Step(path) for path in sorted(self.folder.iterdir()) if path.is_dir())


def find_scenarios() -> list[GoldenScenario]:
    """Return all golden scenarios."""
    return [GoldenScenario(file.parent) for file in sorted(SCENARIOS.glob("*/scenario.yaml"))]


class GoldenWorld:
    """The catalog, the fleet and the config of one scenario."""

    def __init__(self, scenario: GoldenScenario, folder: Path) -> None:
        self.world = World.create(folder)
        self.world.write({"repositories.yaml": f"{catalog()}---\n{repository(CLUSTER)}"})
        self._commits: list[str] = []
        self._configure(scenario.data)

    def run_step(self, step: Step, *, should_sync_between_changes: bool = False) -> None:
        """Make the changes of the step, and run passes until a pass changes nothing.

        With `should_sync_between_changes`, passes also run after each local change.
        """
        for change in step.data.get("people", ()):
            self._apply_local_change(change)
            if should_sync_between_changes:
                self.world.sync_until_unchanged()
        self._configure(step.data)
        if step.upstream:
            files = {path: content.decode() for path, content in step.upstream.items()}
            self._commits.append(self.world.release(PACKAGE, f"v{len(self._commits) + 1}", files))
        self.world.sync_until_unchanged()

    @property
    def has_draft(self) -> bool:
        """Whether an open draft exists."""
        return bool(self.world.head(DRAFT))

    def read_result(self) -> dict[str, bytes]:
        """Return the files of the draft branch or, without a draft, the status of the PackageVariant."""
        if self.has_draft:
            return self._read_files(DRAFT)
        if _STATUS not in self.world.paths(self.world.fleet, "reconciler/status"):
            return {}
        return {"no-draft.yaml": self.world.text("reconciler/status", _STATUS).encode()}

    def publish(self) -> None:
        """Merge the draft, and run passes until a pass changes nothing."""
        self.world.merge(CLUSTER, "squash", delete=True)
        self.world.sync_until_unchanged()

    def read_published(self) -> dict[str, bytes]:
        """Return the files of the target branch."""
        return self._read_files(BRANCH)

    def _read_files(self, branch: str) -> dict[str, bytes]:
        return read_tree(self.world.fleet, f"refs/heads/{branch}")

    def _configure(self, data: Mapping[str, Any]) -> None:
        self.world.write(data.get("config", {}))
        if "spec" in data:
            own = {
                "upstream": {"repo": "catalog", "package": PACKAGE, "revision": "main"},
                "downstream": {"repo": CLUSTER, "package": PACKAGE},
            }
            head = {"apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "PackageVariant"}
            variant = {**head, "metadata": {"name": PACKAGE}, "spec": {**own, **data["spec"]}}
            self.world.write({"variant.yaml": json.dumps(variant, indent=2) + "\n"})

    def _insert_commit_ids(self, text: str) -> str:
        for number, commit in enumerate(self._commits, 1):
            text = text.replace(f"<commit {number}>", commit)
        return text

    def _apply_local_change(self, mapping: Mapping[str, Any]) -> None:
        match mapping:
            case {"publish": how}:
                self.world.merge(CLUSTER, how, delete=True)
            case {"branch": branch, "path": path, "replace": old, "with": new}:
                self.world.edit(branch, path, old, new)
            case {"branch": branch, "path": path, "write": text}:
                self.world.commit(branch, {path: self._insert_commit_ids(text)})
            case {"branch": branch, "path": path, "remove": True}:
                self.world.commit(branch, {path: None})
            case {"branch": branch, "path": path, "move": target}:
                self.world.commit(branch, {path: None, target: self.world.text(branch, path)})
            case _:
                raise AssertionError(f"unknown change: {mapping}")
