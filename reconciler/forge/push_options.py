"""Builds push options with which a Git host opens pull requests, so that no API token is required.

`Mirror.push` and `Mirror.push_for_review` send the options. A push cannot find, close or merge a pull request, or set a
check. A push also does not report whether the host created the pull request.
"""

from __future__ import annotations

import base64

from reconciler.forge.port import NewRequest
from reconciler.forge.text_escaping import GITEA_DRAFT, GITLAB_DRAFT, escape_commands

# Limits for the length of a push option. A Git packet has at most 65,516 bytes, and Base64 adds one third.
_MAX_BYTES = 64_000
_MAX_BYTES_BEFORE_ENCODING = 48_000
_ENCODED = "{base64}"


def build_gitlab_push_options(new: NewRequest) -> tuple[str, ...]:
    r"""Return the push options that make GitLab open or update a merge request for the pushed branch.

    Push only the head branch with these options. GitLab creates missing labels. The options have these limits:

    - GitLab removes whitespace at the start and end of the body.
    - GitLab converts the two characters `\n` in the body to a line break.
    - A body is cut after 64,000 bytes.
    - A draft merge request cannot be changed to ready for review.
    """
    title, body = GITLAB_DRAFT.strip(_join_lines(new.title)), _encode_line_breaks(new.body)
    return (
        "merge_request.create",
        f"merge_request.target={new.base}",
        *([f"merge_request.title={title}"] if title else []),
        *([f"merge_request.description={body}"] if body else []),
        *(["merge_request.draft"] if new.draft else []),
        *(f"merge_request.label={_join_lines(label)}" for label in new.labels),
    )


def build_agit_push(new: NewRequest) -> tuple[str, tuple[str, ...]]:
    """Return the ref and the push options that make Gitea or Forgejo open a pull request for a pushed commit.

    The topic of the pull request is the name of the head branch. A second push with the same topic updates the commit,
    but not title and body. A body with several lines requires Gitea 1.24.3, because older versions show it in Base64.
    Labels are not supported. A body is cut after 48,000 bytes.
    """
    title = GITEA_DRAFT.apply(_join_lines(new.title), new.draft)
    body = _encode_base64(_remove_invalid(new.body).strip())
    fields = {"topic": new.head, "title": _encode_base64(title), "description": body}
    options = [f"{key}={value}" for key, value in fields.items() if value]
    return f"refs/for/{new.base}", (*options, "force-push=true")


def _join_lines(text: str) -> str:
    return " ".join(_remove_invalid(text).split())


def _encode_line_breaks(body: str) -> str:
    # Decode `\n` before the search for commands, because GitLab decodes it as a line break.
    text = escape_commands(_remove_invalid(body).strip().replace("\\n", "\n"))
    # Start with a line break if the first line is escaped by a space, because GitLab removes a space at the start.
    start = "\n" if text.startswith(" ") else ""
    return _truncate((start + text).replace("\n", "\\n"), _MAX_BYTES)


def _remove_invalid(text: str) -> str:
    # Remove NUL characters, because they end a packet or an environment variable. Replace characters that are not valid
    # in UTF-8, because file names can contain such bytes.
    return text.replace("\0", "").encode(errors="replace").decode()


def _encode_base64(text: str) -> str:
    text = _truncate(text, _MAX_BYTES_BEFORE_ENCODING)
    if "\n" not in text and not text.startswith(_ENCODED):
        return text
    return _ENCODED + base64.b64encode(text.encode()).decode("ascii")


def _truncate(text: str, max_bytes: int) -> str:
    data = text.encode()
    return text if len(data) <= max_bytes else data[:max_bytes].decode(errors="ignore") + " …"
