"""Commit messages: what a reviewer reads first, and the trailers that tools read (porch 15.3, design 3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.krm.yaml import parse
from reconciler.planning.destination import Destination
from reconciler.planning.outcome import Draft, Leaving
from reconciler.reporting.causes import cause_words, object_words, upstream_words
from reconciler.reporting.changes import Changes
from reconciler.reporting.conflicts import conflict_lines, conflict_summary
from reconciler.reporting.gates import waiting_for
from reconciler.reporting.inputs import inputs_digest
from reconciler.reporting.overrides import news_of_overrides
from reconciler.reporting.standing import totals_words
from reconciler.reporting.summary import SUMMARY
from reconciler.reporting.templates import TEMPLATES, child_lines, news_of_children, template_lines
from reconciler.reporting.values import one_line, shorten

SUBJECT_WIDTH = 72
REMOVAL_TASK = "propose-delete"
_SHORTEST_REASON = 10
_LINES_PER_LIST = 20
_NEXT_KEY = re.compile(rb"\n(?=\S)")


def draft_message(draft: Draft, destination: Destination, config: str, changes: Changes) -> str:
    """Return the message of the commit that puts a draft's package on its branch.

    `config` is the config commit, or `tree:<id>`; `changes` lead from `draft.before` to the rendered files.
    """
    reason = one_line(_reason(draft, destination, changes))
    conflicts = conflict_summary(one.chosen for one in draft.rendered.conflicts)
    subject = _subject(draft.task, str(draft.variant.place), reason, conflicts)
    sections = (
        _section("Conflicts:", conflict_lines(draft.rendered.conflicts)),
        _section(TEMPLATES, template_lines(draft.rendered, _LINES_PER_LIST)),
        _section("Changed:", changes.summary_lines(_LINES_PER_LIST)),
        _section("Files:", changes.file_lines(_LINES_PER_LIST)),
        _section("Children:", child_lines(news_of_children(draft), _LINES_PER_LIST)),
        _section("Overridden:", news_of_overrides(draft, _LINES_PER_LIST)),
        _section("Why:", cause_words(draft, destination)),
        _section("Not to be published before:", waiting_for(draft.rendered)),
        "\n".join(_trailers(draft, destination, config)),
    )
    return "\n\n".join((subject, *filter(None, sections))) + "\n"


def removal_message(leaving: Leaving, destination: Destination, config: str, changes: Changes | None) -> str:
    """Return the message of the commit that takes a package away; `changes` lead from it to nothing, None if untold."""
    place = f"{destination.name}/{leaving.package}"
    trailers = {
        "Owner": object_words(leaving.owner.key),
        "Task": REMOVAL_TASK,
        "Repository": destination.name,
        "Package": leaving.package,
        "Config-Commit": config,
    }
    sections = (
        _section("Changed:", changes.summary_lines(_LINES_PER_LIST) if changes else ()),
        _section("Files:", changes.file_lines(_LINES_PER_LIST) if changes else ()),
        _section("Why:", (one_line(leaving.why),)),
        "\n".join(f"Reconciler-{name}: {one_line(value)}" for name, value in trailers.items()),
    )
    return "\n\n".join((_subject(REMOVAL_TASK, place, one_line(leaving.why)), *filter(None, sections))) + "\n"


def status_commit_message(files: Mapping[str, bytes]) -> str:
    """Return the message of a commit of the status branch: the totals of `summary.yaml`, nothing of the pass."""
    # the totals come first, and what follows may be larger than anything that is read
    totals = _NEXT_KEY.split(files[SUMMARY], maxsplit=1)[0]
    summary: Mapping[str, Any] = parse(totals).documents[0].data
    return f"status: {totals_words(summary['totals'])}\n"


def state_message(destination: Destination) -> str:
    """Return the message of a state commit; equal states must have equal commits, so it tells nothing else."""
    return f"state({destination.name}): what the reconciler remembers of its packages\n"


def sync_message(destination: Destination) -> str:
    """Return the message of the merge that brings an edited draft up to date with its cluster branch."""
    return f"sync({destination.name}): take in what {destination.branch} has changed\n"


def _subject(task: str, place: str, reason: str, conflicts: str = "") -> str:
    """Return the first line of a message. It always has `conflicts`, which a reviewer must not miss."""
    if conflicts:
        return _subject_with_conflicts(task, place, reason, conflicts)
    room = SUBJECT_WIDTH - len(f"{task}({place}): ")
    if room >= _SHORTEST_REASON or room >= len(reason) > 0:
        return f"{task}({place}): {shorten(reason, room)}"
    # the place says which package it is; a reason without a place says nothing
    return f"{task}({shorten(place, SUBJECT_WIDTH - len(f'{task}()'))})"


def _subject_with_conflicts(task: str, place: str, reason: str, conflicts: str) -> str:
    room = SUBJECT_WIDTH - len(f"{task}({place}): ; {conflicts}")
    if reason and room >= min(len(reason), _SHORTEST_REASON):
        return f"{task}({place}): {shorten(reason, room)}; {conflicts}"
    return f"{task}({shorten(place, SUBJECT_WIDTH - len(f'{task}(): {conflicts}'))}): {conflicts}"


def _reason(draft: Draft, destination: Destination, changes: Changes) -> str:
    if draft.task == "adopt":
        return f"{draft.variant.owner.key.kind} {draft.variant.owner.key.name} takes it over"
    upstream = draft.variant.upstream
    if upstream and (draft.task == "clone" or "upstream" in draft.causes):
        return f"{upstream.package} {upstream_words(draft)}"
    return _first(changes.summary_lines(), cause_words(draft, destination), changes.file_lines())


def _first(*lists: Iterable[str]) -> str:
    return next((line for lines in lists for line in lines), "")


def _section(title: str, lines: tuple[str, ...]) -> str:
    return "\n".join((title, *(f"- {line}" for line in lines))) if lines else ""


def _trailers(draft: Draft, destination: Destination, config: str) -> Iterable[str]:
    trailers = {
        "Owner": object_words(draft.variant.owner.key),
        "Task": draft.task,
        "Repository": destination.name,
        "Package": draft.variant.place.package,
        **({"Upstream": draft.variant.source.words} if draft.variant.upstream else {}),
        "Config-Commit": config,
        "Inputs": inputs_digest(draft.record.trace),
    }
    return (f"Reconciler-{name}: {one_line(value)}" for name, value in trailers.items())
