"""What products read into titles and bodies: marks that make a draft, and lines that are commands."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class DraftMark:
    """How a product knows a draft by its title: the mark we write, and all that it takes for one."""

    written: str
    taken: re.Pattern[str]

    def on(self, title: str, draft: bool) -> str:
        """Return a title with the mark, or without any."""
        bare = self.off(title)
        return f"{self.written}{bare}" if draft else bare

    def off(self, title: str) -> str:
        """Return a title without its marks."""
        return self.taken.sub("", title)

    def is_on(self, title: str) -> bool:
        """Whether a title has a mark."""
        return bool(self.taken.match(title))


GITLAB_DRAFT = DraftMark("Draft: ", re.compile(r"\A(?:(?:\[draft\]|\(draft\)|draft:)\s*)+", re.IGNORECASE))
GITEA_DRAFT = DraftMark("WIP: ", re.compile(r"\A(?:(?:WIP:|\[WIP\])\s*)+", re.IGNORECASE))


def without_commands(body: str) -> str:
    """Return a body in which GitLab finds no command (`/merge`, `/close`): a blank stands before such lines.

    A body quotes what others wrote, and GitLab would do what it says with our rights. `with_commands` is the way back.
    """
    # GitLab drops carriage returns before it looks
    return re.sub(r"^(?= */)", " ", body.replace("\r", ""), flags=re.MULTILINE)


def with_commands(body: str) -> str:
    """Return a body as it was before `without_commands`."""
    return re.sub(r"^ (?= */)", "", body, flags=re.MULTILINE)
