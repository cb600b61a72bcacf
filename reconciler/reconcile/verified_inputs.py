"""Decides which commits of the config and of upstreams a pass uses, by their signatures.

The results are stored in a cache file, so that each commit is checked once. If the file is deleted, commits are checked
again, and the last verified commit of a ref is unknown until the ref has a commit with a valid signature.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from reconciler.catalog.files import CommitId, ObjectId
from reconciler.controllers.checked_commits import CheckedCommit
from reconciler.git.errors import GitError
from reconciler.git.filesystem import replace_file
from reconciler.git.mirror import Mirror
from reconciler.git.signature_checks import AllowedSigners, SignatureCheck, check_signature
from reconciler.telemetry.event_log import log

# The maximal number of stored results of signature checks. A pass uses one result for each ref of the config and of
# upstreams.
_MAX_CHECKS = 20_000


class VerifiedInputs:
    """Checks signatures.

    With the mode `require`, the last verified commit of a ref stays in use until the ref points to a commit with a
    valid signature. With the mode `warn`, each commit is used.
    """

    def __init__(self, mode: Literal["warn", "require"], signers: AllowedSigners, file: Path) -> None:
        self._mode = mode
        self._signers = signers
        self._file = file
        self._checks: dict[str, str] = {}
        self._verified: dict[str, tuple[str, str]] = {}
        self._digest = signers.digest()
        self._has_changed = False
        self._read()

    def check(self, mirror: Mirror, ref: str, object_id: ObjectId, commit: CommitId) -> CheckedCommit:
        """Return the commit to use for a ref, and a message if the current commit has no valid signature."""
        key = f"{mirror.url} {ref}"
        check = self._check_once(mirror, object_id, commit)
        if check.is_valid:
            self._record(key, object_id, commit)
            return CheckedCommit(commit)
        name = ref.removeprefix("refs/heads/").removeprefix("refs/tags/")
        problem = f"commit {commit[:12]} of {name} in {mirror.url} {check.problem}"
        if self._mode == "warn":
            return CheckedCommit(commit, problem, is_required=False)
        return CheckedCommit(self._find_last_verified(mirror, key), problem)

    def _find_last_verified(self, mirror: Mirror, key: str) -> CommitId | None:
        object_id, commit = self._verified.get(key, ("", ""))
        try:
            # Check that the commit exists, because it can be missing after a rewrite of the branch.
            if not commit or mirror.find_commit(commit) is None:
                return None
            # Check the signature again, because the list of allowed keys can have changed.
            check = self._check_once(mirror, ObjectId(object_id), CommitId(commit))
        except GitError:
            return None
        return CommitId(commit) if check.is_valid else None

    def _check_once(self, mirror: Mirror, object_id: ObjectId, commit: CommitId) -> SignatureCheck:
        key = object_id if str(object_id) == str(commit) else f"{object_id} {commit}"
        problem = self._checks.pop(key, None)
        if problem is None:
            try:
                problem = check_signature(mirror, object_id, commit, self._signers).problem
            except GitError as error:
                # Do not store this result, because the next check of the same commit can succeed.
                return SignatureCheck(f"cannot be checked: {error.message}")
            self._has_changed = True
        # Add the entry at the end, so that the first entry is the least recently used one.
        self._checks[key] = problem
        if len(self._checks) > _MAX_CHECKS:
            del self._checks[next(iter(self._checks))]
        return SignatureCheck(problem)

    def _record(self, key: str, object_id: ObjectId, commit: CommitId) -> None:
        if self._verified.get(key) != (object_id, commit):
            self._verified[key] = (object_id, commit)
            self._has_changed = True

    def refresh(self) -> str:
        """Return a digest of the allowed keys. If it has changed, discard the results of all checks."""
        digest = self._signers.digest()
        if digest != self._digest:
            self._digest, self._checks, self._has_changed = digest, {}, True
        return f"{self._mode} {digest}"

    def _read(self) -> None:
        try:
            data: dict[str, Any] = json.loads(self._file.read_bytes())
            self._verified = {str(ref): (str(item[0]), str(item[1])) for ref, item in data["verified"].items()}
            if data["signers"] == self._digest:
                self._checks = {str(name): str(problem) for name, problem in data["checks"].items()}
        except (OSError, ValueError, TypeError, LookupError, AttributeError):
            # Check all commits again, because the file does not exist or is damaged.
            self._checks, self._verified = {}, {}

    def store(self) -> None:
        """Write new results to the cache file. If this fails, log the error and do not raise it."""
        if not self._has_changed:
            return
        data = {"signers": self._digest, "checks": self._checks, "verified": self._verified}
        try:
            replace_file(self._file, json.dumps(data))
        except OSError as error:
            log.warning("signature_checks_store_failed", file=str(self._file), message=error.strerror)
            return
        self._has_changed = False
