"""SSH keys, an SSH agent and OpenPGP keys for tests of signatures."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def create_ssh_key(folder: Path, key_type: str, passphrase: str = "") -> Path:
    """Create an SSH key pair, and return the file of the private key."""
    folder.mkdir(exist_ok=True)
    key = folder / f"{key_type}_key"
    bits = ["-b", "2048"] if key_type == "rsa" else []
    command = ["ssh-keygen", "-q", "-t", key_type, *bits, "-N", passphrase, "-C", "", "-f", str(key)]
    subprocess.run(command, check=True)
    return key


def build_signing_options(key: Path) -> tuple[str, ...]:
    """Return the options with which git signs with an SSH key."""
    return ("-c", "gpg.format=ssh", "-c", f"user.signingKey={key}")


def write_allowed_signers(folder: Path, key: Path, principal: str) -> Path:
    """Write an allowed signers file that accepts the signatures of an SSH key, and return the file."""
    file = folder / "allowed_signers"
    file.write_text(f"{principal} {key.with_suffix('.pub').read_text()}")
    return file


@contextmanager
def ssh_agent(key: Path, passphrase: str, patches: pytest.MonkeyPatch) -> Iterator[None]:
    """Run an SSH agent that has a key with a passphrase."""
    # The path of a socket must be short.
    folder = Path(tempfile.mkdtemp(prefix="agent"))
    socket, ask = folder / "socket", folder / "ask"
    ask.write_text(f"#!/bin/sh\necho {passphrase}\n")
    ask.chmod(0o700)
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.PIPE)
    try:
        # The agent prints its socket when it is ready.
        assert process.stdout
        process.stdout.readline()
        patches.setenv("SSH_AUTH_SOCK", str(socket))
        environment = {**os.environ, "SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force"}
        subprocess.run(["ssh-add", "-q", str(key)], env=environment, stdin=subprocess.DEVNULL, check=True)
        yield
    finally:
        process.terminate()
        process.wait()
        process.stdout and process.stdout.close()
        shutil.rmtree(folder)


@contextmanager
def gpg_key() -> Iterator[tuple[Path, str]]:
    """Create an OpenPGP key, and yield the folder of gpg and the ID of the key. End the agent of gpg afterwards."""
    # The folder contains the socket of the agent, whose path must be short.
    home = Path(tempfile.mkdtemp(prefix="gpg"))
    environment = {**os.environ, "GNUPGHOME": str(home)}
    command = ["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "robot@example.com", "ed25519"]
    try:
        subprocess.run(command, env=environment, check=True, capture_output=True)
        yield home, "robot@example.com"
    finally:
        subprocess.run(["gpgconf", "--kill", "all"], env=environment, check=True)
        shutil.rmtree(home, ignore_errors=True)
