"""Interface that decides which commit of a ref can be used, and the implementation without a check of signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from reconciler.catalog.files import CommitId, ObjectId
from reconciler.controllers import checked_commits

if TYPE_CHECKING:
    from reconciler.controllers.checked_commits import CheckedCommit
    from reconciler.git.mirror import Mirror


class InputVerifier(Protocol):
    """Decides which commit of a ref can be used."""

    def check(self, mirror: Mirror, ref: str, object_id: ObjectId, commit: CommitId) -> CheckedCommit:
        """Return the commit to use for a ref, and a message if the current commit has no valid signature.

        Args:
            ref: The full name of the ref.
            object_id: The ID of the annotated tag if the ref is an annotated tag, else of the commit.
            commit: The current commit of the ref.
        """
        ...

    def refresh(self) -> str:
        """Read the allowed keys again, and return a digest of them."""
        ...

    def store(self) -> None:
        """Write new results of signature checks to the cache file."""
        ...


class UncheckedInputs:
    """Uses every commit without a check of its signature."""

    def check(self, mirror: Mirror, ref: str, object_id: ObjectId, commit: CommitId) -> CheckedCommit:
        """Return the commit, which needs no valid signature."""
        return checked_commits.CheckedCommit(commit)

    def refresh(self) -> str:
        """Return ""."""
        return ""

    def store(self) -> None:
        """Do nothing."""
