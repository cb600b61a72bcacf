"""Catalogs that are built from texts, for tests that need no files."""

from __future__ import annotations

from reconciler.catalog.catalog import Catalog, read_catalog
from reconciler.catalog.files import File, FileTree


def catalog_of(**files: str) -> Catalog:
    """Return the catalog of a config with these files. Keys are file names without `.yaml`."""
    return read_catalog(FileTree({f"{name}.yaml": File(text.encode()) for name, text in files.items()}))
