"""Log events of rare failures and conditions, each from the code that emits it in a pass."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import NoReturn

import pytest
from structlog.testing import capture_logs

from reconciler.bootstrap.services import build_services
from reconciler.catalog.files import File, FileTree
from reconciler.git.errors import CacheUnusableError
from reconciler.git.mirror import Mirror
from reconciler.git.signature_checks import AllowedSigners
from reconciler.reconcile import publishers, snapshot
from reconciler.reconcile.remotes.remotes import maintain_mirror
from reconciler.reconcile.verified_inputs import VerifiedInputs
from reconciler.settings import Settings
from tests.support.git_repositories import make_bare


@pytest.mark.emits("setting_deprecated")
def test_the_service_reports_deprecated_settings(tmp_path: Path) -> None:
    data = {"cache": f"{tmp_path}/cache", "webhooks": {"listen": "127.0.0.1:0", "secret_file": "s"}}
    with capture_logs() as events:
        build_services(Settings.model_validate(data), str(tmp_path), wake_up=lambda: None)

    assert [(event["setting"], event["replacement"]) for event in events] == [("webhooks.listen", "`server.listen`")]


@pytest.mark.emits("signature_checks_store_failed")
def test_checks_that_cannot_be_stored_are_reported(tmp_path: Path) -> None:
    signers = tmp_path / "signers"
    signers.write_text("ada")
    verifier = VerifiedInputs("warn", AllowedSigners(str(signers)), signers / "checks.json")
    signers.write_text("grace")
    verifier.refresh()
    with capture_logs() as events:
        verifier.store()

    assert [event["message"] for event in events] == ["File exists"]


@pytest.mark.emits("mirror_maintenance_failed")
def test_a_mirror_that_cannot_be_packed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Mirror) -> NoReturn:
        raise CacheUnusableError("no space left")

    monkeypatch.setattr(Mirror, "maintain", refuse)
    with capture_logs() as events:
        maintain_mirror(Mirror.open(tmp_path / "cache", str(make_bare(tmp_path / "remote.git"))))

    assert [event["message"] for event in events] == ["no space left"]


@pytest.mark.emits("preload_delayed")
def test_a_late_preload_does_not_stop_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "_MAX_PRELOAD_SECONDS", 0)
    with capture_logs() as events:
        snapshot._wait_for_preload(Future())

    assert [event["seconds"] for event in events] == [0]


@pytest.mark.emits("file_skipped")
def test_a_file_outside_of_the_output_folder_is_not_written(tmp_path: Path) -> None:
    with capture_logs() as events:
        publishers._write_files(tmp_path / "berlin", FileTree({"../a": File(b"a"), "b": File(b"b")}))

    assert [(event["folder"], event["path"]) for event in events] == [("berlin", "../a")]
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["b"]
