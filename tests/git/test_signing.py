"""Signed commits and tags: equal to those of Git, accepted by Git, and equal in all replicas."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.catalog.files import CommitId
from reconciler.git.errors import GitError, SigningFailedError
from reconciler.git.mirror import Mirror, MirrorSigning
from reconciler.git.object_writer import NewCommit, NewTag, PutFile
from reconciler.git.options import GitOptions
from reconciler.git.push_outcomes import PushDone, PushUnit, RefUpdate
from reconciler.git.signing import SignedKind, Signer, SigningOptions
from reconciler.git.ssh_signatures import RawSigner, create_ssh_signature
from tests.support.git_repositories import assert_sound, git, make_bare
from tests.support.signing_keys import (
    build_signing_options,
    create_ssh_key,
    gpg_key,
    ssh_agent,
    write_allowed_signers,
)

pytestmark = pytest.mark.real_git

KEY_TYPES = [pytest.param("ed25519", id="ed25519"), pytest.param("rsa", id="rsa")]
FIRST = NewCommit((), (PutFile("a", b"1\n"),), "first: ü\n\nbody", 1_000_000_000, has_empty_base=True)
SECOND = NewCommit((0,), (PutFile("b", b"2\n"),), "second", 1_000_000_060, author=("Ada", "ada@example.com"))
MERGE = NewCommit((1, 0), (), "merge", 1_000_000_120)


class Failures(list[tuple[str, str]]):
    def add(self, url: str, reason: str) -> None:
        self.append((url, reason))


def open_mirror(folder: Path, remote: Path, options: SigningOptions | None, failures: Failures | None = None) -> Mirror:
    signing = (
        MirrorSigning(Signer(options), (failures if failures is not None else Failures()).add) if options else None
    )
    git_options = GitOptions(gnupg_home=options.gnupg_home if options else None)
    mirror = Mirror.open(folder, str(remote), git_options, signing=signing)
    mirror.fetch("target")
    return mirror


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return make_bare(tmp_path / "remote.git")


def read_unsigned(mirror: Mirror, commit: CommitId) -> tuple[bytes, dict[str, str]]:
    """Return the tree and message of a commit, and the environment that makes Git write the same commit."""
    fields = git(mirror.folder, "log", "-1", "--format=%an%n%ae%n%at%n%cn%n%ce%n%ct", commit).splitlines()
    names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "AUTHOR_DATE", "COMMITTER_NAME", "COMMITTER_EMAIL", "COMMITTER_DATE")
    environment = {f"GIT_{name}": value for name, value in zip(names, fields, strict=True)}
    for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        environment[name] += " +0000"
    message = git(mirror.folder, "log", "-1", "--format=%B", commit).encode() + b"\n"
    return message, environment


def commit_tree(mirror: Mirror, commit: CommitId, parents: list[CommitId], key: Path) -> str:
    """Let Git write and sign a commit with the content of `commit`."""
    message, environment = read_unsigned(mirror, commit)
    arguments = [argument for parent in parents for argument in ("-p", parent)]
    return subprocess.run(
        ["git", *build_signing_options(key), "commit-tree", "-S", *arguments, f"{commit}^{{tree}}"],
        cwd=mirror.folder, input=message, env={"PATH": os.environ["PATH"], **environment},
        capture_output=True, check=True,
    ).stdout.decode().strip()  # fmt: skip


def verify(mirror: Mirror, object_id: str, key: Path, command: str = "verify-commit") -> str:
    """Return the message of Git about a valid signature. Fail if the signature is not valid."""
    setting = f"gpg.ssh.allowedSignersFile={write_allowed_signers(key.parent, key, 'robot@example.com')}"
    process = subprocess.run(
        ["git", "-c", setting, command, object_id], cwd=mirror.folder, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stderr


@pytest.mark.parametrize("key_type", KEY_TYPES)
def test_ids_equal_those_of_git(tmp_path: Path, remote: Path, key_type: str) -> None:
    key = create_ssh_key(tmp_path, key_type)
    mirror = open_mirror(tmp_path / "cache", remote, SigningOptions("ssh", str(key)))

    first, second, merge = mirror.write_commits([FIRST, SECOND, MERGE])

    assert first == commit_tree(mirror, first, [], key)
    assert second == commit_tree(mirror, second, [first], key)
    assert merge == commit_tree(mirror, merge, [second, first], key)
    for commit in (first, second, merge):
        assert 'Good "git" signature for robot@example.com' in verify(mirror, commit, key)


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("key_type", KEY_TYPES)
def test_tags_are_signed_like_those_of_git(tmp_path: Path, remote: Path, key_type: str) -> None:
    key = create_ssh_key(tmp_path, key_type)
    mirror = open_mirror(tmp_path / "cache", remote, SigningOptions("ssh", str(key)))
    (commit,) = mirror.write_commits([FIRST])

    (tag,) = mirror.write_tags([NewTag("web/v1", commit, "publish web v1\n\nReconciler-Package: web\n", 1_000_000_000)])

    assert 'Good "git" signature for robot@example.com' in verify(mirror, tag, key, "verify-tag")
    environment = {"GIT_COMMITTER_NAME": "reconciler", "GIT_COMMITTER_EMAIL": "reconciler@localhost",
                   "GIT_COMMITTER_DATE": "1000000000 +0000", "PATH": os.environ["PATH"]}  # fmt: skip
    subprocess.run(
        ["git", *build_signing_options(key), "tag", "-s", "-F", "-", "web/v1", commit],
        cwd=mirror.folder, env=environment, input=b"publish web v1\n\nReconciler-Package: web\n", check=True,
        capture_output=True,
    )  # fmt: skip
    assert git(mirror.folder, "rev-parse", "refs/tags/web/v1") == tag


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("key_type", KEY_TYPES)
def test_two_replicas_write_equal_commits(tmp_path: Path, remote: Path, key_type: str) -> None:
    options = SigningOptions("ssh", str(create_ssh_key(tmp_path, key_type)))
    first, second = (open_mirror(tmp_path / name, remote, options) for name in ("one", "two"))

    assert first.write_commits([FIRST, SECOND]) == second.write_commits([FIRST, SECOND])
    assert first.write_root_commit() == second.write_root_commit()


@pytest.mark.parametrize("count", [pytest.param(3, id="loose"), pytest.param(150, id="pack")])
def test_a_signed_chain_is_pushed_completely(tmp_path: Path, remote: Path, count: int) -> None:
    key = create_ssh_key(tmp_path, "ed25519")
    mirror = open_mirror(tmp_path / "cache", remote, SigningOptions("ssh", str(key)))
    chain = [FIRST, *(NewCommit((index,), (PutFile("n", b"%d" % index),), "next", 1) for index in range(count - 1))]

    ids = mirror.write_commits(chain)
    report = mirror.push([PushUnit("main", (RefUpdate("refs/heads/main", ids[-1], None),))])

    assert isinstance(report["main"], PushDone)
    assert_sound(remote)
    signatures = git(remote, "log", "--format=%H %(trailers)", "main").split()
    assert signatures == [*reversed(ids)]
    raw = git(remote, "rev-list", "--header", "main")
    assert raw.count("gpgsig -----BEGIN SSH SIGNATURE-----") == count


def test_an_unsigned_commit_with_the_same_content_stays_a_parent(tmp_path: Path, remote: Path) -> None:
    unsigned = open_mirror(tmp_path / "unsigned", remote, None)
    (old,) = unsigned.write_commits([FIRST])
    unsigned.push([PushUnit("main", (RefUpdate("refs/heads/main", old, None),))])
    mirror = open_mirror(tmp_path / "cache", remote, SigningOptions("ssh", str(create_ssh_key(tmp_path, "ed25519"))))

    again, child = mirror.write_commits([FIRST, NewCommit((old,), (PutFile("b", b""),), "child", 1)])

    assert again != old
    assert git(mirror.folder, "rev-parse", f"{child}^") == old


@pytest.mark.parametrize(
    ("kinds", "signed"),
    [
        pytest.param({"commits"}, (True, False), id="commits"),
        pytest.param({"tags"}, (False, True), id="tags"),
    ],
)
def test_only_the_chosen_objects_are_signed(
    tmp_path: Path, remote: Path, kinds: set[SignedKind], signed: tuple[bool, bool]
) -> None:
    options = SigningOptions("ssh", str(create_ssh_key(tmp_path, "ed25519")), kinds=frozenset(kinds))
    mirror = open_mirror(tmp_path / "cache", remote, options)
    (commit,) = mirror.write_commits([FIRST])
    (tag,) = mirror.write_tags([NewTag("v1", commit, "v1", 1)])

    contents = tuple("SSH SIGNATURE" in git(mirror.folder, "cat-file", "-p", name) for name in (commit, tag))

    assert contents == signed


@pytest.mark.slow
def test_a_changed_key_file_is_used_for_the_next_commits(tmp_path: Path, remote: Path) -> None:
    old, new = create_ssh_key(tmp_path / "old", "ed25519"), create_ssh_key(tmp_path / "new", "rsa")
    link = tmp_path / "current"
    link.symlink_to(old)
    mirror = open_mirror(tmp_path / "cache", remote, SigningOptions("ssh", str(link)))
    (before,) = mirror.write_commits([FIRST])

    link.unlink()
    link.symlink_to(new)
    (after,) = mirror.write_commits([FIRST])

    assert "ED25519" in verify(mirror, before, old)
    assert "RSA" in verify(mirror, after, new)


@pytest.mark.slow
def test_an_encrypted_key_signs_through_an_agent(tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = create_ssh_key(tmp_path, "ed25519", passphrase="canary")
    failures = Failures()
    mirror = open_mirror(tmp_path / "cache", remote, SigningOptions("ssh", str(key)), failures)
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with pytest.raises(SigningFailedError, match="ssh-keygen could not sign"):
        mirror.write_commits([FIRST])
    assert [url for url, _ in failures] == [str(remote)]

    with ssh_agent(key, "canary", monkeypatch):
        (commit,) = mirror.write_commits([FIRST])
        assert 'Good "git" signature' in verify(mirror, commit, key)
        public = open_mirror(tmp_path / "two", remote, SigningOptions("ssh", str(key.with_suffix(".pub"))))
        assert public.write_commits([FIRST]) == [commit]


def test_an_ecdsa_key_signs_equal_commits_once(tmp_path: Path, remote: Path) -> None:
    options = SigningOptions("ssh", str(create_ssh_key(tmp_path, "ecdsa")))
    mirror = open_mirror(tmp_path / "cache", remote, options)

    assert not Signer(options).load_key().is_deterministic
    assert mirror.write_commits([FIRST, SECOND]) == mirror.write_commits([FIRST, SECOND])


def test_an_openpgp_key_signs_equal_commits_once(tmp_path: Path, remote: Path) -> None:
    with gpg_key() as (home, key_id):
        options = SigningOptions("openpgp", key_id=key_id, gnupg_home=str(home))
        mirror = open_mirror(tmp_path / "cache", remote, options)

        commits = mirror.write_commits([FIRST, SECOND])
        (tag,) = mirror.write_tags([NewTag("v1", commits[0], "v1", 1)])

        assert not Signer(options).load_key().is_deterministic
        assert mirror.write_commits([FIRST, SECOND]) == commits
        environment = {**os.environ, "GNUPGHOME": str(home)}
        for command, name in (("verify-commit", commits[1]), ("verify-tag", tag)):
            subprocess.run(["git", command, name], cwd=mirror.folder, env=environment, check=True, capture_output=True)
        missing = open_mirror(tmp_path / "two", remote, replace(options, key_id="nobody@example.com"))
        with pytest.raises(SigningFailedError, match=r"gpg could not sign: .*nobody@example\.com"):
            missing.write_commits([FIRST])


@pytest.mark.parametrize("index", [pytest.param(0, id="first"), pytest.param(2, id="last")])
def test_the_first_and_the_last_signature_of_a_batch_are_checked(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch, index: int
) -> None:
    mirror = open_mirror(tmp_path / "cache", remote, SigningOptions("ssh", str(create_ssh_key(tmp_path, "ed25519"))))
    payloads: list[bytes] = []

    def sign_another_payload(payload: bytes, public_key: bytes, sign: RawSigner) -> bytes:
        payloads.append(payload)
        return create_ssh_signature(b"other" if len(payloads) == index + 1 else payload, public_key, sign)

    monkeypatch.setattr("reconciler.git.signing.create_ssh_signature", sign_another_payload)

    with pytest.raises(SigningFailedError, match="git does not accept the signature of the new commit"):
        mirror.write_commits([FIRST, SECOND, MERGE])


def test_a_signature_that_git_refuses_is_an_error(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = create_ssh_key(tmp_path, "ed25519")
    failures = Failures()
    mirror = open_mirror(tmp_path / "cache", remote, SigningOptions("ssh", str(key)), failures)
    monkeypatch.setattr("reconciler.git.ssh_signatures._HASH", b"sha256")

    with pytest.raises(SigningFailedError, match="git does not accept the signature"):
        mirror.write_commits([FIRST])

    assert len(failures) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "cannot be read: No such file", id="absent"),
        pytest.param(b"", "must be an SSH private key", id="empty"),
        pytest.param(b"secret-canary", "must be an SSH private key", id="another-file"),
        pytest.param(
            b"-----BEGIN RSA PRIVATE KEY-----\nsecret-canary\n-----END RSA PRIVATE KEY-----\n",
            "must be in the format of OpenSSH",
            id="pem",
        ),
        pytest.param(
            b"-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0LWNhbmFyeQ==\n-----END OPENSSH PRIVATE KEY-----\n",
            "must be an SSH private key",
            id="damaged",
        ),
        pytest.param(b"ssh-ed25519 secret-canary", "must be an SSH private key", id="damaged-public-key"),
    ],
)
def test_an_unusable_key_file_is_named_without_its_content(
    tmp_path: Path, remote: Path, content: bytes | None, message: str
) -> None:
    key = tmp_path / "key"
    if content is not None:
        key.write_bytes(content)
    mirror = open_mirror(tmp_path / "cache", remote, SigningOptions("ssh", str(key)))

    with pytest.raises(GitError) as caught:
        mirror.write_commits([FIRST])

    assert isinstance(caught.value, SigningFailedError)
    assert str(key) in caught.value.message
    assert message in caught.value.message
    assert "canary" not in caught.value.full_message


def test_a_truncated_key_is_an_error(tmp_path: Path, remote: Path) -> None:
    key = create_ssh_key(tmp_path, "ed25519")
    lines = key.read_text().splitlines(keepends=True)
    key.chmod(0o600)
    key.write_text("".join([*lines[:3], lines[-1]]))
    mirror = open_mirror(tmp_path / "cache", remote, SigningOptions("ssh", str(key)))

    with pytest.raises(SigningFailedError, match=r"signing\.key_file"):
        mirror.write_commits([FIRST])
