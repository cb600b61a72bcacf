"""Construction of the reader of charts and artifacts."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from reconciler.bootstrap.options import INITIAL_BACKOFF_SECONDS
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.settings import Settings
from reconciler.sources.addresses import AddressPolicy
from reconciler.sources.artifacts import ArtifactOptions, Artifacts
from reconciler.sources.credentials import SourceCredentials
from reconciler.sources.keyless import KeylessVerifier
from reconciler.sources.limits import SourceLimits
from reconciler.sources.mirrors import Mirror
from reconciler.sources.programs import ProgramFinder, ProgramRunner
from reconciler.sources.provenance import ProvenanceVerifier
from reconciler.sources.verifier_program import VerifierProgram

_COSIGN_INSTALL_COMMAND = "go install github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3"


def build_artifacts(
    settings: Settings, *, is_offline: bool = False, clock: Callable[[], float] = time.time
) -> Artifacts:
    """Build the reader of charts and artifacts from the settings group `sources`.

    Args:
        clock: Returns the seconds since 1970.
    """
    sources = settings.sources
    options = ArtifactOptions(
        policy=AddressPolicy(sources.allowed_urls, sources.insecure_hosts),
        limits=SourceLimits(**sources.limits.model_dump()),
        poll_seconds=sources.poll_seconds,
        timeout_seconds=sources.timeout_seconds,
        cache_bytes=sources.cache_bytes,
        mirrors=tuple(Mirror(mirror.prefix, mirror.url, mirror.insecure) for mirror in sources.mirrors),
        proxy=sources.proxy,
        is_offline=is_offline,
    )
    credentials = SourceCredentials(sources.secrets_directory, sources.credentials_file, sources.docker_config)
    backoff = Backoff(INITIAL_BACKOFF_SECONDS, settings.max_backoff_seconds, time.monotonic)
    runner = ProgramRunner(sources.sandbox)
    gpgv = VerifierProgram("gpgv", ProgramFinder("gpgv", None, ""), runner, "apt-get install gpgv")
    cosign = VerifierProgram("cosign", ProgramFinder("cosign", None, ""), runner, _COSIGN_INSTALL_COMMAND)
    return Artifacts(
        Path(settings.cache).expanduser(), options, credentials, backoff, ProvenanceVerifier(gpgv),
        KeylessVerifier(cosign, sources.trusted_root), clock,
    )  # fmt: skip
