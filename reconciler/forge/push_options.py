"""Push options that open pull requests without a token of the API.

`Mirror.push` and `Mirror.push_for_review` send the options. A push cannot find, close or merge a pull request, set a
check, or report whether the host created the pull request.
"""

from __future__ import annotations

import base64

from reconciler.forge.port import NewRequest
from reconciler.forge.text_escaping import GITEA_DRAFT, GITLAB_DRAFT, escape_commands

# A packet of the Git protocol contains at most 65,516 bytes. Base64 encodes three bytes as four.
_MAX_BYTES = 64_000
_MAX_BYTES_BEFORE_ENCODING = 48_000
_ENCODED = "{base64}"


def build_gitlab_push_options(new: NewRequest) -> tuple[str, ...]:
    """Return the push options with which GitLab opens or updates a merge request of the pushed branch.

    The push must contain only the head branch. GitLab creates missing labels. The options have these limits:

    - Whitespace at the start and end of the body is lost.
    - The characters backslash and `n` in the body become a line break.
    - A body is cut after 64,000 bytes.
    - A draft cannot become ready for review.
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
    """Return the ref and the push options with which Gitea or Forgejo opens a pull request for a pushed commit.

    The topic is the name of the head. A second push updates the pull request, but not its title and body. A body with
    several lines requires Gitea 1.24.3; older versions show its base64. Labels are lost, and a body is cut after
    48,000 bytes.
    """
    title = GITEA_DRAFT.apply(_join_lines(new.title), new.draft)
    body = _encode_base64(_remove_invalid(new.body).strip())
    fields = {"topic": new.head, "title": _encode_base64(title), "description": body}
    options = [f"{key}={value}" for key, value in fields.items() if value]
    return f"refs/for/{new.base}", (*options, "force-push=true")


def _join_lines(text: str) -> str:
    return " ".join(_remove_invalid(text).split())


def _encode_line_breaks(body: str) -> str:
    # GitLab decodes these two characters as a line break. Decode them before the search for commands.
    text = escape_commands(_remove_invalid(body).strip().replace("\\n", "\n"))
    # GitLab strips the value. A line break protects the space that escapes a command in the first line.
    start = "\n" if text.startswith(" ") else ""
    return _truncate((start + text).replace("\n", "\\n"), _MAX_BYTES)


def _remove_invalid(text: str) -> str:
    # A packet and an environment variable end at a NUL character. File names can contain bytes that are not UTF-8.
    return text.replace("\0", "").encode(errors="replace").decode()


def _encode_base64(text: str) -> str:
    text = _truncate(text, _MAX_BYTES_BEFORE_ENCODING)
    if "\n" not in text and not text.startswith(_ENCODED):
        return text
    return _ENCODED + base64.b64encode(text.encode()).decode("ascii")


def _truncate(text: str, max_bytes: int) -> str:
    data = text.encode()
    return text if len(data) <= max_bytes else data[:max_bytes].decode(errors="ignore") + " …"
