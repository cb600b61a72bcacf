"""Remotes over a real SSH server: separate keys for reading and pushes, host keys, and rotation."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.git.errors import AccessDeniedError, HostUntrustedError
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit
from reconciler.git.options import GitOptions
from reconciler.git.push_outcomes import PushFailed, PushOutcome, PushUnit, RefUpdate
from reconciler.git.remote_credentials import CredentialEntry, CredentialSource, RemoteCredentials
from reconciler.git.ssh_host_keys import scan_host_keys
from tests.support.git_repositories import commit_files, make_bare, read_refs

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SSHD is None, reason="the program sshd is not installed"),
    pytest.mark.skipif(shutil.which("ssh") is None, reason="the program ssh is not installed"),
]


@dataclass
class SshHost:
    """A server on which the key `read` can only fetch. Each use of a key is a line in the file `uses`."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"ssh://{getpass.getuser()}@127.0.0.1:{self.port}{self.folder}/a.git"

    def list_uses(self) -> set[str]:
        return set((self.folder / "uses").read_text().splitlines())

    def open(self, read: str, write: str, known_hosts: str = "known_hosts") -> Mirror:
        read_source, write_source = (
            CredentialSource(use, ssh_key_file=str(self.folder / key), known_hosts_file=str(self.folder / known_hosts))
            for use, key in (("read", read), ("write", write))
        )
        credentials = RemoteCredentials([CredentialEntry("e", "127.0.0.1:*", read_source, write_source)])
        return Mirror.open(self.folder / "cache", self.url, GitOptions(credentials=credentials, timeout_seconds=60))


def create_key(file: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", file.name, "-f", str(file)], check=True)
    return file.with_suffix(".pub").read_text().strip()


def write_authorized_keys(folder: Path, keys: dict[str, str]) -> None:
    # The server runs this program for each connection, and passes the requested command in a variable.
    gate = folder / "gate"
    gate.write_text(
        textwrap.dedent(f"""\
        #!/bin/sh
        echo "$1 ${{SSH_ORIGINAL_COMMAND%% *}}" >> {folder}/uses
        case "$1 $SSH_ORIGINAL_COMMAND" in
          "read git-receive-pack"*) echo "permission denied: this key is read-only" >&2; exit 1 ;;
        esac
        eval "exec $SSH_ORIGINAL_COMMAND"
        """)
    )
    gate.chmod(0o755)
    lines = [f'restrict,command="{gate} {name}" {key}\n' for name, key in keys.items()]
    (folder / "authorized_keys").write_text("".join(lines))


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHost]:
    folder = tmp_path_factory.mktemp("ssh")
    commit_files(make_bare(folder / "a.git"), "refs/heads/main", {"a": b"1"})
    create_key(folder / "host")
    write_authorized_keys(folder, {name: create_key(folder / name) for name in ("read", "write")})
    create_key(folder / "unknown")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    (folder / "sshd_config").write_text(
        textwrap.dedent(f"""\
        ListenAddress 127.0.0.1:{port}
        HostKey {folder}/host
        PidFile {folder}/pid
        AuthorizedKeysFile {folder}/authorized_keys
        StrictModes no
        UsePAM no
        PasswordAuthentication no
        KbdInteractiveAuthentication no
        AllowUsers {getpass.getuser()}
        PermitRootLogin forced-commands-only
        """)
    )
    assert SSHD is not None
    log = (folder / "log").open("wb")
    process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=log)
    try:
        wait_for_server(process, port)
        host = SshHost(folder, port)
        (folder / "known_hosts").write_text("".join(f"{key.line}\n" for key in scan_host_keys(f"127.0.0.1:{port}")))
        yield host
    finally:
        process.terminate()
        process.wait()
        log.close()


def wait_for_server(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
    pytest.skip("the program sshd does not start here")


def push(mirror: Mirror, name: str) -> PushOutcome:
    (commit,) = mirror.write_commits([NewCommit((), (), name, 0)])
    return mirror.push([PushUnit("x", (RefUpdate(f"refs/heads/d/{name}", commit, None),))])["x"]


def test_reading_uses_the_read_key_and_a_push_the_write_key(host: SshHost) -> None:
    (host.folder / "uses").write_text("")
    mirror = host.open("read", "write")

    mirror.fetch("target")
    outcome = push(mirror, "first")

    assert not isinstance(outcome, PushFailed)
    assert "refs/heads/d/first" in read_refs(host.folder / "a.git")
    assert host.list_uses() == {"read git-upload-pack", "write git-receive-pack"}


def test_read_key_must_not_push(host: SshHost) -> None:
    mirror = host.open("read", "read")
    mirror.fetch("target")

    outcome = push(mirror, "refused")

    assert isinstance(outcome, PushFailed)
    assert isinstance(outcome.error, AccessDeniedError)
    assert "refs/heads/d/refused" not in read_refs(host.folder / "a.git")


def test_group_readable_key_is_used_through_a_private_copy(host: SshHost) -> None:
    shared = host.folder / "shared"
    shared.write_bytes((host.folder / "read").read_bytes())
    shared.chmod(0o440)

    host.open("shared", "write").fetch("config")


def test_rotated_key_is_used_at_the_next_call(host: SshHost) -> None:
    current = host.folder / "current"
    current.write_bytes((host.folder / "unknown").read_bytes())
    current.chmod(0o600)
    mirror = host.open("current", "write")
    with pytest.raises(AccessDeniedError):
        mirror.fetch("config")

    current.write_bytes((host.folder / "read").read_bytes())

    mirror.fetch("config")


def test_unknown_host_key_is_refused(host: SshHost) -> None:
    (host.folder / "other_hosts").write_text("")

    with pytest.raises(HostUntrustedError):
        host.open("read", "write", "other_hosts").fetch("config")
