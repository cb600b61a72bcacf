"""A reload of the settings in a running daemon: all parts use the new settings, and an error changes no part."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from tests.support.daemon import run_daemon
from tests.support.git_repositories import make_bare


@pytest.mark.emits("daemon_started", "daemon_stopped")
def test_a_reload_applies_the_settings_or_keeps_the_old_ones(tmp_path: Path) -> None:
    make_bare(tmp_path / "fleet.git")
    (tmp_path / "config").mkdir()
    work, file = tmp_path / "work", tmp_path / "reconciler.yaml"
    work.mkdir()
    settings = (
        f"cache: {tmp_path}/cache\nconfig: {{url: {tmp_path}/config}}\nfleet: {{url: {tmp_path}/fleet.git}}\n"
        "poll_seconds: 3600\nserver: {listen: '127.0.0.1:0'}\n"
    )
    file.write_text(settings + "shard: 1/2\n")
    with run_daemon(["run", "--settings", str(file)], work) as daemon:
        daemon.wait_for("pass_completed")
        file.write_text(settings + "shard: 2/3\nlog: {level: debug}\n")
        daemon.process.send_signal(signal.SIGHUP)
        reloaded = daemon.wait_for("settings_reloaded")
        completed = daemon.wait_for("pass_completed")
        metrics = daemon.get("/metrics")[1].splitlines()

        # The settings in this file are valid, but a program without a working folder cannot load them.
        shutil.rmtree(work)
        file.write_text(settings + "shard: 3/3\n")
        daemon.process.send_signal(signal.SIGHUP)
        refused = daemon.wait_for("settings_refused")
        # The daemon sets the metric after the event, and before the next pass with the old settings.
        daemon.wait_for("pass_started")
        metrics_after_refusal = daemon.get("/metrics")[1].splitlines()
        daemon.process.send_signal(signal.SIGTERM)
        stopped = daemon.wait_for("daemon_stopped")

    assert reloaded["changed"] == ["shard", "log.level"]
    assert (completed["trigger"], completed["shard"]) == (["reload"], "2/3")
    assert {"reconciler_shard_index 2.0", "reconciler_shards 3.0"} <= {*metrics}
    assert "No such file or directory" in refused["message"]
    assert refused["shard"] == "2/3"
    assert {"reconciler_shard_index 2.0", "reconciler_settings_reload_success 0.0"} <= {*metrics_after_refusal}
    assert stopped["exit_status"] == 0
