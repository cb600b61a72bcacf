"""The secret file: rotation without downtime, and messages without its content."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.credential_files import SecretFileError
from reconciler.server.deliveries import SecretFile
from reconciler.service.fleet_view import Failure


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"one\n", (b"one",), id="one"),
        pytest.param(b"one", (b"one",), id="without-an-end-of-line"),
        pytest.param(b"new\nold\n", (b"new", b"old"), id="two"),
        pytest.param(b"\n new \r\n\n  \nold\n", (b"new", b"old"), id="blank-lines-and-ends-do-not-count"),
        pytest.param(b"#1 in town\n", (b"#1 in town",), id="every-line-is-a-secret"),
    ],
)
def test_a_secret_on_each_line(tmp_path: Path, content: bytes, expected: tuple[bytes, ...]) -> None:
    file = tmp_path / "secrets"
    file.write_bytes(content)

    assert SecretFile(file).secrets() == expected


@pytest.mark.parametrize(
    ("content", "expected_message"),
    [
        pytest.param(None, "secrets: the secret file must be readable: No such file or directory", id="no-file"),
        pytest.param(b"", "secrets: must contain at least one secret, one per line", id="an-empty-file"),
        pytest.param(b" \n\n", "secrets: must contain at least one secret, one per line", id="blank-lines"),
    ],
)
def test_no_secret_is_an_error(tmp_path: Path, content: bytes | None, expected_message: str) -> None:
    file = tmp_path / "secrets"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(SecretFileError) as error:
        SecretFile(file)

    assert str(error.value) == f"{tmp_path}/{expected_message}"


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    file.write_bytes(b"old\n")
    secrets = SecretFile(file)
    with capture_logs() as log_events:
        file.write_bytes(b"new\nold\n")

        assert secrets.secrets() == (b"new", b"old")
        assert secrets.secrets() == (b"new", b"old")

    assert log_events == [{"event": "webhook_secrets_reloaded", "secrets": 2, "log_level": "info"}]


@pytest.mark.emits("webhook_secrets_lost", "webhook_secrets_reloaded")
def test_a_deleted_file_refuses_all_deliveries_until_it_exists_again(tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    file.write_bytes(b"hunter2\n")
    secrets = SecretFile(file, lambda: 7.0)
    with capture_logs() as log_events:
        working = secrets.find_failure()
        file.unlink()
        while_away = [secrets.secrets(), secrets.secrets()]
        failure = secrets.find_failure()
        file.write_bytes(b"hunter3\n")
        back = secrets.secrets()

    assert (while_away, back) == ([(), ()], (b"hunter3",))
    message = f"{file}: the secret file must be readable: No such file or directory"
    assert (working, failure, secrets.find_failure()) == (None, Failure(7.0, message), None)
    assert [item["event"] for item in log_events] == ["webhook_secrets_lost", "webhook_secrets_reloaded"]
    assert "hunter" not in str(log_events)
