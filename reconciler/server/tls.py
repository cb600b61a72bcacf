"""The TLS certificate of the HTTP server. Changed files apply to new connections without a restart."""

from __future__ import annotations

import ssl
from pathlib import Path

from reconciler.credential_files import FileVersion, read_file_version
from reconciler.server import certificate_expiry
from reconciler.telemetry.credential_expiry import record_credential_expiry
from reconciler.telemetry.event_log import log


class CertificateError(Exception):
    """The files of a certificate cannot be used. The message contains their names."""


CertificateFiles = tuple[Path, Path]
"""The file with the certificate chain, and the file with the private key."""


class ServerCertificate:
    """A certificate with its private key, as an SSL context for a server.

    Attributes:
        context: The SSL context of the server. It contains the current certificate.

    Raises:
        CertificateError: The files cannot be used when the object is created.
    """

    def __init__(self, files: CertificateFiles) -> None:
        self.files = files
        self._version = self._read_version()
        try:
            self.context = _create_context(files)
        except (OSError, ValueError) as error:
            raise CertificateError(_describe_error(files, error)) from None
        self._record_expiry()

    async def reload_if_changed(self) -> None:
        """Use the current content of the files for new connections. If they are not valid, use the old certificate."""
        version = self._read_version()
        if version == self._version:
            return
        self._version = version
        try:
            # Load the files into a new context first, because a failed load would change the context that the server
            # uses.
            _create_context(self.files)
            self.context.load_cert_chain(*self.files, password="")
        except (OSError, ValueError) as error:
            log.error("certificate_unreadable", message=_describe_error(self.files, error))
        else:
            self._record_expiry()
            log.info("certificate_reloaded", file=str(self.files[0]))

    def _record_expiry(self) -> None:
        expiry = certificate_expiry.read_expiry(self.files[0])
        record_credential_expiry("server", "tls", expiry or 0)

    def _read_version(self) -> tuple[FileVersion | None, ...]:
        return tuple(map(read_file_version, self.files))


def _create_context(files: CertificateFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Without a password, OpenSSL would ask for the password of an encrypted key at the terminal.
    context.load_cert_chain(*files, password="")
    return context


def _describe_error(files: CertificateFiles, error: Exception) -> str:
    certificate, key = files
    reason = error.reason if isinstance(error, ssl.SSLError) else getattr(error, "strerror", None) or error
    return (
        f"{certificate}, {key}: must be a certificate chain and its private key without a password, in the format PEM:"
        f" {reason}"
    )
