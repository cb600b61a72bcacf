"""Each commit is checked once, and the last verified commit of a ref is found again by later processes."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from reconciler.catalog.files import CommitId, ObjectId
from reconciler.controllers.checked_commits import CheckedCommit
from reconciler.git.errors import GitTimeoutError
from reconciler.git.mirror import Mirror
from reconciler.git.signature_checks import AllowedSigners, SignatureCheck
from reconciler.krm.findings import Severity
from reconciler.reconcile import verified_inputs
from reconciler.reconcile.verified_inputs import VerifiedInputs
from tests.support.git_repositories import commit_files, make_bare

MAIN = "refs/heads/main"
UNSIGNED = "has no signature"


class Signatures:
    """The results of signature checks by commit, instead of Git. Commits that are not listed are valid."""

    def __init__(self) -> None:
        self.problems: dict[str, str] = {}
        self.failing: set[str] = set()
        self.requests: list[str] = []

    def check(self, mirror: Mirror, object_id: ObjectId, commit: CommitId, signers: AllowedSigners) -> SignatureCheck:
        self.requests.append(object_id)
        if object_id in self.failing:
            raise GitTimeoutError("took too long")
        return SignatureCheck(self.problems.get(object_id, ""))


class Upstream:
    """A repository with two commits, and verifiers that share one cache file."""

    def __init__(self, folder: Path) -> None:
        remote = make_bare(folder / "remote.git")
        self.old, self.new = (
            CommitId(commit_files(remote, MAIN, {"a": text}, "by hand", 1_000_000_000 + len(text)))
            for text in (b"1", b"22")
        )
        self.mirror = Mirror.open(folder / "cache", str(remote))
        self.mirror.fetch("upstream")
        self.signers = folder / "allowed_signers"
        self.signers.write_text("ada")
        self.file = folder / "cache" / "signatures.json"

    def open(self, mode: Literal["warn", "require"] = "require") -> VerifiedInputs:
        return VerifiedInputs(mode, AllowedSigners(str(self.signers)), self.file)

    def check(self, verifier: VerifiedInputs, commit: CommitId, ref: str = MAIN) -> CheckedCommit:
        return verifier.check(self.mirror, ref, ObjectId(commit), commit)


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path)


@pytest.fixture
def signatures(monkeypatch: pytest.MonkeyPatch) -> Signatures:
    signatures = Signatures()
    monkeypatch.setattr(verified_inputs, "check_signature", signatures.check)
    return signatures


def test_each_commit_is_checked_once(upstream: Upstream, signatures: Signatures) -> None:
    signatures.problems[upstream.new] = UNSIGNED
    verifier = upstream.open()
    for _ in range(3):
        upstream.check(verifier, upstream.old)
        upstream.check(verifier, upstream.new)
        upstream.check(verifier, upstream.old, "refs/heads/other")
    verifier.store()
    upstream.check(upstream.open(), upstream.old)
    upstream.check(upstream.open(), upstream.new)

    assert signatures.requests == [upstream.old, upstream.new]


def test_the_last_verified_commit_stays_in_use(upstream: Upstream, signatures: Signatures) -> None:
    signatures.problems[upstream.new] = UNSIGNED
    verifier = upstream.open()
    upstream.check(verifier, upstream.old)
    verifier.store()

    for process in (verifier, upstream.open()):
        checked = upstream.check(process, upstream.new)
        assert checked.commit == upstream.old
        assert checked.problem == f"commit {upstream.new[:12]} of main in {upstream.mirror.url} {UNSIGNED}"
        assert f"; commit {upstream.old[:12]} stays in use; sign the commit" in checked.message
        assert checked.create_finding().severity is Severity.ERROR
    signatures.problems.clear()
    upstream.signers.write_text("ada, bob")
    verifier.refresh()
    assert upstream.check(verifier, upstream.new) == CheckedCommit(upstream.new)


def test_no_commit_is_used_if_none_was_verified(upstream: Upstream, signatures: Signatures) -> None:
    signatures.problems = dict.fromkeys((upstream.old, upstream.new), UNSIGNED)

    checked = upstream.check(upstream.open(), upstream.new)

    assert checked.commit is None
    assert "there is no earlier verified commit" in checked.message


def test_another_ref_has_its_own_verified_commit(upstream: Upstream, signatures: Signatures) -> None:
    signatures.problems[upstream.new] = UNSIGNED
    verifier = upstream.open()
    upstream.check(verifier, upstream.old, "refs/heads/other")

    assert upstream.check(verifier, upstream.new).commit is None


def test_a_warning_does_not_change_the_commit(upstream: Upstream, signatures: Signatures) -> None:
    signatures.problems[upstream.new] = UNSIGNED
    verifier = upstream.open("warn")
    upstream.check(verifier, upstream.old)

    checked = upstream.check(verifier, upstream.new)

    assert checked.commit == upstream.new
    assert checked.create_finding().severity is Severity.WARNING


def test_a_key_that_is_not_allowed_any_more_ends_the_use_of_its_commits(
    upstream: Upstream, signatures: Signatures
) -> None:
    verifier = upstream.open()
    upstream.check(verifier, upstream.old)
    verifier.store()
    signatures.problems = dict.fromkeys((upstream.old, upstream.new), "is signed by the key 1")

    upstream.signers.write_text("bob")

    verifier.refresh()
    for process in (verifier, upstream.open()):
        assert upstream.check(process, upstream.new).commit is None


def test_a_verified_commit_that_is_missing_now_is_not_used(upstream: Upstream, signatures: Signatures) -> None:
    verifier = upstream.open()
    upstream.check(verifier, CommitId("1" * 40))
    signatures.problems[upstream.new] = UNSIGNED

    assert upstream.check(verifier, upstream.new).commit is None


def test_a_failed_check_is_repeated(upstream: Upstream, signatures: Signatures) -> None:
    verifier = upstream.open()
    signatures.failing = {upstream.new}
    assert "cannot be checked: took too long" in upstream.check(verifier, upstream.new).problem

    signatures.failing = set()

    assert upstream.check(verifier, upstream.new) == CheckedCommit(upstream.new)


@pytest.mark.parametrize("content", ["", "[]", '{"verified": 1}', '{"verified": {"a": [1]}, "checks": {}}'])
def test_a_damaged_cache_file_is_replaced(upstream: Upstream, signatures: Signatures, content: str) -> None:
    upstream.file.write_text(content)
    verifier = upstream.open()

    assert upstream.check(verifier, upstream.old).commit == upstream.old
    verifier.store()
    upstream.check(upstream.open(), upstream.old)
    assert signatures.requests == [upstream.old]


def test_commits_are_checked_with_git(upstream: Upstream) -> None:
    assert UNSIGNED in upstream.check(upstream.open(), upstream.new).problem


def test_the_number_of_results_is_limited(
    upstream: Upstream, signatures: Signatures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verified_inputs, "_MAX_CHECKS", 2)
    verifier = upstream.open()
    tag = ObjectId("f" * 40)
    upstream.check(verifier, upstream.old)
    upstream.check(verifier, upstream.new)
    upstream.check(verifier, upstream.old)
    verifier.check(upstream.mirror, "refs/tags/v1", tag, upstream.old)
    signatures.requests.clear()
    verifier.store()
    for each in (verifier, upstream.open()):
        upstream.check(each, upstream.old)
        each.check(upstream.mirror, "refs/tags/v1", tag, upstream.old)
    upstream.check(verifier, upstream.new)

    assert signatures.requests == [upstream.new], "the result that was not used for the longest time is gone"
