"""Result of the signature check of a config commit or an upstream commit, with its message and its finding.

Other modules check the signatures.
"""

from __future__ import annotations

from reconciler.catalog.files import CommitId
from reconciler.controllers.codes import ControllerCodes
from reconciler.krm.findings import Finding, SourceLocation, downgrade_to_warning
from reconciler.lazy_dataclasses import dataclass

_NEXT_STEP = "sign the commit with an allowed key, or allow the key of the signer"


@dataclass(frozen=True)
class CheckedCommit:
    """The commit of a ref after the check of its signature.

    Attributes:
        commit: The commit to use: the current commit of the ref, or an earlier verified commit. None if no commit may
            be used.
        problem: Text about the problem of the current commit, with the commit ID and the signer. "" if the signature
            is valid or was not checked.
        is_required: Whether a valid signature is required. Otherwise, the problem is only a warning.
    """

    commit: CommitId | None
    problem: str = ""
    is_required: bool = True

    @property
    def message(self) -> str:
        """The problem, its consequence and the next step. "" if there is no problem."""
        if not self.problem or not self.is_required:
            return self.problem
        consequence = (
            f"commit {self.commit[:12]} stays in use"
            if self.commit
            else "there is no earlier verified commit that can stay in use"
        )
        return f"{self.problem}; {consequence}; {_NEXT_STEP}"

    def create_finding(self, location: SourceLocation | None = None) -> Finding:
        """Return the finding about the problem."""
        finding = ControllerCodes.UNVERIFIED_COMMIT.finding(self.message, location or SourceLocation())
        return finding if self.is_required else downgrade_to_warning(finding)
