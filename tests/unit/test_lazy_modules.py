"""`import_submodules_lazily`: a module is imported when one of its attributes is read."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

INIT = (
    "from reconciler.lazy_modules import import_submodules_lazily\n__getattr__ = import_submodules_lazily(__name__)\n"
)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Yield a package with the module `part`."""
    folder = tmp_path / "lazy_package"
    folder.mkdir()
    (folder / "__init__.py").write_text(INIT)
    (folder / "part.py").write_text("value = 1\n")
    (folder / "user.py").write_text("from lazy_package import part\ndef read(): return part.value\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("lazy_package")
    monkeypatch.undo()
    for name in [name for name in sys.modules if name.partition(".")[0] == "lazy_package"]:
        del sys.modules[name]


def test_an_import_of_the_module_does_not_run_the_module(package: ModuleType) -> None:
    user = importlib.import_module("lazy_package.user")
    assert "lazy_package.part" not in sys.modules

    assert user.read() == 1
    assert "lazy_package.part" in sys.modules


def test_a_user_reads_replaced_attributes(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    user = importlib.import_module("lazy_package.user")
    monkeypatch.setattr("lazy_package.part.value", 2)

    assert user.read() == 2


def test_an_import_of_an_attribute_runs_the_module(package: ModuleType) -> None:
    scope: dict[str, object] = {}
    exec("from lazy_package.part import value", scope)

    assert scope["value"] == 1


@pytest.mark.parametrize("name", ["missing", "_private", "__path_of_nothing__"])
def test_an_unknown_module_is_an_error(package: ModuleType, name: str) -> None:
    with pytest.raises(ImportError, match=name):
        exec(f"from lazy_package import {name}")


def test_a_missing_attribute_is_an_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="absent"):
        _ = package.part.absent


def test_a_replaced_attribute_can_be_restored(package: ModuleType) -> None:
    part = package.part
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part, "value", 3)
        assert importlib.import_module("lazy_package.part").value == 3

    assert part.value == importlib.import_module("lazy_package.part").value == 1
