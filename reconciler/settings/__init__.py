"""The settings of the reconciler: models, the loader for file and environment, and the JSON Schema.

`scripts/make_reference.py` generates the list of all settings in `config/reconciler.yaml`, the JSON Schema in
`config/schema.json` and the reference page from the models.
"""

from reconciler.settings.groups import FleetSettings, FunctionSettings, RuleSettings
from reconciler.settings.loading import DEFAULT_FILE, SettingsError, build_schema_text, load_settings
from reconciler.settings.model import Settings
from reconciler.settings.remote_groups import ForgeSettings

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
