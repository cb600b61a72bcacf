"""Wiring: the only place that builds real parts; everything else is handed values and ports."""

from reconciler.wiring.options import conflict_policy, git_options
from reconciler.wiring.parts import PackageParts, Parts, build_memory, build_package_parts, build_parts
from reconciler.wiring.places import ConfigPlace, config_place
from reconciler.wiring.publishers import (
    NoStatusPlaceError,
    build_folder,
    build_keep,
    build_push,
    listen,
    read_status,
    read_summary,
)
from reconciler.wiring.schemas import SchemasError, build_schemas

__all__ = [
    "ConfigPlace",
    "NoStatusPlaceError",
    "PackageParts",
    "Parts",
    "SchemasError",
    "build_folder",
    "build_keep",
    "build_memory",
    "build_package_parts",
    "build_parts",
    "build_push",
    "build_schemas",
    "config_place",
    "conflict_policy",
    "git_options",
    "listen",
    "read_status",
    "read_summary",
]
