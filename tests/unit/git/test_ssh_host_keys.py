"""Host keys from ssh-keyscan: fingerprints, errors, and the output of the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.git.errors import GitError, GitProgramMissingError, UnreachableError, UrlRefusedError
from reconciler.git.ssh_host_keys import HostKey, parse_host_key, scan_host_keys
from tests.support.command_line import run_in

# The key and the fingerprint that GitHub documents.
GITHUB_KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
GITHUB_LINE = f"github.com ssh-ed25519 {GITHUB_KEY}"
GITHUB_FINGERPRINT = "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"


@pytest.fixture
def fake_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program `ssh-keyscan` that prints its arguments to the file `arguments`, and then a key."""
    program = tmp_path / "bin" / "ssh-keyscan"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\necho "# github.com:22 SSH-2.0-x" >&2\necho "{GITHUB_LINE}"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    return program


def test_fingerprint_equals_the_documented_fingerprint() -> None:
    assert parse_host_key(GITHUB_LINE) == HostKey(GITHUB_LINE, "ssh-ed25519", GITHUB_FINGERPRINT)


@pytest.mark.parametrize(
    "line", ["", "# github.com:22 SSH-2.0", "github.com ssh-ed25519", "h ssh-rsa AAA=A", "a b c d"]
)
def test_other_lines_contain_no_key(line: str) -> None:
    assert parse_host_key(line) is None


@pytest.mark.parametrize(
    ("address", "arguments"),
    [
        pytest.param("github.com", "-T 10 -p 22 github.com", id="host"),
        pytest.param("git.example.com:2222", "-T 10 -p 2222 git.example.com", id="port"),
        pytest.param("[::1]:2222", "-T 10 -p 2222 ::1", id="ipv6"),
    ],
)
def test_arguments_of_the_program(tmp_path: Path, fake_program: Path, address: str, arguments: str) -> None:
    assert [key.fingerprint for key in scan_host_keys(address)] == [GITHUB_FINGERPRINT]
    assert (tmp_path / "arguments").read_text() == f"{arguments}\n"


@pytest.mark.parametrize("address", ["-oProxyCommand=id", "a b", "git@github.com", "ssh://github.com/a", "h:port"])
def test_malformed_address_is_refused_before_the_program_starts(
    tmp_path: Path, fake_program: Path, address: str
) -> None:
    with pytest.raises(UrlRefusedError, match="must be a host name or HOST:PORT"):
        scan_host_keys(address)
    assert not (tmp_path / "arguments").exists()


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        pytest.param("#!/bin/sh\necho 'no route' >&2\n", UnreachableError, "h presents no SSH key: no route", id="key"),
        pytest.param(None, GitProgramMissingError, "ssh-keyscan must be installed", id="no-program"),
    ],
)
def test_failures(
    tmp_path: Path,
    fake_program: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: str | None,
    error: type[GitError],
    message: str,
) -> None:
    if content is None:
        fake_program.unlink()
        monkeypatch.setenv("PATH", str(fake_program.parent))
    else:
        fake_program.write_text(content)

    with pytest.raises(error, match=message):
        scan_host_keys("h")


def test_command_prints_lines_and_fingerprints_separately(tmp_path: Path, fake_program: Path) -> None:
    result = run_in(tmp_path, {"PATH": f"{fake_program.parent}:/usr/bin:/bin"}, "ssh-keyscan", "github.com")

    assert result.stdout == f"{GITHUB_LINE}\n"
    assert result.stderr.splitlines()[0] == f"github.com: ssh-ed25519 {GITHUB_FINGERPRINT}"
    assert "compare the fingerprints" in result.stderr
