"""Settings of sources outside of Git: chart repositories, OCI registries, and the programs that render."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import field_validator, model_validator

from reconciler.krm import field_text
from reconciler.settings.declaration import SettingList, SettingsGroup, UrlWithoutCredentials, declare
from reconciler.settings.source_programs import HelmSettings, KustomizeSettings

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:@/\[\]]+)(:\d{1,5})?")
_PROXY = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[^\s:@/\[\]]+)(:\d{1,5})?/?")


class SourceLimitSettings(SettingsGroup):
    """Limits of sources. A source that exceeds a limit is refused."""

    archive_bytes: int = declare(67_108_864, "The size limit of one downloaded archive, in bytes.", ge=1_024)
    unpacked_bytes: int = declare(268_435_456, "The size limit of all files of one archive, in bytes.", ge=1_024)
    files: int = declare(20_000, "The largest number of files and folders in one archive.", ge=1)
    file_bytes: int = declare(16_777_216, "The size limit of one file in an archive, in bytes.", ge=1_024)
    compression_ratio: int = declare(
        200,
        "The largest ratio of the unpacked size to the packed size of an archive. The limit applies only to archives "
        "with more than 4 MiB of unpacked content.",
        ge=2,
    )
    index_bytes: int = declare(67_108_864, "The size limit of the index of a chart repository, in bytes.", ge=1_024)
    tags: int = declare(10_000, "The largest number of tags of one artifact in a registry.", ge=1)


class MirrorSettings(SettingsGroup):
    """A mirror of all repositories whose URL starts with `prefix`."""

    prefix: UrlWithoutCredentials
    url: UrlWithoutCredentials
    insecure: bool = False

    @model_validator(mode="after")
    def _check_schemes(self) -> MirrorSettings:
        schemes = [text.partition("://")[0] for text in (self.prefix, self.url)]
        if not {*schemes} <= {"oci", "https", "http"} or ("oci" in schemes and schemes[0] != schemes[1]):
            raise ValueError("must contain two oci:// URLs, or two https:// or http:// URLs")
        return self


class SourceSettings(SettingsGroup):
    """Settings of chart repositories and OCI registries."""

    allowed_urls: SettingList[UrlWithoutCredentials] = declare(
        (),
        "The chart repositories and registries that the reconciler can read, as complete URLs, URLs of parent folders "
        "or globs. The URLs of registries start with oci://. Redirects, token services and the URLs in the index of a "
        "chart repository must match too. An empty list allows all https URLs.",
    )
    insecure_hosts: SettingList[str] = declare(
        (),
        "The hosts that can be contacted with http instead of https, as host or host:port. Loopback addresses are "
        "always allowed.",
    )
    credentials_file: str = declare(
        "",
        "A file with lines of the form https://user:token@host, the format of git-credential-store. A path after the "
        "host limits a line to the repositories below that path. The credentials are sent only to the URLs of "
        "Repositories and to URLs below them.",
    )
    docker_config: str = declare(
        "",
        "A config.json of Docker. Only its `auths` are used. Credential helpers are not started. The credentials are "
        "sent only to the URLs of Repositories and to URLs below them.",
    )
    secrets_directory: str = declare(
        "",
        "The folder that contains the Secrets which Repositories name. The folder NAMESPACE/NAME contains the keys of "
        "one Secret as files.",
    )
    poll_seconds: float = declare(
        300.0, "The time after which a list of versions is requested again, in seconds.", ge=0, le=86_400
    )
    timeout_seconds: float = declare(60.0, "The time limit of one request or download, in seconds.", gt=0, le=3_600)
    cache_bytes: int = declare(
        2_147_483_648,
        "The size above which the least recently used archives are deleted from the cache, in bytes. Archives of "
        "published and drafted packages are kept.",
        ge=0,
    )
    max_per_package: int = declare(8, "The largest number of sources of one package (`spec.sources`).", ge=1, le=100)
    mirrors: SettingList[MirrorSettings] = declare(
        (),
        "Mirrors for machines without access to the original hosts, for example [{prefix: "
        "oci://registry.example.com/, url: oci://mirror.internal/}]. The first mirror whose prefix is the start of a "
        "URL replaces this prefix. The field insecure: true lets the reconciler contact a mirror at an oci:// URL with "
        "http.",
    )
    sandbox: Literal["auto", "require", "none"] = declare(
        "auto",
        "Whether programs that render sources run without network access. auto: if the machine supports it. require: "
        "always; on a machine without this support, these programs do not run. none: never.",
    )
    helm: HelmSettings = HelmSettings()
    kustomize: KustomizeSettings = KustomizeSettings()
    proxy: UrlWithoutCredentials = declare(
        "",
        "The URL of the HTTP proxy for chart repositories and registries, for example http://proxy.example.com:3128. "
        "Loopback addresses are contacted directly. Empty means no proxy. Environment variables with proxies have no "
        "effect.",
    )
    trusted_root: str = declare(
        "",
        "The file trusted_root.json with the certificates and public keys of Sigstore, for keyless signatures. The "
        "services of Sigstore are not contacted.",
    )
    limits: SourceLimitSettings = SourceLimitSettings()

    @field_validator("proxy")
    @classmethod
    def _check_proxy(cls, value: str) -> str:
        if value and not _PROXY.fullmatch(value):
            raise ValueError("must be a URL such as http://proxy.example.com:3128")
        return value

    @field_validator("insecure_hosts")
    @classmethod
    def _check_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for host in value:
            if not _HOST.fullmatch(host):
                raise ValueError(
                    f'must contain hosts such as "registry.internal:5000", but contains {field_text.quote_value(host)}'
                )
        return tuple(host.lower() for host in value)
