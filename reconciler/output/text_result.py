"""The result of the API that contains the text output of a command."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from reconciler.output.envelope import CommandResult, OutputModel
from reconciler.output.findings.entries import FindingEntry


class TextSummary(OutputModel):
    """The exit status of the command."""

    exit_status: int


class TextResult(CommandResult):
    """The text that a command prints. If it describes several drafts, `items` contains one text per draft."""

    kind: Literal["Text"] = "Text"
    items: tuple[str, ...]
    findings: tuple[FindingEntry, ...] = Field(
        default=(), description="The errors that the command prints on the standard error output."
    )
    summary: TextSummary
