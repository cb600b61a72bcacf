"""The runbooks have all sections, and their commands remove the cause of the problem in a published fleet.

For each runbook with commands, `CAUSES` creates the problem. The commands of the page then run in order, and the test
checks that the fleet has no difference and no error at the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from reconciler.planning.model.state import STATE_FORMAT
from tests.support.git_repositories import commit_files, delete_ref, git, read_refs, write_hook
from tests.support.page_commands import PROJECT, check_block, list_blocks
from tests.support.published_fleet import SETTINGS, Fleet

RUNBOOKS = PROJECT / "docs/how-to/runbooks"
INDEX = RUNBOOKS / "README.md"
PAGES = sorted(page for page in RUNBOOKS.glob("*.md") if page != INDEX)
SECTIONS = ["Symptom", "Impact", "Diagnosis", "Remedy", "Verification"]
# One runbook runs in the fast tests. It contains all kinds of steps.
FAST = "history-rewritten"


def lose_states(fleet: Fleet) -> None:
    for ref in read_refs(fleet.folder / "fleet.git"):
        if ref.startswith("refs/reconciler/state/"):
            delete_ref(fleet.folder / "fleet.git", ref)


def lose_target_branch(fleet: Fleet) -> None:
    delete_ref(fleet.folder / "fleet.git", "refs/heads/clusters/berlin")


def merge_wrong_value(fleet: Fleet) -> None:
    fleet.change_config("regions.yaml", "auth.eu-west", "wrong.eu-west")
    fleet.must_run("reconciler sync")
    fleet.must_run("reconciler approve lisbon --propose")
    fleet.must_run("reconciler sync")


def delete_package_set(fleet: Fleet) -> None:
    fleet.must_run("git -C work rm --quiet gateway.yaml")
    fleet.must_run("git -C work commit --quiet --message 'Remove the gateway' && git -C work push --quiet")
    assert fleet.run("reconciler sync").returncode == 1


def rewrite_history(fleet: Fleet) -> None:
    fleet.must_run("git -C work commit --quiet --amend --message 'Create it again' && git -C work push --quiet --force")


def misspell_field(fleet: Fleet) -> None:
    fleet.change_config("gateway.yaml", "revision: v1", "revison: v1")


def misspell_setting(fleet: Fleet) -> None:
    with (fleet.folder / "reconciler.yaml").open("a") as file:
        file.write("poll_second: 5\n")


def rename(old: str, new: str, fleet: Fleet) -> None:
    (fleet.folder / old).rename(fleet.folder / new)


def refuse_pushes(fleet: Fleet) -> None:
    fleet.change_config("regions.yaml", "auth.eu-west", "login.eu-west")
    write_hook(fleet.folder / "fleet.git", "pre-receive", "echo 'secret scanning found a key' >&2\nexit 1\n")


def allow_pushes(fleet: Fleet) -> None:
    (fleet.folder / "fleet.git/hooks/pre-receive").unlink()


def draft_change(fleet: Fleet) -> None:
    fleet.change_config("regions.yaml", "auth.eu-west", "login.eu-west")
    fleet.must_run("reconciler sync")


def stop_forge(fleet: Fleet) -> None:
    (fleet.folder / "token").write_text("token")
    # No process listens on port 1.
    forge = {"url": str(fleet.folder), "kind": "gitea", "api": "http://127.0.0.1:1", "token_file": "token"}
    (fleet.folder / "reconciler.yaml").write_text(f"{SETTINGS}forge: {{hosts: [{forge}]}}\n")
    fleet.change_config("regions.yaml", "auth.eu-west", "login.eu-west")


def write_newer_state(fleet: Fleet) -> None:
    repository, ref = fleet.folder / "fleet.git", "refs/reconciler/state/berlin"
    newer = {**json.loads(git(repository, "show", f"{ref}:destination.json")), "format": STATE_FORMAT + 1}
    commit_files(repository, ref, {"destination.json": json.dumps(newer).encode()})


def change_nothing(fleet: Fleet) -> None:
    """The commands of the page need no problem."""


CAUSES: dict[str, Callable[[Fleet], None]] = {
    "bad-config-merged": merge_wrong_value,
    "credential-expiring": change_nothing,
    "credential-leaked": change_nothing,
    "daemon-stuck": change_nothing,
    "disk-full": change_nothing,
    "drafts-late": change_nothing,
    "error-findings": misspell_field,
    "forge-down": stop_forge,
    "history-rewritten": rewrite_history,
    "mass-deletion-proposed": delete_package_set,
    "pass-failing": partial(rename, "config.git", "moved.git"),
    "pass-stale": change_nothing,
    "push-refused": refuse_pushes,
    "remote-unavailable": partial(rename, "catalog.git", "moved.git"),
    "review-overdue": draft_change,
    "settings-rejected": misspell_setting,
    "split-shards": change_nothing,
    "state-lost": lose_states,
    "target-branch-reset": lose_target_branch,
    "wrong-version-deployed": write_newer_state,
}
EVENTS: dict[tuple[str, str], Callable[[Fleet], None]] = {
    ("pass-failing", "restore the config repository"): partial(rename, "moved.git", "config.git"),
    ("push-refused", "remove the hook"): allow_pushes,
    ("remote-unavailable", "restore the package repository"): partial(rename, "moved.git", "catalog.git"),
}


def pages_with_commands() -> Iterator[object]:
    for page in PAGES:
        if any(list_blocks(page)):
            yield pytest.param(page, id=page.stem, marks=[] if page.stem == FAST else [pytest.mark.slow])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_runbook_has_all_sections_and_is_in_the_index(page: Path) -> None:
    text = page.read_text()

    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    assert f"({page.name})" in INDEX.read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_events_metrics_and_findings_of_a_runbook_exist(page: Path) -> None:
    text = page.read_text()
    references = [(PROJECT / f"docs/reference/{name}.md").read_text() for name in ("log-events", "metrics", "findings")]
    listed = {name for reference in references for name in re.findall(r"^\| `(\w+)` \|", reference, re.MULTILINE)}
    sections = "".join(re.findall(r"^## (?:Symptom|Diagnosis)\n.*?(?=^## )", text, re.MULTILINE | re.DOTALL))
    events = {
        name
        for part in re.findall(r"(?:event|events|log contains) ((?:`\w+`(?:, | and )?)+)", sections)
        for name in re.findall(r"`(\w+)`", part)
    }
    findings = {
        name
        for part in re.findall(r"[Ff]indings? ((?:`\w+`(?:, | and | or )?)+)", sections)
        for name in re.findall(r"`(\w+)`", part)
    }
    metrics = {*re.findall(r"\breconciler_\w+", text)}

    assert sorted((events | findings | metrics) - listed) == []


def test_each_runbook_with_commands_has_a_cause() -> None:
    assert {page.stem for page in PAGES if any(list_blocks(page))} == CAUSES.keys()


@pytest.mark.parametrize("page", [*pages_with_commands()])
def test_the_commands_of_a_runbook_solve_the_problem(page: Path, fleet: Fleet) -> None:
    CAUSES[page.stem](fleet)
    events = dict(EVENTS)
    for block in list_blocks(page):
        if block.event:
            events.pop((page.stem, block.event))(fleet)
        check_block(page, block, fleet.run)

    assert [event for name, event in events if name == page.stem] == []
    if page.stem != "forge-down":
        process = fleet.run("reconciler sync")
        assert (process.returncode, process.stdout.startswith("Sync: no changes")) == (0, True), process.stdout


@pytest.mark.slow
def test_restored_states_are_the_lost_states(fleet: Fleet) -> None:
    repository = fleet.folder / "fleet.git"
    before = read_refs(repository)
    lose_states(fleet)
    for block in list_blocks(RUNBOOKS / "state-lost.md"):
        check_block(RUNBOOKS / "state-lost.md", block, fleet.run)

    assert read_refs(repository) == before


@pytest.mark.slow
def test_lost_states_without_a_backup_delete_nothing(fleet: Fleet) -> None:
    repository = fleet.folder / "fleet.git"
    branches = {ref: commit for ref, commit in read_refs(repository).items() if ref.startswith("refs/heads/clusters/")}
    lose_states(fleet)

    fleet.must_run("reconciler sync")

    assert branches.items() <= read_refs(repository).items()
    assert not [ref for ref in read_refs(repository) if ref.startswith(("refs/heads/drafts/", "refs/heads/removals/"))]
