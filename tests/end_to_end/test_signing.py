"""The commands that push sign their commits with the key of the settings file. Other commands need no key."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.end_to_end.test_cli import run
from tests.support.daemon import ENVIRONMENT, start_program, wait_for_event
from tests.support.git_repositories import git, read_refs
from tests.support.signing_keys import create_ssh_key, write_program
from tests.support.world import World, small_world

pytestmark = pytest.mark.real_git

WHERE = ("--config", "config", "--fleet", "fleet.git", "--cache", ".cache", "--author", "Ada <ada@example.com>")


def write_settings(world: World, key: Path) -> None:
    (world.folder / "reconciler.yaml").write_text(f"signing: {{format: ssh, key_file: '{key}'}}\n")


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = small_world(tmp_path / "world")
    write_settings(world, create_ssh_key(tmp_path / "keys", "ed25519"))
    return world


@pytest.mark.slow
def test_each_command_that_pushes_signs(world: World) -> None:
    commands = [
        ("sync", "config", *WHERE[2:6]),
        ("approve", "berlin/metrics", *WHERE, "--propose"),
        ("reject", "berlin/gateway", *WHERE, "--drop", "--reason", "later"),
    ]
    for command in commands:
        before = {*git(world.fleet, "rev-list", "--all").split()}
        result = run(world.folder, *command)
        assert result.returncode == 0, result.stderr
        new = {*git(world.fleet, "rev-list", "--all").split()} - before
        assert new
        assert [commit for commit in new if "gpgsig " not in git(world.fleet, "cat-file", "commit", commit)] == []


def test_only_commands_that_push_require_the_key(world: World, tmp_path: Path) -> None:
    write_settings(world, tmp_path / "absent")
    refs = read_refs(world.fleet)

    results = {
        command: run(world.folder, command, "config", *WHERE[2:6]) for command in ("plan", "validate", "drafts", "sync")
    }
    approved = run(world.folder, "approve", "berlin", *WHERE)

    assert {command: result.returncode for command, result in results.items()} == {
        "plan": 2, "validate": 0, "drafts": 0, "sync": 3,
    }  # fmt: skip
    for result in (results["sync"], approved):
        assert f"{tmp_path / 'absent'}, the file of the setting `signing.key_file`, cannot be read" in result.stderr
    assert approved.returncode == 3
    assert read_refs(world.fleet) == refs


@pytest.mark.slow
@pytest.mark.emits("signatures_not_deterministic")
def test_the_service_warns_about_signatures_that_differ(world: World, tmp_path: Path) -> None:
    write_settings(world, create_ssh_key(tmp_path / "keys", "ecdsa"))
    with start_program(world.folder, "run", "config", *WHERE[2:6]) as service:
        try:
            event = wait_for_event(service, "signatures_not_deterministic")
        finally:
            service.kill()

    assert (event["level"], event["key_type"]) == ("warning", "ecdsa-sha2-nistp256")


# tests/git/test_signing_programs.py contains the fast tests of programs that wait.
@pytest.mark.slow
def test_term_ends_a_batch_of_signatures_before_a_push(world: World, tmp_path: Path) -> None:
    (world.folder / "reconciler.yaml").write_text(
        "signing: {format: openpgp, key_id: robot@example.com}\nserver: {listen: ''}\n"
    )
    is_signing = tmp_path / "signing"
    os.mkfifo(is_signing)
    # The program never ends, like a program that waits for the touch of a security key.
    programs = write_program(tmp_path / "bin", "gpg", f"#!/bin/sh\necho >{is_signing}\nexec sleep 600\n")
    refs = read_refs(world.fleet)
    environment = {**ENVIRONMENT, "PATH": f"{programs}:{os.environ['PATH']}"}
    with start_program(world.folder, "run", "config", *WHERE[2:6], environment=environment) as service:
        is_signing.read_text()
        service.send_signal(signal.SIGTERM)
        _, log = service.communicate(timeout=60)

    assert service.returncode == 0, log
    assert '"daemon_stopped"' in log
    assert '"signing_failed"' not in log
    assert read_refs(world.fleet) == refs
