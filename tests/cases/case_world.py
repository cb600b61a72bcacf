"""Golden cases: a folder with `case.yaml`, which describes the input, and `expected/`, the output of `render`.

`case.yaml` contains `title` and `covers` (the requirement and its source), `repos` and `config`. `repos` are bare
repositories beside the config folder by name; each is a list of commits with `files` by path, and `branch` and `tags`
where they are not main and none. `config` contains the files of the config folder. `settings` contains more settings
by group. `before` is an earlier config: the case first publishes its packages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from reconciler.bootstrap.publishers import build_folder_publisher, build_push_publisher
from reconciler.bootstrap.services import build_services
from reconciler.inspect.package_history import PastReader
from reconciler.inspect.verify import VerifyOptions, verify
from reconciler.krm.yaml import parse_yaml
from reconciler.output.explain.verification import PackageVerification
from reconciler.reconcile.reconcile_pass import PassReport, run_pass
from reconciler.reconcile.services import PlanPublisher
from reconciler.settings import Settings
from tests.support.git_repositories import commit_files, git, make_bare, read_refs
from tests.support.golden import read_folder, rewrite_folder

CASES = Path(__file__).resolve().parents[2] / "fixtures" / "cases"


@dataclass(frozen=True)
class Case:
    """One case below `fixtures/cases`."""

    folder: Path

    @property
    def name(self) -> str:
        """The path of the case below `fixtures/cases`."""
        return self.folder.relative_to(CASES).as_posix()

    @property
    def expected(self) -> Path:
        """The folder with the expected files."""
        return self.folder / "expected"

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The content of case.yaml."""
        read: dict[str, Any] = parse_yaml((self.folder / "case.yaml").read_bytes()).documents[0].data
        return read


def find_cases() -> list[Case]:
    """Return every case."""
    return [Case(file.parent) for file in sorted(CASES.rglob("case.yaml"))]


class CaseWorld:
    """The repositories and the config of a case, in a separate folder."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.folder = folder
        self._set: Mapping[str, Any] = case.data.get("settings", {})
        for name, commits in case.data["repos"].items():
            _build(make_bare(folder / f"{name}.git"), commits)
        text = "".join(case.data["config"].values())
        # Clusters without a Repository use the fleet repository, which no config names.
        self._named = sorted({"fleet", *re.findall(r"repo: \./([a-z0-9-]+)\.git", text)})
        if "before" in case.data:
            self._write(case.data["before"])
            self._publish()
        self._write(case.data["config"])

    def _write(self, config: Mapping[str, str]) -> None:
        rewrite_folder(self.folder / "config", {path: content.encode() for path, content in config.items()})

    def _publish(self) -> None:
        """Publish the drafts of a pass, and run another pass."""
        for name, refs in self.sync()[1].items():
            drafts = {ref: commit for ref, commit in refs.items() if ref.startswith("refs/heads/drafts/")}
            for ref, commit in drafts.items():
                git(self.folder / f"{name}.git", "update-ref", ref.replace("/drafts/", "/clusters/"), commit)
        self.sync()

    def render(self) -> dict[str, bytes]:
        """Return the files that `render` writes. Missing targets count as empty."""
        out = self.folder / "out"
        self._pass(build_folder_publisher(self.settings, out), missing_is_empty=True)
        return read_folder(out)

    def sync(self) -> tuple[PassReport, dict[str, dict[str, str]]]:
        """Run a pass that pushes; return its report, and the refs of every repository after it."""
        for name in self._named:
            if not (self.folder / f"{name}.git").exists():
                make_bare(self.folder / f"{name}.git")
        report = self._pass(build_push_publisher(self.settings), missing_is_empty=False)
        return report, {name: read_refs(self.folder / f"{name}.git") for name in self._named}

    def verify(self) -> list[PackageVerification]:
        """Render all drafted and published packages again. The packages of `before` are omitted, because they are deleted."""
        parts = build_services(self.settings, str(self.folder / "config"))
        with parts.remotes as remotes:
            past = PastReader(
                parts.source, parts.open_config_history, remotes, parts.pass_services, parts.resolve_commit
            )
            ways = (VerifyOptions(should_verify_drafts=True), VerifyOptions())
            verification_results = [
                verification_result
                for verify_options in ways
                for verification_result in verify(verify_options, past).items
            ]
            today = parts.source.read().id
        return [
            verification_result for verification_result in verification_results if verification_result.config == today
        ]

    @property
    def settings(self) -> Settings:
        """The settings of the world."""
        places = {"fleet": {"url": str(self.folder / "fleet.git")}, "cache": str(self.folder / "cache")}
        return Settings.model_validate({**places, **self._set})

    def _pass(self, publisher: PlanPublisher, missing_is_empty: bool) -> PassReport:
        parts = build_services(
            self.settings,
            str(self.folder / "config"),
            should_treat_missing_as_empty=missing_is_empty,
            is_offline=missing_is_empty,
        )
        with parts.remotes as remotes:
            return run_pass(parts.source, remotes, parts.pass_services, publisher)


def _build(repository: Path, commits: Iterable[Mapping[str, Any]]) -> None:
    for number, item in enumerate(commits):
        files = {path: None if text is None else text.encode() for path, text in item["files"].items()}
        commit = commit_files(repository, f"refs/heads/{item.get('branch', 'main')}", files, f"commit {number}")
        for tag in item.get("tags", ()):
            git(repository, "update-ref", f"refs/tags/{tag}", commit)


def read_expected(case: Case) -> dict[str, bytes]:
    """Return the expected files."""
    return read_folder(case.expected)


def rewrite_expected(case: Case, files: Mapping[str, bytes]) -> None:
    """Replace the content of the expected folder with these files."""
    rewrite_folder(case.expected, files)
