"""Reading of catalogs with the settings, in the main process and in workers that render packages.

This module contains no checks that need the services of the catalog. See `CatalogServices`.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.bootstrap.engine import build_tenancy_options, build_yaml_limits
from reconciler.catalog.catalog import Catalog, ParseCache, read_catalog
from reconciler.catalog.files import FileTree
from reconciler.settings import Settings
from reconciler.tenancy.config_rules import apply_config_rules


class CatalogReader:
    """Reads the objects of a config. It caches parsed files and the last catalog."""

    def __init__(self, settings: Settings) -> None:
        self._limits = build_yaml_limits(settings)
        self._tenancy = build_tenancy_options(settings)
        self._parse_cache: ParseCache = {}
        self._catalog: Catalog | None = None

    def read(self, files: FileTree, unreadable: Mapping[str, str]) -> Catalog:
        """Return the catalog of a config, after the rules for tenants are applied.

        Args:
            unreadable: Files and folders that could not be read, each with the reason.
        """
        self._catalog = read_catalog(files, self._parse_cache, self._limits, unreadable, self._catalog)
        # Remove the parsed files of other commits from the cache, to limit its size.
        for file_id in self._parse_cache.keys() - {file.id for file in files.values()}:
            del self._parse_cache[file_id]
        return apply_config_rules(self._catalog, self._tenancy)
