"""The composition root: create the services for Git, files and the network from the settings, and connect them.

All other packages receive these services as arguments. Decisions about packages and targets do not belong here.
"""

from reconciler.bootstrap.config_location import ConfigLocation, locate_config
from reconciler.bootstrap.options import build_git_options, get_conflict_policy
from reconciler.bootstrap.publishers import (
    NoStatusRepositoryError,
    build_dry_run_publisher,
    build_folder_publisher,
    build_push_publisher,
    read_status,
    read_summary,
    start_webhook_server,
)
from reconciler.bootstrap.schema_folder import SchemasError, build_schemas
from reconciler.bootstrap.services import (
    PackageServices,
    Services,
    build_package_services,
    build_pass_cache,
    build_services,
)

__all__ = [
    "ConfigLocation",
    "NoStatusRepositoryError",
    "PackageServices",
    "SchemasError",
    "Services",
    "build_dry_run_publisher",
    "build_folder_publisher",
    "build_git_options",
    "build_package_services",
    "build_pass_cache",
    "build_push_publisher",
    "build_schemas",
    "build_services",
    "get_conflict_policy",
    "locate_config",
    "read_status",
    "read_summary",
    "start_webhook_server",
]
