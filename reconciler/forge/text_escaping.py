"""Draft marks in titles, and escaping of GitLab commands in bodies."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class DraftMark:
    """The mark of a draft in a title: the text that the reconciler writes, and the pattern that the forge accepts."""

    text: str
    pattern: re.Pattern[str]

    def apply(self, title: str, draft: bool) -> str:
        """Return a title with the mark if `draft` is set, otherwise without a mark."""
        bare = self.strip(title)
        return f"{self.text}{bare}" if draft else bare

    def strip(self, title: str) -> str:
        """Return a title without marks."""
        return self.pattern.sub("", title)

    def matches(self, title: str) -> bool:
        """Return whether a title has a mark."""
        return bool(self.pattern.match(title))


GITLAB_DRAFT = DraftMark("Draft: ", re.compile(r"\A(?:(?:\[draft\]|\(draft\)|draft:)\s*)+", re.IGNORECASE))
GITEA_DRAFT = DraftMark("WIP: ", re.compile(r"\A(?:(?:WIP:|\[WIP\])\s*)+", re.IGNORECASE))


def escape_commands(body: str) -> str:
    """Insert a space before lines that GitLab would execute as commands, such as `/merge` and `/close`.

    A body quotes text of other people, and GitLab would execute commands with the permissions of the reconciler.
    `unescape_commands` is the reverse function.
    """
    # GitLab removes carriage returns before it searches for commands.
    return re.sub(r"^(?= */)", " ", body.replace("\r", ""), flags=re.MULTILINE)


def unescape_commands(body: str) -> str:
    """Remove the spaces that `escape_commands` inserted."""
    return re.sub(r"^ (?= */)", "", body, flags=re.MULTILINE)
