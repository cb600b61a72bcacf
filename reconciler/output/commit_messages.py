"""Formats and parses commit messages and tag messages, and formats the file `hydrator.metadata`.

`planning/decide/drafts.py` writes the messages of commits that restore or reset a package on an existing draft.

A message has a title, sections for people, and trailers for tools. The names of the trailers start with `Reconciler-`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.catalog.files import CommitId
from reconciler.krm.git_formats import APPROVED_BY_TRAILER, APPROVED_VIA_TRAILER, list_trailers, parse_trailers
from reconciler.krm.numbers import format_count
from reconciler.krm.times import format_rfc3339
from reconciler.krm.yaml import parse_yaml
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.causes import format_causes, format_upstream_change, get_draft_action
from reconciler.output.changes.objects import ObjectChange
from reconciler.output.changes.package_changes import PackageChanges
from reconciler.output.status.package_sections import (
    TEMPLATES_TITLE,
    build_changed_children,
    format_children,
    format_conflict_summary,
    format_conflicts,
    format_overrides,
    format_recorded_conflicts,
    format_recorded_owner,
    format_task,
    format_template_changes,
    format_unmet_gates,
    list_new_overrides,
    read_inputs,
    read_text,
    read_upstream,
)
from reconciler.output.status.package_status import compute_inputs_digest
from reconciler.output.status.summary import SUMMARY_FILE, format_totals
from reconciler.output.text import to_one_line
from reconciler.planning.layout.refs import MissingTag
from reconciler.planning.lifecycle.open_drafts import DraftedPackage, OpenDraft
from reconciler.planning.model.outcomes import Draft, RemovalOutcome
from reconciler.planning.model.targets import Target

REMOVAL_TASK = "propose-delete"
_NAMES_IN_TITLE = 2
_MAX_NAME_CHARACTERS = 60
_LINES_PER_LIST = 20
_NEXT_KEY = re.compile(rb"\n(?=\S)")


@dataclass(frozen=True)
class ConsoleRequest:
    """The request of the console that started a review action, for the trailers of its commits.

    Attributes:
        request_id: The ID of the HTTP request.
        subject: The stable ID of the person at the issuer, as `<subject>@<issuer>`. "" if there is none.
        changes: Maps the target and the name of each package to its reviewed change, as `<key>/<variant>`.
    """

    request_id: str
    subject: str
    changes: Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class DryCommit:
    """A commit of the config, as Argo CD's source hydrator describes it.

    Attributes:
        url: The URL of the config repository without credentials. The URL is "" if the config is a local path.
        author: The name and email address, in the form `Name <email>`.
        seconds: The author date, in seconds since 1970.
    """

    commit: CommitId
    url: str
    author: str
    seconds: int
    message: str


def format_draft_message(
    draft: Draft, target: Target, config: str, changes: PackageChanges, dry_commit: DryCommit | None = None
) -> str:
    """Return the message of the commit that adds a rendered package to its draft branch.

    Args:
        config: The config commit, or `tree:<id>` for a plain folder.
        changes: The differences between the package before and the rendered package.
        dry_commit: The config commit with its author and message. None if the config is a plain folder.
    """
    conflicts = format_conflict_summary(conflict.chosen for conflict in draft.rendered.conflicts)
    title = "; ".join(filter(None, (format_draft_title(draft, changes), conflicts)))
    sections = (
        _format_caused_by(dry_commit) if dry_commit else "",
        _format_section("Conflicts:", format_conflicts(draft.rendered.conflicts)),
        _format_section(TEMPLATES_TITLE, format_template_changes(draft.rendered.template_changes, _LINES_PER_LIST)),
        _format_section("Changed:", changes.format_summary_lines(_LINES_PER_LIST)),
        _format_section("Files:", changes.format_file_lines(_LINES_PER_LIST)),
        _format_section("Children:", format_children(build_changed_children(draft), _LINES_PER_LIST)),
        _format_section("Overridden:", format_overrides(list_new_overrides(draft), _LINES_PER_LIST)),
        _format_section("Why:", format_causes(draft, target)),
        _format_section("Unmet readiness gates:", format_unmet_gates(draft.rendered)),
        "\n".join(_list_draft_trailers(draft, target, config)),
    )
    return "\n\n".join((title, *filter(None, sections))) + "\n"


def format_removal_message(removal: RemovalOutcome, target: Target, config: str, changes: PackageChanges | None) -> str:
    """Return the message of the commit that proposes the deletion of a package.

    Args:
        config: The config commit, or `tree:<id>` for a plain folder.
        changes: The changes that delete all files of the package. None if the files are unknown.
    """
    trailers = {
        "Owner": str(removal.owner.key),
        "Task": REMOVAL_TASK,
        "Repository": target.name,
        "Package": removal.package,
        "Config-Commit": config,
    }
    sections = (
        _format_section("Changed:", changes.format_summary_lines(_LINES_PER_LIST) if changes else ()),
        _format_section("Files:", changes.format_file_lines(_LINES_PER_LIST) if changes else ()),
        _format_section("Why:", (to_one_line(removal.reason),)),
        "\n".join(f"Reconciler-{name}: {to_one_line(value)}" for name, value in trailers.items()),
    )
    return "\n\n".join((f"delete {removal.package}", *filter(None, sections))) + "\n"


def format_status_message(files: Mapping[str, bytes]) -> str:
    """Return the message of a commit on the status branch, with the totals from `summary.yaml`."""
    # Parse only the totals, which are the first field. The other fields can exceed the size limit of the YAML parser.
    totals = _NEXT_KEY.split(files[SUMMARY_FILE], maxsplit=1)[0]
    summary: Mapping[str, Any] = parse_yaml(totals).documents[0].data
    return f"status: {format_totals(summary['totals'])}\n"


def format_state_message(target: Target) -> str:
    """Return the message of a state commit, without details, so that equal states have equal commits."""
    return f"state: record packages of {target.name}\n"


def format_sync_message(target: Target) -> str:
    """Return the message of the merge commit that merges the target branch into a draft with local changes."""
    return f"sync: merge {target.branch} into the draft\n"


def format_draft_title(draft: Draft, changes: PackageChanges) -> str:
    """Return the title of a draft: the package, its version change, and the names of the first changed fields.

    Examples: `gateway v1 → v2: image, replicas (+3 more)`, `install gateway v1`, `re-render gateway: image`.
    """
    package, version, action = draft.variant.target.package, format_upstream_change(draft), get_draft_action(draft)
    if action in ("adopt", "install"):
        return to_one_line(f"{action} {package} {version}".rstrip())
    result = f"{package} {version}" if action == "update" else f"re-render {package}"
    fields = _summarize_fields(changes)
    return to_one_line(f"{result}: {fields}" if fields else result)


def _summarize_fields(changes: PackageChanges) -> str:
    """List the names of changed fields, objects or files on one line, e.g. `image, replicas (+2 more)`."""
    names = [name for change in changes.objects for name in _list_changed_names(change)]
    # The labels with the version of a chart are last, because all objects of the chart have them.
    names += ["labels"] if any(field.is_version_label for change in changes.objects for field in change.fields) else []
    names += ["Kptfile"] if changes.kptfiles and not names else []
    names += [change.path for change in changes.files] if not names else []
    distinct = [*dict.fromkeys(names)]
    # Count a very long name, but do not show it, because a shortened name would be misleading.
    shown = [name for name in distinct if len(name) <= _MAX_NAME_CHARACTERS][:_NAMES_IN_TITLE]
    hidden = len(distinct) - len(shown)
    if not shown:
        return format_count(hidden, "change") if hidden else ""
    return ", ".join(shown) + (f" (+{hidden} more)" if hidden else "")


def _list_changed_names(change: ObjectChange) -> Iterator[str]:
    if change.change_type != "changed":
        yield f"{change.key.kind} {change.change_type}"
    for field in change.fields:
        if field.is_version_label:
            continue
        keys = [str(key) for key in field.path if not str(key).startswith("[")]
        metadata = next((key for key in keys if key in ("labels", "annotations")), "")
        yield metadata or (keys[-1] if keys else change.key.kind)


def _format_caused_by(commit: DryCommit) -> str:
    subject, author = commit.message.strip().partition("\n")[0], commit.author.rpartition(" <")[0]
    return to_one_line(f"Caused by: {commit.commit[:7]} {subject} ({author})")


def _format_section(title: str, lines: tuple[str, ...]) -> str:
    return "\n".join((title, *(f"- {line}" for line in lines))) if lines else ""


def _list_draft_trailers(draft: Draft, target: Target, config: str) -> Iterable[str]:
    trailers = {
        "Owner": str(draft.variant.owner.key),
        "Task": draft.task,
        "Repository": target.name,
        "Package": draft.variant.target.package,
        **({"Upstream": draft.variant.source.summary} if draft.variant.upstream else {}),
        "Config-Commit": config,
        "Inputs": compute_inputs_digest(draft.record.trace),
    }
    return (f"Reconciler-{name}: {to_one_line(value)}" for name, value in trailers.items())


_TRAILER_PREFIX = "Reconciler-"
_DRAFT_HEAD_TRAILER = "Reconciler-Draft-Head"
_CHANGE_TRAILER = "Reconciler-Change"
_CAUSES_TITLE = "Why:"
_CONFLICTS_TITLE = "Accepted conflicts:"


def format_publish_message(
    draft: OpenDraft,
    packages: Iterable[DraftedPackage],
    reason: str,
    via: str,
    person: tuple[str, str] | None = None,
    request: ConsoleRequest | None = None,
    approvers: Iterable[tuple[str, str]] = (),
) -> str:
    """Return the message of the commit that publishes packages of a draft.

    The body lists the conflicts that the approver accepted.

    Args:
        reason: The reason that the approver gave. The reason can be "".
        via: The origin of the publication: `cli` for a command that pushes, `forge` for a command that merges a pull
            request, `console`, or `annotation`.
        approvers: The people who have approved the draft before.
    """
    chosen = tuple(packages)
    lines = [f"- {package.package}: {_describe_package(package)}" for package in chosen] if len(chosen) > 1 else []
    conflicts = [
        f"- {package.package}: {line}"
        for package in chosen
        for line in format_recorded_conflicts(list(package.conflicts))
    ]
    sections = ["\n".join(lines), "\n".join([_CONFLICTS_TITLE, *conflicts]) if conflicts else ""]
    body, summary = "\n\n".join(filter(None, sections)), _format_summary(draft, chosen)
    message = _format_message("publish", draft, chosen, summary, body, reason)
    earlier = (line for approver in approvers for line in _list_person_trailers(approver))
    approval = _list_approval_trailers(reason, via, person)
    trailers = (*earlier, *approval, *_list_request_trailers(request, draft, chosen))
    return message + "".join(f"{line}\n" for line in trailers)


def _list_person_trailers(person: tuple[str, str] | None) -> Iterator[str]:
    if person:
        yield f"{APPROVED_BY_TRAILER}: {to_one_line(person[0])} <{to_one_line(person[1])}>"


def _list_approval_trailers(reason: str, via: str, person: tuple[str, str] | None) -> Iterator[str]:
    yield from _list_person_trailers(person)
    yield f"{APPROVED_VIA_TRAILER}: {via}"
    yield from _list_reason_trailers(reason)


def _list_request_trailers(
    request: ConsoleRequest | None, draft: OpenDraft, packages: Iterable[DraftedPackage]
) -> Iterator[str]:
    if request is None:
        return
    if request.subject:
        yield f"Reconciler-Subject: {to_one_line(request.subject)}"
    changes = (request.changes.get((draft.target.name, package.package)) for package in packages)
    yield from (f"{_CHANGE_TRAILER}: {change}" for change in dict.fromkeys(filter(None, changes)))
    yield f"Reconciler-Request-Id: {to_one_line(request.request_id)}"


def _list_reason_trailers(reason: str) -> Iterator[str]:
    if text := " ".join(reason.split()):
        yield f"Reconciler-Reason: {to_one_line(text)}"


def format_approval_message(
    draft: OpenDraft,
    reason: str,
    person: tuple[str, str] | None,
    request: ConsoleRequest | None = None,
    approvers: Iterable[tuple[str, str]] = (),
) -> str:
    """Return the message of a merge commit that a forge creates with its own account. A trailer names the approver."""
    via = "console" if request else "forge"
    return format_publish_message(draft, draft.packages, reason, via, person, request, approvers)


def format_reject_message(draft: OpenDraft, reason: str, request: ConsoleRequest | None = None) -> str:
    """Return the message of the commit that records a rejection. The parent of this commit is the head of the draft."""
    message = _format_rejection(draft, (), draft.branch, reason)
    return message + "".join(f"{line}\n" for line in _list_request_trailers(request, draft, draft.packages))


def format_recorded_approval_message(
    draft: OpenDraft,
    packages: tuple[DraftedPackage, ...],
    reason: str,
    via: str,
    person: tuple[str, str] | None,
    request: ConsoleRequest | None = None,
) -> str:
    """Return the message of the commit that records one approval of a draft that needs more approvals."""
    message = _format_message("approve", draft, packages, _format_summary(draft, packages), "", reason)
    head = f"{_DRAFT_HEAD_TRAILER}: {draft.head}"
    trailers = (*_list_approval_trailers(reason, via, person), *_list_request_trailers(request, draft, packages), head)
    return message + "".join(f"{line}\n" for line in trailers)


def parse_draft_head(message: str) -> str:
    """Return the draft head in the message of a recorded approval. Return "" for other messages."""
    return parse_trailers(message).get(_DRAFT_HEAD_TRAILER, "")


def parse_reason(message: str) -> str:
    """Return the reason in the message of a publish or reject commit. Return "" if the message has no reason."""
    second_section = message.split("\n\n")[1:2]
    return "".join(section for section in second_section if not section.startswith(_TRAILER_PREFIX)).strip()


def parse_change_key(message: str) -> str:
    """Return the change key in the message of a publish commit. Return "" if it has no key or several keys."""
    changes = [value for name, value in list_trailers(message) if name == _CHANGE_TRAILER]
    return changes[0].partition("/")[0] if len(changes) == 1 else ""


def parse_causes(message: str) -> tuple[str, ...]:
    """Return the causes in the message of a draft commit. Return () if the message has no causes."""
    return _parse_section(message, _CAUSES_TITLE)


def parse_templates(message: str) -> tuple[str, ...]:
    """Return the template changes in the message of a draft commit. Return () if there are no template changes."""
    return _parse_section(message, TEMPLATES_TITLE)


def _parse_section(message: str, title: str) -> tuple[str, ...]:
    sections = [section.splitlines() for section in message.split("\n\n")]
    lines = next((lines[1:] for lines in sections if lines[:1] == [title]), [])
    return tuple(line.removeprefix("- ") for line in lines)


def format_withdraw_message(draft: OpenDraft, packages: Iterable[DraftedPackage], reason: str) -> str:
    """Return the message of the commit that removes rejected packages from a draft."""
    chosen = tuple(packages)
    names = ", ".join(package.package for package in chosen)
    return _format_rejection(draft, chosen, f"{names}: remove from {draft.branch}", reason)


def _format_rejection(draft: OpenDraft, packages: tuple[DraftedPackage, ...], summary: str, reason: str) -> str:
    message = _format_message("reject", draft, packages, summary, "", reason)
    return message + "".join(f"{line}\n" for line in _list_reason_trailers(reason))


def _format_message(
    task: str, draft: OpenDraft, packages: tuple[DraftedPackage, ...], summary: str, body: str, reason: str
) -> str:
    title = to_one_line(f"{task} {summary}")
    # Write the reason as one paragraph, and quote lines that look like a trailer, so that no tool parses them as a
    # trailer.
    lines = [to_one_line(line.strip()) for line in reason.splitlines() if line.strip()]
    paragraph = "\n".join(f"> {line}" if line.startswith(_TRAILER_PREFIX) else line for line in lines)
    trailers = "\n".join(_list_review_trailers(task, draft, packages))
    return "\n\n".join(filter(None, (title, paragraph, body, trailers))) + "\n"


def _format_summary(draft: OpenDraft, packages: tuple[DraftedPackage, ...]) -> str:
    if len(packages) == 1:
        return f"{packages[0].package}: {_describe_package(packages[0])}"
    return f"{format_count(len(packages), 'package')} of {draft.branch}" if packages else draft.branch


def _describe_package(package: DraftedPackage) -> str:
    return "delete the package" if package.is_removed else format_task(package.status) or "local changes"


def _list_review_trailers(task: str, draft: OpenDraft, packages: tuple[DraftedPackage, ...]) -> Iterator[str]:
    yield f"Reconciler-Task: {task}"
    yield f"Reconciler-Repository: {draft.target.name}"
    for package in packages:
        trailers = {
            "Package": package.package,
            "Owner": format_recorded_owner(package.status),
            "Upstream": _format_source(read_upstream(package.status, "to")),
            "Config-Commit": read_text(read_inputs(package.status), "config"),
            "Inputs": read_text(read_inputs(package.status), "digest"),
        }
        yield from (f"Reconciler-{name}: {to_one_line(value)}" for name, value in trailers.items() if value)


def _format_source(upstream: Mapping[str, Any]) -> str:
    directory = read_text(upstream, "directory").strip("/")
    place = "/".join(filter(None, (read_text(upstream, "repo"), directory)))
    return " ".join(filter(None, (place, read_text(upstream, "ref"), read_text(upstream, "commit"))))


def format_tag_message(tag: MissingTag, target: Target) -> str:
    """Return the message of a revision tag.

    The trailers contain all data that is necessary to rebuild the state of the target if the state is deleted. `Labels`
    and `Annotations` are the labels and annotations of the published draft.
    """
    owner, revision, record = tag.record.owner, tag.revision, tag.record
    trailers = {
        "Task": "publish",
        "Owner": str(owner.key),
        "Owner-UID": owner.key.uid,
        "Repository": target.name,
        "Package": tag.package,
        "Workspace": f"packagevariant-{revision.workspace}" if revision.workspace else "",
        "Revision": str(revision.number),
        "Upstream": revision.version.upstream,
        "Labels": _to_json(record.labels),
        "Annotations": _to_json(record.annotations),
    }
    lines = (f"Reconciler-{name}: {to_one_line(value)}" for name, value in trailers.items() if value)
    return "\n".join((f"publish {tag.package} v{revision.number}", "", *lines)) + "\n"


def _to_json(data: Mapping[str, str]) -> str:
    return json.dumps(dict(data), sort_keys=True) if data else ""


def format_hydrator_metadata(commit: DryCommit) -> bytes:
    """Return the file `hydrator.metadata` in the format of Argo CD's source hydrator. Omit empty fields."""
    subject, _, body = commit.message.strip().partition("\n")
    fields = {
        "repoURL": commit.url,
        "drySha": commit.commit,
        "author": commit.author,
        "date": format_rfc3339(commit.seconds),
        "subject": subject.strip(),
        "body": body.strip(),
    }
    present = {name: value for name, value in fields.items() if value}
    return (json.dumps(present, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace")
