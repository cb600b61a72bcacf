"""Pushing a pass's plans: commits are written first, and then no remote waits for another one's push."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from reconciler.daemon.desk import Desk
from reconciler.daemon.publish import Written, write_plans
from reconciler.daemon.remotes import Remote, Remotes
from reconciler.daemon.tools import Publisher
from reconciler.gitio.errors import GitError
from reconciler.gitio.verdicts import Failed, Outcome, Postponed
from reconciler.planning.fleet import DestinationPlan

STILL_PUSHED = "it is still being pushed to, and the next pass will find what came of that"
Group = tuple[Remote, Sequence[DestinationPlan]]


def push_plans(
    groups: Sequence[Group], desk: Desk, remotes: Remotes, publisher: Publisher, most: int
) -> Iterator[tuple[Written, Outcome]]:
    """Write and push the plans of each remote, and yield what became of every destination.

    Writing needs what the pass has open, so that the pass waits for it; a push that takes too long it leaves behind.
    `most` remotes are written to at once.
    """
    # each remote is one thread's alone; a fleet of many remotes mostly waits for their hosts
    with ThreadPoolExecutor(most) as pool:
        ready = list(pool.map(partial(_write, desk), groups))
    jobs = {}
    for (remote, plans), written in zip(groups, ready, strict=True):
        if isinstance(written, GitError):
            # one remote's full disk or damaged mirror is no reason to leave the others (tenet 6)
            yield from ((Written(plan), Failed(written)) for plan in plans)
        else:
            jobs[plans[0].destination.url] = (remote, written)
    ended = remotes.push({url: partial(_push, publisher, *job) for url, job in jobs.items()})
    for url, (_, written) in jobs.items():
        outcomes = ended.get(url)
        yield from ((one, outcomes[one.name] if outcomes else Postponed(STILL_PUSHED)) for one in written)


def _write(desk: Desk, group: Group) -> list[Written] | GitError:
    try:
        return write_plans(*group, desk.snapshot.seconds, desk.sources_read, desk.state_ref)
    except GitError as error:
        return error


def _push(publisher: Publisher, remote: Remote, written: Sequence[Written]) -> Mapping[str, Outcome]:
    try:
        return publisher.publish(remote, written)
    except GitError as error:
        return {one.name: Failed(error) for one in written}
