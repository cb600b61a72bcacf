"""The proposal to the config in words: its commit message, and how a plan shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.planning.proposal import Edit, Proposal
from reconciler.reporting.causes import object_words
from reconciler.reporting.diffs import file_diffs
from reconciler.reporting.values import count, one_line, shorten

_SUBJECT_WIDTH = 72
_LINES = 100


def proposal_message(proposal: Proposal, config: str) -> str:
    """Return the message of the commit that writes the revisions; `config` is the config commit below it."""
    lines = [f"- {line}" for line in edit_lines(proposal)]
    more = [f"- and {len(lines) - _LINES} more"] if len(lines) > _LINES else []
    body = "\n".join(["Tags have moved, and these revisions keep up with them:", *lines[:_LINES], *more])
    trailers = f"Reconciler-Task: rewrite\nReconciler-Config-Commit: {config}"
    return f"{_subject(proposal.edits)}\n\n{body}\n\n{trailers}\n"


def config_state_message() -> str:
    """Return the message of the commit that remembers proposals; equal states must have equal commits."""
    return "state: what the reconciler remembers of its proposals to the config\n"


def edit_lines(proposal: Proposal) -> Iterator[str]:
    """Yield one line for each revision that is written: whose, where, from what to what, and which tag says so."""
    for edit in proposal.edits:
        pin = edit.pin
        place = f"{pin.where.file}:{pin.where.line}"
        yield one_line(f"{object_words(pin.key)} ({place}): {pin.package} {_way(edit)}, which tag {pin.tag} names")


def proposal_data(proposal: Proposal, max_diff_lines: int) -> dict[str, Any] | None:
    """Return the proposal as JSON data; None when there is nothing new to propose."""
    if proposal.layout == "keep":
        return None
    return {
        "branch": proposal.branch,
        "change": proposal.layout,
        "edits": [_edit_data(edit) for edit in proposal.edits],
        "diffs": [{"path": path, "diff": diff} for path, diff in proposal_diffs(proposal, max_diff_lines)],
    }


def proposal_title(proposal: Proposal) -> str:
    """Return the heading over a proposal that is new; "" when there is nothing to say."""
    place = f" on {proposal.branch}" if proposal.branch else " by hand, for it is a plain folder"
    match proposal.layout:
        case "write":
            return f"propose to the config{place}: {_summary(proposal.edits)}"
        case "end":
            return f"delete {proposal.branch}: the config says what its tags name"
        case "keep":
            return ""


def proposal_diffs(proposal: Proposal, max_lines: int) -> Iterator[tuple[str, str]]:
    """Yield (path, unified diff) for each file of the config that the proposal changes."""
    return file_diffs(proposal.before, proposal.after, "", max_lines) if max_lines else iter(())


def _subject(edits: tuple[Edit, ...]) -> str:
    return shorten(one_line(f"rewrite(config): {_summary(edits)}"), _SUBJECT_WIDTH)


def _summary(edits: tuple[Edit, ...]) -> str:
    moves = {(edit.pin.package, _way(edit)) for edit in edits}
    if len(moves) > 1:
        packages = {package for package, _ in moves}
        return f"{count(len(edits), 'revision')} of {count(len(packages), 'package')} that tags have moved on from"
    edit = edits[0]
    objects = f", {len(edits)} objects" if len(edits) > 1 else ""
    return f"{edit.pin.package} {_way(edit)} (tag {edit.pin.tag}{objects})"


def _way(edit: Edit) -> str:
    pin = edit.pin
    if pin.written is None:
        return f"at {edit.revision}"
    return f"{'downgrade ' if pin.backwards else ''}{pin.written} → {edit.revision}"


def _edit_data(edit: Edit) -> Mapping[str, Any]:
    pin = edit.pin
    return {
        "object": str(pin.key), "file": pin.where.file, "line": pin.where.line, "package": pin.package,
        "tag": pin.tag, "before": pin.written, "after": edit.revision, "backwards": pin.backwards,
    }  # fmt: skip
