"""Construction of the services of `reconciler doctor`."""

from __future__ import annotations

from reconciler.bootstrap.options import build_allowed_signers, build_signing_options
from reconciler.bootstrap.services import build_services
from reconciler.git.source import RepositorySource
from reconciler.inspect.doctor import DoctorServices, check_remotes
from reconciler.inspect.signing_check import check_signing_key
from reconciler.output.remote_checks import RemoteCheckResult, SigningCheck
from reconciler.settings import Settings


def run_checks(settings: Settings, config: str) -> RemoteCheckResult:
    """Check the remotes of the settings and of a config, and the signing key.

    Raises:
        GitError: The URL of the config cannot be used, or the folder of the config cannot be read.
    """
    services = build_services(settings, config)
    inputs = services.inputs
    doctor = DoctorServices(
        inputs.open_mirror, inputs.credentials, inputs.forges.check_api, lambda: _check_signing(settings),
        inputs.clock, settings.git.max_fetches,
    )  # fmt: skip
    config_url = inputs.source.url.connection_url if isinstance(inputs.source, RepositorySource) else ""
    with services.remotes:
        return check_remotes(config_url, services.source, services.pass_services, doctor)


def _check_signing(settings: Settings) -> SigningCheck | None:
    options = build_signing_options(settings)
    return check_signing_key(options, build_allowed_signers(settings)) if options else None
