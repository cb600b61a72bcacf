"""Catalogs made of texts, for what needs no files on disk."""

from __future__ import annotations

from reconciler.catalog.catalog import Catalog, read_catalog
from reconciler.catalog.files import File, FileTree


def catalog_of(**files: str) -> Catalog:
    """Return the catalog of a config with these files, by their names without `.yaml`."""
    return read_catalog(FileTree({f"{name}.yaml": File(text.encode()) for name, text in files.items()}))
