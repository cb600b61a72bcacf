"""Worker processes have the same protection as the service itself."""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor

import pytest

from reconciler.bootstrap.renderer_factory import SettingsRendererFactory
from reconciler.executors.processes import _create_fork_server, _initialize_worker

GET_DUMPABLE = 3


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this flag")
def test_a_worker_is_not_dumpable() -> None:
    factory = SettingsRendererFactory("{}", "")
    with ProcessPoolExecutor(1, _create_fork_server(factory), _initialize_worker, (factory,)) as pool:
        # A worker cannot import a function of this file.
        flag = pool.submit(eval, f"__import__('ctypes').CDLL(None).prctl({GET_DUMPABLE}, 0, 0, 0, 0)")

        assert flag.result(timeout=60) == 0
