"""Limits of config files, packages, expressions and built-in functions."""

from __future__ import annotations

from reconciler.settings.declaration import SettingsGroup, declare


class CelLimits(SettingsGroup):
    """Limits of one CEL expression."""

    characters: int = declare(4_096, "The length limit of one expression, in characters.", ge=1)
    nesting: int = declare(4, "The largest nesting depth of loops in one expression, in levels.", ge=1)
    steps: int = declare(1_000_000, "The cost limit of one evaluation, in steps.", ge=1)
    bytes: int = declare(16_777_216, "The limit of the memory that one evaluation allocates, in bytes.", ge=1)


class FunctionLimitSettings(SettingsGroup):
    """Limits of built-in functions and starlark scripts. A function that exceeds a limit fails."""

    steps: int = declare(
        20_000_000,
        "The cost limit of all calls of built-in functions in one render of a package, in steps of about one "
        "microsecond.",
        ge=1_000,
    )
    output_bytes: int = declare(
        16_777_216,
        "The limit of the output of all calls of built-in functions in one render of a package, in bytes.",
        ge=1_024,
    )
    placeholders: int = declare(
        100,
        "The largest number of placeholders in a setter comment, and the largest number of groups in a regular "
        "expression.",
        ge=1,
        le=1_000,
    )
    cpu_seconds: int = declare(10, "The CPU time limit of one call of a starlark script, in seconds.", ge=1)
    memory_bytes: int = declare(
        536_870_912,
        "The limit of the memory (address space) of the process that runs starlark scripts, in bytes.",
        ge=67_108_864,
    )


class LimitSettings(SettingsGroup):
    """Limits of config files, packages, expressions and functions. If a limit is exceeded, a finding reports it."""

    file_bytes: int = declare(4_194_304, "The size limit of one config file, in bytes.", ge=1_024)
    folder_files: int = declare(
        200_000,
        "The largest number of files and folders in one package, and in one top-level folder of the config.",
        ge=1,
    )
    yaml_depth: int = declare(100, "The largest nesting depth of a YAML document, in levels.", ge=4, le=500)
    yaml_aliases: int = declare(1_000, "The largest number of YAML aliases in one file.", ge=0)
    yaml_documents: int = declare(2_000, "The largest number of YAML documents in one file.", ge=1)
    cel: CelLimits = CelLimits()
    functions: FunctionLimitSettings = FunctionLimitSettings()
