"""Resets: a target whose branch and state are both gone, although its branch had a head that is known elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.krm.findings import Finding
from reconciler.planning.codes import REPOSITORY_RESET
from reconciler.planning.destination import Destination
from reconciler.snapshot.objects import CommitId

ACK_RESET = "reconciler.dev/ack-reset"
_CHARACTERS = 12
# YAML reads such a value as a number, and annotations must be strings
_LIKE_A_NUMBER = re.compile(r"[0-9]+(e[0-9]+)?")


@dataclass(frozen=True)
class KnownHead:
    """The last known head of a target: the normal form of its repository's URL, its branch and the commit."""

    repository: str
    branch: str
    head: CommitId


def acknowledgement(commit: str) -> str:
    """Return the text of an annotation that acknowledges the loss of a commit."""
    return commit[:_CHARACTERS]


def acknowledged_resets(annotations: Mapping[str, str]) -> frozenset[str]:
    """Return all acknowledgements of an object; one object may have several, of targets and of the config."""
    parts = (part.strip() for part in annotations.get(ACK_RESET, "").split(","))
    return frozenset(part for part in parts if part)


def reset_finding(destination: Destination, known: KnownHead, annotations: Mapping[str, str]) -> Finding | None:
    """Return the error of a target that lacks branch and state, or None if its annotations acknowledge that.

    `annotations` are those of the object that describes the target.
    """
    short = acknowledgement(known.head)
    if short in acknowledged_resets(annotations):
        return None
    found = annotations.get(ACK_RESET)
    message = (
        f"{destination.title}: {_situation(destination, known)}; the last known head is {short}; nothing is pushed."
        f" Next step: restore the repository, or start again from nothing with this annotation of"
        f" {_owner(destination)}: {ACK_RESET}: {_yaml(short)}"
    )
    return REPOSITORY_RESET.finding(f"{message} (found: {found})" if found else message, destination.where)


def empty_finding(destination: Destination) -> Finding:
    """Return the error of a new target in a repository that was emptied, which is not acknowledged yet."""
    message = (
        f"{destination.title}: {destination.url_text} is empty, although other clusters had branches there; nothing is"
        f" pushed. Next step: restore the repository, or acknowledge the reset of the other clusters with {ACK_RESET}"
    )
    return REPOSITORY_RESET.finding(message, destination.where)


def _situation(destination: Destination, known: KnownHead) -> str:
    here = f"branch {destination.branch} of {destination.url_text}"
    if (known.repository, known.branch) == (destination.repository_id, destination.branch):
        return f"{here} and its state are gone"
    return f"{here} does not exist and has no state; before, it was branch {known.branch} of {known.repository}"


def _owner(destination: Destination) -> str:
    key = destination.key
    return f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}"


def _yaml(value: str) -> str:
    return f'"{value}"' if _LIKE_A_NUMBER.fullmatch(value) else value
