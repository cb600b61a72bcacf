"""Keys that need one program per signature: hardware keys, and programs that do not end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest

from reconciler.git.errors import InterruptedGitError, SigningFailedError
from reconciler.git.mirror import Mirror, MirrorSigning
from reconciler.git.object_writer import NewCommit, NewTag, PutFile
from reconciler.git.signing import Signer, SigningOptions
from tests.support.git_repositories import make_bare
from tests.support.signing_keys import create_hardware_key, write_allowed_signers, write_program

pytestmark = pytest.mark.real_git

COMMITS = [NewCommit((), (PutFile("a", b"%d\n" % number),), "change", 1_000_000_000) for number in range(3)]


@pytest.fixture
def open_mirror(tmp_path: Path) -> Callable[..., Mirror]:
    remote = make_bare(tmp_path / "remote.git")

    def open_signed_mirror(signer: Signer, failures: list[str] | None = None) -> Mirror:
        reasons: list[str] = [] if failures is None else failures
        mirror = Mirror.open(
            tmp_path / "cache", str(remote), signing=MirrorSigning(signer, lambda url, reason: reasons.append(reason))
        )
        mirror.fetch("target")
        return mirror

    return open_signed_mirror


@pytest.mark.parametrize(
    ("is_touched", "suffix"),
    [pytest.param(True, "", id="touch-and-handle"), pytest.param(False, ".pub", id="no-touch-and-public-key")],
)
def test_git_accepts_the_signatures_of_a_hardware_key(
    open_mirror: Callable[..., Mirror], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_touched: bool, suffix: str
) -> None:
    key, programs = create_hardware_key(tmp_path / "keys", is_touched=is_touched)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    signer = Signer(SigningOptions("ssh", str(key.with_suffix(suffix))))

    # The mirror checks the signatures with git, which runs the real ssh-keygen.
    mirror = open_mirror(signer)
    commits = mirror.write_commits(COMMITS[:1])
    (tag,) = mirror.write_tags([NewTag("v1", commits[0], "v1", 1)])

    assert (signer.load_key().description, signer.load_key().is_deterministic) == ("sk-ssh-ed25519@openssh.com", False)
    allowed = write_allowed_signers(tmp_path, key, "robot@example.com")
    settings = (("gpg.ssh.allowedSignersFile", str(allowed)),)
    assert mirror.verify_signature("verify-tag", tag, settings) is None
    # The signatures of each try contain another counter, so that the object must store them.
    assert mirror.write_commits(COMMITS[:1]) == commits


def test_a_hardware_key_that_is_absent_is_an_error(
    open_mirror: Callable[..., Mirror], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The real ssh-keygen finds no device.
    key, _ = create_hardware_key(tmp_path / "keys", is_touched=True)
    monkeypatch.setenv("SSH_SK_PROVIDER", "/absent/provider.so")
    failures: list[str] = []

    with pytest.raises(SigningFailedError, match="ssh-keygen could not sign") as caught:
        open_mirror(Signer(SigningOptions("ssh", str(key))), failures).write_commits(COMMITS)

    assert failures == [caught.value.message]
    assert "/absent/provider.so" in caught.value.message


def create_hanging_gpg(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a program `gpg` on the PATH that never ends, and return the file with its process ID."""
    pid = folder / "pid"
    programs = write_program(
        folder / "bin", "gpg", f"#!/bin/sh\necho $$ >{pid}.new\nmv {pid}.new {pid}\nexec sleep 600\n"
    )
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return pid


def is_running(pid: Path) -> bool:
    try:
        os.kill(int(pid.read_text()), 0)
    except ProcessLookupError:
        return False
    return True


def test_a_program_that_waits_ends_when_the_process_must_end(
    open_mirror: Callable[..., Mirror], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = create_hanging_gpg(tmp_path, monkeypatch)
    failures: list[str] = []
    signer = Signer(SigningOptions("openpgp", key_id="robot@example.com"), pid.exists)

    with pytest.raises(InterruptedGitError, match="gpg was ended"):
        open_mirror(signer, failures).write_commits(COMMITS)

    assert not is_running(pid)
    # The end of the process is no failure of the key.
    assert failures == []


def test_a_batch_ends_after_the_current_signature(
    open_mirror: Callable[..., Mirror], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, programs = create_hardware_key(tmp_path / "keys", is_touched=True)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    answers: Iterator[bool] = chain([False, False], repeat(True))
    signer = Signer(SigningOptions("ssh", str(key)), lambda: next(answers))

    with pytest.raises(InterruptedGitError, match=r"ssh-keygen was (not started|ended)"):
        open_mirror(signer).write_commits(COMMITS)


def test_a_program_that_exceeds_the_timeout_is_ended(
    open_mirror: Callable[..., Mirror], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = create_hanging_gpg(tmp_path, monkeypatch)
    signer = Signer(SigningOptions("openpgp", key_id="robot@example.com", timeout_seconds=0.2))

    with pytest.raises(SigningFailedError, match=r"gpg took longer than 0\.2 seconds"):
        open_mirror(signer).write_commits(COMMITS)

    assert not pid.exists() or not is_running(pid)
