"""Tenancy: the rules about which folders of the config may use which repositories, targets, kinds and functions.

The package reads `Tenant` objects and enforces their rules. It is between the controllers and the planning:

1. `config_rules.py` changes the catalog before the controllers read it.
2. `placement_rules.py` changes the catalog of the placement controller, which runs once for all tenants.
3. `package_rules.py` changes the results of the controllers before the planning reads them.
4. `render_rules.py` checks each package while the planning renders it.

The model of a tenant, and the catalog that a tenant can see, belong to `catalog/`.

Do not add rules that read a target, a clock or a Git repository. The package computes values only from a catalog and
from the results of controllers.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
