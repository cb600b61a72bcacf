"""`reconciler token create`: its output, the file that it changes, and its errors."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from reconciler.server.authentication.access_tokens import compute_digest, parse_line, read_token_file
from tests.support.command_line import run_in


def test_the_token_is_printed_alone_and_the_line_is_a_message(tmp_path: Path) -> None:
    result = run_in(tmp_path, {}, "token", "create", "ci", "--role", "reviewer", "--targets", "stage=prod")
    token, line = result.stdout.strip(), result.stderr.splitlines()[-1]

    assert result.returncode == 0
    assert token.startswith("rcr_")
    assert line.startswith(f"ci:reviewer:stage=prod:{compute_digest(token)}:2")
    assert token not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_line_is_added_to_a_file(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    first = run_in(tmp_path, {}, "token", "create", "ci", "--expires", "never", "--add-to", "tokens")
    file.write_text("# without a line end: " + file.read_text().strip() + "\n" + file.read_text().strip())
    second = run_in(tmp_path, {}, "token", "create", "bot", "--role", "admin", "--add-to", "tokens")

    tokens = read_token_file(file)
    assert [tokens[compute_digest(result.stdout.strip())].name for result in (first, second)] == ["ci", "bot"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert second.stderr == "added the token bot to tokens\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["c:i"], "name: must consist of", id="name"),
        pytest.param(["ci", "--role", "owner"], "'viewer', 'reviewer', 'admin'", id="role"),
        pytest.param(["ci", "--role", "admin", "--targets", "a=b"], "must be empty for the role admin", id="admin"),
        pytest.param(["ci", "--targets", "a in b"], "must be a label query", id="selector"),
        pytest.param(["ci", "--expires", "soon"], "must be a number of days such ", id="expiry"),
        pytest.param(["ci", "--add-to", "tokens"], 'already contains a token with the name "c', id="same-name"),
        pytest.param(["new", "--add-to", "damaged"], "damaged:1: the line must have the form", id="damaged-file"),
        pytest.param(["new", "--add-to", "missing/tokens"], "No such file", id="no-folder"),
    ],
)
def test_errors_create_no_token(arguments: list[str], message: str, tmp_path: Path) -> None:
    run_in(tmp_path, {}, "token", "create", "ci", "--add-to", "tokens")
    (tmp_path / "damaged").write_text("line\n")
    before = (tmp_path / "tokens").read_text()
    result = run_in(tmp_path, {}, "token", "create", *arguments)

    assert result.returncode == 3
    assert message in result.stderr
    assert result.stdout == ""
    assert (tmp_path / "tokens").read_text() == before


def test_a_day_has_24_hours(tmp_path: Path) -> None:
    lines = [run_in(tmp_path, {}, "token", "create", "ci", "--expires", text).stderr for text in ("2d", "48h")]
    times = [parse_line(text.splitlines()[-1]).expires_at or 0 for text in lines]

    assert abs(times[0] - times[1]) < 60
