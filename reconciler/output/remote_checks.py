"""The result of `reconciler doctor`: the checks of all remotes, and their text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from reconciler.krm.numbers import format_count
from reconciler.krm.times import format_rfc3339
from reconciler.output.envelope import CommandResult, OutputModel, Timestamp
from reconciler.output.findings.entries import FindingEntry
from reconciler.output.text import to_one_line

CheckStatus = Literal["ok", "failed", "readOnly", "notRequired"]
RemoteUse = Literal["config", "upstream", "target", "fleet.url", "status.url"]
MAX_CLOCK_SECONDS = 30
"""The largest clock difference without a warning, in seconds. GitHub rejects App tokens from 60 seconds on."""
_STATUS_TEXTS: dict[CheckStatus, str] = {
    "ok": "ok", "failed": "failed", "readOnly": "read-only", "notRequired": "not required",
}  # fmt: skip


class Check(OutputModel):
    """The result of one check. `readOnly` means that the settings contain no credentials for pushes."""

    status: CheckStatus
    message: str = ""

    @property
    def text(self) -> str:
        """The status with its message, on one line."""
        return f"{_STATUS_TEXTS[self.status]}{': ' if self.message else ''}{to_one_line(self.message)}"


class ForgeCheck(OutputModel):
    """The check of the API of a forge, with the number of requests that the forge allows."""

    kind: str
    api: str = Field(description="The URL of the API.")
    check: Check
    limit: int | None = Field(default=None, description="The number of requests that the forge allows per period.")
    remaining: int | None = Field(default=None, description="The number of remaining requests of this period.")
    resets_at: Timestamp | None = Field(default=None, description="The time at which the period ends.")
    clock_seconds: int | None = Field(
        default=None, description="The clock of the forge minus the local clock, in seconds."
    )
    token_expires_at: Timestamp | None = Field(
        default=None, description="The time at which the token expires. Only GitHub reports this time."
    )


class RemoteCheckEntry(OutputModel):
    """The checks of one remote."""

    url: str
    uses: tuple[RemoteUse, ...]
    setting: str = Field(
        default="", description="The entry of `git.credentials` for this remote. Absent if no entry matches."
    )
    pattern: str = Field(default="", description="The `url` of the entry of `git.credentials`.")
    push_url: str = Field(default="", description="The URL for pushes, if this URL differs from `url`.")
    read: Check
    write: Check
    can_push_atomically: bool | None = Field(default=None, description="Whether the host supports atomic pushes.")
    can_use_push_options: bool | None = Field(default=None, description="Whether the host supports push options.")
    clock_seconds: int | None = Field(
        default=None,
        description="The clock of the host minus the local clock, in seconds. Only HTTP remotes report their clock.",
    )
    forge: ForgeCheck | None = None

    @property
    def has_failed(self) -> bool:
        """Whether a check failed, or a remote that must be writable is read-only."""
        checks = (self.read, self.write, *((self.forge.check,) if self.forge else ()))
        return any(check.status in ("failed", "readOnly") for check in checks)

    @property
    def has_warning(self) -> bool:
        """Whether a clock difference is too large, or the host does not support atomic pushes."""
        clocks = (self.clock_seconds, self.forge.clock_seconds if self.forge else None)
        return self.can_push_atomically is False or any(abs(clock or 0) > MAX_CLOCK_SECONDS for clock in clocks)


class SigningCheck(OutputModel):
    """The check of the signing key."""

    key: str = Field(description="The file or the ID of the key in the settings.")
    key_type: str = Field(default="", description="The type of the key. Absent if the key cannot be read.")
    is_deterministic: bool | None = Field(
        default=None, description="Whether two services with this key write equal commits for equal content."
    )
    sign: Check = Field(description="Whether the key can sign, and git accepts the signature.")
    trust: Check = Field(
        description="Whether the key is an allowed signer. If not, the check reports a warning, because commits with "
        "this key are not valid inputs."
    )


class RemoteCheckTotals(OutputModel):
    """The numbers of remotes, and the check of the signing key."""

    remotes: int
    failed: int = Field(default=0, description="The number of remotes with a failed check.")
    warnings: int = Field(
        default=0, description="The number of remotes with a large clock difference or without atomic pushes."
    )
    signing: SigningCheck | None = Field(default=None, description="Absent if the settings contain no signing key.")
    config_error: str = Field(
        default="",
        description="The reason why the config cannot be read. The remotes of the config are then not checked.",
    )


class RemoteCheckResult(CommandResult):
    """The result of `reconciler doctor`."""

    kind: Literal["RemoteCheck"] = "RemoteCheck"
    items: tuple[RemoteCheckEntry, ...]
    findings: tuple[FindingEntry, ...]
    summary: RemoteCheckTotals

    @property
    def has_failed(self) -> bool:
        """Whether a check failed, or the config cannot be read."""
        signing = self.summary.signing
        is_unsigned = signing is not None and signing.sign.status == "failed"
        return bool(self.summary.failed or self.summary.config_error or is_unsigned)


def summarize_checks(
    items: tuple[RemoteCheckEntry, ...], config_error: str, signing: SigningCheck | None = None
) -> RemoteCheckTotals:
    """Return the numbers of remotes, with the check of the signing key."""
    failed, warnings = sum(item.has_failed for item in items), sum(item.has_warning for item in items)
    return RemoteCheckTotals(
        remotes=len(items), failed=failed, warnings=warnings, signing=signing, config_error=config_error
    )


def format_remote_checks(result: RemoteCheckResult) -> str:
    """Return the text of the result: a block per remote, a block for the signing key, and a summary line."""
    blocks = ["\n".join(_format_remote(item)) for item in result.items]
    if result.summary.signing:
        blocks.append("\n".join(_format_signing(result.summary.signing)))
    findings = [f"{finding.severity} {finding.code}: {to_one_line(finding.message)}" for finding in result.findings]
    return "\n\n".join([*blocks, *(["\n".join(findings)] if findings else []), _format_summary(result.summary)])


def _format_remote(item: RemoteCheckEntry) -> Iterator[str]:
    yield f"{to_one_line(item.url)} ({', '.join(item.uses)})"
    entry = f"{item.setting} (url {to_one_line(item.pattern)})" if item.setting else "no entry of git.credentials"
    yield f"  credentials   {entry}"
    yield f"  read          {item.read.text}"
    push_url = f" ({to_one_line(item.push_url)})" if item.push_url else ""
    yield f"  write         {item.write.text}{push_url}"
    if item.can_push_atomically is not None:
        yield f"  atomic push   {'yes' if item.can_push_atomically else 'no (the refs of a target move in two pushes)'}"
        yield f"  push options  {'yes' if item.can_use_push_options else 'no'}"
    if item.clock_seconds is not None:
        yield f"  clock         {_format_clock(item.clock_seconds)}"
    if item.forge:
        yield f"  forge         {item.forge.kind} {to_one_line(item.forge.api)}: {item.forge.check.text}"
        if item.forge.remaining is not None:
            yield f"  rate limit    {_format_quota(item.forge)}"
        if item.forge.token_expires_at is not None:
            yield f"  token expiry  {format_rfc3339(item.forge.token_expires_at)}"
        if item.forge.clock_seconds is not None:
            yield f"  forge clock   {_format_clock(item.forge.clock_seconds)}"


def _format_signing(signing: SigningCheck) -> Iterator[str]:
    yield f"signing key {to_one_line(signing.key)}"
    if signing.key_type:
        note = "" if signing.is_deterministic else " (two daemons create different commits for equal content)"
        yield f"  type          {to_one_line(signing.key_type)}{note}"
    yield f"  sign          {signing.sign.text}"
    is_trusted = signing.trust.status != "failed"
    yield f"  trusted       {signing.trust.text if is_trusted else f'no: {to_one_line(signing.trust.message)}'}"


def _format_clock(seconds: int) -> str:
    warning = f" (more than {MAX_CLOCK_SECONDS} s: check the time of both machines)"
    return f"{seconds:+d} s{warning if abs(seconds) > MAX_CLOCK_SECONDS else ''}"


def _format_quota(forge: ForgeCheck) -> str:
    limit = f" of {forge.limit}" if forge.limit is not None else ""
    reset = f" until {format_rfc3339(forge.resets_at)}" if forge.resets_at is not None else ""
    return f"{forge.remaining}{limit} requests remain{reset}"


def _format_summary(totals: RemoteCheckTotals) -> str:
    parts = [f"{format_count(totals.remotes, 'remote')}: {totals.failed or 'none'} failed"]
    parts += [f"{format_count(totals.warnings, 'remote')} with warnings"] if totals.warnings else []
    if totals.signing and totals.signing.sign.status == "failed":
        parts.append("the key cannot sign")
    if totals.config_error:
        parts.append(
            f"the remotes of the config are not checked, because the config cannot be read: {totals.config_error}"
        )
    return "; ".join(parts)
