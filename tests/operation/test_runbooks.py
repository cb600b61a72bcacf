"""The runbooks have all sections, and their commands remove the cause of the problem in a published fleet.

For each runbook with commands, `CAUSES` creates the problem. The commands of the page then run in order, and the test
checks that the fleet has no difference and no error at the end.
"""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from reconciler.planning.model.state import STATE_FORMAT
from tests.support.daemon import run_daemon
from tests.support.fake_forge.core import FakeForge
from tests.support.fake_forge.github import GitHubWire
from tests.support.fake_forge.server import serve
from tests.support.git_repositories import commit_files, delete_ref, git, read_refs, write_hook
from tests.support.notification_servers import http_server
from tests.support.page_commands import PROJECT, build_environment, check_block, list_blocks
from tests.support.published_fleet import SETTINGS, Fleet
from tests.support.signing_keys import create_ssh_key

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


def change_value(new: str, fleet: Fleet) -> None:
    fleet.change_config("regions.yaml", "login.eu-west", new)


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


def sign_with_compromised_key(fleet: Fleet) -> None:
    for file in (key := create_ssh_key(fleet.folder, "ed25519"), key.with_suffix(".pub")):
        file.rename(fleet.folder / file.name.replace("ed25519_key", "signing-key"))
    (fleet.folder / "reconciler.yaml").write_text(f"{SETTINGS}signing: {{format: ssh, key_file: signing-key}}\n")
    draft_change(fleet)


def stop_daemon(fleet: Fleet) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (fleet.folder / "reconciler.yaml").write_text(f"{SETTINGS}server: {{listen: '{address}'}}\n")


@contextmanager
def start_daemon(fleet: Fleet) -> Iterator[None]:
    with run_daemon(["run"], fleet.folder, build_environment(fleet.folder)) as daemon:
        daemon.wait_for_notification("READY=1")
        yield


@contextmanager
def revoke_webhook(fleet: Fleet) -> Iterator[None]:
    with http_server() as http:
        http.responses = [(404, {}, b"no_service")]
        (fleet.folder / "url").write_text(f"{http.url}/services/x")
        channel = "{name: slack, kind: slack, url_file: url}"
        notifications = f"notifications: {{allowed_hosts: [127.0.0.1], channels: [{channel}]}}\n"
        (fleet.folder / "reconciler.yaml").write_text(SETTINGS + notifications)
        yield


class LimitedForge:
    """A forge that refuses all requests for one hour of its clock."""

    def __init__(self) -> None:
        self.now = time.time()

    @contextmanager
    def refuse_requests(self, fleet: Fleet) -> Iterator[None]:
        forge = FakeForge(fleet.folder / "forge", lambda: self.now)
        forge.create_repository("demo/fleet")
        forge.limit_until(self.now + 3600)
        (fleet.folder / "token").write_text(forge.token)
        with serve(GitHubWire(forge)) as url:
            host = {"url": str(fleet.folder), "kind": "github", "api": url, "token_file": "token"}
            (fleet.folder / "reconciler.yaml").write_text(f"{SETTINGS}forge: {{hosts: [{host}]}}\n")
            yield

    def end_limit(self, _: Fleet) -> None:
        self.now += 3601


def change_nothing(_: Fleet) -> None:
    """The commands of the page need no problem."""


LIMITED_FORGE = LimitedForge()
Step = Callable[[Fleet], AbstractContextManager[None] | None]
"""Changes the fleet. If it returns a context manager, the context ends after the commands of the page."""

CAUSES: dict[str, Step] = {
    "bad-config-merged": merge_wrong_value,
    "credential-expiring": change_nothing,
    "credential-leaked": change_nothing,
    "daemon-down": stop_daemon,
    "daemon-stuck": change_nothing,
    "disk-full": change_nothing,
    "drafts-late": change_nothing,
    "error-findings": misspell_field,
    "forge-down": stop_forge,
    "history-rewritten": rewrite_history,
    "mass-deletion-proposed": delete_package_set,
    "memory-high": change_nothing,
    "notifications-failing": revoke_webhook,
    "pass-failing": partial(rename, "config.git", "moved.git"),
    "pass-stale": change_nothing,
    "push-refused": refuse_pushes,
    "rate-limited": LIMITED_FORGE.refuse_requests,
    "remote-unavailable": partial(rename, "catalog.git", "moved.git"),
    "review-overdue": draft_change,
    "settings-rejected": misspell_setting,
    "signing-key-compromised": sign_with_compromised_key,
    "split-shards": change_nothing,
    "state-lost": lose_states,
    "target-branch-reset": lose_target_branch,
    "wrong-version-deployed": write_newer_state,
}
EVENTS: dict[tuple[str, str], Step] = {
    ("daemon-down", "start the daemon"): start_daemon,
    ("notifications-failing", "create another webhook"): change_nothing,
    ("rate-limited", "wait for the end of the limit"): LIMITED_FORGE.end_limit,
    ("signing-key-compromised", "change the config"): partial(change_value, "wrong.eu-west"),
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


def run_step(step: Step, fleet: Fleet, stack: ExitStack) -> None:
    if context := step(fleet):
        stack.enter_context(context)


@pytest.mark.slow
@pytest.mark.parametrize("page", [*pages_with_commands()])
def test_the_commands_of_a_runbook_solve_the_problem(page: Path, fleet: Fleet) -> None:
    events = dict(EVENTS)
    with ExitStack() as stack:
        run_step(CAUSES[page.stem], fleet, stack)
        for block in list_blocks(page):
            if block.event:
                run_step(events.pop((page.stem, block.event)), fleet, stack)
            check_block(page, block, fleet.run)
        process = fleet.run("reconciler sync")

    assert [event for name, event in events if name == page.stem] == []
    if page.stem != "forge-down":
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
