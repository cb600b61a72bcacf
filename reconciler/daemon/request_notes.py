"""Notes: the states of destinations learn which pull requests their drafts have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from reconciler.daemon.events import log
from reconciler.daemon.isolation import repository_boundary
from reconciler.daemon.publish import describe, push_states
from reconciler.daemon.remotes import Remote, Remotes
from reconciler.daemon.request_round import Result
from reconciler.daemon.states import read_state
from reconciler.gitio.errors import GitError
from reconciler.gitio.verdicts import Done, Failed, Outcome
from reconciler.krm.findings import Finding
from reconciler.planning.destination import Destination
from reconciler.planning.state import DestinationState, OpenRequest

_Noted = Mapping[Destination, Mapping[str, OpenRequest]]


def note_requests(results: Iterable[Result], remotes: Remotes, state_ref: str) -> list[Outcome]:
    """Write and push the states that know their requests now; one that moved meanwhile is noted in the next pass.

    Return the outcome of each push. A request that no state has is opened again after people have closed it.
    """
    by_url: dict[str, dict[Destination, dict[str, OpenRequest]]] = {}
    for result in results:
        if result.known != result.task.known:
            one = result.task.destination
            by_url.setdefault(one.url, {}).setdefault(one, {})[result.task.branch] = result.known
    return [end for url, noted in sorted(by_url.items()) for end in _pushed(url, noted, remotes, state_ref)]


def _pushed(url: str, noted: _Noted, remotes: Remotes, state_ref: str) -> list[Outcome]:
    remote = remotes.get(url)
    if remote is None:
        return []
    try:
        with repository_boundary(f"the numbers of the pull requests of {url}"):
            pushed = _push_states(remote, noted, state_ref)
    except GitError as error:
        pushed = {url: Failed(error)}
    for name, outcome in pushed.items():
        if not isinstance(outcome, Done):
            log.warning("requests_not_noted", destination=name, why=describe(outcome))
    return list(pushed.values())


def _push_states(remote: Remote, noted: _Noted, state_ref: str) -> Mapping[str, Outcome]:
    states = [(one, _with(read_state(one, remote, state_ref), requests)) for one, requests in noted.items()]
    known = [(one, state) for one, state in states if state]
    return push_states(remote, known, state_ref)


def _with(state: DestinationState | Finding | None, requests: Mapping[str, OpenRequest]) -> DestinationState | None:
    if not isinstance(state, DestinationState):
        return None
    drafts = {
        name: replace(draft, request=requests.get(name, draft.request))  # a mapping, no HTTP call  # nosec B113
        for name, draft in state.drafts.items()
    }
    return replace(state, drafts=drafts)
