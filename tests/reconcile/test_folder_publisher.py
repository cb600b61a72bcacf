"""Threads that publish different repositories clear the output folder of `render` once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any, cast

import pytest

from reconciler.git.filesystem import remove_folder
from reconciler.git.push_outcomes import PushDone
from reconciler.reconcile import publishers


def test_threads_clear_the_folder_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old").mkdir()
    removed: list[Path] = []
    both = Barrier(2)

    def remove(path: Path) -> None:
        removed.append(path)
        with suppress(BrokenBarrierError):
            both.wait(0.3)
        if path.exists():
            remove_folder(path)

    monkeypatch.setattr(publishers, "remove_folder", remove)
    publisher = publishers.FolderPublisher(tmp_path, lambda *_: {})
    with ThreadPoolExecutor(2) as pool:
        outcomes = [pool.submit(publisher.push_status, None, cast("Any", None)) for _ in range(2)]

    assert [outcome.result() for outcome in outcomes] == [PushDone()] * 2
    assert removed == [tmp_path / "old"]
