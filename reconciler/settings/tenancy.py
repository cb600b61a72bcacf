"""Settings of tenancy: the folder with the Tenant objects, and the rule for files outside of all tenants."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator

from reconciler.settings.declaration import SettingsGroup, declare


class TenancySettings(SettingsGroup):
    """Rights of the teams whose files are in the config. Without Tenant objects, all files have all rights."""

    directory: str = declare(
        "tenants",
        "The folder of the config that contains the Tenant objects. Only the platform team should be able to change "
        "this folder, for example because of a CODEOWNERS file.",
    )
    default: Literal["platform", "deny"] = declare(
        "platform",
        "The rights of config files that are in no folder of a Tenant. `platform`: these files belong to the platform "
        "team and have all rights. `deny`: these files may define only Repositories, clusters and Tenants.",
    )

    @field_validator("directory")
    @classmethod
    def _check_directory(cls, value: str) -> str:
        folder = value.strip("/")
        if not folder or ".." in folder.split("/"):
            raise ValueError('must be a folder of the config, such as "tenants"')
        return folder
