"""All functions there are: those that run in process, and those that the operator lets run beside it (kpt.md 13)."""

from __future__ import annotations

from dataclasses import replace

from reconciler.krm.digest import digest
from reconciler.packages.functions.facts import fact_name, fact_spec
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.packages.functions.limits import FunctionLimits
from reconciler.packages.functions.registry import Found, Missing
from reconciler.packages.functions.starlark import ScriptRunner, run_starlark, starlark_function
from reconciler.packages.kptfile import FunctionSpec
from reconciler.packages.pipeline import Functions
from reconciler.runners.commands import Commands
from reconciler.runners.containers import Containers
from reconciler.snapshot.trace import ABSENT

# whose functions ours stand for
_CATALOGS = ("ghcr.io/kptdev/krm-functions-catalog", "gcr.io/kpt-fn", "gcr.io/kpt-fn-contrib", "builtins")


class AllFunctions:
    """Finds functions: commands where they are listed; images in process if we can, else where they are listed.

    A listed image of somebody else's registry runs even where one of ours has the same base name, and so does one of
    the catalog whose version we can only guess.
    """

    def __init__(
        self, native: Functions, commands: Commands, containers: Containers, prefix: str, scripts: ScriptRunner
    ) -> None:
        self._native = native
        self._starlark = starlark_function(scripts)
        self._commands = commands
        self._containers = containers
        self._catalogs = (*_CATALOGS, prefix)
        self._asked: set[str] = set()

    @property
    def limits(self) -> FunctionLimits:
        """What the functions that run in process may cost in one render."""
        return self._native.limits

    def find(self, spec: FunctionSpec) -> Found | Missing | None:
        """Return what runs for an entry of a pipeline, or why nothing can. Raises InterruptedFunctionError."""
        found = self._find(spec)
        if found and found.identity:
            self._asked.add(fact_name(spec))
        return found

    def identity(self, name: str) -> str:
        """Return what the function with this fact name is today; "" where that cannot be told now."""
        try:
            found = self.find(fact_spec(name))
        except InterruptedFunctionError:
            return ""
        return found.identity or ABSENT if found else ABSENT

    def look_again(self) -> None:
        """Forget what the functions were: a pass looks once."""
        self._commands.look_again()
        self._containers.look_again()

    @property
    def asked(self) -> tuple[str, ...]:
        """The fact names of all functions that were asked for so far and are no part of us, in order."""
        return tuple(sorted(self._asked))

    def digest(self) -> str:
        """Return a digest of all functions that were asked for so far and are no part of us, as they are now."""
        return digest({name: self.identity(name) for name in self.asked})

    def _find(self, spec: FunctionSpec) -> Found | Missing | None:
        if spec.exec:
            return self._commands.find(spec)
        own = self._native.find(spec)
        if isinstance(own, Found) and own.function is run_starlark:
            own = replace(own, function=self._starlark)
        if isinstance(own, Found) and not (self._containers.lists(spec) and self._is_rather_theirs(spec, own)):
            return own
        return self._containers.find(spec)

    def _is_rather_theirs(self, spec: FunctionSpec, own: Found) -> bool:
        folder = spec.image.partition("@")[0].rpartition("/")[0]
        return bool(own.warning) or (folder != "" and folder not in self._catalogs)
