"""Pushing a pass's plans: commits are written first, and then no remote waits for another one's push."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from reconciler.daemon.desk import Desk
from reconciler.daemon.isolation import repository_boundary
from reconciler.daemon.publish import Written, write_plans
from reconciler.daemon.remotes import Remote, Remotes
from reconciler.daemon.tools import Publisher
from reconciler.gitio.errors import CacheUnusableError, GitError, MirrorBusyError, TimedOutError
from reconciler.gitio.verdicts import Failed, Outcome, Postponed
from reconciler.planning.fleet import DestinationPlan

STILL_PUSHED = "it is still being pushed to, and the next pass will find what came of that"
_MAX_NAMED = 3
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
    for (remote, plans), results in zip(groups, ready, strict=True):
        # A full disk or a damaged mirror of one remote must not stop the others.
        failed = [one for one in results if isinstance(one, tuple)]
        yield from ((Written(plan), Failed(error)) for plan, error in failed)
        if written := [one for one in results if isinstance(one, Written)]:
            jobs[plans[0].destination.url] = (remote, written)
    ended = remotes.push({url: partial(_push, publisher, *job) for url, job in jobs.items()})
    for url, (_, written) in jobs.items():
        outcomes = ended.get(url)
        yield from ((one, outcomes[one.name] if outcomes else Postponed(STILL_PUSHED)) for one in written)


def _write(context: Desk, group: Group) -> list[Written | tuple[DestinationPlan, GitError]]:
    """Write the plans of one remote; where that fails, write each by itself, so that only the cause of it fails."""
    remote, plans = group
    written = _write_some(context, remote, plans)
    if not isinstance(written, GitError):
        return [*written]
    if len(plans) == 1 or isinstance(written, MirrorBusyError | CacheUnusableError | TimedOutError):
        # What concerns the mirror as a whole would only fail once for every plan.
        return [(plan, written) for plan in plans]
    found: list[Written | tuple[DestinationPlan, GitError]] = []
    for plan in plans:
        alone = _write_some(context, remote, [plan])
        found += [(plan, alone)] if isinstance(alone, GitError) else alone
    return found


def _write_some(context: Desk, remote: Remote, plans: Sequence[DestinationPlan]) -> list[Written] | GitError:
    titles = ", ".join(plan.destination.title for plan in plans[:_MAX_NAMED])
    try:
        with repository_boundary(f"writing the commits of {titles}{', …' if len(plans) > _MAX_NAMED else ''}"):
            return write_plans(remote, plans, context.snapshot.seconds, context.sources_read, context.state_ref)
    except GitError as error:
        return error


def _push(publisher: Publisher, remote: Remote, written: Sequence[Written]) -> Mapping[str, Outcome]:
    try:
        with repository_boundary(f"pushing to {remote.mirror.url}"):
            return publisher.publish(remote, written)
    except GitError as error:
        return {one.name: Failed(error) for one in written}
