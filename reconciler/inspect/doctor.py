"""The checks of `reconciler doctor`: each remote with its credentials, the API of its forge, and the signing key.

The checks contact all remotes and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from reconciler.git.errors import GitError
from reconciler.git.mirror import Mirror
from reconciler.git.remote_check import RemoteCheck
from reconciler.git.remote_credentials import RemoteCredentials
from reconciler.git.url import GitUrl, parse_url
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.envelope import create_cli_metadata
from reconciler.output.findings.entries import build_finding_entries
from reconciler.output.remote_checks import (
    Check,
    ForgeCheck,
    RemoteCheckEntry,
    RemoteCheckResult,
    RemoteUse,
    SigningCheck,
    summarize_checks,
)
from reconciler.reconcile.pass_inputs import ConfigSource
from reconciler.reconcile.services import PassServices

_SETTINGS_USES: Mapping[str, RemoteUse] = {"fleet.url": "fleet.url", "status.url": "status.url"}
_WRITE_USES = frozenset({"target", "fleet.url", "status.url"})


@dataclass(frozen=True)
class DoctorServices:
    """The services of the checks.

    Attributes:
        check_forge: Checks the API of the forge of a repository. Returns None if the repository is on no forge.
        check_signing: Checks the signing key. Returns None if the settings contain no key.
        clock: Returns seconds since 1970.
    """

    open_mirror: Callable[[str], Mirror]
    credentials: RemoteCredentials
    check_forge: Callable[[str], ForgeCheck | None]
    check_signing: Callable[[], SigningCheck | None]
    clock: Callable[[], float]
    max_checks: int = 8


def check_remotes(
    config_url: str, source: ConfigSource, services: PassServices, doctor: DoctorServices
) -> RemoteCheckResult:
    """Check the remotes of the config and of the settings.

    If the config cannot be read, only the remotes of the settings and the config repository are checked.

    Args:
        config_url: The URL of the config repository. "" if the config is a folder.
    """
    uses: dict[str, list[RemoteUse]] = {}
    _add_use(uses, [config_url] if config_url else [], "config")
    for setting, url in services.list_settings_urls().items():
        _add_use(uses, [url] if isinstance(url, str) else [], _SETTINGS_USES[setting])
    config_error = _add_config_uses(uses, source, services)
    with ThreadPoolExecutor(doctor.max_checks) as pool:
        items = tuple(pool.map(partial(_check_remote, doctor), uses, uses.values()))
    return RemoteCheckResult(
        metadata=create_cli_metadata(), items=items, findings=build_finding_entries(services.deprecation_findings),
        summary=summarize_checks(items, config_error, doctor.check_signing()),
    )  # fmt: skip


def _add_config_uses(uses: dict[str, list[RemoteUse]], source: ConfigSource, services: PassServices) -> str:
    """Add the remotes of the config to `uses`. Return "", or the reason why the config cannot be read."""
    try:
        catalog = services.read_catalog(source.read())
    except GitError as error:
        return error.full_message
    upstreams, _ = services.list_urls(catalog)
    _add_use(uses, upstreams, "upstream")
    targets = (target.url for target in services.list_targets(catalog) if target.is_deployment)
    _add_use(uses, sorted({*targets}), "target")
    return ""


def _add_use(uses: dict[str, list[RemoteUse]], urls: Iterable[str], use: RemoteUse) -> None:
    known = {parse_url(url).identity: url for url in uses}
    for url in urls:
        uses.setdefault(known.get(parse_url(url).identity, url), []).append(use)


def _check_remote(doctor: DoctorServices, url: str, uses: Sequence[RemoteUse]) -> RemoteCheckEntry:
    address = parse_url(url)
    entry = doctor.credentials.find_entry(address)
    should_push, is_read_only = not _WRITE_USES.isdisjoint(uses), doctor.credentials.is_read_only(address)
    try:
        push_url = _find_push_url(doctor, address)
        mirror = doctor.open_mirror(url)
        check = mirror.check_remote(doctor.clock, should_push=should_push and not is_read_only)
    except GitError as error:
        push_url, check = "", RemoteCheck(error, None, error)
    return RemoteCheckEntry(
        url=address.text,
        uses=tuple(uses),
        setting=entry.setting if entry else "",
        pattern=entry.url if entry else "",
        push_url=push_url,
        read=_build_check(check.read_error),
        write=_build_write_check(check, should_push=should_push, is_read_only=is_read_only),
        can_push_atomically=check.can_push_atomically,
        can_use_push_options=check.can_use_push_options,
        clock_seconds=None if check.clock_difference is None else round(check.clock_difference),
        forge=doctor.check_forge(url) if should_push else None,
    )


def _find_push_url(doctor: DoctorServices, address: GitUrl) -> str:
    push_url = doctor.credentials.get_url(address, "write")
    return "" if push_url == address else push_url.text


def _build_write_check(check: RemoteCheck, *, should_push: bool, is_read_only: bool) -> Check:
    if not should_push:
        return Check(status="notRequired")
    if is_read_only:
        return Check(status="readOnly", message="add `write` to the entry")
    return _build_check(check.write_error)


def _build_check(error: GitError | None) -> Check:
    return Check(status="failed", message=error.full_message) if error else Check(status="ok")
