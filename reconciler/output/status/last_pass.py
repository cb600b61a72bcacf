"""The last pass of the daemon, as `reconciler status` shows it."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from reconciler.krm.times import format_rfc3339, parse_rfc3339_seconds
from reconciler.output.envelope import OutputModel, Timestamp
from reconciler.output.text import shorten, shorten_id, to_one_line

_SHORT_COMMIT = 7
_MAX_TITLE_CHARACTERS = 60
UNKNOWN = "last pass: unknown (this machine ran no pass; use --server)"


class LastPass(OutputModel):
    """The last pass: its time, its result and its config."""

    model_config = ConfigDict(extra="ignore")

    started_at: Timestamp
    completed_at: Timestamp
    result: Literal["success", "partial", "failure"] = Field(
        description="`partial`: some remotes could not be used, or some work was postponed. `failure`: the config could"
        " not be read, or an unexpected exception ended the pass."
    )
    duration_seconds: float
    config_commit: str = Field(
        default="", description="The ID of the config. Absent if the pass could not read the config."
    )
    config_title: str = Field(default="", description="The first line of the message of the config commit.")
    config_author: str = Field(default="", description="The name of the author of the config commit.")


def parse_last_pass(data: object) -> LastPass:
    """Return the last pass for JSON data with times in the format of RFC 3339.

    Raises:
        ValueError: The data is not valid.
    """
    if not isinstance(data, dict):
        raise ValueError("must be a mapping")  # noqa: TRY004 - the data comes from a file or from a server
    times = {name: parse_rfc3339_seconds(str(data.get(name))) for name in ("startedAt", "completedAt")}
    return LastPass.model_validate({**data, **times})


def format_last_pass(last_pass: LastPass | None, now: int) -> str:
    """Return the last pass on one line.

    Args:
        now: The current time, in seconds since 1970.
    """
    if last_pass is None:
        return UNKNOWN
    time = format_rfc3339(last_pass.completed_at).replace("T", " ").replace("Z", " UTC")
    age = _format_age(max(now - last_pass.completed_at, 0))
    parts = [f"last pass: {time} ({age} ago), {last_pass.result}, {last_pass.duration_seconds:.2f} s"]
    if last_pass.config_commit:
        parts.append(f"config {_format_config(last_pass)}")
    return to_one_line("; ".join(parts))


def _format_age(seconds: int) -> str:
    for limit, unit, name in ((120, 1, "s"), (7_200, 60, "min"), (172_800, 3_600, "h")):
        if seconds < limit:
            return f"{seconds // unit} {name}"
    return f"{seconds // 86_400} d"


def _format_config(last_pass: LastPass) -> str:
    commit = shorten_id(last_pass.config_commit, _SHORT_COMMIT)
    title = f' "{shorten(last_pass.config_title, _MAX_TITLE_CHARACTERS)}"' if last_pass.config_title else ""
    author = f" by {last_pass.config_author}" if last_pass.config_author else ""
    return f"{commit}{title}{author}"
