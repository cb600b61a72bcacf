"""Workers of pytest-xdist import different test modules, and an import that fails changes nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.shared_imports import import_share


@pytest.mark.parametrize(
    ("worker", "expected"), [("gw0", {"test_a", "test_c"}), ("gw1", {"test_b"})], ids=["first-worker", "second-worker"]
)
def test_each_worker_imports_its_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worker: str, expected: set[str]
) -> None:
    contents = {"test_a": "", "test_b": "", "test_c": "", "test_d": "raise ValueError", "helpers": ""}
    for name, content in contents.items():
        (tmp_path / f"{name}.py").write_text(content)
    monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "modules", sys.modules.copy())

    import_share(
        SimpleNamespace(args=["."], rootpath=tmp_path, invocation_params=SimpleNamespace(dir=tmp_path))  # type: ignore[arg-type]
    )

    assert expected == contents.keys() & sys.modules.keys()
