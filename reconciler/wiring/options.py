"""Options: settings as the floors below read them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from reconciler.daemon.backoff import Backoff
from reconciler.gitio.options import GitOptions, RemoteLimits
from reconciler.krm.schema import read_key_table
from reconciler.krm.yaml import YamlLimits
from reconciler.packages.functions.limits import FunctionLimits
from reconciler.packages.functions.registry import BUILTIN
from reconciler.packages.update import MergeOptions
from reconciler.packages.update.deviations import options_of
from reconciler.planning.render import Engine
from reconciler.planning.shard import read_shard
from reconciler.rules.variant import ConflictPolicy, default_conflict_policy
from reconciler.runners.commands import Commands
from reconciler.runners.containers import Containers
from reconciler.runners.engine import Engine as ContainerEngine
from reconciler.runners.engine import EngineOptions
from reconciler.runners.functions import AllFunctions
from reconciler.runners.process import Bounds
from reconciler.runners.scripts import Scripts, shared_script_process
from reconciler.runners.spoiled import SpoiledCalls
from reconciler.settings import Settings

# how long what failed rests at first
FIRST_REST_SECONDS = 5.0


def cache_file(settings: Settings, name: str) -> Path:
    """Return the file of the cache that remembers something; each shard has its own, for it is written as a whole."""
    shard = read_shard(settings.shard)
    own = "" if shard.is_alone else f"-{shard.index}-of-{shard.count}"
    return Path(settings.cache).expanduser() / f"{name}{own}.json"


def git_options(settings: Settings) -> GitOptions:
    """Return the settings group `git` as the Git floor reads it."""
    git = settings.git
    name, _, mail = git.author.removesuffix(">").rpartition(" <")
    return GitOptions(
        timeout_seconds=git.timeout_seconds,
        author=(name, mail),
        allowed_urls=git.allowed_urls,
        credentials_file=git.credentials_file or None,
        ssh_key_file=git.ssh_key_file or None,
        known_hosts_file=git.known_hosts_file or None,
        max_refs_per_push=git.max_refs_per_push,
        max_pushes_per_minute=git.max_pushes_per_minute,
        max_folder_files=settings.limits.folder_files,
        remotes=tuple(RemoteLimits(one.url, one.max_refs_per_push, one.max_pushes_per_minute) for one in git.remotes),
    )


def merging(settings: Settings) -> MergeOptions:
    """Return how packages are merged."""
    options = options_of(settings.merge.profile, settings.merge.deviations)
    table, _ = read_key_table(settings.merge.list_keys)
    return replace(options, shapes=options.shapes.with_table(table)) if table else options


def conflict_policy(settings: Settings) -> ConflictPolicy:
    """Return who wins where people and upstream changed the same, unless a PackageVariant decides."""
    return settings.merge.conflict_policy or default_conflict_policy(settings.merge.profile)


def functions(settings: Settings, backoff: Backoff) -> AllFunctions:
    """Return the functions that may be run: ours, and what the settings list."""
    one = settings.functions
    bounds = Bounds(one.timeout_seconds, one.memory_bytes, one.output_bytes)
    spoiled = SpoiledCalls(backoff)
    engine = ContainerEngine(EngineOptions(one.engine, one.pull), bounds)
    containers = Containers(one.containers, one.image_prefix, engine, bounds, spoiled)
    limits = FunctionLimits(**settings.limits.functions.model_dump())
    commands = Commands(one.exec, bounds, spoiled)
    scripts = Scripts(shared_script_process(float(one.timeout_seconds)), spoiled)
    return AllFunctions(replace(BUILTIN, limits=limits), commands, containers, one.image_prefix, scripts)


def engine(settings: Settings, functions: AllFunctions) -> Engine:
    """Return how packages are rendered."""
    one = settings.merge
    blocks_secrets = settings.rules.secrets == "block"
    return Engine(one.profile, one.conflict_policy or None, functions, merging(settings), blocks_secrets)


def yaml_limits(settings: Settings) -> YamlLimits:
    """Return what one YAML file may cost."""
    one = settings.limits
    return YamlLimits(
        file_bytes=one.file_bytes, depth=one.yaml_depth, aliases=one.yaml_aliases, documents=one.yaml_documents
    )


def available_cores() -> int:
    """Return how many cores this process may use."""
    # where containers and taskset narrow it, the number of the machine's cores says nothing
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
