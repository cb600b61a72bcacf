"""The results of the read API about the service: its last passes and its remotes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from reconciler.output.envelope import CommandResult, OutputModel, Timestamp


class PassEntry(OutputModel):
    """A pass of the service."""

    started_at: Timestamp
    duration_seconds: float
    result: str = Field(description="`success`, `partial` or `failure`.")
    triggers: tuple[str, ...] = Field(default=(), description="The reasons of the pass.")
    phases: Mapping[str, float] = Field(default={}, description="The seconds of each phase.")
    message: str = Field(
        default="", description="The error of a failed pass. Only people who may read all targets receive this error."
    )


class PassListSummary(OutputModel):
    """The number of passes."""

    passes: int


class PassListResult(CommandResult):
    """The last passes of this process, the newest first."""

    kind: Literal["PassList"] = "PassList"
    items: tuple[PassEntry, ...]
    summary: PassListSummary


class RemoteEntry(OutputModel):
    """A remote that the last completed pass has fetched."""

    key: str = Field(description="The remote in the path of the action `retry`.")
    url: str
    kind: str = Field(description="The use of the remote: `upstream`, `target` or `both`.")
    state: Literal["ok", "failing"]
    code: str = Field(default="", description="The reason of the failure, such as `AccessDenied`.")
    message: str = ""
    since: Timestamp | None = Field(default=None, description="The start of the failures.")
    failures: int = Field(default=0, description="The number of failed fetches since the last success.")
    next_attempt: Timestamp | None = Field(
        default=None, description="The time of the next possible fetch. Earlier passes do not fetch the remote."
    )
    last_fetch: Timestamp | None = Field(
        default=None, description="The last successful fetch since the start of the service."
    )
    last_push: Timestamp | None = Field(
        default=None, description="The last push that changed the remote, since the start of the service."
    )


class RemoteListSummary(OutputModel):
    """The numbers of remotes."""

    remotes: int
    failing: int


class RemoteListResult(CommandResult):
    """The remotes of the service."""

    kind: Literal["RemoteList"] = "RemoteList"
    items: tuple[RemoteEntry, ...]
    summary: RemoteListSummary
