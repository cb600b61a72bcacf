"""Signs the commits that fast-import has written, because fast-import cannot write signed commits.

The signed commits are new objects, which are written as one pack. Nothing refers to the unsigned commits. The
maintenance of the mirror deletes them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from reconciler.catalog.files import CommitId, ObjectId
from reconciler.git.command import GitCommand
from reconciler.git.errors import GitError, GitTimeoutError, InterruptedGitError, SigningFailedError
from reconciler.git.object_reader import ObjectReader
from reconciler.git.object_writer import NewCommit
from reconciler.git.signed_objects import build_commit_pack, compute_commit_id, replace_parents, sign_commit, sign_tag
from reconciler.git.signing import SignedKind, Signer, SigningKey

# Write fewer commits than this number as separate files instead of a pack, as `git fetch` does. Many small packs slow
# down every read of the mirror.
_MIN_COMMITS_IN_PACK = 100
OnSigningFailure = Callable[[str, str], None]
"""Callback with the address of the remote and the reason why a commit or tag was not signed."""


class ObjectSigner:
    """Signs new commits and tags of one mirror."""

    def __init__(
        self,
        command: GitCommand,
        url: str,
        open_reader: Callable[[], ObjectReader],
        signer: Signer,
        on_failure: OnSigningFailure,
    ) -> None:
        self._command = command
        self._open_reader = open_reader
        self._url = url
        self._signer = signer
        self._on_failure = on_failure

    def signs(self, kind: SignedKind) -> bool:
        """Return whether objects of a kind are signed."""
        return kind in self._signer.options.kinds

    def sign_commits(
        self, commits: Sequence[NewCommit], unsigned_ids: Sequence[CommitId], lock_descriptor: int
    ) -> list[CommitId]:
        """Write signed versions of unsigned commits, and return their IDs in the same order.

        Args:
            commits: The commits. Indexes of parents refer to this sequence.
            unsigned_ids: The IDs of the same commits in the mirror.

        Raises:
            SigningFailedError: A commit could not be signed, or git does not accept the signature.
        """
        try:
            key = self._signer.load_key()
            ids, contents = self._compose_commits(commits, unsigned_ids, key)
            self._write_commits(contents, lock_descriptor)
            self._check_signatures(dict.fromkeys((ids[0], ids[-1])), key)
        except SigningFailedError as error:
            self._on_failure(self._url, error.message)
            raise
        return ids

    def _compose_commits(
        self, commits: Sequence[NewCommit], unsigned_ids: Sequence[CommitId], key: SigningKey
    ) -> tuple[list[CommitId], list[bytes]]:
        """Return the IDs and contents of the signed commits."""
        ids: list[CommitId] = []
        contents: list[bytes] = []
        with self._open_reader() as reader:
            reader.prefetch(map(ObjectId, unsigned_ids))
            for commit, unsigned_id in zip(commits, unsigned_ids, strict=True):
                parents = [ids[parent] if isinstance(parent, int) else parent for parent in commit.parents]
                unsigned = replace_parents(reader.read_commit_content(unsigned_id), parents)
                contents.append(sign_commit(unsigned, key.sign))
                ids.append(compute_commit_id(contents[-1]))
        return ids, contents

    def sign_tag(self, content: bytes) -> bytes:
        """Return the content of a tag with its signature. Raises SigningFailedError."""
        try:
            return sign_tag(content, self._signer.load_key().sign)
        except SigningFailedError as error:
            self._on_failure(self._url, error.message)
            raise

    def _write_commits(self, contents: Sequence[bytes], lock_descriptor: int) -> None:
        is_large = len(contents) >= _MIN_COMMITS_IN_PACK
        arguments = ("index-pack", "--stdin", "--strict") if is_large else ("unpack-objects", "-q", "--strict")
        self._command.run(*arguments, stdin=build_commit_pack(contents), lock_descriptor=lock_descriptor)

    def _check_signatures(self, commits: Iterable[CommitId], key: SigningKey) -> None:
        """Verify signatures with git, so that a wrong key or program is detected before a push."""
        with tempfile.TemporaryDirectory() as folder:
            allowed_signers = Path(folder) / "allowed_signers"
            allowed_signers.write_text(key.allowed_signers)
            for commit in commits:
                try:
                    self._command.run("-c", f"gpg.ssh.allowedSignersFile={allowed_signers}", "verify-commit", commit)
                except (GitTimeoutError, InterruptedGitError):
                    raise
                except GitError as error:
                    raise SigningFailedError(
                        f"git does not accept the signature of the new commit {commit} by the {key.description} key:"
                        f" {error.message}"
                    ) from error
