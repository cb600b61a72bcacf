"""SSH keys, an SSH agent, a key of a security key, and OpenPGP keys for tests of signatures."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PROJECT = Path(__file__).resolve().parents[2]


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


def write_program(folder: Path, name: str, content: str) -> Path:
    """Write an executable script, and return its folder, which a test can put on the PATH."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(content)
    (folder / name).chmod(0o755)
    return folder


_HARDWARE_KEYGEN = """#!{python}
import os, sys
if sys.argv[1:4] != ["-q", "-Y", "sign"]:
    os.execv({keygen!r}, ["ssh-keygen", *sys.argv[1:]])

import hashlib
from pathlib import Path
sys.path.insert(0, {project!r})
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from reconciler.git.ssh_signatures import create_ssh_signature, parse_ssh_key_file

def sign(data):
    flags_and_counter = bytes([{flags}]) + (7).to_bytes(4, "big")
    signed = hashlib.sha256({application!r}).digest() + flags_and_counter + hashlib.sha256(data).digest()
    signature = Ed25519PrivateKey.from_private_bytes(bytes.fromhex({seed!r})).sign(signed)
    return {type!r} + len(signature).to_bytes(4, "big") + signature + flags_and_counter

key = parse_ssh_key_file(Path(sys.argv[-1]).read_bytes())
sys.stdout.buffer.write(create_ssh_signature(sys.stdin.buffer.read(), key.public_key, sign))
"""
HARDWARE_TYPE, APPLICATION = b"sk-ssh-ed25519@openssh.com", b"ssh:"


def encode(*strings: bytes) -> bytes:
    """Return strings in the format of the SSH protocol."""
    return b"".join(len(string).to_bytes(4, "big") + string for string in strings)


def create_hardware_key(folder: Path, *, is_touched: bool) -> tuple[Path, Path]:
    """Write the files of a key `sk-ssh-ed25519`, and a program `ssh-keygen` that signs as a security key does.

    For all other operations, such as the verification of signatures, the program runs the real ssh-keygen.

    Returns:
        The file of the private key, which contains no secret, and the folder of the program.
    """
    folder.mkdir()
    secret = Ed25519PrivateKey.generate()
    public = secret.public_key().public_bytes_raw()
    blob = encode(HARDWARE_TYPE, public, APPLICATION)
    check = b"\1\2\3\4" * 2
    private = check + encode(HARDWARE_TYPE, public, APPLICATION) + bytes([is_touched]) + encode(b"handle", b"", b"")
    private += bytes(range(1, 9 - len(private) % 8)) if len(private) % 8 else b""
    data = b"openssh-key-v1\0" + encode(b"none", b"none", b"") + (1).to_bytes(4, "big") + encode(blob, private)
    text = textwrap.fill(base64.b64encode(data).decode(), 70)
    key = folder / "hardware_key"
    key.write_text(f"-----BEGIN OPENSSH PRIVATE KEY-----\n{text}\n-----END OPENSSH PRIVATE KEY-----\n")
    key.chmod(0o600)
    key.with_suffix(".pub").write_text(f"{HARDWARE_TYPE.decode()} {base64.b64encode(blob).decode()}\n")
    program = _HARDWARE_KEYGEN.format(
        python=sys.executable, project=str(PROJECT), keygen=shutil.which("ssh-keygen"), flags=int(is_touched),
        seed=secret.private_bytes_raw().hex(), application=APPLICATION, type=encode(HARDWARE_TYPE),
    )  # fmt: skip
    return key, write_program(folder / "bin", "ssh-keygen", program)
