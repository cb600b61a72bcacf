"""The result of the command `why` as text and JSON data: the commit that set a value, and the reason of this commit.

The module `inspect/why.py` searches the commits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from reconciler.krm.merge3.rules import ABSENT
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.changes.config_changes import ConfigChange
from reconciler.output.explain.value_query import FoundValue
from reconciler.output.explain.verification import CommitInfo, build_commit_data, format_commit
from reconciler.output.json_data import drop_empty
from reconciler.output.text import format_count, format_value, to_one_line

ChangeReasonKind = Literal["config", "upstream", "edit", "rollout", "templates", "removal", "other"]
_MAX_OBJECTS, _MAX_FIELDS = 10, 5


@dataclass(frozen=True)
class ChangeReason:
    """The reason why a value changed.

    Attributes:
        commits: The commits of the config, of an upstream or of a person. There are several commits if the search
            cannot determine which of them changed the value.
        merges: The merge commits that contain `commits`.
        objects: The config objects that the commits changed.
        upstream: The upstream commit that the config selected.
        set_by: The object, function or person that sets the value.
        render_count: The number of re-renders of the search.
        commit_count: The number of searched commits.
    """

    kind: ChangeReasonKind
    message: str
    commits: tuple[CommitInfo, ...] = ()
    merges: tuple[CommitInfo, ...] = ()
    objects: tuple[ConfigChange, ...] = ()
    upstream: CommitInfo | None = None
    set_by: str = ""
    render_count: int = 0
    commit_count: int = 0


@dataclass(frozen=True)
class WhyResult:
    """The last change of a value on a branch, and the reason of this change.

    Attributes:
        target: The package, as `repository/package`.
        location: The location of the value, as the user specified it.
        before, after: The value before and after the change.
        commit: The commit that changed the value on the branch.
        configs: The configs of the renders before and after the change.
    """

    target: str
    branch: str
    location: str
    before: FoundValue
    after: FoundValue
    commit: CommitInfo
    reason: ChangeReason
    configs: tuple[str, str] = ("", "")

    @property
    def found_value(self) -> FoundValue:
        """The value after the change. For a removed resource, the value before the change."""
        return self.after if self.after.resource else self.before


def format_why_text(result: WhyResult) -> str:
    """Return the result as text."""
    return "\n".join(map(to_one_line, _list_lines(result))) + "\n"


def _list_lines(result: WhyResult) -> Iterator[str]:
    reason, resource = result.reason, result.found_value.resource
    location = " ".join(filter(None, (resource, result.location)))
    yield f"{result.target} {location}: {_format_value(result.after)}, previously {_format_value(result.before)}"
    yield f"  on {result.branch} since {format_commit(result.commit)}"
    yield f"  {reason.message}"
    for commit in reason.commits:
        yield f"    {format_commit(commit)}"
    for merge in reason.merges:
        yield f"      merged by {format_commit(merge)}"
    for change in reason.objects[:_MAX_OBJECTS]:
        yield f"      {change.key} {change.change_type}  {change.file}:{change.line}"
        yield from (f"        {line}" for line in change.format_field_lines(_MAX_FIELDS))
    if reason.upstream:
        yield f"    in the upstream: {format_commit(reason.upstream)}"
    if reason.set_by:
        yield f"  set by {reason.set_by}"
    if reason.commit_count:
        commits, renders = format_count(reason.commit_count, "commit"), format_count(reason.render_count, "render")
        yield f"  searched {commits} with {renders}"


def _format_value(value: FoundValue) -> str:
    return "not set" if value.value is ABSENT else format_value(value.visible_value)


def build_why_data(result: WhyResult) -> dict[str, Any]:
    """Return the result as JSON data, and omit empty fields."""
    reason, found = result.reason, result.found_value
    values = {"before": result.before.visible_value, "value": result.after.visible_value}
    return drop_empty({
        "package": result.target, "branch": result.branch, "resource": found.resource, "file": found.file,
        "place": result.location, "pointer": found.pointer, "commit": build_commit_data(result.commit),
    }) | {name: value for name, value in values.items() if value is not ABSENT} | drop_empty({
        "reason": reason.kind, "words": reason.message,
        "commits": [build_commit_data(commit) for commit in reason.commits],
        "through": [build_commit_data(merge) for merge in reason.merges],
        "objects": [_build_change_data(change) for change in reason.objects[:_MAX_OBJECTS]],
        "upstream": build_commit_data(reason.upstream) if reason.upstream else None, "by": reason.set_by,
        "configs": drop_empty(dict(zip(("from", "to"), result.configs, strict=True))),
        "renders": reason.render_count, "among": reason.commit_count,
    })  # fmt: skip


def _build_change_data(change: ConfigChange) -> dict[str, Any]:
    return drop_empty({
        "object": str(change.key), "how": change.change_type, "file": change.file, "line": change.line,
        "fields": [*change.format_field_lines(_MAX_FIELDS)],
    })  # fmt: skip
