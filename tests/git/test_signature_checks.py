"""Checks of signatures by Git: which commits and tags are valid, and what the check reports about all others."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reconciler.catalog.files import CommitId, ObjectId
from reconciler.git.mirror import Mirror
from reconciler.git.options import GitOptions
from reconciler.git.signature_checks import AllowedSigners, SignatureCheck, check_signature
from tests.support.git_repositories import git, make_bare
from tests.support.signing_keys import build_signing_options, create_ssh_key, gpg_key, write_allowed_signers

pytestmark = pytest.mark.real_git

IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.com", "GIT_AUTHOR_DATE": "1000000000 +0000",
    "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.com", "GIT_COMMITTER_DATE": "1000000000 +0000",
}  # fmt: skip
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


class Upstream:
    """A repository with commits and tags of the refs `main` and `v1`, and its mirror."""

    def __init__(self, folder: Path) -> None:
        self.remote = make_bare(folder / "remote.git")
        self.cache = folder / "cache"
        self.environment: dict[str, str] = {}

    def run(self, *arguments: str, stdin: bytes = b"") -> str:
        environment = {**os.environ, **IDENTITY, **self.environment}
        command = ["git", *arguments]
        return subprocess.run(
            command, cwd=self.remote, input=stdin, env=environment, check=True, capture_output=True
        ).stdout.decode().strip()  # fmt: skip

    def commit(self, *signing: str) -> str:
        sign = ["-S"] if signing else []
        commit = self.run(*signing, "commit-tree", *sign, EMPTY_TREE, stdin=b"content\n")
        self.run("update-ref", "refs/heads/main", commit)
        return commit

    def tag(self, commit: str, *signing: str) -> str:
        self.run(*signing, "tag", "-s" if signing else "-a", "-m", "v1", "v1", commit)
        return self.run("rev-parse", "refs/tags/v1")

    def check(self, object_id: str, commit: str, signers: AllowedSigners) -> SignatureCheck:
        options = GitOptions(gnupg_home=signers.gnupg_home or None)
        mirror = Mirror.open(self.cache, str(self.remote), options)
        mirror.fetch("upstream")
        return check_signature(mirror, ObjectId(object_id), CommitId(commit), signers)


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return create_ssh_key(tmp_path / "keys", "ed25519")


@pytest.fixture
def signers(tmp_path: Path, key: Path) -> AllowedSigners:
    return AllowedSigners(str(write_allowed_signers(tmp_path, key, "ada@example.com")))


def test_a_commit_of_an_allowed_signer_is_valid(upstream: Upstream, key: Path, signers: AllowedSigners) -> None:
    commit = upstream.commit(*build_signing_options(key))

    assert upstream.check(commit, commit, signers) == SignatureCheck("")


def test_an_unsigned_commit_is_invalid(upstream: Upstream, signers: AllowedSigners) -> None:
    commit = upstream.commit()

    assert upstream.check(commit, commit, signers) == SignatureCheck("has no signature")


def test_an_unknown_key_is_named(upstream: Upstream, tmp_path: Path, signers: AllowedSigners) -> None:
    other = create_ssh_key(tmp_path / "other", "ed25519")
    commit = upstream.commit(*build_signing_options(other))
    fingerprint = subprocess.run(["ssh-keygen", "-l", "-f", other], check=True, capture_output=True, text=True).stdout

    check = upstream.check(commit, commit, signers)

    expected = f"is signed by the ED25519 key {fingerprint.split()[1]}, which is not an allowed signer"
    assert check == SignatureCheck(expected)


def test_a_changed_commit_is_invalid(upstream: Upstream, key: Path, signers: AllowedSigners) -> None:
    content = git(upstream.remote, "cat-file", "commit", upstream.commit(*build_signing_options(key))) + "\n"
    changed = content.replace("content", "other content").encode()
    commit = upstream.run("hash-object", "-t", "commit", "-w", "--stdin", stdin=changed)
    upstream.run("update-ref", "refs/heads/main", commit)

    assert upstream.check(commit, commit, signers) == SignatureCheck("has an invalid signature")


@pytest.mark.parametrize(
    ("is_commit_signed", "is_tag_signed", "problem"),
    [
        pytest.param(True, False, "", id="commit"),
        pytest.param(False, True, "", id="tag"),
        pytest.param(False, False, "has no signature", id="neither"),
    ],
)
def test_the_signature_of_a_tag_or_of_its_commit_is_sufficient(
    upstream: Upstream, key: Path, signers: AllowedSigners, is_commit_signed: bool, is_tag_signed: bool, problem: str
) -> None:
    options = build_signing_options(key)
    commit = upstream.commit(*(options if is_commit_signed else ()))
    tag = upstream.tag(commit, *(options if is_tag_signed else ()))

    assert upstream.check(tag, commit, signers) == SignatureCheck(problem)


def test_an_unknown_signer_of_a_tag_is_named(upstream: Upstream, tmp_path: Path, signers: AllowedSigners) -> None:
    commit = upstream.commit()
    tag = upstream.tag(commit, *build_signing_options(create_ssh_key(tmp_path / "other", "ed25519")))

    assert "which is not an allowed signer" in upstream.check(tag, commit, signers).problem


def test_a_missing_list_of_signers_makes_signatures_invalid(upstream: Upstream, key: Path, tmp_path: Path) -> None:
    commit = upstream.commit(*build_signing_options(key))
    file = tmp_path / "absent"

    check = upstream.check(commit, commit, AllowedSigners(str(file)))

    assert check == SignatureCheck(f"cannot be checked, because {file} cannot be read")


def test_openpgp_keys_are_valid_only_in_the_given_folder(
    upstream: Upstream, tmp_path: Path, signers: AllowedSigners, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gpg_key() as (home, key_id):
        upstream.environment = {"GNUPGHOME": str(home)}
        commit = upstream.commit("-c", f"user.signingKey={key_id}")
        empty = tmp_path / "empty"
        empty.mkdir(mode=0o700)

        def check(folder: Path | None) -> SignatureCheck:
            return upstream.check(commit, commit, AllowedSigners(signers.file, str(folder or "")))

        assert check(home) == SignatureCheck("")
        unknown = check(empty)
        assert unknown.problem.startswith("is signed by the OpenPGP key ")
        assert unknown.problem.endswith(", which is not in the keyring")
        # The keys of the user are not used.
        monkeypatch.setenv("GNUPGHOME", str(home))
        assert not check(None).is_valid


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ("EXPKEYSIG", "is signed by the OpenPGP key ABCD, which has expired"),
        ("EXPSIG", "has a signature by the OpenPGP key ABCD, but the signature has expired"),
        ("REVKEYSIG", "is signed by the OpenPGP key ABCD, which is revoked"),
    ],
)
def test_openpgp_signatures_that_are_not_valid_any_more(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch, status: str, problem: str
) -> None:
    output = f"[GNUPG:] NEWSIG\n[GNUPG:] {status} ABCD Ada <ada@example.com>\n"
    monkeypatch.setattr(Mirror, "verify_signature", lambda *_: output)
    commit = upstream.commit()

    assert upstream.check(commit, commit, AllowedSigners("", "")).problem == problem


def test_the_digest_changes_with_the_allowed_keys(signers: AllowedSigners) -> None:
    before = signers.digest()
    assert signers.digest() == before

    Path(signers.file).write_text("")

    assert signers.digest() != before
