"""The text of the checks of remotes: the lines of each remote, and the summary."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.output.envelope import create_cli_metadata
from reconciler.output.remote_checks import (
    Check,
    ForgeCheck,
    RemoteCheckEntry,
    RemoteCheckResult,
    SigningCheck,
    format_remote_checks,
    summarize_checks,
)

OK = Check(status="ok")


def build_entry(**fields: Any) -> RemoteCheckEntry:
    return RemoteCheckEntry(**{"url": "https://h/a", "uses": ("target",), "read": OK, "write": OK, **fields})


def build_result(
    *items: RemoteCheckEntry, config_error: str = "", signing: SigningCheck | None = None
) -> RemoteCheckResult:
    summary = summarize_checks(items, config_error, signing)
    return RemoteCheckResult(metadata=create_cli_metadata(), items=items, findings=(), summary=summary)


def test_lines_of_a_remote_with_a_forge() -> None:
    forge = ForgeCheck(
        kind="github", api="https://api.github.com", check=OK, limit=5000, remaining=4987, resets_at=1_700_003_600,
        clock_seconds=-2, token_expires_at=1_700_006_400,
    )  # fmt: skip
    item = build_entry(
        setting="git.credentials[0]", pattern="github.com/acme/*", push_url="ssh://git@github.com/acme/a",
        can_push_atomically=False, can_use_push_options=False, clock_seconds=3, forge=forge,
    )  # fmt: skip

    assert format_remote_checks(build_result(item)) == (
        "https://h/a (target)\n"
        "  credentials   git.credentials[0] (url github.com/acme/*)\n"
        "  read          ok\n"
        "  write         ok (ssh://git@github.com/acme/a)\n"
        "  atomic push   no (the refs of a target move in two pushes)\n"
        "  push options  no\n"
        "  clock         +3 s\n"
        "  forge         github https://api.github.com: ok\n"
        "  rate limit    4987 of 5000 requests remain until 2023-11-14T23:13:20Z\n"
        "  token expiry  2023-11-15T00:00:00Z\n"
        "  forge clock   -2 s\n"
        "\n"
        "1 remote: none failed; 1 remote with warnings"
    )


@pytest.mark.parametrize(
    ("fields", "failed", "warnings"),
    [
        pytest.param({}, 0, 0, id="ok"),
        pytest.param({"write": Check(status="notRequired")}, 0, 0, id="upstream"),
        pytest.param({"read": Check(status="failed", message="x")}, 1, 0, id="read"),
        pytest.param({"write": Check(status="readOnly")}, 1, 0, id="read-only"),
        pytest.param(
            {"forge": ForgeCheck(kind="gitea", api="a", check=Check(status="failed"))}, 1, 0, id="failed-forge"
        ),
        pytest.param({"clock_seconds": 30}, 0, 0, id="small-clock-difference"),
        pytest.param({"clock_seconds": -31}, 0, 1, id="large-clock-difference"),
        pytest.param({"can_push_atomically": False}, 0, 1, id="without-atomic-pushes"),
    ],
)
def test_totals_count_failures_and_warnings(fields: dict[str, Any], failed: int, warnings: int) -> None:
    result = build_result(build_entry(**fields))

    assert (result.summary.failed, result.summary.warnings) == (failed, warnings)
    assert result.has_failed is bool(failed)


def test_config_error_is_a_failure() -> None:
    result = build_result(config_error="no route to host")

    assert result.has_failed
    assert format_remote_checks(result) == (
        "0 remotes: none failed; the remotes of the config are not checked, because the config cannot be read: no route to host"
    )


@pytest.mark.parametrize(
    ("signing", "text", "has_failed"),
    [
        pytest.param(
            SigningCheck(key="/k", key_type="ssh-ed25519", is_deterministic=True, sign=OK, trust=OK),
            "signing key /k\n  type          ssh-ed25519\n  sign          ok\n  trusted       ok\n\n0 remotes: none failed",
            False, id="ok",
        ),
        pytest.param(
            SigningCheck(
                key="a@b.example", key_type="openpgp", is_deterministic=False, sign=OK,
                trust=Check(status="failed", message="a commit with this key has an invalid signature"),
            ),
            "signing key a@b.example\n"
            "  type          openpgp (two daemons create different commits for equal content)\n"
            "  sign          ok\n"
            "  trusted       no: a commit with this key has an invalid signature\n"
            "\n"
            "0 remotes: none failed",
            False, id="not-trusted",
        ),
        pytest.param(
            SigningCheck(
                key="/k", sign=Check(status="failed", message="/k cannot be read"), trust=Check(status="notRequired")
            ),
            "signing key /k\n  sign          failed: /k cannot be read\n  trusted       not required\n\n"
            "0 remotes: none failed; the key cannot sign",
            True, id="unreadable",
        ),
    ],
)  # fmt: skip
def test_lines_of_the_signing_key(signing: SigningCheck, text: str, has_failed: bool) -> None:
    result = build_result(signing=signing)

    assert format_remote_checks(result) == text
    assert result.has_failed is has_failed
