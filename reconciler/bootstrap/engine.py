"""Construction of the code that renders packages: functions, merge options and limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from reconciler.api.porch.policies import ConflictPolicy
from reconciler.krm.schema import read_list_key_table
from reconciler.krm.yaml import YamlLimits
from reconciler.packages.functions.limits import FunctionLimits
from reconciler.packages.functions.registry import BUILTIN_FUNCTIONS
from reconciler.packages.update.options import MergeOptions, build_merge_options
from reconciler.planning.render.conflict_policy import select_conflict_policy
from reconciler.planning.render.renderer import RenderEngine
from reconciler.processes.process import ProcessLimits
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.runners.commands import CommandFunctions
from reconciler.runners.containers import ContainerEngine, ContainerFunctions, EngineOptions
from reconciler.runners.functions import CombinedFunctionProvider
from reconciler.runners.interrupted_calls import InterruptedCalls
from reconciler.runners.scripts import BackoffScriptRunner, get_shared_script_process
from reconciler.settings import Settings
from reconciler.tenancy.config_rules import TenancyOptions

if TYPE_CHECKING:
    from reconciler.packages.functions.render_helm_chart import ChartFunctions
    from reconciler.sources.helm import HelmEngine


def read_merge_options(settings: Settings) -> MergeOptions:
    """Convert the settings group `merge` to MergeOptions."""
    options = build_merge_options(settings.merge.profile, settings.merge.deviations)
    table, _ = read_list_key_table(settings.merge.list_keys)
    return replace(options, schemas=options.schemas.with_list_keys(table)) if table else options


def get_conflict_policy(settings: Settings) -> ConflictPolicy:
    """Return the conflict policy that applies if a PackageVariant does not set a conflict policy."""
    return select_conflict_policy(None, settings.merge.conflict_policy, settings.merge.profile)


def build_functions(
    settings: Settings,
    backoff: Backoff,
    get_helm: Callable[[], HelmEngine],
    programs: Mapping[str, Callable[[], str]] | None = None,
) -> CombinedFunctionProvider:
    """Build the provider of functions: built-in functions, and the programs and containers that the settings list.

    Args:
        get_helm: Returns the engine for charts. It is called only if a pipeline renders charts.
        programs: Maps the trace key of each rendering program to a function that returns the identity of the program.
    """
    options = settings.functions
    process_limits = ProcessLimits(options.timeout_seconds, options.memory_bytes, options.output_bytes)
    interrupted = InterruptedCalls(backoff)
    engine = ContainerEngine(EngineOptions(options.engine, options.pull), process_limits)
    containers = ContainerFunctions(options.containers, options.image_prefix, engine, process_limits, interrupted)
    limits = FunctionLimits(**settings.limits.functions.model_dump())
    commands = CommandFunctions(options.exec, process_limits, interrupted)
    scripts = BackoffScriptRunner(get_shared_script_process(float(options.timeout_seconds)), interrupted)

    def build_charts() -> ChartFunctions:
        # Import the module here, because most pipelines render no charts.
        from reconciler.packages.functions.render_helm_chart import ChartFunctions

        return ChartFunctions(get_helm, settings.sources.helm.kube_version)

    return CombinedFunctionProvider(
        replace(BUILTIN_FUNCTIONS, limits=limits), commands, containers, options.image_prefix, scripts, build_charts,
        programs,
    )  # fmt: skip


def build_render_engine(settings: Settings, functions: CombinedFunctionProvider) -> RenderEngine:
    """Build the engine that renders packages."""
    merge = settings.merge
    blocks_secrets = settings.rules.secrets == "block"
    return RenderEngine(
        merge.profile, merge.conflict_policy or None, functions, read_merge_options(settings), blocks_secrets,
        hold_kinds=frozenset(settings.guards.hold_kinds),
    )  # fmt: skip


def build_yaml_limits(settings: Settings) -> YamlLimits:
    """Return the size limits for one YAML file."""
    limits = settings.limits
    return YamlLimits(
        file_bytes=limits.file_bytes,
        depth=limits.yaml_depth,
        aliases=limits.yaml_aliases,
        documents=limits.yaml_documents,
    )


def build_tenancy_options(settings: Settings) -> TenancyOptions:
    """Return the settings about tenants."""
    return TenancyOptions(settings.tenancy.directory, settings.tenancy.default == "deny")
