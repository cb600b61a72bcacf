"""Workers that render beside the service are as protected as the service itself."""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor

import pytest

from reconciler.executors.processes import _begin, _fork_server
from reconciler.wiring.kitchen import SettingsKitchen

GET_DUMPABLE = 3


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this flag")
def test_a_worker_is_not_dumpable() -> None:
    factory = SettingsKitchen("{}")
    with ProcessPoolExecutor(1, _fork_server(factory), _begin, (factory,)) as pool:
        # a function of this file is not importable in the worker
        flag = pool.submit(eval, f"__import__('ctypes').CDLL(None).prctl({GET_DUMPABLE}, 0, 0, 0, 0)")

        assert flag.result(timeout=60) == 0
