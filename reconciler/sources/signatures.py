"""Verification of the signatures that a Repository requires. It takes place before an archive is unpacked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.krm.json_text import compute_hash
from reconciler.packages.artifacts import ArtifactRepository, ArtifactVersion, VerifySpec
from reconciler.sources import cosign, provenance
from reconciler.sources.artifact_cache import compute_content_digest
from reconciler.sources.cosign_signatures import CosignSignatures, CosignSigners
from reconciler.sources.credentials import SourceCredentials
from reconciler.sources.verifier_program import create_unavailable_error

if TYPE_CHECKING:
    from reconciler.sources.chart_repository import ChartRepositoryClient
    from reconciler.sources.keyless import KeylessVerifier
    from reconciler.sources.provenance import ProvenanceVerifier
    from reconciler.sources.registry import RegistryClient, RegistryLocation
    from reconciler.sources.version_records import Record, VersionRecords

_KEYRING_SUFFIXES = frozenset({".gpg", ".asc"})


class SignatureVerifier:
    """Verifies manifests and charts. A positive result is stored, and is valid for the same keys and digest only."""

    def __init__(
        self,
        registry: RegistryClient,
        charts: ChartRepositoryClient,
        credentials: SourceCredentials,
        records: VersionRecords,
        provenance_verifier: ProvenanceVerifier,
        keyless_verifier: KeylessVerifier,
    ) -> None:
        self._cosign = CosignSignatures(registry, keyless_verifier)
        self._charts = charts
        self._credentials = credentials
        self._records = records
        self._provenance = provenance_verifier
        self._keyless = keyless_verifier

    def verify_manifest(self, location: RegistryLocation, digest: str) -> None:
        """Verify the signature of the manifest with a digest, if the Repository requires it.

        Raises:
            SourceError: `SignatureMissing`, `SignatureInvalid`, `VerifierUnavailable`, or an error of the registry.
        """
        spec = location.repository.verify
        if spec is None:
            return
        if spec.provider != "cosign":
            raise create_unavailable_error("provenance files need a chart repository over HTTP: use provider cosign")
        files = self._read_keys(location.repository, spec, frozenset({".pub"})) if spec.secret_name else []
        keys = [cosign.load_public_key(content, file.name) for file, content in files]
        trusted_root = self._keyless.read_trusted_root() if spec.identities else b""
        signers = CosignSigners(keys, spec.identities, trusted_root)
        key = f"cosign {location.oci_url}@{digest} {_hash_keys(files)} {signers.keyless_hash}"
        self._records.read(key, lambda _: self._check_cosign(location, digest, signers), is_permanent=True)

    def verify_chart(
        self, repository: ArtifactRepository, name: str, version: ArtifactVersion, archive_digest: str
    ) -> None:
        """Verify the provenance file of a chart, if the Repository requires it.

        Raises:
            SourceError: `SignatureMissing`, `SignatureInvalid`, `VerifierUnavailable`, or an error of the repository.
        """
        spec = repository.verify
        if spec is None:
            return
        if spec.provider != "provenance":
            raise create_unavailable_error("signatures of cosign need an OCI registry: use provider provenance")
        files = self._read_keys(repository, spec, _KEYRING_SUFFIXES)
        keyring = b"".join(provenance.read_keyring(content, file.name) for file, content in files)
        key = f"provenance {repository.url} {name} {version.version} {archive_digest} {_hash_keys(files)}"

        def check(_: Record) -> Record:
            signed = self._provenance.read_digests(self._charts.read_provenance(repository, version), keyring)
            # Compare the name too. Otherwise, the archive of an older version could be offered as a new version.
            found = signed.get(f"{name}-{version.version}.tgz")
            if found != archive_digest:
                raise cosign.create_invalid_error(
                    f"the provenance file must contain {name}-{version.version}.tgz with the digest {archive_digest}, "
                    f"but it contains {found or 'no such file'}"
                )
            return {}

        self._records.read(key, check, is_permanent=True)

    def _check_cosign(self, location: RegistryLocation, digest: str, signers: CosignSigners) -> Record:
        self._cosign.check(location, digest, signers)
        return {}

    def _read_keys(
        self, repository: ArtifactRepository, spec: VerifySpec, suffixes: frozenset[str]
    ) -> list[tuple[Path, bytes]]:
        if not spec.secret_name:
            raise cosign.create_invalid_error("`verify` must name a Secret with keys in `secretRef`")
        folder = self._credentials.find_secret_folder(repository.namespace, spec.secret_name)
        files = sorted(file for file in folder.iterdir() if file.suffix in suffixes and file.is_file())
        if not files:
            names = " or ".join(f"*{suffix}" for suffix in sorted(suffixes))
            raise cosign.create_invalid_error(f"the folder {folder} must contain a key {names}")
        try:
            return [(file, file.read_bytes()) for file in files]
        except OSError as error:
            raise cosign.create_invalid_error(f"a key in {folder} cannot be read: {error.strerror}") from None


def _hash_keys(files: Sequence[tuple[Path, bytes]]) -> str:
    return compute_hash([compute_content_digest(content) for _, content in files])
