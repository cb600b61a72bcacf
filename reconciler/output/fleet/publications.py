"""The publications of packages."""

from __future__ import annotations

from reconciler.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class Publication:
    """A published revision of a package, and the commit that published it.

    Attributes:
        author: The person who approved or merged the draft.
        seconds: The time of the commit, in seconds since 1970.
        subject: The first line of the commit message.
        reason: The reason in the commit message. "" if there is none.
        change_key: The key of the reviewed change in the commit message. "" if there is none, or several.
        config: The ID of the config of the render. Only the page of a package reads it.
        via: How the draft was approved, such as `console` or `cli`. "" if the commit message contains no approval.
    """

    number: int
    commit: str
    author: str
    seconds: int
    subject: str
    reason: str = ""
    change_key: str = ""
    config: str = ""
    via: str = ""
