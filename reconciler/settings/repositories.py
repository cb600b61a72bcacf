"""Settings of the repositories that contain the config, the packages of clusters, and the status."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.settings.declaration import BranchName, SettingsGroup, UrlWithoutCredentials, declare


class ConfigSettings(SettingsGroup):
    """Location of the config: a Git URL, the path of a bare repository, or a plain folder."""

    url: UrlWithoutCredentials = declare(
        "",
        "The Git URL, the path of a bare repository, or the path of a plain folder that contains the config; the "
        "argument CONFIG overrides this setting.",
    )
    branch: BranchName = declare("main", "The branch of the config repository.")
    directory: str = declare("", "The folder in the repository that contains the config; empty means the root folder.")


class FleetSettings(SettingsGroup):
    """Repository for all clusters that have no Repository object, and the default repository for the status."""

    url: UrlWithoutCredentials = declare(
        "",
        "The Git URL of the repository with the branches of clusters that have no Repository object; this "
        "repository is also the default of status.url.",
    )


class StatusSettings(SettingsGroup):
    """Repository and branch for the status of config objects. If `url` is empty, the fleet repository is used."""

    url: UrlWithoutCredentials = declare(
        "", "The Git URL of the repository with the status branch; empty means the value of fleet.url."
    )
    branch: BranchName = declare(
        "reconciler/status",
        "The name of the status branch, which contains objects/ and summary.yaml; do not deploy this branch to a "
        "cluster.",
    )
    max_children: int = declare(
        1_000,
        "The largest number of package variants of one set with individual status files. If a set has more "
        "variants, only variants with problems have a file.",
        ge=0,
    )
    heartbeat_minutes: int = declare(
        0,
        "The time between two heartbeats, in minutes. After a completed pass, the daemon replaces the commit of the "
        "ref refs/reconciler/heartbeat/<i>-of-<n> for shard i/n in the repository for the status. The date of the "
        "commit shows whether the daemon works. 0 turns heartbeats off.",
        ge=0,
    )


def describe_url_settings() -> Mapping[str, str]:
    """Return the descriptions of the settings `config.url` and `fleet.url`, by the path of the setting."""
    groups: dict[str, type[SettingsGroup]] = {"config": ConfigSettings, "fleet": FleetSettings}
    return {f"{name}.url": group.model_fields["url"].description or "" for name, group in groups.items()}
