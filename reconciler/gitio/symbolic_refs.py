"""Symbolic refs of a remote: a push to one moves the branch that it points to, past every review.

Git shows all symbolic refs by protocol version 2. Hosts of version 0 show that of HEAD only; there, a push through one
is found by the other ref that it moved. A symbolic ref to a branch that does not exist is shown by neither version.
Only branches are listed, since a remote may have very many tags. A state ref that points elsewhere has the content of
something else, and is refused where it is read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from reconciler.gitio.command import GitCommand
from reconciler.gitio.errors import SymbolicRefError
from reconciler.gitio.verdicts import PushUnit, RefUpdate

_SYMBOLIC = "ref: "


@dataclass(frozen=True)
class RemoteRefs:
    """The branches of a remote at one moment: the commit of each, and the targets of symbolic ones, by full name."""

    ids: Mapping[str, str]
    targets: Mapping[str, str]


def read_remote_refs(command: GitCommand) -> RemoteRefs:
    """Return the branches of the remote as they are now. Raises GitError."""
    ids: dict[str, str] = {}
    targets: dict[str, str] = {}
    for line in command.run("ls-remote", "--quiet", "--symref", "--heads", "origin").lines:
        value, _, name = line.partition("\t")
        if value.startswith(_SYMBOLIC):
            targets[name] = value.removeprefix(_SYMBOLIC)
        else:
            ids[name] = value
    return RemoteRefs(ids, targets)


def find_symbolic(unit: PushUnit, refs: RemoteRefs) -> SymbolicRefError | None:
    """Return why a unit must not be pushed: one of its refs is symbolic."""
    ref = next((update.ref for update in unit.updates if update.ref in refs.targets), None)
    if ref is None:
        return None
    return SymbolicRefError(
        f"{ref} is a symbolic ref to {refs.targets[ref]} at the remote, so that a push to it would move that ref"
        " without a review; nothing was pushed: delete it with git symbolic-ref --delete"
    )


def may_be_symbolic(unit: PushUnit, refs: RemoteRefs) -> bool:
    """Return whether a push of the unit may move another ref along, judging by the refs before it."""
    return any(_moves(update) and (update.expected is None or _shared(update, refs)) for update in unit.updates)


def find_moved_together(
    unit: PushUnit, before: RemoteRefs, after: RemoteRefs, pushed: Collection[str]
) -> SymbolicRefError | None:
    """Return what the push of a unit moved besides the `pushed` refs: a ref that was and is where one of these is."""
    # the push did not go through a symbolic ref that points to an ordinary branch
    others = {ref: value for ref, value in after.ids.items() if ref not in pushed and ref not in after.targets}
    for update in filter(_moves, unit.updates):
        for ref, value in others.items():
            was = before.ids.get(ref)
            if (value, was) == (update.new, update.expected):
                return SymbolicRefError(
                    f"the push to {update.ref} has also moved {ref}, so that one is a symbolic ref to the other at the"
                    f" remote: the content of {update.ref} is on {ref} without a review; delete the symbolic ref, and"
                    f" restore {ref} (before: {was or 'absent'})"
                )
    return None


def _moves(update: RefUpdate) -> bool:
    return update.new is not None and update.new != update.expected


def _shared(update: RefUpdate, refs: RemoteRefs) -> bool:
    return any(value == update.expected for ref, value in refs.ids.items() if ref != update.ref)
