"""Tenancy: the rules about which folders of the config may use which repositories, targets, kinds and functions.

The package reads `Tenant` objects and enforces their rules. The model of a tenant is in `catalog/tenants.py`.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
