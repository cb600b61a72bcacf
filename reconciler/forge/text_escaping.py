"""Prefixes that mark drafts in titles, and escaping of GitLab commands in bodies."""

from __future__ import annotations

import re

from reconciler.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class DraftPrefix:
    """The prefix of a title that marks a draft on a forge.

    Attributes:
        text: The prefix that the daemon writes.
        pattern: Matches all prefixes that the forge accepts.
    """

    text: str
    pattern: re.Pattern[str]

    def apply(self, title: str, draft: bool) -> str:
        """Return the title with the prefix if `draft` is True, and without a prefix if `draft` is False."""
        bare = self.strip(title)
        return f"{self.text}{bare}" if draft else bare

    def strip(self, title: str) -> str:
        """Return the title without prefixes that mark a draft."""
        return self.pattern.sub("", title)

    def matches(self, title: str) -> bool:
        """Return whether the title has a prefix that marks a draft."""
        return bool(self.pattern.match(title))


GITLAB_DRAFT = DraftPrefix("Draft: ", re.compile(r"\A(?:(?:\[draft\]|\(draft\)|draft:)\s*)+", re.IGNORECASE))
GITEA_DRAFT = DraftPrefix("WIP: ", re.compile(r"\A(?:(?:WIP:|\[WIP\])\s*)+", re.IGNORECASE))


def escape_commands(body: str) -> str:
    """Insert a space before lines that GitLab would execute as commands, such as `/merge` and `/close`.

    A body contains text of other people, and GitLab would execute their commands with the permissions of the daemon.
    `unescape_commands` is the reverse function.
    """
    # Remove carriage returns first, because GitLab also removes them before it searches for commands.
    return re.sub(r"^(?= */)", " ", body.replace("\r", ""), flags=re.MULTILINE)


def unescape_commands(body: str) -> str:
    """Remove the spaces that `escape_commands` inserted."""
    return re.sub(r"^ (?= */)", "", body, flags=re.MULTILINE)
