"""Imports of test modules that the workers of pytest-xdist share.

The first run in a clone rewrites the assertions of each test module and compiles it, which takes longer than all other
work of the collection. Without this module, each worker would do it for each test module.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest


def import_share(config: pytest.Config) -> None:
    """Import every n-th selected test module, where n is the number of workers. Other workers use the compiled module.

    Pytest takes a module that is imported already. An import that fails has no effect: pytest repeats it, and reports
    the error at the module.
    """
    worker = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    for path in list(_list_modules(config))[worker :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])]:
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.relative_to(config.rootpath).with_suffix("").parts))


def _list_modules(config: pytest.Config) -> Iterator[Path]:
    for argument in config.args:
        path = config.invocation_params.dir / argument.partition("::")[0]
        yield from sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
