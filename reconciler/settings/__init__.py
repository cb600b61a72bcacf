"""The settings of the reconciler: models, the loader for file and environment, and the JSON Schema.

`scripts/make_reference.py` generates the list of all settings in `config/reconciler.yaml`, the JSON Schema in
`config/schema.json` and the reference page from the models.

The models describe and check values. They read no files, and create no adapters; `bootstrap` uses the values for that.
"""

from reconciler.settings.all_settings import Settings
from reconciler.settings.forge import ForgeSettings
from reconciler.settings.functions import FunctionSettings
from reconciler.settings.loading import DEFAULT_FILE, SettingsError, build_schema_text, load_settings
from reconciler.settings.repositories import FleetSettings
from reconciler.settings.rules import RuleSettings

__all__ = [
    "DEFAULT_FILE",
    "FleetSettings",
    "ForgeSettings",
    "FunctionSettings",
    "RuleSettings",
    "Settings",
    "SettingsError",
    "build_schema_text",
    "load_settings",
]
