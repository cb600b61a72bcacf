"""States: what is remembered of every destination, read from its state ref, many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice

from reconciler.daemon.codes import ENGINE_TOO_OLD, STATE_UNREADABLE
from reconciler.daemon.events import log
from reconciler.daemon.isolation import log_if_internal, repository_boundary
from reconciler.daemon.publish import HEADS
from reconciler.daemon.recollection import Recollection
from reconciler.daemon.remotes import Remote, Remotes
from reconciler.gitio.errors import GitError, InternalGitError
from reconciler.krm.codes import internal_error
from reconciler.krm.findings import Finding
from reconciler.planning.destination import STATUS_FOLDER, Destination
from reconciler.planning.state import DestinationState, EngineTooOldError, StateUnreadableError
from reconciler.snapshot.objects import CommitId

# destinations whose state is read in one go: their trees have to fit among those that a reader remembers
_READ_AHEAD = 500


def read_states(
    destinations: Iterable[Destination], remotes: Remotes, state_ref: str, recollection: Recollection | None = None
) -> dict[Destination, DestinationState | Finding]:
    """Return what is remembered of each destination, or why it must be left alone; those never seen are absent.

    What a service recollects is not read again.
    """
    found: dict[Destination, DestinationState | Finding] = {}
    waiting = iter(destinations)
    while group := tuple(islice(waiting, _READ_AHEAD)):
        near = [(one, remote) for one in group if (remote := remotes.get(one.url))]
        if recollection:
            found |= _recollected(near, recollection, state_ref)
            near = [(one, remote) for one, remote in near if one not in found]
        for remote, mine in _by_remote(near):
            with _optional(remote):
                remote.read_states_ahead(_heads(remote, (state_ref.format(repository=one.name) for one in mine)))
        states = {one: state for one, remote in near if (state := read_state(one, remote, state_ref))}
        _read_branches_ahead(near, states)
        found |= states
    return found


@contextmanager
def _optional(remote: Remote) -> Iterator[None]:
    """Let reading ahead fail: it only saves time, and each destination that cannot be read reports it by itself."""
    try:
        with repository_boundary(f"reading ahead from {remote.mirror.url}"):
            yield
    except GitError as error:
        log_if_internal(error)
        log.warning("read_ahead_failed", url=remote.mirror.url, why=error.message)


def _recollected(
    near: Iterable[tuple[Destination, Remote]], recollection: Recollection, state_ref: str
) -> dict[Destination, DestinationState | Finding]:
    found: dict[Destination, DestinationState | Finding] = {}
    for one, remote in near:
        commit = remote.refs.get(state_ref.format(repository=one.name))
        if commit and (state := recollection.state(one, commit)):
            remote.know_state(commit, state)
            found[one] = state
    return found


def read_branches_ahead(destinations: Iterable[Destination], remotes: Remotes, state_ref: str) -> None:
    """Read what surveys of destinations look at in one go for each remote; what was read ahead before is not."""
    near = [(one, remote) for one in destinations if (remote := remotes.get(one.url))]
    _read_branches_ahead(near, {one: state for one, remote in near if (state := read_state(one, remote, state_ref))})


def _read_branches_ahead(
    near: Iterable[tuple[Destination, Remote]], states: Mapping[Destination, DestinationState | Finding]
) -> None:
    for remote, mine in _by_remote(near):
        with _optional(remote):
            remote.read_ahead(_heads(remote, _branches(mine, states)), STATUS_FOLDER)


def _by_remote(near: Iterable[tuple[Destination, Remote]]) -> Iterable[tuple[Remote, list[Destination]]]:
    groups: dict[Remote, list[Destination]] = {}
    for destination, remote in near:
        groups.setdefault(remote, []).append(destination)
    return groups.items()


def _heads(remote: Remote, refs: Iterable[str]) -> list[CommitId]:
    known = remote.refs
    return [known[ref] for ref in refs if ref in known]


def _branches(
    destinations: Iterable[Destination], states: Mapping[Destination, DestinationState | Finding]
) -> Iterator[str]:
    for destination in destinations:
        yield HEADS + destination.branch
        state = states.get(destination)
        yield from (HEADS + name for name in (state.drafts if isinstance(state, DestinationState) else ()))


def read_state(destination: Destination, remote: Remote, state_ref: str) -> DestinationState | Finding | None:
    """Return what is remembered of one destination, why it must be left alone, or None if it was never seen."""
    commit = remote.refs.get(state_ref.format(repository=destination.name))
    if commit is None:
        return None
    try:
        with repository_boundary(f"{destination.title}: its state"):
            return remote.state(commit)
    except InternalGitError as error:
        return internal_error(error.failure, destination.where)
    except EngineTooOldError as error:
        return ENGINE_TOO_OLD.finding(f"{destination.title}: {error}; left alone", destination.where)
    except StateUnreadableError as error:
        message = f"{destination.title}: {error}; left alone until the ref is mended, or deleted to be rebuilt"
        return STATE_UNREADABLE.finding(message, destination.where)
    except GitError as error:
        # for example a ref that points at a blob, or a commit beyond our limits
        message = f"{destination.title}: its state cannot be read: {error.told}; left alone until the ref is mended"
        return STATE_UNREADABLE.finding(message, destination.where)
