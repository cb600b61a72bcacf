"""Finds all functions that can run: built-in functions, and the commands and containers that the settings allow."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from reconciler.api.kpt import FunctionSpec
from reconciler.catalog.trace import ABSENT_FINGERPRINT
from reconciler.krm.json_text import compute_digest
from reconciler.packages.functions.function import (
    FunctionConfig,
    FunctionContext,
    FunctionOutput,
    InterruptedFunctionError,
    Item,
    KrmFunction,
)
from reconciler.packages.functions.limits import FunctionLimits
from reconciler.packages.functions.registry import (
    FunctionMatch,
    FunctionUnavailable,
    format_function_trace_key,
    parse_function_trace_key,
    split_image,
)
from reconciler.packages.functions.starlark import ScriptRunner, create_starlark_function, run_starlark
from reconciler.packages.package import CHART_FUNCTION
from reconciler.packages.pipeline import FunctionProvider
from reconciler.runners.commands import CommandFunctions
from reconciler.runners.containers import ContainerFunctions
from reconciler.telemetry.render_metrics import FunctionCall, record_function_calls

if TYPE_CHECKING:
    from reconciler.packages.functions.render_helm_chart import ChartFunctions

# Registries of function catalogs. Built-in functions replace images from these registries.
_CATALOGS = ("ghcr.io/kptdev/krm-functions-catalog", "gcr.io/kpt-fn", "gcr.io/kpt-fn-contrib", "builtins")


class CombinedFunctionProvider:
    """Finds the function for an entry of a kpt pipeline.

    A command runs if the settings allow it. An image runs as a built-in function if there is one for the image. Any
    other image runs as a container if the settings allow it.

    In two cases, an allowed image runs as a container even if there is a built-in function for the image:

    - The registry of the image is not a function catalog.
    - The built-in function does not have the requested version.
    """

    def __init__(
        self,
        builtin: FunctionProvider,
        commands: CommandFunctions,
        containers: ContainerFunctions,
        prefix: str,
        scripts: ScriptRunner,
        build_charts: Callable[[], ChartFunctions],
        programs: Mapping[str, Callable[[], str]] | None = None,
    ) -> None:
        """Combine the providers.

        Args:
            build_charts: Creates the provider of the built-in function that renders Helm charts.
            programs: Maps the trace key of each program that renders sources, such as Helm, to a function that returns
                the identity of the program.
        """
        self._programs = programs or {}
        self._build_charts = build_charts
        self._builtin = builtin
        self._starlark = create_starlark_function(scripts)
        self._commands = commands
        self._containers = containers
        self._catalogs = (*_CATALOGS, prefix)
        self._requested: set[str] = set()

    @property
    def limits(self) -> FunctionLimits:
        """The limits of the built-in functions for one render."""
        return self._builtin.limits

    def find(self, spec: FunctionSpec) -> FunctionMatch | FunctionUnavailable | None:
        """Return the function for a pipeline entry. If the function is not available, return the reason.

        Raises:
            InterruptedFunctionError: The function cannot be determined now.
        """
        match, runtime = self._find(spec)
        if match and match.identity:
            self._requested.add(format_function_trace_key(spec))
        if isinstance(match, FunctionMatch):
            return replace(match, function=_measure_calls(match.function, runtime, spec))
        return match

    @cached_property
    def _charts(self) -> ChartFunctions:
        return self._build_charts()

    def identity(self, trace_key: str) -> str:
        """Return the identity of an external function or program, e.g. a digest.

        Return "" if the identity cannot be determined now.
        """
        if trace_key in self._programs:
            self._requested.add(trace_key)
            return self._programs[trace_key]()
        try:
            match = self.find(parse_function_trace_key(trace_key))
        except InterruptedFunctionError:
            return ""
        return match.identity or ABSENT_FINGERPRINT if match else ABSENT_FINGERPRINT

    def refresh(self) -> None:
        """Delete the cached identities, so that each pass determines each identity again."""
        self._commands.refresh()
        self._containers.refresh()

    @property
    def requested_functions(self) -> tuple[str, ...]:
        """The sorted trace keys of all external functions that were requested until now."""
        return tuple(sorted(self._requested))

    def digest(self) -> str:
        """Return a digest of the current identities of all external functions that were requested until now."""
        return compute_digest({name: self.identity(name) for name in self.requested_functions})

    def _find(self, spec: FunctionSpec) -> tuple[FunctionMatch | FunctionUnavailable | None, str]:
        """Return the function, and the name of its runtime as a label for metrics, e.g. "container"."""
        if spec.exec:
            return self._commands.find(spec), "exec"
        runtime = "builtin"
        is_chart_function = split_image(spec.image)[0] == CHART_FUNCTION
        match = self._charts.find() if is_chart_function else self._builtin.find(spec)
        if isinstance(match, FunctionMatch) and match.function is run_starlark:
            runtime = "starlark"
            match = replace(match, function=self._starlark)
        if isinstance(match, FunctionMatch) and not (
            self._prefers_container(spec, match) and self._containers.is_allowed(spec)
        ):
            return match, runtime
        if isinstance(match, FunctionUnavailable) and not self._containers.is_allowed(spec):
            return match, runtime
        return self._containers.find(spec), "container"

    def _prefers_container(self, spec: FunctionSpec, match: FunctionMatch) -> bool:
        registry = spec.image.partition("@")[0].rpartition("/")[0]
        return bool(match.warning) or (registry != "" and registry not in self._catalogs)


def _measure_calls(function: KrmFunction, runtime: str, spec: FunctionSpec) -> KrmFunction:
    """Return a function that also records the duration and the result of each call."""

    def call(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
        start_time, started_at, result = time.time(), time.perf_counter(), "failed"
        try:
            output = function(items, config, context)
            result = "failed" if output.has_failed else "success"
        except InterruptedFunctionError:
            result = "interrupted"
            raise
        finally:
            seconds = time.perf_counter() - started_at
            record_function_calls([FunctionCall(runtime, result, seconds, spec.image or spec.exec, start_time)])
        return output

    return call
