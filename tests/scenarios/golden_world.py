"""Golden journeys: a folder with `journey.yaml` and a folder for each step, which says what people and upstream do.

`journey.yaml` holds `title` and `covers` (the claim, and where a spec makes it) and `spec`, the fields of the
PackageVariant that puts the package `web` on the cluster `site`; its upstream is the branch main of the catalog.
Without `spec` there is none. `config` are other files of the config folder.

A step holds `upstream/`, the whole package after a commit of upstream's, where there is one, and `step.yaml`: `title`,
`spec` and `config` (as they are from now on), and `people`, what they do before that commit, in order:

- `publish: squash`, or another of the ways to merge a draft;
- on a `branch`: `path`, and `replace` and `with`; or `write`, a whole file; or `remove: true`; or `move`, its new path.

`<commit 1>` in what people write is the id of upstream's first commit.
`expected/` beside them is the draft branch when all is quiet again or, without a draft, what the PackageVariant says.
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

JOURNEYS = Path(__file__).resolve().parents[2] / "fixtures" / "scenarios"
PACKAGE, CLUSTER = "web", "site"
DRAFT, BRANCH = f"drafts/{CLUSTER}", f"clusters/{CLUSTER}"
_STATUS = f"objects/default/PackageVariant/{PACKAGE}.yaml"


def _read_yaml(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = parse_yaml(path.read_bytes()).documents[0].data if path.exists() else {}
    return read


@dataclass(frozen=True)
class Step:
    """One step of a journey."""

    folder: Path

    @property
    def expected(self) -> Path:
        """The folder that holds what must come of it."""
        return self.folder / "expected"

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The content of step.yaml."""
        return _read_yaml(self.folder / "step.yaml")

    @cached_property
    def upstream(self) -> Mapping[str, bytes]:
        """The package after upstream's commit; empty when there is none."""
        return read_folder(self.folder / "upstream")


@dataclass(frozen=True)
class Journey:
    """One journey below `fixtures/journeys`."""

    folder: Path

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The content of journey.yaml."""
        return _read_yaml(self.folder / "journey.yaml")

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What happens, in order."""
        return tuple(Step(path) for path in sorted(self.folder.iterdir()) if path.is_dir())


def find_journeys() -> list[Journey]:
    """Return every journey."""
    return [Journey(file.parent) for file in sorted(JOURNEYS.glob("*/journey.yaml"))]


class JourneyWorld:
    """A journey's catalog, fleet and config in a folder of their own."""

    def __init__(self, journey: Journey, folder: Path) -> None:
        self.world = World.create(folder)
        self.world.write({"repositories.yaml": f"{catalog()}---\n{repository(CLUSTER)}"})
        self._commits: list[str] = []
        self._configure(journey.data)

    def take(self, step: Step, *, patiently: bool = False) -> None:
        """Let people and upstream do what the step says, and run passes until one is silent.

        `patiently`: and after everything that people do.
        """
        for person in step.data.get("people", ()):
            self._act(person)
            if patiently:
                self.world.sync_until_unchanged()
        self._configure(step.data)
        if step.upstream:
            files = {path: content.decode() for path, content in step.upstream.items()}
            self._commits.append(self.world.release(PACKAGE, f"v{len(self._commits) + 1}", files))
        self.world.sync_until_unchanged()

    @property
    def has_draft(self) -> bool:
        """Whether something waits for review."""
        return bool(self.world.head(DRAFT))

    def result(self) -> dict[str, bytes]:
        """Return the files of the draft branch or, without one, what the variant says."""
        if self.has_draft:
            return self._files(DRAFT)
        if _STATUS not in self.world.paths(self.world.fleet, "reconciler/status"):
            return {}
        return {"no-draft.yaml": self.world.text("reconciler/status", _STATUS).encode()}

    def publish(self) -> None:
        """Merge the draft, and run passes until one is silent."""
        self.world.merge(CLUSTER, "squash", delete=True)
        self.world.sync_until_unchanged()

    def published(self) -> dict[str, bytes]:
        """Return the files of the cluster branch."""
        return self._files(BRANCH)

    def _files(self, branch: str) -> dict[str, bytes]:
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

    def _with_commits(self, text: str) -> str:
        for number, commit in enumerate(self._commits, 1):
            text = text.replace(f"<commit {number}>", commit)
        return text

    def _act(self, mapping: Mapping[str, Any]) -> None:
        match mapping:
            case {"publish": how}:
                self.world.merge(CLUSTER, how, delete=True)
            case {"branch": branch, "path": path, "replace": old, "with": new}:
                self.world.edit(branch, path, old, new)
            case {"branch": branch, "path": path, "write": text}:
                self.world.commit(branch, {path: self._with_commits(text)})
            case {"branch": branch, "path": path, "remove": True}:
                self.world.commit(branch, {path: None})
            case {"branch": branch, "path": path, "move": target}:
                self.world.commit(branch, {path: None, target: self.world.text(branch, path)})
            case _:
                raise AssertionError(f"nobody can do this: {mapping}")
