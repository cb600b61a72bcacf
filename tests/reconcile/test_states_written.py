"""States as commits: the result is the same with and without an existing state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.catalog.files import TreeId
from reconciler.controllers.override_policies.rollout import RuleId
from reconciler.git.local_repository import create_repository
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit, PutFile
from reconciler.git.push_outcomes import PushDone
from reconciler.krm.findings import SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.planning.model.state import PackageRecord, RenderedVersion, TargetState
from reconciler.planning.model.targets import Target
from reconciler.reconcile.commits import push_states, write_states
from reconciler.reconcile.remotes.repository import Remote
from tests.support.git_repositories import git
from tests.unit.planning.builders import build_record, build_state

RULE = RuleId(ObjectKey("g", "OverridePolicy", "", "site"), "count")
STATE_REF = "refs/reconciler/state/{repository}"
ONE = Target(ObjectKey("g", "Repository", "default", "eu-1"), "u", "u", "clusters/eu-1", "", True, SourceLocation(), "")


@contextmanager
def _remote(folder: Path) -> Iterator[Remote]:
    create_repository(folder / "fleet.git")
    mirror = Mirror.open(folder / "cache", str(folder / "fleet.git"))
    mirror.fetch("target")
    with mirror.open_reader() as reader:
        yield Remote(mirror, reader)


def _tree(remote: Remote, word: str) -> TreeId:
    (commit,) = remote.mirror.write_commits(
        [NewCommit((), (PutFile("a", word.encode()),), word, 0, has_empty_base=True)]
    )
    return remote.read_commit(commit).tree


def _offered(tree: TreeId) -> PackageRecord:
    return build_record(draft_version=RenderedVersion(tree, tree, tree, tree, tree, ""))  # type: ignore[arg-type]


def _states(remote: Remote) -> dict[str, TargetState]:
    package_record, other = (_offered(_tree(remote, word)) for word in ("one", "other"))
    return {
        "empty": build_state(),
        "one": build_state(packages={"gw": package_record, "team/probe": package_record}),
        "moved": build_state(packages={"gw": other, "team/probe": package_record}),
        "gone": build_state(packages={"team/probe": package_record}),
        "deeper": build_state(packages={"gw.json/inner": package_record}),
        "with rules": build_state(packages={"gw": replace(package_record, rule_texts={RULE: "{}"})}),
    }


@pytest.mark.parametrize("before", ["empty", "one", "moved", "gone", "deeper", "with rules"])
def test_a_state_is_the_same_commit_whatever_it_is_written_onto(tmp_path: Path, before: str) -> None:
    with _remote(tmp_path) as remote:
        states = _states(remote)
        alone = {after: write_states(remote, [(ONE, state)], STATE_REF) for after, state in states.items()}
        assert push_states(remote, [(ONE, states[before])], STATE_REF) == {"eu-1": PushDone()}
        assert STATE_REF.format(repository="eu-1") in remote.refs

        assert {
            after: write_states(remote, [(ONE, target_state)], STATE_REF) for after, target_state in states.items()
        } == alone
        for after, (commit,) in alone.items():
            part = git(remote.mirror.folder, "ls-tree", "--name-only", "-r", "-d", commit).split()
            assert {item for item in part if item.startswith("trees/")} == {
                f"trees/{t}" for t in states[after].collect_trees()
            }
