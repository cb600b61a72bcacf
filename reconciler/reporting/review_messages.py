"""Messages of the commits that people make by command: what was published, rejected, taken out (porch 15.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.planning.open_drafts import DraftedPackage, OpenDraft
from reconciler.reporting.commit_message import SUBJECT_WIDTH
from reconciler.reporting.conflicts import recorded_conflict_lines
from reconciler.reporting.package_status import inputs, owner_of, task_words, text, upstream
from reconciler.reporting.templates import TEMPLATES
from reconciler.reporting.values import count, one_line, shorten

PACKAGE_TRAILER = "Reconciler-Package: "
_TRAILER = "Reconciler-"
_WHY = "Why:"
_CONFLICTS = "Accepted conflicts:"


def publish_message(
    draft: OpenDraft, packages: Iterable[DraftedPackage], reason: str, via: str, person: tuple[str, str] | None = None
) -> str:
    """Return the message of the commit that publishes packages of a draft.

    Its trailers name `person`, who approved it, `via`, where the approval came from, and `reason`. The body lists the
    conflicts that were accepted with the approval.
    """
    chosen = tuple(packages)
    lines = [f"- {one.package}: {_what(one)}" for one in chosen] if len(chosen) > 1 else []
    conflicts = [f"- {one.package}: {line}" for one in chosen for line in recorded_conflict_lines(list(one.conflicts))]
    sections = ["\n".join(lines), "\n".join([_CONFLICTS, *conflicts]) if conflicts else ""]
    message = _message("publish", draft, chosen, _summary(draft, chosen), "\n\n".join(filter(None, sections)), reason)
    return message + "".join(f"{line}\n" for line in _approval_trailers(reason, via, person))


def _approval_trailers(reason: str, via: str, person: tuple[str, str] | None) -> Iterator[str]:
    if person:
        yield f"Reconciler-Approved-By: {one_line(person[0])} <{one_line(person[1])}>"
    yield f"Reconciler-Approved-Via: {via}"
    if words := " ".join(reason.split()):
        yield f"Reconciler-Reason: {one_line(words)}"


def approval_message(draft: OpenDraft, reason: str, person: tuple[str, str] | None) -> str:
    """Return the message with which a forge merges a whole draft: its account is the author, a trailer names whom."""
    return publish_message(draft, draft.packages, reason, "cli", person)


def reject_message(draft: OpenDraft, reason: str) -> str:
    """Return the message of the note that a draft was rejected; its parent is the draft's head."""
    return _message("reject", draft, (), draft.branch, "", reason)


def reason_in(message: str) -> str:
    """Return the reason that a message of this module was given; "" without one."""
    second = message.split("\n\n")[1:2]
    return "".join(one for one in second if not one.startswith(_TRAILER)).strip()


def causes_in(message: str) -> tuple[str, ...]:
    """Return why a draft was made, from the message of its commit; () when it does not tell."""
    return _listed(message, _WHY)


def templates_in(message: str) -> tuple[str, ...]:
    """Return what a draft does by templates, from the message of its commit; () when it does not tell."""
    return _listed(message, TEMPLATES)


def _listed(message: str, title: str) -> tuple[str, ...]:
    sections = [section.splitlines() for section in message.split("\n\n")]
    lines = next((lines[1:] for lines in sections if lines[:1] == [title]), [])
    return tuple(line.removeprefix("- ") for line in lines)


def take_out_message(draft: OpenDraft, packages: Iterable[DraftedPackage], reason: str) -> str:
    """Return the message of the commit that takes packages out of a draft."""
    return _message("reject", draft, tuple(packages), "take it out of the draft", "", reason)


def _message(
    task: str, draft: OpenDraft, packages: tuple[DraftedPackage, ...], what: str, body: str, reason: str
) -> str:
    name = draft.destination.name
    place = f"{name}/{packages[0].package}" if len(packages) == 1 else name
    subject = shorten(one_line(f"{task}({place}): {what}"), SUBJECT_WIDTH)
    # what a person writes is one paragraph, and no line of it is a trailer of ours
    lines = [one_line(line.strip()) for line in reason.splitlines() if line.strip()]
    words = "\n".join(f"> {line}" if line.startswith(_TRAILER) else line for line in lines)
    trailers = "\n".join(_trailers(task, draft, packages))
    return "\n\n".join(filter(None, (subject, words, body, trailers))) + "\n"


def _summary(draft: OpenDraft, packages: tuple[DraftedPackage, ...]) -> str:
    if len(packages) == 1:
        return _what(packages[0])
    return f"{count(len(packages), 'package')} of {draft.branch}" if packages else f"what {draft.branch} offers"


def _what(one: DraftedPackage) -> str:
    return "remove it" if one.removed else task_words(one.status) or "as people made it"


def _trailers(task: str, draft: OpenDraft, packages: tuple[DraftedPackage, ...]) -> Iterator[str]:
    yield f"Reconciler-Task: {task}"
    yield f"Reconciler-Repository: {draft.destination.name}"
    for one in packages:
        known = {
            "Package": one.package,
            "Owner": owner_of(one.status),
            "Upstream": _source(upstream(one.status, "to")),
            "Config-Commit": text(inputs(one.status), "config"),
            "Inputs": text(inputs(one.status), "digest"),
        }
        yield from (f"Reconciler-{name}: {one_line(value)}" for name, value in known.items() if value)


def _source(source: Mapping[str, Any]) -> str:
    place = "/".join(filter(None, (text(source, "repo"), text(source, "directory").strip("/"))))
    return " ".join(filter(None, (place, text(source, "ref"), text(source, "commit"))))
