"""Modules that are imported at their first use.

Large parts of the program are needed only by some commands, or only if an input has changed. A package declares that
its modules can be imported lazily:

    if not TYPE_CHECKING:
        __getattr__ = import_submodules_lazily(__name__)

Other modules then choose for each import:

    from reconciler.planning.decide import drafts               # imports `drafts` when `drafts.name` is read
    from reconciler.planning.decide.drafts import DraftTexts    # imports `drafts` now

Type checkers and import contracts handle both forms in the same way.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class _LazyModule(ModuleType):
    """Placeholder for a module. It imports the module at the first access to an attribute.

    Every access reads the attribute from the real module, because tests replace attributes of modules. Several threads
    can make the first access at the same time, because the import system of Python uses locks.
    """

    def __getattr__(self, name: str) -> Any:
        # Look up an imported module directly, because `import_module` takes ten times as long.
        module = sys.modules.get(self.__name__)
        if module is None or getattr(module.__spec__, "_initializing", False):
            module = importlib.import_module(self.__name__)
        return getattr(module, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(importlib.import_module(self.__name__), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(importlib.import_module(self.__name__), name)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        return vars(importlib.import_module(self.__name__))


def import_submodules_lazily(package: str) -> Callable[[str], ModuleType]:
    """Return the function `__getattr__` for a package whose modules are imported at their first use."""

    def get_submodule(name: str) -> ModuleType:
        full_name = f"{package}.{name}"
        if name.startswith("_") or importlib.util.find_spec(full_name) is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return _LazyModule(full_name)

    return get_submodule
