"""The config proposal: its entry in a plan, its text, and the messages of its commits.

A config proposal is a commit that changes the package revisions in the config.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.krm.numbers import format_count
from reconciler.output.changes.data import build_diffs
from reconciler.output.plan.models import ConfigProposalEntry, RevisionEditEntry
from reconciler.output.text import format_object_reference, shorten, to_one_line
from reconciler.planning.layout.config_proposal import ConfigProposal, RevisionEdit

_MAX_SUBJECT_CHARACTERS = 72
_MAX_EDIT_LINES = 100


def build_proposal_entry(proposal: ConfigProposal, max_diff_lines: int) -> ConfigProposalEntry | None:
    """Return the entry of a proposal. Return None if this pass has no new proposal."""
    if proposal.action == "keep":
        return None
    return ConfigProposalEntry(
        type="configProposal",
        action="propose" if proposal.action == "write" else "delete",
        branch=proposal.branch,
        edits=_build_edit_entries(proposal.edits),
        diffs=build_diffs(proposal.files_before, proposal.files_after, "", max_diff_lines),
    )


def _build_edit_entries(edits: Sequence[RevisionEdit]) -> tuple[RevisionEditEntry, ...]:
    return tuple(
        RevisionEditEntry(
            object=edit.pin.key.reference,
            file=edit.pin.location.file,
            line=edit.pin.location.line,
            package=edit.pin.package,
            tag=edit.pin.tag,
            range=edit.pin.range,
            before=edit.pin.written_revision,
            after=edit.revision,
            is_downgrade=edit.pin.is_downgrade,
        )
        for edit in edits
    )


def format_proposal_title(proposal: ConfigProposalEntry) -> str:
    """Return the title of a proposal."""
    if proposal.action == "delete":
        return f"delete {proposal.branch}: the config already contains the selected revisions"
    place = (
        f" on {proposal.branch}" if proposal.branch else " (apply it manually, because the config is a plain folder)"
    )
    return f"propose a config change{place}: {_format_edit_summary(proposal.edits)}"


def format_edit(edit: RevisionEditEntry) -> str:
    """Return an edit as `file:line: Kind namespace/name: package v1 → v2 (tag stable)`, or with its version range."""
    location = f"{edit.file}:{edit.line}: {format_object_reference(edit.object)}"
    return to_one_line(f"{location}: {edit.package} {edit.revisions} ({edit.followed})")


def format_proposal_message(proposal: ConfigProposal, config: str) -> str:
    """Return the message of the commit that proposes new package revisions in the config.

    Args:
        config: The ID of the config commit before the proposed commit.
    """
    edits = _build_edit_entries(proposal.edits)
    lines = [f"- {format_edit(edit)}" for edit in edits]
    more = [f"- and {len(lines) - _MAX_EDIT_LINES} more"] if len(lines) > _MAX_EDIT_LINES else []
    reason = "Tags moved to other revisions" if _has_only_tags(edits) else "Tags or version ranges select new revisions"
    body = "\n".join([f"{reason}. This commit updates:", *lines[:_MAX_EDIT_LINES], *more])
    subject = shorten(to_one_line(f"rewrite(config): {_format_edit_summary(edits)}"), _MAX_SUBJECT_CHARACTERS)
    return f"{subject}\n\n{body}\n\nReconciler-Task: rewrite\nReconciler-Config-Commit: {config}\n"


def format_config_state_message() -> str:
    """Return the message of a commit with the state of config proposals.

    The message is constant, so that equal states have equal commits.
    """
    return "state: record config proposals\n"


def _format_edit_summary(edits: Sequence[RevisionEditEntry]) -> str:
    revisions = {(edit.package, edit.revisions) for edit in edits}
    if len(revisions) > 1:
        packages = {package for package, _ in revisions}
        selection = "with moved tags" if _has_only_tags(edits) else "with new versions"
        return f"{format_count(len(edits), 'revision')} of {format_count(len(packages), 'package')} {selection}"
    objects = f", {len(edits)} objects" if len(edits) > 1 else ""
    return f"{edits[0].package} {edits[0].revisions} ({edits[0].followed}{objects})"


def _has_only_tags(edits: Sequence[RevisionEditEntry]) -> bool:
    return not any(edit.range for edit in edits)
