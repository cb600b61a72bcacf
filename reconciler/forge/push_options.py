"""Requests for review that need no token: words that go along with a push (peers.md (d), "push-options drivers").

Pure functions; `Mirror.push` and `Mirror.push_for_review` carry their answers. What such a push cannot do: say whether
the request was made (a host only warns), find one, close one, merge one, or set a check.
"""

from __future__ import annotations

import base64

from reconciler.forge.request import NewRequest
from reconciler.forge.wording import GITEA_DRAFT, GITLAB_DRAFT, without_commands

# a packet of the protocol holds 65,516 bytes, and base64 makes four of three
_ROOM = 64_000
_ENCODED_ROOM = 48_000
_ENCODED = "{base64}"


def gitlab_options(new: NewRequest) -> tuple[str, ...]:
    """Return the push options that make GitLab open a merge request of the pushed branch, or update the open one.

    To be pushed with the head branch alone. Lost on the way: blanks at the ends of a body; a backslash before an `n` in
    it, which GitLab takes for a line break (older ones take a line break for these two characters); what is beyond
    64,000 bytes; the wish to be no draft any more. GitLab makes labels that are missing.
    """
    title, body = GITLAB_DRAFT.off(_one_line(new.title)), _in_one_line(new.body)
    return (
        "merge_request.create",
        f"merge_request.target={new.base}",
        *([f"merge_request.title={title}"] if title else []),
        *([f"merge_request.description={body}"] if body else []),
        *(["merge_request.draft"] if new.draft else []),
        *(f"merge_request.label={_one_line(label)}" for label in new.labels),
    )


def agit(new: NewRequest) -> tuple[str, tuple[str, ...]]:
    """Return the ref to push the head's commit to, and the options with it, for Gitea or Forgejo to open a request.

    The topic is the head's name: a second push of it updates the request, whose title and body stay as they are. A body
    of several lines needs Gitea 1.24.3; older ones show its base64. Lost on the way: labels, and what is beyond
    48,000 bytes.
    """
    title = GITEA_DRAFT.on(_one_line(new.title), new.draft)
    told = {"topic": new.head, "title": _encoded(title), "description": _encoded(_sendable(new.body).strip())}
    options = [f"{key}={value}" for key, value in told.items() if value]
    return f"refs/for/{new.base}", (*options, "force-push=true")


def _one_line(text: str) -> str:
    return " ".join(_sendable(text).split())


def _in_one_line(body: str) -> str:
    # what GitLab will take for a line break must be one before we look for commands
    text = without_commands(_sendable(body).strip().replace("\\n", "\n"))
    # the value is stripped, and with it the blank that keeps its first line from being a command
    lead = "\n" if text.startswith(" ") else ""
    return _in_room((lead + text).replace("\n", "\\n"), _ROOM)


def _sendable(text: str) -> str:
    # a packet and an environment variable both end at a NUL; names of files may hold what is no UTF-8
    return text.replace("\0", "").encode(errors="replace").decode()


def _encoded(text: str) -> str:
    text = _in_room(text, _ENCODED_ROOM)
    if "\n" not in text and not text.startswith(_ENCODED):
        return text
    return _ENCODED + base64.b64encode(text.encode()).decode("ascii")


def _in_room(text: str, room: int) -> str:
    data = text.encode()
    return text if len(data) <= room else data[:room].decode(errors="ignore") + " …"
