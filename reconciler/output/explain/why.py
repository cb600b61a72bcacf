"""The result of `reconciler why`, and its text: the commit that set a value, and the reason of this commit.

The module `inspect/why.py` searches the commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import Field

from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.numbers import format_count
from reconciler.output.changes.config_changes import ConfigChange
from reconciler.output.envelope import CommandResult, OutputModel
from reconciler.output.explain.verification import CommitInfo, format_commit
from reconciler.output.findings.entries import FindingEntry
from reconciler.output.text import format_value, to_one_line

ChangeReasonKind = Literal["config", "upstream", "edit", "rollout", "templates", "removal", "other"]
_MAX_OBJECTS, _MAX_FIELDS = 10, 5


class ObjectChangeEntry(OutputModel):
    """A config object that the commits changed."""

    object: str = Field(description="The object, as `Kind/namespace/name`.")
    change: Literal["added", "removed", "changed"]
    file: str
    line: int
    fields: tuple[str, ...] = Field(
        default=(), description="The first changed fields of the object, with one line for each field."
    )


class ChangeReason(OutputModel):
    """The reason why a value changed.

    There are several commits if the search cannot determine which of them changed the value.
    """

    kind: ChangeReasonKind
    message: str
    commits: tuple[CommitInfo, ...] = ()
    merges: tuple[CommitInfo, ...] = Field(
        default=(), description="The merge commits that contain the commits of the field `commits`."
    )
    objects: tuple[ObjectChangeEntry, ...] = ()
    upstream: CommitInfo | None = Field(default=None, description="The upstream commit that the config selected.")
    set_by: str = Field(default="", description="The object, function or person that sets the value.")


class ValueChange(OutputModel):
    """The last change of a value on a branch. The fields of a value that does not exist are absent."""

    package: str = Field(description="The package, as `target/package`.")
    branch: str
    resource: str = ""
    file: str = ""
    location: str = Field(default="", description="The location of the value, as given in the command.")
    pointer: str = ""
    commit: CommitInfo = Field(description="The commit that changed the value on the branch.")
    before: Any = ABSENT
    value: Any = ABSENT
    reason: ChangeReason
    previous_config: str = Field(default="", description="The config of the render before the change.")
    config: str = Field(default="", description="The config of the render after the change.")


class SearchSummary(OutputModel):
    """The numbers of searched commits and of re-renders."""

    commits: int
    renders: int


class ValueChangeResult(CommandResult):
    """The result of `reconciler why`. `items` contains one change."""

    kind: Literal["ValueChange"] = "ValueChange"
    items: tuple[ValueChange, ...]
    findings: tuple[FindingEntry, ...] = ()
    summary: SearchSummary


def build_object_change_entries(changes: Sequence[ConfigChange]) -> tuple[ObjectChangeEntry, ...]:
    """Return entries for the first config objects in `changes`. The number of entries is limited."""
    return tuple(
        ObjectChangeEntry(
            object=change.key.reference,
            change=change.change_type,
            file=change.file,
            line=change.line,
            fields=change.format_field_lines(_MAX_FIELDS),
        )
        for change in changes[:_MAX_OBJECTS]
    )


def format_why_text(result: ValueChangeResult) -> str:
    """Return the result as text."""
    (change,) = result.items
    return "\n".join(map(to_one_line, (*_list_lines(change), *_list_search_lines(result.summary)))) + "\n"


def _list_lines(change: ValueChange) -> Iterator[str]:
    reason = change.reason
    location = " ".join(filter(None, (change.resource, change.location)))
    yield f"{change.package} {location}: {_format_value(change.value)}, previously {_format_value(change.before)}"
    yield f"  on {change.branch} since {format_commit(change.commit)}"
    yield f"  {reason.message}"
    for commit in reason.commits:
        yield f"    {format_commit(commit)}"
    for merge in reason.merges:
        yield f"      merged by {format_commit(merge)}"
    for entry in reason.objects:
        yield f"      {entry.object} {entry.change}  {entry.file}:{entry.line}"
        yield from (f"        {line}" for line in entry.fields)
    if reason.upstream:
        yield f"    in the upstream: {format_commit(reason.upstream)}"
    if reason.set_by:
        yield f"  set by {reason.set_by}"


def _list_search_lines(summary: SearchSummary) -> Iterator[str]:
    if summary.commits:
        commits, renders = format_count(summary.commits, "commit"), format_count(summary.renders, "render")
        yield f"  searched {commits} with {renders}"


def _format_value(value: object) -> str:
    return "not set" if value is ABSENT else format_value(value)
